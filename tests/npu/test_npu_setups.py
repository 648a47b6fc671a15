"""Set-ups that go wrong are explained in a sentence, and pairs are still judged on the CPU."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify import ascend
from tests.support.emulated_npu import write_cann, write_installation
from tests.support.pairs import write_pair
from tests.support.runs import Runner

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Run

# What dlopen says where CANN was not sourced, seen with torch_npu 2.13.0 beside torch 2.13.0.
NO_CANN = "libhccl.so: cannot open shared object file: No such file or directory"
# The words that torch_npu before 2.9 adds.
NO_CANN_BEFORE = (
    f"{NO_CANN}. Please check that the cann package is installed. Please run 'source set_env.sh' "
    "in the CANN installation path.\n[ERROR] 2026-01-01-00:00:00 (PID:1, Device:-1, RankID:-1) "
    "ERR00008 PTA resource not found"
)
# The same, seen with libraries in the place of CANN's that lack everything.
OTHER_CANN = "torch_npu/lib/libnpu_profiler.so: undefined symbol: aclAppLog"
TORCH = importlib.metadata.version("torch").partition("+")[0]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages that look installed, ahead of those that are."""
    folder = tmp_path / "installed"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    # One that another test has imported would be taken for the one that is installed.
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    return folder


@pytest.mark.parametrize(
    ("text", "environment", "said"),
    [
        (NO_CANN, {}, "CANN is not set up (ASCEND_HOME_PATH is not set): source"),
        (NO_CANN_BEFORE, {}, "CANN is not set up (ASCEND_HOME_PATH is not set): source"),
        (NO_CANN, {"ASCEND_HOME_PATH": ""}, "CANN is not set up"),
        (NO_CANN, {"ASCEND_HOME_PATH": "/no/such/folder"}, "there is no such folder"),
        (NO_CANN, {"ASCEND_HOME_PATH": "/"}, "libhccl.so is not on LD_LIBRARY_PATH"),
        (
            "libascend_hal.so: cannot open shared object file: No such file or directory",
            {"ASCEND_HOME_PATH": "/"},
            "/usr/local/Ascend/driver/lib64/driver",
        ),
        (OTHER_CANN, {"ASCEND_HOME_PATH": "/"}, "built for another torch or another CANN"),
        ("No module named 'torch_npu'", {}, f"pip install torch_npu=={TORCH}"),
        ("No module named 'yaml'", {}, "install yaml, which torch_npu or triton-ascend needs"),
        (
            "Two accelerators cannot be used at the same time in PyTorch: npu and cuda.",
            {},
            "install its CPU build",
        ),
        ("NPU out of memory. Tried to allocate 2.00 MiB", {}, "other processes use the device"),
        ("SetDevice error code is 507033", {}, "the device can't be opened"),
        ("Invalid device ID.", {}, "the device can't be opened"),
    ],
)
def test_advice(text: str, environment: dict[str, str], said: str) -> None:
    advice = ascend.by_text(text, environment)
    assert advice is not None
    assert said in advice


@pytest.mark.parametrize("text", ["", "division by zero", "error code is 107002"])
def test_what_is_not_known_is_not_explained(text: str) -> None:
    assert ascend.by_text(text, {}) is None


def test_the_first_cause_is_told() -> None:
    error = RuntimeError("Failed to load the backend extension: torch_npu.")
    error.__cause__ = ImportError(NO_CANN)
    said = ascend.explained(error, {})
    assert said.startswith(f"ImportError: {NO_CANN}; CANN is not set up")
    assert "\n" not in said


@pytest.mark.parametrize(
    ("torch", "torch_npu", "fits"),
    [
        ("2.9.0+cpu", "2.9.0", True),
        ("2.9.1", "2.9.0.post4", True),
        ("2.1.0", "2.1.0.post12", True),
        ("2.13.0+cpu", "2.9.0", False),
        ("2.1.2", "2.10.0", False),
    ],
)
def test_versions_that_do_not_belong_together(
    installed: Path, torch: str, torch_npu: str, fits: bool
) -> None:
    write_installation(installed, "torch", torch)
    write_installation(installed, "torch_npu", torch_npu)
    said = ascend.mismatch()
    if fits:
        assert said is None
    else:
        assert said is not None
        assert f"torch {torch} and torch_npu {torch_npu} don't belong together" in said


