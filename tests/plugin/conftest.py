"""What the tests of the plugin's behaviour under pytest share."""

from __future__ import annotations

import pytest

from tests.support.runs import Runner


@pytest.fixture
def runner(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Runner:
    """Runs pytest with the plugin in an empty folder."""
    return Runner(pytester, monkeypatch)
