"""What the tests of benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.measuring import MeasuringBench
from tests.support.runs import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.warm_start import WarmStart


@pytest.fixture
def runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, warm_start: WarmStart
) -> Runner:
    """Runs pytest with the plugin in an empty folder."""
    return Runner(pytester, monkeypatch, warm_start)


@pytest.fixture
def cuda_measuring() -> Iterator[MeasuringBench]:
    """Measures pairs on a GPU."""
    host = Host(HostConfig(DEVICES["cuda"], fork=True))
    bench = MeasuringBench(host)
    yield bench
    bench.close()
    host.close()


@pytest.fixture
def measuring(host: Host) -> Iterator[MeasuringBench]:
    """Measures pairs in real worker processes."""
    bench = MeasuringBench(host)
    yield bench
    bench.close()
