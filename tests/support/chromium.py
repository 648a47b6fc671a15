"""Open a page in Debian's headless Chromium and look at what became of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 120
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)


def find() -> str | None:
    """Return the browser; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Opened:
    """What the browser made of a page: its document at the end, and what it complained of."""

    dom: str
    console: list[str]


def run(address: str, *flags: str, width: int = 1280, height: int = 900) -> Opened:
    """Open an address in a browser without a past, and wait until it has loaded."""
    browser = find()
    assert browser is not None
    with tempfile.TemporaryDirectory(prefix="chromium-") as profile:
        ended = subprocess.run(
            [
                browser,
                *_FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={width},{height}",
                *flags,
                address,
            ],
            check=True,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=PATIENCE,
        )
    console = [line for line in ended.stderr.splitlines() if "CONSOLE" in line]
    return Opened(ended.stdout, console)


def dump(page: Path, fragment: str = "", width: int = 1280) -> Opened:
    """Open a file and return its document once its script has run."""
    return run(f"{page.as_uri()}#{fragment}", "--dump-dom", width=width)


def screenshot(page: Path, picture: Path, fragment: str, width: int, height: int) -> None:
    """Open a file and take a picture of it."""
    address = f"{page.as_uri()}#{fragment}"
    run(address, f"--screenshot={picture}", width=width, height=height)
