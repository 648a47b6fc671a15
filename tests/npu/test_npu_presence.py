"""Whether there is an NPU that can be used, and if not, why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.emulated_npu import emulated

if TYPE_CHECKING:
    from tests.support.npu import Server

pytestmark = emulated


@pytest.mark.parametrize(
    ("variables", "count"),
    [
        ({}, 2),
        ({"EMULATED_NPU_DEVICES": "8"}, 8),
        ({"EMULATED_NPU_DEVICES": "8", "ASCEND_RT_VISIBLE_DEVICES": "5"}, 1),
        ({"EMULATED_NPU_DEVICES": "8", "ASCEND_RT_VISIBLE_DEVICES": "3,6,7"}, 3),
    ],
)
def test_devices_are_counted_within_the_visible_ones(
    npu: Server, variables: dict[str, str], count: int
) -> None:
    assert npu.facts(**variables) == {"available": True, "count": count, "name": "Ascend910B4"}


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (
            {"ASCEND_RT_VISIBLE_DEVICES": "7"},
            ["sees no NPU", "ASCEND_RT_VISIBLE_DEVICES='7'", "ascending order"],
        ),
        ({"ASCEND_RT_VISIBLE_DEVICES": "1,0"}, ["sees no NPU", "ascending order"]),
        ({"EMULATED_NPU_DEVICES": "0"}, ["sees no NPU", "npu-smi info"]),
        (
            {"EMULATED_NPU_BUSY": "1"},
            ["error code is 507033", "the device can't be opened", "npu-smi info"],
        ),
        (
            {"EMULATED_NPU_WITHOUT_TRITON": "1"},
            ["0 active drivers", "pip uninstall -y triton triton-ascend", "triton-ascend"],
        ),
    ],
)
def test_reasons(npu: Server, variables: dict[str, str], said: list[str]) -> None:
    facts = npu.facts(**variables)
    assert not facts["available"]
    for part in said:
        assert part in facts["reason"]
    assert "Traceback" not in facts["reason"]
