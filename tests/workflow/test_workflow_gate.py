"""`gate`: Phase 4 begins only where Phase 3 has passed, with these files, in this environment."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.workflow import assertion, layout, surroundings
from tests.support.workdirs import CODE, ENVIRONMENT, FAKE, Builder, record, sha256, write_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.workflow.conftest import Commands

PREFIX, SUFFIX = "Phase 3 verify_result.json ", "，但流程已进入 Phase 4"


def codes(work: Builder, present: dict[str, Any] | None = None) -> list[str]:
    found = assertion.examine(layout.open_workdir(work.folder), present=present)
    assert found.passed == (not found.objections)
    if not found.passed:
        assert found.failure_reason is not None
        assert found.failure_reason.startswith(PREFIX)
        assert found.failure_reason.endswith(SUFFIX)
        assert found.last_error()
    return [objection.code for objection in found.objections]


def result_of(folder: Path) -> Any:
    return json.loads((folder / "verify" / "verify_result.json").read_text("utf-8"))


def rewrite(folder: Path, content: object) -> None:
    write_json(folder / "verify" / "verify_result.json", content)


anything = st.none() | st.booleans() | st.integers(-2, 5) | st.floats(0, 5) | st.text(max_size=2)


@given(total=anything, passed=anything)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_only_equal_counts_above_zero_open_it(
    tmp_path_factory: pytest.TempPathFactory, total: Any, passed: Any
) -> None:
    work = Builder(tmp_path_factory.mktemp("gate") / "op")
    folder = work.iteration(0)
    content = {"op_name": "softmax", "total_cases": total, "passed_cases": passed, "failures": []}
    rewrite(folder, content)
    opened = codes(work) == []
    assert opened == (type(total) is int and type(passed) is int and passed == total > 0)


def test_the_documented_sentence(work: Builder, commands: Commands) -> None:
    records = [record(k, "AccuracyError" if k > 45 else None) for k in range(1, 51)]
    work.iteration(0, records)
    code, found = commands.json("gate", work.folder, "--no-fingerprint")
    assert code == 1
    assert found["failure_phase"] == "phase3_gate_violation"
    assert found["failure_reason"] == f"{PREFIX}passed_cases(45) < total_cases(50){SUFFIX}"
    assert (found["passed_cases"], found["total_cases"]) == (45, 50)
    assert "AccuracyError, case 46-50" in found["last_error"]
    written = json.loads((work.folder / "summary.json").read_text("utf-8"))
    assert list(written) == [
        "success",
        "gen_iterations",
        "failure_phase",
        "failure_reason",
        "last_error",
    ]


def test_no_summary_is_written_where_none_is_wanted(work: Builder, commands: Commands) -> None:
    work.iteration(0, [record(1, "AccuracyError")])
    assert commands.run("gate", work.folder, "--no-fingerprint", "--no-summary").code == 1
    assert not (work.folder / "summary.json").exists()


def _edit_code(work: Builder, folder: Path) -> None:
    del work
    path = folder / "verify" / "softmax_triton_ascend_impl.py"
    path.write_text(path.read_text("utf-8") + "\n# changed\n", encoding="utf-8")


def _edit_task(work: Builder, folder: Path) -> None:
    del folder
    (work.folder / "softmax.py").write_text("changed", encoding="utf-8")


def _edit_copy(work: Builder, folder: Path) -> None:
    del folder
    (work.output / "generated_code.py").write_text("changed", encoding="utf-8")


def _add_data(work: Builder, folder: Path) -> None:
    del folder
    (work.folder / "softmax.json").write_text("{}", encoding="utf-8")


def _remove_result(work: Builder, folder: Path) -> None:
    del work
    (folder / "verify" / "verify_result.json").unlink()


def _break_result(work: Builder, folder: Path) -> None:
    del work
    (folder / "verify" / "verify_result.json").write_text("{", encoding="utf-8")


def _other_operator(work: Builder, folder: Path) -> None:
    del work
    rewrite(folder, {**result_of(folder), "op_name": "relu"})


def _in_process(work: Builder, folder: Path) -> None:
    del work
    rewrite(folder, {**result_of(folder), "in_process": True})


def _failed_check(work: Builder, folder: Path) -> None:
    del work
    content = result_of(folder)
    content["degeneration"]["execution"]["status"] = "failed"
    rewrite(folder, content)


def _failing_case(work: Builder, folder: Path) -> None:
    del work
    content = result_of(folder)
    content["cases"][1]["status"] = "failed"
    rewrite(folder, content)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (_edit_code, {"stale", "other_file"}),
        (_edit_task, {"other_file"}),
        (_edit_copy, {"other_file"}),
        (_add_data, {"stale"}),
        (_remove_result, {"unreadable"}),
        (_break_result, {"unreadable"}),
        (_other_operator, {"other_operator"}),
        (_in_process, {"not_isolated"}),
        (_failed_check, {"degenerate"}),
        (_failing_case, {"contradiction"}),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_whatever_was_changed_since_closes_it(
    work: Builder, damage: Callable[[Builder, Path], None], expected: set[str]
) -> None:
    folder = work.iteration(0)
    assert codes(work) == []
    damage(work, folder)
    assert set(codes(work)) == expected


def test_another_environment_voids_the_result(work: Builder) -> None:
    work.iteration(0)
    present = copy.deepcopy(ENVIRONMENT)
    assert codes(work, present) == []
    present["device"]["name"] = "Ascend910B2"
    assert codes(work, present) == []
    for section, key in (("triton", "key_sha256"), ("cann", "info_sha256")):
        other = copy.deepcopy(ENVIRONMENT)
        other[section][key] = "0" * 64
        assert codes(work, other) == ["other_environment"]


@pytest.mark.usefixtures("shared_host")
def test_the_environment_of_now_is_asked_from_a_worker(work: Builder, commands: Commands) -> None:
    work.iteration(0)
    code, found = commands.json("gate", work.folder, "--no-summary")
    assert (code, {o["code"] for o in found["objections"]}) == (1, {"other_environment"})
    present, problem = surroundings.present()
    assert (problem, present is None) == (None, False)
    other = Builder(work.folder.parent / "here")
    other.iteration(0, environment={**ENVIRONMENT, **(present or {})})
    code, found = commands.json("gate", other.folder)
    assert (code, found["objections"]) == (0, [])


def test_a_fake_kernel_whose_result_tells_of_no_check_is_found(work: Builder) -> None:
    folder = work.iteration(0, code=FAKE)
    documented = ("op_name", "total_cases", "passed_cases", "failed_cases", "failures")
    content = result_of(folder)
    rewrite(folder, {key: content[key] for key in documented})
    assert codes(work) == ["degenerate"]


@pytest.mark.parametrize(
    ("status", "policy"),
    [("warned", "warn"), ("passed", "partial"), ("skipped", "off"), (None, None)],
)
def test_a_fake_kernel_that_a_mild_policy_let_pass_is_found(
    work: Builder, status: str | None, policy: str | None
) -> None:
    for number, (code, expected) in enumerate(((FAKE, ["degenerate"]), (CODE, []))):
        folder = work.iteration(number, code=code)
        content = result_of(folder)
        content["degeneration"]["degeneration"] |= {"status": status, "policy": policy}
        rewrite(folder, content)
        assert codes(work) == expected


def test_a_check_at_run_time_that_only_warned_closes_it(work: Builder, commands: Commands) -> None:
    folder = work.iteration(0)
    content = result_of(folder)
    content["degeneration"]["execution"] |= {"status": "warned", "message": "torch computes\nmore"}
    rewrite(folder, content)
    code, found = commands.json("gate", work.folder, "--no-fingerprint")
    assert code == 1
    assert found["objections"][0]["message"].endswith("run time has failed: torch computes")
    content["degeneration"]["execution"]["status"] = "skipped"
    rewrite(folder, content)
    code, found = commands.json("gate", work.folder, "--no-fingerprint")
    assert (code, found["warnings"][0].endswith("was not made")) == (0, True)


def test_a_result_with_the_documented_keys_alone_is_enough(
    work: Builder, commands: Commands
) -> None:
    folder = work.iteration(0)
    documented = ("op_name", "total_cases", "passed_cases", "failed_cases", "failures")
    content = result_of(folder)
    rewrite(folder, {key: content[key] for key in documented})
    code, found = commands.json("gate", work.folder, "--no-fingerprint")
    assert code == 0
    assert "names no sources" in found["warnings"][0]


def test_the_last_round_is_the_one_whose_code_was_copied(work: Builder, commands: Commands) -> None:
    work.iteration(0)
    work.iteration(1, [record(1), record(2, "AccuracyError"), record(3)])
    _, found = commands.json("gate", work.folder, "--no-fingerprint")
    assert (found["passed"], found["phase3_last_iter"]) == (True, 0)
    _, found = commands.json("gate", work.folder, "--no-fingerprint", "--iter", "1")
    assert (found["passed"], found["phase3_last_iter"]) == (False, 1)
    answer = commands.run("gate", work.folder, "--iter", "7")
    assert answer.code == 1
    assert "give the number of a round that is there (0, 1)" in answer.err


def test_rounds_are_ordered_by_number(tmp_path: Path) -> None:
    work = Builder(tmp_path / "op")
    for number in (10, 9, 2):
        work.iteration(number, [record(1, "AccuracyError")])
    found = layout.open_workdir(work.folder)
    assert [one.number for one in found.iterations] == [2, 9, 10]
    last = found.phase3_last_iter()
    assert last is not None
    assert last.number == 10


def test_files_of_a_case_data_set_are_tied_to_the_result(work: Builder) -> None:
    data = work.folder / "softmax.json"
    data.write_text('{"inputs": []}\n', encoding="utf-8")
    folder = work.iteration(0)
    content = result_of(folder)
    content["sources"]["data"] = sha256(data)
    rewrite(folder, content)
    assert codes(work) == []
    data.write_text('{"inputs": [] }\n', encoding="utf-8")
    assert codes(work) == ["stale"]
