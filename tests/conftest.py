"""Processes that take seconds to start, and that tests share where the start is not what counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.warm_start import WarmStart
from tests.support.workers import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def warm_start() -> Iterator[WarmStart]:
    """Starts runs of pytest in a moment."""
    warm = WarmStart()
    yield warm
    warm.close()


@pytest.fixture(scope="session")
def cpu_host() -> Iterator[Host]:
    """A fork server for Triton's interpreter."""
    host = Host(HostConfig(DEVICES["cpu"], fork=True, process_limit=PROCESSES))
    assert host.problems() == {}
    yield host
    host.close()
