"""A fork server for probes, and modules whose models are scanned right here."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import detection
from pytest_tritonverify.execution import loading
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.device import DEVICE
from tests.support.probing import HEAD, Prober

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


_FOUND = [DEVICE, *detection.likely(("cuda",))]


@pytest.fixture(scope="session", params=_FOUND)
def probed_host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """The fork server, and one for the GPU where there is one."""
    if request.param == DEVICE:
        yield request.getfixturevalue("host")
        return
    host = Host(HostConfig(DEVICES[request.param], fork=True))
    assert host.problems() == {}
    yield host
    host.close()


@pytest.fixture
def probe(probed_host: Host, tmp_path: Path) -> Prober:
    """Probes pairs that are written for a test."""
    return Prober(probed_host, tmp_path / "pair")


@pytest.fixture
def author(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Return a function that loads source text as a file of the author of a model."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def load(source: str) -> Any:
        path = tmp_path / "authored.py"
        path.write_text(HEAD + textwrap.dedent(source))
        monkeypatch.setitem(sys.modules, "authored", None)
        del sys.modules["authored"]
        return loading.load_module(path)

    return load
