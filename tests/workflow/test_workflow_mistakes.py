"""Mistakes of people: one sentence with what to do, the documented status, and no traceback."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.workflow import (
    explaining,
    files,
    layout,
    outcome,
    performance,
    reporting,
    verification,
)
from tests.support.workdirs import Builder, write_json
from tests.workflow.conftest import schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.workflow.conftest import Commands

COMMANDS = ("validate-task", "build-task", "explain", "decide", "gate", "report", "batch")


def arguments(name: str, path: Path) -> list[str]:
    more = {"decide": [str(path)], "build-task": ["--output", str(path.parent / "out")]}
    return [name, str(path), *more.get(name, [])]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("what", ["missing", "empty folder", "empty file", "text"])
def test_a_wrong_path_is_answered_in_one_sentence(
    tmp_path: Path, commands: Commands, name: str, what: str
) -> None:
    path = tmp_path / "thing"
    if what == "empty folder":
        path.mkdir()
    elif what == "empty file":
        path.touch()
    elif what == "text":
        path.write_text("nothing of the kind\n", encoding="utf-8")
    answer = commands.run(*arguments(name, path))
    if (name, what) == ("build-task", "empty file"):
        # It may become a task; what it lacks is told.
        assert answer.code == 0
        assert "there is no class `Model`" in answer.out
        return
    assert answer.code in ((0, 1) if name == "build-task" else (1,))
    said = answer.err or answer.out
    assert "thing" in said
    if name not in ("validate-task", "build-task"):
        assert len(answer.err.splitlines()) == (0 if name == "decide" else 1)


@pytest.mark.parametrize("name", COMMANDS)
def test_programs_get_the_sentence_as_json(tmp_path: Path, commands: Commands, name: str) -> None:
    answer = commands.run(*arguments(name, tmp_path / "missing"), "--json")
    assert answer.code == 1
    content = answer.json
    assert str(tmp_path / "missing") in (content.get("error") or content["message"])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(commands: Commands, name: str) -> None:
    answer = commands.run(name, "--help")
    assert answer.code == 0
    assert "Exit status 0" in answer.out
    assert "--json" in answer.out


@pytest.mark.parametrize(
    "given_",
    [("--timeout", "soon"), ("--timeout", "-1"), ("--limit", "many"), ("--limit", "5"), ()],
)
def test_explain_needs_something_to_explain(commands: Commands, given_: tuple[str, ...]) -> None:
    answer = commands.run("explain", *given_)
    assert answer.code == (2 if given_ else 1)
    assert answer.err


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
result_keys = st.sampled_from(
    (
        *("op_name", "total_cases", "passed_cases", "failed_cases", "failures", "environment"),
        *("cases", "degeneration", "sources", "valid", "regression_type", "checks"),
        *("suggestion", "error"),
    )
)
perf_keys = st.sampled_from(
    (
        *("op_name", "speedup_vs_torch", "per_shape_results", "framework", "implementation"),
        *("settings", "none_indices"),
    )
)
plausible = st.sampled_from(
    [0, 1, 2, [], {}, [{"case_idx": 1}], [{"case_idx": 1, "status": "pass"}], {"device": {}}]
)


@contextlib.contextmanager
def _at_most_a_sentence() -> Iterator[None]:
    told = ""
    try:
        yield
    except files.FileError as error:
        told = str(error)
    assert len(told.splitlines()) <= 1


@given(st.dictionaries(result_keys, json_values | plausible))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_json_for_a_result_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    path = write_json(tmp_path_factory.getbasetemp() / "any_result.json", content)
    with _at_most_a_sentence():
        rounds = explaining.of_path(path)
        explaining.explain(rounds).to_text()
        view = verification.read(path)
        view.contradiction()
        [view.status(number) for number in range(3)]


@given(st.dictionaries(perf_keys, json_values | plausible))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_any_json_for_a_report_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, Any]
) -> None:
    path = write_json(tmp_path_factory.getbasetemp() / "any_perf.json", content)
    with _at_most_a_sentence():
        view = performance.read(path)
        view.disagreement()
        assert view.speedup is None or view.speedup > 0
        assert view.in_mean.keys() <= view.shapes.keys()
        assert view.given_framework_ms is None or view.given_framework_ms > 0


@given(
    st.dictionaries(result_keys, json_values | plausible, max_size=2),
    st.dictionaries(perf_keys, json_values | plausible, max_size=2),
    st.dictionaries(perf_keys, json_values | plausible, max_size=2),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=50,
)
def test_whatever_results_hold_the_summary_keeps_to_its_schema(
    tmp_path_factory: pytest.TempPathFactory,
    in_result: dict[str, Any],
    in_perf: dict[str, Any],
    in_optimised: dict[str, Any],
) -> None:
    work = Builder(tmp_path_factory.mktemp("any") / "op")
    passed = work.iteration(0)
    optimised = work.optimisation(0, passed)
    for path, changes in (
        (passed / "verify" / "verify_result.json", in_result),
        (passed / "perf_result.json", in_perf),
        (optimised / "optimized_perf_result.json", in_optimised),
    ):
        write_json(path, {**json.loads(path.read_text("utf-8")), **changes})
    found = outcome.of(layout.open_workdir(work.folder))
    content, _ = reporting.write(found)
    jsonschema.validate(content, schema("summary"))
    assert not content["success"] or content["perf_data"]["passed_cases"] == 3


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "verify_result.json"
    path.write_text('{"total_cases": 1, "passed_cases": 0, "passed_cases": 1}', encoding="utf-8")
    with pytest.raises(files.FileError, match="a key is there twice"):
        verification.read(path)


def test_numbers_that_json_lacks_are_read_as_null(tmp_path: Path) -> None:
    path = tmp_path / "perf_result.json"
    path.write_text('{"speedup_vs_torch": NaN, "per_shape_results": []}', encoding="utf-8")
    assert performance.read(path).speedup is None


def test_the_operator_must_be_clear(work: Builder, commands: Commands) -> None:
    (work.folder / "helper.py").touch()
    answer = commands.run("report", work.folder)
    assert "may be the work directory of helper or softmax: say which with --op-name" in answer.err
    work.iteration(0)
    assert commands.run("report", work.folder).code == 0
    (work.folder / "output").rename(work.folder / "elsewhere")
    assert commands.run("gate", work.folder / "elsewhere", "--op-name", "softmax").code == 1


def test_folders_within_a_work_directory_are_recognised(work: Builder, commands: Commands) -> None:
    work.iteration(0)
    answer = commands.run("report", work.output)
    assert f"is within a work directory: give {work.folder}" in answer.err


def test_the_commands_import_neither_torch_nor_pytest(work: Builder) -> None:
    work.optimisation(0, work.iteration(0))
    folder = str(work.folder)
    perf = str(work.output / "perf_result.json")
    runs = [
        ["explain", folder],
        ["gate", folder, "--no-fingerprint"],
        ["decide", perf, perf],
        ["report", folder],
        ["batch", str(work.folder.parent)],
        ["validate-task", str(work.folder / "softmax.py"), "--static-only"],
        ["build-task", str(work.folder / "softmax.py"), "--output", folder],
    ]
    script = (
        "import sys\n"
        "from pytest_tritonverify import cli\n"
        f"for arguments in {runs!r}:\n"
        "    cli.main(arguments)\n"
        "loaded = {'torch', 'triton', 'numpy', 'pytest'} & set(sys.modules)\n"
        "sys.exit(f'imported: {loaded}' if loaded else 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
