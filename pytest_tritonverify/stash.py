"""Where the plugin keeps its state on pytest's objects."""

from __future__ import annotations

import pytest

from pytest_tritonverify.session import VerifySession

session_key = pytest.StashKey[VerifySession]()
