"""Launches in one process and in several: kernels are run once, in a process of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

_RUN = Path(__file__).parents[1] / "cases" / "interpreter_parallel" / "run.py"

SPREAD = [
    "address",
    "aliases",
    "conv",
    "descriptor",
    "dtypes",
    "grid function",
    "in place",
    "interleaved",
    "layernorm",
    "matmul",
    "matmul bf16",
    "mixed bytes",
    "native threads",
    "pair",
    "poison",
    "shared input",
    "softmax",
    "table",
    *(f"random {seed}" for seed in range(6)),
]
TOUCHED = "touched|wrote|read"
REFUSED = {
    "atomics": "atomic_rmw",
    "late atomic": "atomic_rmw",
    "chain": TOUCHED,
    "backward chain": TOUCHED,
    "far": TOUCHED,
    "same bytes": TOUCHED,
    "overlapping": TOUCHED,
    "printing": "standard stream",
    "static printing": "standard stream",
    "raises in a helper": "raised AssertionError",
    "scatter table": "outside of the launch's tensors",
    "shared memory": "memory that processes share",
    "two programs": "too few programs",
}
RAISING = ["raises first", "raises in front", "raises in a helper"]
LEFT_ALONE = ["no programs", "threads", "traced"]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what each case got in one process and in several."""
    out = tmp_path_factory.mktemp("parallel") / "results.pt"
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


def bits(result: Any) -> Any:
    if isinstance(result, str):
        return result
    return str(result.dtype), result.contiguous().view(torch.uint8).tolist()


def test_every_case_is_expected_of(found: dict[str, Any]) -> None:
    assert set(found["cases"]) == {*SPREAD, *REFUSED, *RAISING, *LEFT_ALONE}


@pytest.mark.parametrize("name", sorted({*SPREAD, *REFUSED, *RAISING, *LEFT_ALONE}))
def test_results_are_those_of_one_process(found: dict[str, Any], name: str) -> None:
    for alone, together in found["cases"][name].values():
        assert [bits(one) for one in together["results"]] == [bits(one) for one in alone["results"]]
        assert together["printed"] == alone["printed"]
        assert together["sites"] == alone["sites"]


@pytest.mark.parametrize("name", SPREAD)
def test_independent_programs_are_spread(found: dict[str, Any], name: str) -> None:
    for _, together in found["cases"][name].values():
        assert together["outcome"]["reason"] is None
        assert together["outcome"]["by_helpers"] > 0


@pytest.mark.parametrize("name", REFUSED)
def test_other_launches_say_why_they_are_not(found: dict[str, Any], name: str) -> None:
    for _, together in found["cases"][name].values():
        assert together["outcome"]["by_helpers"] == 0
        assert any(part in together["outcome"]["reason"] for part in REFUSED[name].split("|"))


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_some_are_not_even_tried(found: dict[str, Any], name: str) -> None:
    for _, together in found["cases"][name].values():
        assert together["outcome"]["helpers"] == 0


def test_an_error_is_the_same_and_so_is_what_was_stored_before(found: dict[str, Any]) -> None:
    for name, programs in zip(RAISING, (1, 2, 6), strict=True):
        _, together = found["cases"][name]["zero"]
        x, error = together["results"]
        assert x.tolist() == [1.0] * programs * 16 + [0.0] * (6 - programs) * 16
        assert "AssertionError('a bad program')" in error
        assert together["outcome"]["by_helpers"] == 0


def test_poison_and_its_counts_do_not_depend_on_the_process(found: dict[str, Any]) -> None:
    zero, poison = (found["cases"]["poison"][mode] for mode in ("zero", "poison"))
    assert bits(zero[1]["results"][1]) != bits(poison[1]["results"][1])
    first, second = poison[1]["sites"]
    assert first["lanes"] == 2 * 9 * 4
    assert second["lanes"] == 2 * sum(16 - row - 1 for row in range(9))


def test_the_report_says_whether_launches_are_spread(found: dict[str, Any]) -> None:
    several, one = found["reports"]
    assert several["applied"] == [*one["applied"], "several_cores"]
    assert several["not_applied"] == one["not_applied"]


def test_a_kernel_that_was_found_unfit_is_left_alone(found: dict[str, Any]) -> None:
    first, second = found["again"]
    assert first["helpers"] > 0
    assert second["helpers"] == 0


def test_a_crash_in_a_helper_is_the_crash_of_the_launch(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["crash"] == {"status": -signal.SIGSEGV}


def test_a_hang_in_a_helper_is_a_hang_of_the_launch(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["hang"] == {
        "others": True,
        "helper runs": False,
        "children": [],
        "status": -signal.SIGKILL,
    }


def test_helpers_die_with_the_launch(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["orphan"] == {"status": -signal.SIGKILL}


def test_a_launch_does_not_wait_for_ever(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["recovery"] == {"status": 0, "reason": "a helper took too long"}


def test_helpers_run_no_exit_handlers_and_need_no_streams(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["closed"] == {"status": 0, "helpers": "1", "exits": 1}


def test_helpers_let_go_of_descriptors(found: dict[str, Any]) -> None:
    assert found["lifecycle"]["quiet"] == {"status": 0, "open": "False"}
