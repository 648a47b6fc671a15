"""The gate before a benchmark opens for a verification that passed, and for nothing else."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.benchmark import gate
from pytest_tritonverify.benchmark.standing import Standing
from pytest_tritonverify.degeneration.check import check_source
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.results import reliance, result_file
from pytest_tritonverify.results.records import CaseRecord, CheckRecord, CheckStatus
from pytest_tritonverify.results.reliance import Now
from pytest_tritonverify.settings import Settings
from tests.support.measurements import ENVIRONMENT, SOURCES

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.degeneration.report import Report

HONEST = b"""
import triton
import triton.language as tl
import torch


@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)
        return y
"""
FAKE = HONEST.replace(b"        return y", b"        return torch.add(x, x)")


def checked(source: bytes) -> Report:
    return check_source(source, filename="double_triton_x.py")


def unchecked(non_compute: bool) -> Report:
    raise AssertionError("the static check is not needed here")


def now(**facts: Any) -> Now:
    return Now(
        **{
            "op_name": "double",
            "sources": SOURCES,
            "environment": ENVIRONMENT,
            "check": unchecked,
            **facts,
        }
    )


def result(
    passed: int = 2, failed: int = 0, *, in_process: bool = False, **checks: str
) -> dict[str, Any]:
    """Return a result as the plugin writes it."""
    records = [
        CaseRecord(
            case_idx=k,
            name=f"case{k}-float32-2",
            status="passed" if k <= passed else "failed",
            error_type=None if k <= passed else "AccuracyError",
            error_msg=None if k <= passed else f"AccuracyError: {k} of 9 elements differ\nmore",
        )
        for k in range(1, passed + failed + 1)
    ]
    statuses: dict[str, Any] = {"degeneration": "passed", "execution": "passed", **checks}
    return result_file.document(
        "double",
        records,
        ENVIRONMENT,
        SOURCES,
        checks={
            name: CheckRecord(name=name, status=status, message="a first line\nand more")
            for name, status in statuses.items()
        },
        policies={"degeneration": "strict", "execution": "fail"},
        in_process=in_process,
    )


def test_a_verification_that_passed_opens_it() -> None:
    passage = gate.judge(result(), now())
    assert passage.opened
    assert passage.warnings == ()
    assert passage.words() == ""
    assert (passage.passed_cases, passage.total_cases) == (2, 2)


# What the source document lists


def words_of(path: Path, **facts: Any) -> str:
    passage = gate.examine(path, now(**facts))
    assert not passage.opened
    return passage.words()


def test_no_file(tmp_path: Path) -> None:
    path = tmp_path / "verify_result.json"
    lines = words_of(path).splitlines()
    assert lines[:4] == [
        "[L1 闸门] 拒绝执行 benchmark：文件不存在",
        f"  verify_json: {path}",
        "  passed/total: ?/?",
        "  failures: 0",
    ]
    assert "verify the pair first" in lines[4]


@pytest.mark.parametrize(
    "text", ["", "{", "nan", "[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 1}', "\xff", "\x00"]
)
def test_a_file_that_is_no_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "verify_result.json"
    path.write_text(text, "latin-1")
    assert words_of(path).startswith("[L1 闸门] 拒绝执行 benchmark：文件读取失败\n")


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    pipe = tmp_path / "verify_result.json"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        assert words_of(path).startswith("[L1 闸门] 拒绝执行 benchmark：文件读取失败\n")


def test_no_case(tmp_path: Path) -> None:
    path = tmp_path / "verify_result.json"
    path.write_text(json.dumps(result(0, 0)), "utf-8")
    assert words_of(path).startswith("[L1 闸门] 拒绝执行 benchmark：total_cases == 0\n")


def test_not_every_case(tmp_path: Path) -> None:
    path = tmp_path / "verify_result_v2.json"
    path.write_text(json.dumps(result(1, 7)), "utf-8")
    lines = words_of(path).splitlines()
    assert lines[:5] == [
        "[L1 闸门] 拒绝执行 benchmark：passed_cases < total_cases",
        f"  verify_json: {path}",
        "  passed/total: 1/8",
        "  failures: 7",
        "    case_idx=2 AccuracyError: 2 of 9 elements differ",
    ]
    assert [line[:14] for line in lines[4:9]] == [f"    case_idx={k}" for k in range(2, 7)]
    assert lines[9] == "    ... and 2 more"
    assert lines[10].endswith(
        "--verify-not-required, or --verify_not_required of the command, lifts this gate"
    )


def test_a_file_that_holds_counts_alone_opens_it_with_warnings() -> None:
    content = {"op_name": "double", "total_cases": 3, "passed_cases": 3, "failed_cases": 0}
    passage = gate.judge({**content, "failures": []}, now(check=lambda _: checked(HONEST)))
    assert passage.opened
    assert passage.warnings[0].startswith("the result names no sources")
    assert passage.warnings[1].startswith("the result's environment is not known")


# Types and sums


@pytest.mark.parametrize("value", [None, -1, "2", True, 2.0, [2], {}])
@pytest.mark.parametrize("name", ["total_cases", "passed_cases", "failed_cases"])
def test_what_is_no_number_of_cases_opens_nothing(name: str, value: Any) -> None:
    passage = gate.judge({**result(), name: value}, now())
    assert passage.situation == "文件读取失败"
    assert f"`{name}` is " in passage.detail


@pytest.mark.parametrize("value", [None, -1, "x", True])
def test_two_equal_oddities_open_nothing(value: Any) -> None:
    for content in ({}, result()):
        both = {**content, "total_cases": value, "passed_cases": value}
        assert not gate.judge(both, now(check=lambda _: checked(HONEST))).opened


@pytest.mark.parametrize("content", [None, [], "x", 1, {}, [1], {"total_cases": 1}])
def test_what_is_no_result_opens_nothing(content: Any) -> None:
    passage = gate.judge(content, now())
    assert not passage.opened
    assert passage.situation == "文件读取失败"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"passed_cases": 3}, "3 of 2 cases are said to have passed"),
        ({"failed_cases": 1}, "and 1 to have failed"),
        ({"failures": ["a"]}, "`failures` has 1"),
        ({"failures": [{"case_idx": 1}]}, "`failures` has 1"),
        ({"cases": []}, "`cases` does not list the 2 cases"),
        ({"cases": None}, "`cases` does not list the 2 cases"),
        ({"cases": [{"status": "passed"}, {"status": "failed"}]}, "one in `cases` has not"),
        ({"cases": [{"status": "passed"}, {"status": "passed", "flaky": True}]}, "has not"),
        ({"cases": [{"status": "passed"}, 1]}, "one in `cases` has not"),
        ({"op_name": "softmax"}, "it is the result of `softmax`, not of `double`"),
        ({"op_name": None}, "it is the result of `None`"),
    ],
)
def test_a_file_that_contradicts_itself_opens_nothing(change: dict[str, Any], words: str) -> None:
    passage = gate.judge({**result(), **change}, now())
    assert passage.situation == "文件内容自相矛盾"
    assert words in passage.detail


@pytest.mark.parametrize(
    "change",
    [{"failures": None}, {"failures": {}}, {"schema_version": 2}, {"sources": []}],
)
def test_other_forms_are_refused(change: dict[str, Any]) -> None:
    assert gate.judge({**result(), **change}, now()).situation == "文件读取失败"


def test_odd_failures_are_shown_and_break_nothing() -> None:
    content = {**result(1, 1), "failures": ["a", None, {"error_msg": 1}, {"error_type": "E\nF"}]}
    words = gate.judge(content, now()).words()
    assert "    an entry that is no object: 'a'" in words
    assert "    case_idx=None None: 1" in words
    assert "    case_idx=None E\n" in words


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.sampled_from([*result(), "in_process"]), json_values)
def test_no_value_of_a_key_breaks_it(name: str, value: Any) -> None:
    content = {**result(1, 1), name: value}
    passage = gate.judge(content, now(check=lambda _: checked(HONEST)))
    assert not passage.opened or name in ("passed_cases", "total_cases")
    assert isinstance(passage.words(), str)
    json.dumps(passage.to_json())


def places(value: Any, so_far: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the ways to everything within a document."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    found = []
    for key, item in inside:
        found.append((*so_far, key))
        if isinstance(item, (dict, list)):
            found += places(item, (*so_far, key))
    return found


PLACES = places(result())


@settings(max_examples=300)
@given(st.sampled_from(PLACES), json_values, st.booleans())
def test_one_change_never_opens_it_for_what_has_not_passed(
    place: tuple[Any, ...], value: Any, delete: bool
) -> None:
    for content in (result(), result(1, 1), result(execution="failed"), result(in_process=True)):
        was_open = gate.judge(content, now()).opened
        *folders, name = place
        inner: Any = content
        for folder in folders:
            inner = inner[folder]
        if not delete:
            inner[name] = value
        elif isinstance(inner, dict):
            del inner[name]
        passage = gate.judge(content, now(check=lambda _: checked(FAKE)))
        if not passage.opened:
            continue
        assert content["total_cases"] == content["passed_cases"] == 2
        assert not content.get("failures")
        assert content.get("failed_cases", 0) == 0
        assert all(case["status"] == "passed" for case in content.get("cases", ()))
        # One wrong word about one check or about isolation is a lie that only its author can tell.
        assert was_open or place[:1] in (("degeneration",), ("in_process",))


# Isolation, sources, environment


def test_a_run_that_isolated_nothing_opens_nothing() -> None:
    passage = gate.judge(result(in_process=True), now())
    assert passage.situation == "verify 未隔离运行"
    assert "--verify-in-process" in passage.detail


@pytest.mark.parametrize("role", ["task", "data", "implementation"])
def test_a_file_that_changed_makes_the_result_stale(role: str) -> None:
    for other in ("1" * 64, None if SOURCES[role] else "2" * 64):
        passage = gate.judge(result(), now(sources={**SOURCES, role: other}))
        assert passage.situation == "验证结果已过期"
        assert f"changed since it was verified: {reliance.ROLES[role]};" in passage.detail


def test_a_result_that_leaves_a_source_out_is_not_of_these_files() -> None:
    content = {**result(), "sources": {"task": SOURCES["task"]}}
    assert gate.judge(content, now()).situation == "验证结果已过期"


@pytest.mark.parametrize(("section", "key"), [("triton", "key_sha256"), ("cann", "info_sha256")])
@pytest.mark.parametrize("value", ["b" * 64, None])
def test_another_installation_makes_the_result_stale(
    section: str, key: str, value: str | None
) -> None:
    changed = {**ENVIRONMENT, section: {**ENVIRONMENT[section], key: value}}
    for content, present in (
        (result(), changed),
        ({**result(), "environment": changed}, ENVIRONMENT),
    ):
        passage = gate.judge(content, now(environment=present))
        assert passage.situation == "验证结果已过期"
        assert f"`{section}.{key}` was" in passage.detail


def test_no_toolkit_on_both_sides_is_the_same_toolkit() -> None:
    without = {**ENVIRONMENT, "cann": {"error": "EnvironmentError: ASCEND_HOME_PATH is not set"}}
    content = {**result(), "environment": without}
    assert gate.judge(content, now(environment=without)).opened
    assert not gate.judge(content, now()).opened


def test_an_environment_that_is_not_known_is_a_warning() -> None:
    passage = gate.judge(result(), now(environment=None))
    assert passage.opened
    assert passage.warnings == (
        "the present environment is not known, so the two can't be compared",
    )
    lame = {**result(), "environment": {"error": "no worker"}}
    assert len(gate.judge(lame, now()).warnings) == 2


def test_another_device_is_a_warning() -> None:
    other = {**ENVIRONMENT, "device": {"npu_name": None, "backend": "cpu", "name": "a cpu"}}
    passage = gate.judge({**result(), "environment": other}, now())
    assert passage.opened
    assert passage.warnings == ("verified on another device: backend cpu, now None",)


# Checks of the code


def without_checks() -> dict[str, Any]:
    return {name: value for name, value in result().items() if name != "degeneration"}


def test_where_nobody_made_the_static_check_the_gate_makes_it() -> None:
    assert gate.judge(without_checks(), now(check=lambda _: checked(HONEST))).opened
    passage = gate.judge(without_checks(), now(check=lambda _: checked(FAKE)))
    assert passage.situation == "退化检查未通过"
    assert passage.detail.startswith("A-PyTorchFallback-Type3: double_triton_x.py:")


@pytest.mark.parametrize("section", [None, {}, [], {"degeneration": None}, {"degeneration": 1}])
def test_an_empty_section_is_no_check(section: Any) -> None:
    content = {**result(), "degeneration": section}
    assert not gate.judge(content, now(check=lambda _: checked(FAKE))).opened


def test_a_file_that_can_not_be_parsed_is_refused_in_the_parsers_words() -> None:
    passage = gate.judge(without_checks(), now(check=lambda _: checked(b"def broken(:")))
    assert passage.situation == "退化检查未通过"
    assert "invalid syntax" in passage.detail or "SyntaxError" in passage.detail


def test_a_file_that_can_not_be_read_is_refused() -> None:
    def gone(non_compute: bool) -> Report:
        raise FileNotFoundError(2, "No such file or directory")

    assert "can't be read: No such" in gate.judge(without_checks(), now(check=gone)).detail


def test_a_milder_check_is_made_again() -> None:
    content = result()
    content["degeneration"]["degeneration"]["policy"] = "partial"
    assert gate.judge(content, now(degeneration="partial")).opened
    assert not gate.judge(content, now(check=lambda _: checked(FAKE))).opened
    content["degeneration"]["degeneration"].update(policy="warn", status="warned")
    assert not gate.judge(content, now(check=lambda _: checked(FAKE))).opened


@pytest.mark.parametrize("given", [True, False, None])
def test_the_verification_has_told_what_the_task_is(*, given: bool | None) -> None:
    told = []

    def check(non_compute: bool) -> Report:
        told.append(non_compute)
        return checked(HONEST)

    environment = {**ENVIRONMENT, "cmdline": {"non_compute": given}}
    assert gate.judge({**without_checks(), "environment": environment}, now(check=check)).opened
    assert told == [given is True]


def test_who_asks_for_warnings_gets_warnings() -> None:
    warned = gate.judge(without_checks(), now(check=lambda _: checked(FAKE), degeneration="warn"))
    assert warned.opened
    assert warned.warnings[0].startswith("the static check fails: A-PyTorchFallback-Type3: ")
    off = gate.judge(without_checks(), now(degeneration="off"))
    assert off.opened
    assert off.warnings[0].startswith("the static check was not made")


def test_what_the_run_time_check_found_counts_by_the_policy() -> None:
    content = result(execution="warned")
    passage = gate.judge(content, now())
    assert passage.situation == "退化检查未通过"
    assert passage.detail.startswith("the check at run time has failed: a first line.")
    assert gate.judge(content, now(execution="warn")).warnings == (
        "the check at run time has failed: a first line",
    )


@pytest.mark.parametrize("name", ["degeneration", "execution"])
def test_passed_cases_beside_a_failed_check_are_a_contradiction(name: str) -> None:
    content = result()
    content["degeneration"][name]["status"] = "failed"
    assert gate.judge(content, now()).situation == "文件内容自相矛盾"


# Around it


def test_a_gate_that_nobody_asked_for_is_open_and_says_so() -> None:
    passage = gate.lifted()
    assert passage.opened
    assert passage.to_json()["required"] is False
    assert passage.warnings


def test_a_report_keeps_the_files_name_only(tmp_path: Path) -> None:
    path = tmp_path / "verify_result.json"
    path.write_text(json.dumps(result()), "utf-8")
    assert gate.examine(path, now()).to_json() == {
        "required": True,
        "verify_json": "verify_result.json",
        "passed_cases": 2,
        "total_cases": 2,
        "warnings": [],
    }


def test_it_compares_with_the_files_that_are_there(tmp_path: Path) -> None:
    pair = Pair("double", "x", tmp_path / "double_torch.py", tmp_path / "double_triton_x.py")
    pair.task.write_text("class Model: ...\n", "utf-8")
    pair.implementation.write_bytes(HONEST)
    content = {**without_checks(), "sources": result_file.sources_of(pair)}
    assert gate.judge(content, reliance.present(pair, Settings(), ENVIRONMENT)).opened
    pair.implementation.write_bytes(FAKE)
    passage = gate.judge(content, reliance.present(pair, Settings(), ENVIRONMENT))
    assert passage.situation == "验证结果已过期"
    content["sources"] = result_file.sources_of(pair)
    passage = gate.judge(content, reliance.present(pair, Settings(), ENVIRONMENT))
    assert passage.situation == "退化检查未通过"
    (tmp_path / "double.json").write_text("{}", "utf-8")
    passage = gate.judge(content, reliance.present(pair, Settings(), ENVIRONMENT))
    assert "the task's data file" in passage.detail


@pytest.mark.parametrize("outcomes", [["failed"], ["failed", "passed"], ["passed", "failed"]])
def test_what_failed_in_this_run_has_an_outcome_and_stays_failed(
    outcomes: list[CheckStatus],
) -> None:
    standing = Standing()
    for status in outcomes:
        standing.note({"check": CheckRecord(name="degeneration", status=status).to_json()})
    assert standing.missing([], ["degeneration"]) == []
    assert not standing.checks["degeneration"].passed
    assert standing.missing([1], ["execution"]) == ["case 1", "execution"]
