"""One fork server for all tests of the execution layer: starting one takes seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.workers import PROCESSES, Bench

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """A fork server for Triton's interpreter."""
    host = Host(HostConfig(DEVICES["cpu"], fork=True, process_limit=PROCESSES))
    assert host.problems() == {}
    yield host
    host.close()


@pytest.fixture
def bench(host: Host) -> Iterator[Bench]:
    """Starts workers on the shared fork server."""
    bench = Bench(host)
    yield bench
    bench.close()
