"""A case is warned of where the interpreter may be wrong, or has what Triton lacks."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_tritonverify.interpreter_doubts import doubted, restored
from pytest_tritonverify.reported import RunFacts
from pytest_tritonverify.results.records import PASSED, CaseRecord

WRONG = {"interpreter": {"not_applied": {"low_precision": "ml_dtypes is not installed"}}}


def record(dtype: str, output: str | None) -> CaseRecord:
    given = [{"type": "tensor", "dtype": dtype, "shape": [4]}]
    outputs = [{"path": "output", "dtype": output}]
    return CaseRecord(
        case_idx=1, name="case1", status=PASSED, input_desc=given, outputs=outputs, seconds=1.0
    )


@pytest.mark.parametrize(
    ("dtype", "output", "named"),
    [
        ("torch.bfloat16", "torch.float32", "bfloat16 may"),
        ("torch.float32", "torch.float8_e4m3fn", "float8_e4m3fn may"),
        ("torch.float8_e5m2", "torch.bfloat16", "bfloat16, float8_e5m2 may"),
    ],
)
def test_low_precision_on_an_uncorrected_interpreter(dtype: str, output: str, named: str) -> None:
    (warning,) = doubted(record(dtype, output), WRONG).warnings
    assert warning["code"] == "interpreter_low_precision"
    assert warning["message"].startswith(named)
    assert warning["message"].endswith("(ml_dtypes is not installed); pip install ml_dtypes")


@pytest.mark.parametrize(
    ("dtype", "environment"),
    [
        ("torch.float16", WRONG),
        ("torch.bfloat16", {"interpreter": {"not_applied": {}}}),
        ("torch.bfloat16", {"interpreter": {"not_applied": {"typed_stores": "absent"}}}),
        ("torch.bfloat16", {"error": "not gathered"}),
    ],
)
def test_no_doubt(dtype: str, environment: dict[str, Any]) -> None:
    assert doubted(record(dtype, None), environment).warnings == []


@pytest.mark.parametrize("told", [True, 1, "yes", None])
def test_block_pointers_that_triton_has_removed_are_warned_of(told: object) -> None:
    before = record("torch.float32", "torch.float32")
    after = restored(before, RunFacts.of({"block_pointers": told}))
    assert [warning["code"] for warning in after.warnings] == (
        ["removed_block_pointers"] if told is True else []
    )
