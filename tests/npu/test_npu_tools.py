"""The stand-ins for the driver's tools answer in the form of the real ones."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environment(surroundings: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "frequency").write_text("1200")
    return {
        **os.environ,
        **surroundings,
        "EMULATED_NPU_DEVICES": "2",
        "EMULATED_NPU_FREQUENCY": str(tmp_path / "frequency"),
        "EMULATED_NPU_LOCKS": str(tmp_path / "locks"),
    }


def _ask(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment, check=False, capture_output=True, text=True)


def test_npu_smi(environment: dict[str, str]) -> None:
    common = _ask(environment, "npu-smi", "info", "-t", "common", "-i", "1").stdout
    assert re.search(r"NPU ID\s*: 1", common)
    assert re.search(r"Aicore curFreq\(MHZ\)\s*: 1200", common)
    listed = _ask(environment, "npu-smi", "info", "-l").stdout
    assert re.findall(r"NPU ID\s*: (\d)", listed) == ["0", "1"]
    assert _ask(environment, "npu-smi", "info", "-t", "common", "-i", "2").returncode == 1
    assert "910B4" in _ask(environment, "npu-smi", "info").stdout


def test_drv_hlt_dsmi_test(environment: dict[str, str], tmp_path: Path) -> None:
    locking = ("drv_hlt_dsmi_test", "set_lp_idle", "1", "0")
    assert _ask(environment, *locking).returncode == 0
    assert (tmp_path / "locks").read_text() == "set_lp_idle 1 0\n"
    refused = _ask({**environment, "EMULATED_NPU_LOCKED": "refused"}, *locking)
    assert refused.returncode == 1
    assert "failed" in refused.stderr
