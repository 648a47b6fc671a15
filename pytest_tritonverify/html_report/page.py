"""The page's HTML, and how it gets to disk.

Nothing of a candidate's reaches the page but as escaped text. A content security policy that names
the digests of the page's own style and script keeps everything else from running, and all of it
from being fetched.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from importlib import resources
from typing import TYPE_CHECKING

import jinja2
from markupsafe import Markup

from pytest_tritonverify.html_report import drawing, text, view
from pytest_tritonverify.results import result_file
from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_tritonverify.html_report.subjects import Subject

_GLYPHS = {"passed": "✓", "failed": "✗", "warned": "!", "skipped": "–", "unjudged": "?"}


def html(subjects: Sequence[Subject]) -> str:
    """Return the page about some pairs, whole and self-contained."""
    style, script = _part("page.css"), _part("page.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; "
        f"script-src {_digest(script)}; base-uri 'none'; form-action 'none'"
    )
    # Both are files of this package.
    inline = {"style": Markup(style), "script": Markup(script)}  # noqa: S704
    page = view.page(subjects)
    rendered: str = (
        _environment()
        .get_template("page.html.j2")
        .render(page=page, policy=policy, histogram_width=drawing.HISTOGRAM_WIDTH, **inline)
    )
    return rendered


def write(path: Path, subjects: Sequence[Subject]) -> None:
    """Write the page so that a reader finds the old one or the whole new one.

    Raises:
        files.FileError: it can't be written.
    """
    try:
        result_file.make_folder(path.parent)
    except OSError as error:
        raise files.FileError(f"{path} can't be written: {error.strerror or error}") from None
    files.write_text(path, html(subjects))


def _part(name: str) -> str:
    found = (resources.files(__package__) / "templates" / name).read_text("utf-8")
    # The newlines around it count for its digest.
    return f"\n{found}"


def _digest(content: str) -> str:
    digest = hashlib.sha256(content.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["glyphs"] = _GLYPHS
    environment.filters["plural"] = text.plural
    return environment
