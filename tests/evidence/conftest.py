"""What the tests of examinations share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_tritonverify.execution.host import Host


@pytest.fixture(scope="session")
def host(cpu_host: Host) -> Host:
    """A fork server for Triton's interpreter."""
    return cpu_host