def test_triton_over_triton_ascend(installed: Path) -> None:
    # As pip leaves it: both are listed, and the files are those of the later one.
    (installed / "triton" / "backends" / "nvidia").mkdir(parents=True)
    (installed / "triton" / "__init__.py").touch()
    write_installation(installed, "triton", "3.9.0")
    write_installation(installed, "triton-ascend", "3.2.0")
    said = ascend.by_text("0 active drivers ([]). There should only be one.", {})
    assert said is not None
    assert "triton 3.9.0 and triton-ascend 3.2.0 are installed" in said
    assert "has overwritten the other's files" in said
    assert "pip uninstall -y triton triton-ascend && pip install triton-ascend" in said
    # With its files in place the compiler is what is missing.
    (installed / "triton" / "backends" / "ascend").mkdir()
    said = ascend.by_text("0 active drivers ([]). There should only be one.", {})
    assert said is not None
    assert "CANN is not set up" in said


BROKEN = f"""
import os
os.environ["TORCH_DEVICE_BACKEND_AUTOLOAD"] = "0"
raise ImportError({NO_CANN!r})
"""


@pytest.fixture
def without_cann(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Runner:
    """A server with torch_npu on which nobody has sourced CANN's set_env.sh."""
    package = tmp_path / "site" / "torch_npu"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(BROKEN)
    entry_points = "[torch.backends]\ntorch_npu = torch_npu:_autoload\n"
    write_installation(package.parent, "torch_npu", TORCH, entry_points)
    path = [str(package.parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entry for entry in path if entry))
    for name in ("ASCEND_HOME_PATH", "TORCH_DEVICE_BACKEND_AUTOLOAD"):
        monkeypatch.delenv(name, raising=False)
    return Runner(pytester, monkeypatch)


def _refusal(run: Run) -> str:
    assert run.code == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in run.out + run.err
    (line,) = [line for line in run.err.splitlines() if line.startswith("ERROR: ")]
    return line


def test_torch_npu_without_cann(without_cann: Runner) -> None:
    importing = [sys.executable, "-c", "import torch"]
    done = subprocess.run(importing, check=False, capture_output=True, text=True)
    if tuple(map(int, TORCH.split(".")[:2])) >= (2, 5):  # before, nothing is loaded by itself
        assert "Failed to load the backend extension: torch_npu" in done.stderr
    write_pair(without_cann.path / "ops")
    line = _refusal(without_cann.run("--verify-dir=ops", "--verify-device=npu"))
    assert f"ImportError: {NO_CANN}; CANN is not set up" in line
    assert "/dev/davinci" in line
    assert f"found torch_npu {TORCH}" in line
    assert "--verify-device=cpu" in line
    judged = without_cann.run("--verify-dir=ops", "--verify-device=cpu")
    assert judged.code == 0, judged.out
    in_process = without_cann.run("--verify-dir=ops", "--verify-device=cpu", "--verify-in-process")
    assert in_process.code == 0, in_process.out


REAL = os.environ.get("TRITONVERIFY_TORCH_NPU", "")


@pytest.mark.skipif(not REAL, reason="TRITONVERIFY_TORCH_NPU names no folder with torch_npu")
def test_the_real_torch_npu_without_cann(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """`make test-torch-npu` installs it beside the torch that is there, and runs this."""
    path = [REAL, os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entry for entry in path if entry))
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    importing = [sys.executable, "-c", "import torch"]
    done = subprocess.run(importing, check=False, capture_output=True, text=True)
    assert NO_CANN in done.stderr
    runner = Runner(pytester, monkeypatch)
    write_pair(runner.path / "ops")
    refused = ["--verify-dir=ops", "--verify-device=npu"]
    assert "CANN is not set up" in _refusal(runner.run(*refused))
    monkeypatch.setenv("ASCEND_HOME_PATH", str(write_cann(tmp_path)))
    assert "libhccl.so is not on LD_LIBRARY_PATH" in _refusal(runner.run(*refused))
    assert runner.run("--verify-dir=ops", "--verify-device=cpu").code == 0
