"""Where end-to-end tests judge: on the CPU, or on the emulated NPU where that is asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

_VARIABLE = "TRITONVERIFY_TEST_DEVICE"
_TABLE = Path(__file__).parents[1] / "emulated_npu" / "cannot_hold.json"

DEVICE = os.environ.get(_VARIABLE, "cpu")
"""Name of the device, as of `--verify-device`."""
assert DEVICE in ("cpu", "npu"), f"{_VARIABLE}={DEVICE} is neither cpu nor npu"

# Workers of an NPU are fresh processes, which takes long; the emulated one stands forks.
OPTIONS: tuple[str, ...] = () if DEVICE == "cpu" else ("verify_device=npu", "verify_start=fork")
"""Ini values with which runs judge there."""


def reasons() -> dict[str, str]:
    """Return why tests can't hold on the device, by the starts of their node ids."""
    found: dict[str, str] = {}
    if DEVICE == "npu":
        for reason, tests in json.loads(_TABLE.read_text(encoding="utf-8")).items():
            found.update(dict.fromkeys(tests, reason))
    return found
