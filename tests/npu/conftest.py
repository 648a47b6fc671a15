"""An emulated Ascend server for the tests of this folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support import emulated_npu
from tests.support.npu import Server
from tests.support.runs import Runner

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of the emulated server."""
    return emulated_npu.environment(tmp_path_factory.mktemp("ascend"))


@pytest.fixture
def runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]
) -> Runner:
    """Runs pytest with the plugin on the emulated server."""
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    return Runner(pytester, monkeypatch)


@pytest.fixture(scope="session")
def npu_host(surroundings: dict[str, str]) -> Iterator[Host]:
    """A fork server on the emulated server: there nothing speaks against forking."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in surroundings.items():
            patch.setenv(name, value)
        patch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
        for entry in reversed(surroundings["PYTHONPATH"].split(os.pathsep)):
            patch.syspath_prepend(entry)
        host = Host(HostConfig(DEVICES["npu"], fork=True))
        assert host.problems() == {}
    yield host
    host.close()


@pytest.fixture
def npu(npu_host: Host) -> Iterator[Server]:
    """Judges pairs on the emulated device, whatever goes wrong with it."""
    server = Server(npu_host)
    yield server
    server.close()
