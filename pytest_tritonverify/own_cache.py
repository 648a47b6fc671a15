"""Triton caches that a run makes for itself."""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

logger = logging.getLogger("pytest_tritonverify")

VARIABLE = "TRITON_CACHE_DIR"
# Each hands Triton's cache to other code, which need not go by `VARIABLE`.
REDIRECTIONS = ("TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND")
_PREFIX = "triton_verify_cache_"


def own_cache() -> str:
    """Make an empty folder for compiled kernels, and return its absolute path."""
    folder = str(Path(tempfile.mkdtemp(prefix=_PREFIX)).absolute())
    logger.info("本次验证使用独立 Triton 缓存目录: %s", folder)
    return folder


def redirected() -> str | None:
    """Say what keeps an own folder from being used, if anything."""
    found = [name for name in REDIRECTIONS if os.environ.get(name, "").strip()]
    if not found:
        return None
    return (
        f"{' and '.join(found)} is set, so {VARIABLE} need not decide where Triton's cache is: "
        "the empty cache may not be used (cache.fresh_effective)"
    )
