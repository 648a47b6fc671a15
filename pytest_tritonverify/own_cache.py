"""Triton caches that a run makes for itself."""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from pathlib import Path

from pytest_tritonverify.execution import scratch

logger = logging.getLogger("pytest_tritonverify")

VARIABLE = "TRITON_CACHE_DIR"
# Each hands Triton's cache to other code, which need not go by `VARIABLE`.
REDIRECTIONS = ("TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND")
_PREFIX = "triton_verify_cache_"
# One with the sticky bit goes when nobody holds it any more, one without is there to stay.
_FLEETING = stat.S_IRWXU | stat.S_ISVTX
_held: dict[str, int] = {}


def own_cache() -> str:
    """Make an empty folder for compiled kernels, and return its absolute path.

    It belongs to this process: where that is killed, the next run that makes one removes it.
    """
    made, handle = scratch.make(_PREFIX, _FLEETING)
    folder = str(Path(made).absolute())
    _held[folder] = handle
    logger.info("本次验证使用独立 Triton 缓存目录: %s", folder)
    return folder


def keep(folder: str) -> None:
    """Let a folder outlive its run."""
    with contextlib.suppress(OSError):
        Path(folder).chmod(stat.S_IRWXU)


def discard(folder: str) -> None:
    """Remove a folder."""
    scratch.remove(folder)
    handle = _held.pop(folder, None)
    if handle is not None:
        os.close(handle)


def redirected() -> str | None:
    """Say what keeps an own folder from being used, if anything."""
    found = [name for name in REDIRECTIONS if os.environ.get(name, "").strip()]
    if not found:
        return None
    return (
        f"{' and '.join(found)} is set, so {VARIABLE} need not decide where Triton's cache is: "
        "the empty cache may not be used (cache.fresh_effective)"
    )
