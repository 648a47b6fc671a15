"""Runs on the emulated NPU as a user starts them: in fresh processes, or in pytest's own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify import detection
from pytest_tritonverify.engine import DeviceMissingError, Engine
from pytest_tritonverify.settings import Settings
from tests.support.emulated_npu import emulated, write_installation
from tests.support.npu import KERNEL
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Runner

pytestmark = emulated

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((8,), 2.0))

    def forward(self, x):
        return x * self.weight

def get_inputs():
    return [torch.randn(3, 8).npu()]
"""
IMPLEMENTATION = (
    KERNEL
    + """
class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((8,), 2.0))

    def forward(self, x):
        return twice(x)
"""
)


def test_every_role_is_a_fresh_process(runner: Runner) -> None:
    write_pair(runner.path / "ops", TASK, IMPLEMENTATION)
    runner.checks = True
    run = runner.run("--verify-dir=ops", "--verify-device=npu")
    assert run.code == 0, run.out
    assert set(run.by_name) == {"degeneration", "hidden_state", "case1-float32-3x8", "execution"}
    assert "1 pair, device npu (Ascend910B4)" in run.out
    result = json.loads((runner.path / "ops" / "verify_result.json").read_text())
    assert result["hidden_state"]["status"] == "passed"
    assert result["cases"][0]["golden_device"] == "cpu"


def test_everything_in_pytests_own_process(runner: Runner) -> None:
    write_pair(runner.path / "ops", TASK, IMPLEMENTATION)
    run = runner.run("--verify-dir=ops", "--verify-device=npu", "--verify-in-process")
    assert run.code == 0, run.out


def _engine(device: str) -> Engine:
    return Engine(Settings(device=device), None, frozenset())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]) -> pytest.MonkeyPatch:
    """The test's own process on the emulated server, with device files of an NPU and a GPU."""
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "none")
    for entry in reversed(surroundings["PYTHONPATH"].split(":")):
        monkeypatch.syspath_prepend(entry)
    monkeypatch.setattr(detection, "signs_of", lambda device: [f"/dev/{device}0"])
    return monkeypatch


@pytest.mark.usefixtures("server")
def test_an_npu_is_preferred() -> None:
    engine = _engine("auto")
    engine.close()
    assert engine.device.name == "npu"
    assert engine.device_facts["name"] == "Ascend910B4"
    assert engine.passed_over == {}


def test_an_npu_that_cannot_be_used_is_passed_over_aloud(server: pytest.MonkeyPatch) -> None:
    server.setenv("EMULATED_NPU_BUSY", "1")
    engine = _engine("auto")
    engine.close()
    assert engine.device.name == "cpu"
    assert "error code is 507033" in engine.passed_over["npu"]
    # The GPU was asked for, too.
    assert "cuda" in engine.passed_over


def test_an_npu_that_was_asked_for_is_not_replaced(server: pytest.MonkeyPatch) -> None:
    server.setenv("ASCEND_RT_VISIBLE_DEVICES", "9")
    with pytest.raises(DeviceMissingError) as refused:
        _engine("npu")
    said = str(refused.value)
    assert "--verify-device=npu: there is none. torch_npu" in said
    assert "sees no NPU (ASCEND_RT_VISIBLE_DEVICES='9')" in said
    assert "found /dev/npu0, ASCEND_HOME_PATH=" in said
    assert "Use --verify-device=cpu" in said


def test_a_torch_npu_that_crashes_is_explained_by_its_version(
    server: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = tmp_path / "torch_npu"
    package.mkdir()
    (package / "__init__.py").write_text("import os; os.abort()")
    write_installation(tmp_path, "torch_npu", "1.11.0")
    server.syspath_prepend(tmp_path)
    with pytest.raises(DeviceMissingError) as refused:
        _engine("npu")
    said = str(refused.value)
    assert "killed by signal 6 (SIGABRT)" in said
    assert "torch_npu 1.11.0 don't belong together" in said
    assert "\n" not in said
