"""Where results go, what becomes of old ones, and what is said when they can't be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.pairs import error_types, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Runner


def test_a_full_run_removes_old_results_first(runner: Runner) -> None:
    folder = runner.path / "ops"
    old = ("verify_result.json", "perf_result.json", "verify_result_fast.json", "unrelated.json")
    seen = (
        "raise ValueError(sorted(n for n in os.listdir(os.path.dirname(__file__)) if '.js' in n))"
    )
    write_pair(folder, cases=1, at={1: seen})
    fast = write_pair(folder, variant="fast", cases=1)
    for name in old:
        (folder / name).write_text("{}")

    run = runner.run("--verify-dir=ops", "-q")

    assert run.code == 1
    result = fast.result()
    assert error_types(result) == {1: "ValueError"}
    # The other pair's old result goes before the first case of any pair runs.
    assert result["failures"][0]["error_msg"].splitlines()[0] == (
        "ValueError: ['unrelated.json', 'verify_result.journal.jsonl', "
        "'verify_result_fast.journal.jsonl']"
    )
    assert fast.result("verify_result_fast.json")["passed_cases"] == 1
    assert sorted(path.name for path in folder.glob("*.json*")) == [
        "unrelated.json",
        "verify_result.json",
        "verify_result_fast.json",
    ]
    assert "result: ops/verify_result.json" in run.out
    assert "result: ops/verify_result_fast.json" in run.out


def test_operators_that_share_a_folder_have_files_of_their_own(runner: Runner) -> None:
    double = write_pair(runner.path / "ops", cases=1)
    write_pair(runner.path / "ops", "treble", "fast", cases=1, factor=3.0)
    run = runner.run("--verify-dir=ops")
    assert run.code == 0
    assert double.result("double_verify_result.json")["op_name"] == "double"
    assert double.result("treble_verify_result_fast.json")["op_name"] == "treble"
    assert len(list(double.folder.glob("*.json*"))) == 2


def test_the_result_of_one_pair_can_go_elsewhere(runner: Runner) -> None:
    pair = write_pair(runner.path / "ops", cases=1)
    write_pair(runner.path / "ops", variant="fast", cases=1)
    out = runner.path / "out" / "deep"
    run = runner.run("--verify-dir=ops", "--verify-impl=*impl", "--verify-output=out/deep/r.json")
    assert run.code == 0
    assert [path.name for path in out.iterdir()] == ["r.json"]
    assert not list(pair.folder.glob("*.json*"))
    assert "result: out/deep/r.json" in run.out


def test_a_result_that_cannot_be_written_is_a_warning(runner: Runner) -> None:
    # Even root, for whom no folder is read-only, can't replace a folder by a file.
    pair = write_pair(runner.path / "ops", cases=1)
    for name in ("verify_result.json", "verify_result.journal.jsonl"):
        (pair.folder / name / "occupied").mkdir(parents=True)
    run = runner.run("--verify-dir=ops")
    assert list(run.by_name.values()) == ["passed"]
    assert run.code == 1
    assert "warning: double (triton_ascend_impl): " in run.out
    assert "verify_result.json can't be written: Is a directory" in run.out
    assert "INTERNALERROR" not in run.out
    assert "result: " not in run.out


def test_pairs_that_cannot_be_listed_fail_without_stopping_others(runner: Runner) -> None:
    good = write_pair(runner.path / "ops" / "good", cases=1)
    broken = write_pair(runner.path / "ops" / "broken")
    broken.task.write_text("import torch\n\nprint(\n")
    empty = write_pair(runner.path / "ops" / "empty", cases=0)
    gone = write_pair(runner.path / "ops" / "gone", cases=2)
    gone.implementation.write_text("raise RuntimeError('at import')\n")

    run = runner.run("--verify-dir=ops")

    assert run.code == 1
    assert run.outcomes == {
        "ops/broken/double_triton_ascend_impl.py::load": "failed",
        "ops/empty/double_triton_ascend_impl.py::load": "failed",
        "ops/gone/double_triton_ascend_impl.py::case1-float32-1x8": "failed",
        "ops/gone/double_triton_ascend_impl.py::case2-float32-2x8": "failed",
        "ops/good/double_triton_ascend_impl.py::case1-float32-1x8": "passed",
    }
    assert good.result()["passed_cases"] == 1
    result = broken.result()
    assert (result["total_cases"], result["failed_cases"]) == (1, 1)
    assert error_types(result) == {1: "SyntaxError"}
    result = empty.result()
    assert (result["total_cases"], result["passed_cases"], result["failures"]) == (0, 0, [])
    assert error_types(gone.result()) == {1: "RuntimeError", 2: "RuntimeError"}
    assert "ops/broken/double_torch.py:3: SyntaxError" in run.out
    assert "NoCases: double_torch.py yields no case" in run.out
