"""Where tests judge, and processes that they share, since to start one takes seconds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.device import DEVICE, reasons
from tests.support.runs import Runner
from tests.support.warm_start import WarmStart
from tests.support.workers import PROCESSES

if TYPE_CHECKING:
    from collections.abc import Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what can't hold on the device that was asked for."""
    for start, reason in reasons().items():
        for item in items:
            if item.nodeid.startswith(start):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let everything run on the emulated Ascend server, where that is asked for."""
    with pytest.MonkeyPatch.context() as patch:
        if DEVICE == "npu":
            from tests.support import emulated_npu

            surroundings = emulated_npu.environment(tmp_path_factory.mktemp("ascend"))
            for name, value in surroundings.items():
                patch.setenv(name, value)
            patch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
            for entry in reversed(surroundings["PYTHONPATH"].split(os.pathsep)):
                patch.syspath_prepend(entry)
        yield


@pytest.fixture(scope="session")
def warm_start() -> Iterator[WarmStart]:
    """Starts runs of pytest in a moment."""
    warm = WarmStart()
    yield warm
    warm.close()


@pytest.fixture
def runner(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, warm_start: WarmStart
) -> Runner:
    """Runs pytest with the plugin in an empty folder."""
    return Runner(pytester, monkeypatch, warm_start)


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """A fork server."""
    host = Host(HostConfig(DEVICES[DEVICE], fork=True, process_limit=PROCESSES))
    assert host.problems() == {}
    yield host
    host.close()
