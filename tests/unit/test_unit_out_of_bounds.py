"""What a record says of accesses outside of tensors."""

from __future__ import annotations

import dataclasses

from pytest_tritonverify.out_of_bounds import noted
from pytest_tritonverify.reported import Stray
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord

WRITE = Stray("/a/impl.py", 13, "store", "out (torch.float32, shape [5])", "after", 1, 4)
READ = dataclasses.replace(WRITE, line=12, kind="load", side="before")
RIGHT = CaseRecord(case_idx=1, name="case1", status=PASSED, input_desc=[], seconds=0.1)
WRONG = dataclasses.replace(
    RIGHT, status=FAILED, error_type="AccuracyError", error_msg="AccuracyError: out differs"
)


def test_without_any_a_record_stays_as_it_is() -> None:
    assert noted(RIGHT, ()) is RIGHT
    assert noted(WRONG, ()) is WRONG


def test_a_write_fails_a_case_whose_outputs_are_right() -> None:
    record = noted(RIGHT, (READ, WRITE))
    assert (record.status, record.error_type) == (FAILED, "OutOfBoundsWrite")
    assert (record.file, record.line) == ("/a/impl.py", 13)
    text = record.error_msg or ""
    assert "impl.py:13: store of 1 lane, up to 4 bytes beyond the end of out" in text


def test_a_write_comes_before_what_else_is_wrong() -> None:
    record = noted(WRONG, (WRITE,))
    assert record.error_type == "OutOfBoundsWrite"
    assert (record.error_msg or "").endswith("Besides: AccuracyError: out differs")


def test_a_read_is_a_warning_where_outputs_are_right() -> None:
    record = noted(RIGHT, (READ,))
    assert record.passed
    (warning,) = record.warnings
    assert warning["code"] == "out_of_bounds_read"
    assert "impl.py:12: load of 1 lane" in warning["message"]


def test_a_read_is_part_of_the_explanation_where_they_are_wrong() -> None:
    record = noted(WRONG, (READ,))
    assert record.error_type == "AccuracyError"
    assert "impl.py:12: load of 1 lane" in (record.error_msg or "")
    assert record.warnings == []
