"""What the tests of benchmarks share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.measuring import MeasuringBench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.host import Host


@pytest.fixture
def measuring(host: Host) -> Iterator[MeasuringBench]:
    """Measures pairs in real worker processes."""
    bench = MeasuringBench(host)
    yield bench
    bench.close()
