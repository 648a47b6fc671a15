"""What the tests of the plugin's behaviour under pytest share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.runs import Runner

if TYPE_CHECKING:
    from tests.support.warm_start import WarmStart


@pytest.fixture
def runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, warm_start: WarmStart
) -> Runner:
    """Runs pytest with the plugin in an empty folder."""
    return Runner(pytester, monkeypatch, warm_start)
