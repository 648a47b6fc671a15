"""Where the plugin keeps its state on pytest's objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tritonverify.session import VerifySession

session_key: pytest.StashKey[VerifySession] = pytest.StashKey()

WORKER_KEY = "tritonverify"
"""Under this a worker of pytest-xdist gets what its controller has found out, and the other way."""
