"""What the tests of the execution layer share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.workers import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.host import Host


@pytest.fixture
def bench(host: Host) -> Iterator[Bench]:
    """Starts workers on the shared fork server."""
    bench = Bench(host)
    yield bench
    bench.close()
