"""One fork server for the examinations of this folder: starting one takes seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """A fork server for Triton's interpreter."""
    host = Host(HostConfig(DEVICES["cpu"], fork=True))
    assert host.problems() == {}
    yield host
    host.close()
