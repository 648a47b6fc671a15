"""Accesses outside of a launch's tensors are put on record, and lead nowhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parents[1] / "cases" / "interpreter" / "bounds.py"


def line_of(mark: str) -> int:
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    return next(number for number, text in enumerate(lines, 1) if text.endswith(mark))


@pytest.fixture(scope="module")
def report() -> Any:
    done = subprocess.run(
        [sys.executable, str(SOURCE)],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return json.loads(done.stdout)


def test_a_load_before_the_beginning_finds_poison(report: Any) -> None:
    nans, strays = report["first"]
    assert nans == [True] + [False] * 99
    tensor = "x (torch.float32, shape [100])"
    assert strays == [[line_of("# the load"), "load", tensor, "before", 1, 4]]


def test_a_store_beyond_the_end_is_named_with_its_reach(report: Any) -> None:
    stores = [stray for stray in report["store"] if stray[1] == "store"]
    tensor = "o (torch.float32, shape [100])"
    assert stores == [[line_of("# the store"), "store", tensor, "after", 3, 12]]


def test_a_view_may_be_left_within_its_storage(report: Any) -> None:
    assert report["offset view"] == []


def test_atomic_operations_reach_only_their_tensor(report: Any) -> None:
    total, strays = report["atomic"]
    assert total == [3.0] * 6
    tensor = "o (torch.float32, shape [6])"
    assert strays == [[line_of("# the atomic"), "atomic", tensor, "after", 6, 8]]


def test_wild_offsets_do_not_end_the_process(report: Any) -> None:
    nans, strays = report["far"]
    assert nans[4:] == [False] * 4
    assert [(stray[0], stray[1], stray[4]) for stray in strays] == [
        (line_of("# far away"), "load", 8)
    ]


def test_tables_of_addresses_are_followed(report: Any) -> None:
    assert report["table"] == [True, []]


def test_strides_are_followed_within_a_storage(report: Any) -> None:
    out, strays = report["strided"]
    assert out == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    assert strays == []


def test_launches_that_are_spread_lose_no_stray_access(report: Any) -> None:
    right, strays = report["helpers"]
    assert right
    assert [(stray[1], stray[3], stray[4], stray[5]) for stray in strays] == [
        ("store", "after", 1, 4)
    ]
