"""Run the kernels once: triton must not be imported, and corrected, in pytest's own process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

_RUN = Path(__file__).parents[1] / "cases" / "interpreter" / "run.py"


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what the kernels in tests/cases/interpreter got, with their inputs."""
    out = tmp_path_factory.mktemp("kernels") / "results.pt"
    done = subprocess.run(
        [sys.executable, str(_RUN), str(out)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = torch.load(out, weights_only=True)
    return results
