"""A run that asks for repeats, further inputs and a golden of float64 at the same time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jsonschema

from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.pairs import case_name, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner


def test_what_was_asked_for_and_what_came_of_it_stands_in_header_and_result(
    runner: Runner,
) -> None:
    forgetful = "ModelNew.calls = getattr(ModelNew, 'calls', 0) + 1\nfactor += ModelNew.calls == 5"
    pair = write_pair(runner.path / "ops", cases=2, at={2: forgetful})

    run = runner.run(
        "--verify-dir=ops",
        "--verify-device=cpu",
        "--verify-stress=3",
        "--verify-trials=3",
        "--verify-golden=float64",
    )

    assert run.code == 1
    for line in (
        "tritonverify: stress: each case runs 3 times",
        "tritonverify: trials: each case is judged on the inputs of 3 seeds",
        "tritonverify: golden: computed in float64",
    ):
        assert line in run.out
    assert run.by_name == {case_name(1): "passed", case_name(2): "failed"}
    result = pair.result()
    jsonschema.validate(result, json.loads(SCHEMA_PATH.read_text()))
    assert result["environment"]["cmdline"] == {
        "triton_impl_name": "triton_ascend_impl",
        "non_compute": False,
        "golden": "float64",
        "stress": 3,
        "trials": 3,
    }
    first, second = result["cases"]
    assert (first["stress"]["runs"], first["stress"]["failed"]) == (3, 0)
    assert first["trials"]["failed"] == 0
    assert [case["golden_precision"] for case in (first, second)] == ["float64"] * 2
    # Three runs on the first inputs and one on the second were right; the fifth was not.
    assert second["error_type"] == "AccuracyError"
    assert second["trials"]["failed_seeds"] == [2]
    assert "from seed 2." in second["error_msg"]
    assert second["stress"]["failed"] == 0


def test_a_number_that_is_none_is_a_usage_error(runner: Runner) -> None:
    write_pair(runner.path / "ops")
    run = runner.run("--verify-dir=ops", "--verify-stress", "ops")
    assert run.code == 4
    assert "write --verify-stress=50" in run.err
