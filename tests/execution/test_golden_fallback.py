"""A golden that can't be computed on the CPU is computed on the accelerator."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import torch

from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.devices import DEVICES, SEED, Device
from pytest_tritonverify.execution.reference import Reference
from pytest_tritonverify.execution.worker import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TASK = """
import torch

CALLS = []

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3))
        CALLS.append("build")

    def forward(self, x):
        CALLS.append("forward")
        x.add_(1.0)
        if CALLS.count("forward") <= {failures}:
            raise {error}
        return x * self.weight + torch.randn(3)

def get_inputs():
    return [torch.randn(3)]
"""


class Accelerator(Device):
    """A device of another name on which torch computes as on the CPU."""

    name = "cpu:0"

    def __init__(self) -> None:
        self.done: list[str] = []

    def facts(self) -> dict[str, Any]:
        return {"available": True}

    def seed(self, seed: int = SEED) -> None:
        self.done.append("seed")
        super().seed()

    def synchronize(self) -> None:
        self.done.append("synchronize")

    def release(self) -> None:
        self.done.append("release")


@pytest.fixture
def accelerator(monkeypatch: pytest.MonkeyPatch) -> Accelerator:
    device = Accelerator()
    monkeypatch.setitem(DEVICES, "accelerator", device)
    return device


@pytest.fixture(autouse=True)
def _modules() -> Iterator[None]:
    """Take out again what loading a task in this process leaves behind."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def fds() -> Iterator[list[int]]:
    """Descriptors to close in the end."""
    opened: list[int] = []
    yield opened
    for fd in opened:
        os.close(fd)


def _golden(
    folder: Path, fds: list[int], failures: int, error: str = "RuntimeError('not on a CPU')"
) -> tuple[dict[str, Any], Any]:
    """Return the answer to `golden`, and the output."""
    path = folder / "op_torch.py"
    path.write_text(textwrap.dedent(TASK).format(failures=failures, error=error))
    request = {"task": str(path), "op_name": "op", "device": "accelerator"}
    reference = Reference(request, Phase(None))
    inputs, fd = reference.do_inputs({"case_idx": 1}, None)
    fds.append(fd)
    answer, result = reference.do_golden({"case": inputs["case"]}, fd)
    fds.append(result)
    return answer, tensors.unpack(answer["result"], result)["outputs"]


def _expected() -> torch.Tensor:
    torch.manual_seed(0)
    x = torch.randn(3)
    torch.manual_seed(0)
    weight = torch.randn(3)
    torch.manual_seed(0)
    return (x + 1.0) * weight + torch.randn(3)


def test_golden_is_computed_on_the_cpu_first(
    accelerator: Accelerator, tmp_path: Path, fds: list[int]
) -> None:
    answer, output = _golden(tmp_path, fds, 0)
    assert answer["golden_device"] == "cpu"
    assert "fallback" not in answer
    assert torch.equal(output, _expected())
    # Seeds are set on the accelerator's generators as well; nothing is computed there.
    assert set(accelerator.done) == {"seed"}


def test_golden_falls_back_with_everything_made_anew(
    accelerator: Accelerator, tmp_path: Path, fds: list[int]
) -> None:
    answer, output = _golden(tmp_path, fds, 1)
    assert answer["golden_device"] == "cpu:0"
    assert (answer["fallback"]["type"], answer["fallback"]["phase"]) == ("RuntimeError", "forward")
    assert "not on a CPU" in answer["fallback"]["message"]
    assert answer["fallback"]["line"] == TASK[: TASK.index("raise")].count("\n") + 1
    assert torch.equal(output, _expected())
    assert accelerator.done[-2:] == ["synchronize", "release"]


def test_failure_on_both_devices_is_the_accelerators(
    accelerator: Accelerator, tmp_path: Path, fds: list[int]
) -> None:
    with pytest.raises(ValueError, match="call 2"):
        _golden(tmp_path, fds, 9, "ValueError(f'call {CALLS.count(\"forward\")}')")
    assert accelerator.done


def test_exit_is_no_reason_to_try_again(
    accelerator: Accelerator, tmp_path: Path, fds: list[int]
) -> None:
    with pytest.raises(SystemExit):
        _golden(tmp_path, fds, 1, "SystemExit(3)")
    assert "synchronize" not in accelerator.done


def test_on_the_cpu_alone_there_is_nowhere_to_fall_back_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fds: list[int]
) -> None:
    monkeypatch.setitem(DEVICES, "accelerator", DEVICES["cpu"])
    with pytest.raises(RuntimeError, match="not on a CPU"):
        _golden(tmp_path, fds, 1)


def test_inputs_keep_layout_and_aliases_on_another_device() -> None:
    base = torch.arange(12.0).reshape(3, 4)
    tree = [base.t(), base[1:, ::2], torch.ones(1).expand(5), torch.empty(0, 3)]
    packed = tensors.pack(tree, keep_layout=True)
    found = tensors.unpack(packed.spec, packed.fd, "cpu:0")
    packed.close()
    for old, new in zip(tree, found, strict=True):
        assert torch.equal(old, new)
        assert (old.stride(), old.storage_offset()) == (new.stride(), new.storage_offset())
    found[0][0, 1] = 99.0
    assert found[1][0, 0] == 99.0
    assert base[1, 0] == 4.0
