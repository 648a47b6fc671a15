"""Pages from files and from runs: which report belongs to which result, and where pages go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import cli, terminal
from pytest_tritonverify.html_report import page, run_page, subjects
from pytest_tritonverify.settings import Settings, SettingsError
from pytest_tritonverify.workflow import files
from tests.html.test_html_page import Reader
from tests.support import workdirs
from tests.unit.test_unit_terminal import Screen, Stage, failed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ONE, OTHER = "1" * 64, "2" * 64


def result(path: Path, code: str | None = None, op: str = "softmax") -> Path:
    sources = {"task": None, "data": None, "implementation": code}
    content = workdirs.verify_result([workdirs.record(1)], op=op, sources=sources)
    # Two results of one code differ, unless one is a copy.
    content["cases"][0]["output"] = str(path)
    return workdirs.write_json(path, content)


def report(path: Path, code: str | None = None, op: str = "softmax", speedup: float = 2.0) -> Path:
    content = workdirs.perf_result([speedup], op=op)
    if code is not None:
        content["sources"] = {"task": None, "data": None, "implementation": code}
    return workdirs.write_json(path, content)


def joined(paths: Sequence[Path]) -> list[tuple[str, bool, float | None]]:
    """For each pair its implementation, whether it was judged, and its speed-up."""
    found = [(one, one.performance) for one in subjects.of_files(paths)]
    return [
        (one.impl, one.verification is not None, round(p.speedup or 0, 6) if p else None)
        for one, p in found
    ]


def test_a_report_belongs_to_the_result_beside_it(tmp_path: Path) -> None:
    result(tmp_path / "a" / "verify_result_x.json")
    report(tmp_path / "a" / "perf_result_x.json", speedup=2.0)
    result(tmp_path / "a" / "verify_result_y.json")
    report(tmp_path / "a" / "perf_result_y.json", speedup=3.0)
    result(tmp_path / "a" / "verify_result_z.json")
    assert joined([tmp_path]) == [
        ("triton_x", True, 2.0),
        ("triton_y", True, 3.0),
        ("triton_z", True, None),
    ]


def test_a_report_belongs_to_the_result_of_the_same_code(tmp_path: Path) -> None:
    result(tmp_path / "iter_0" / "verify" / "verify_result.json", ONE)
    result(tmp_path / "iter_1" / "verify" / "verify_result_x.json", OTHER)
    report(tmp_path / "iter_0" / "perf_result.json", ONE, speedup=2.0)
    report(tmp_path / "iter_1" / "optimized_perf_result.json", OTHER, speedup=3.0)
    assert joined([tmp_path]) == [("triton_ascend_impl", True, 2.0), ("triton_x", True, 3.0)]


def test_a_report_of_other_code_is_not_taken_for_the_results(tmp_path: Path) -> None:
    result(tmp_path / "verify_result.json", ONE)
    report(tmp_path / "perf_result.json", OTHER)
    assert joined([tmp_path]) == [
        ("triton_ascend_impl", True, None),
        ("triton_ascend_impl", False, 2.0),
    ]


def test_a_report_without_sources_belongs_to_the_only_result_of_its_operator(
    tmp_path: Path,
) -> None:
    first = result(tmp_path / "a.json")
    other = result(tmp_path / "b.json", op="other")
    measured = report(tmp_path / "c.json")
    assert joined([first, other, measured]) == [
        ("triton_ascend_impl", True, None),
        ("triton_ascend_impl", True, 2.0),
    ]
    again = result(tmp_path / "another.json")
    assert [speedup for *_, speedup in joined([first, again, measured])] == [None, None, 2.0]


def test_copies_are_shown_once(tmp_path: Path) -> None:
    first = result(tmp_path / "a" / "verify_result.json", ONE)
    copy = tmp_path / "b" / "verify_result_baseline.json"
    copy.parent.mkdir()
    copy.write_bytes(first.read_bytes())
    assert len(subjects.of_files([tmp_path, first])) == 1
    # Without SHA-256 two results may be alike by chance.
    content = {"op_name": "a", "total_cases": 1, "passed_cases": 1, "failures": []}
    alike = [workdirs.write_json(tmp_path / f"verify_result_{x}.json", content) for x in "xy"]
    assert [one.impl for one in subjects.of_files([*alike, alike[0]])] == ["triton_x", "triton_y"]


def test_a_broken_file_in_a_folder_is_shown_as_one_that_failed(tmp_path: Path) -> None:
    result(tmp_path / "a" / "verify_result.json")
    (tmp_path / "verify_result.json").write_text("{", encoding="utf-8")
    (tmp_path / "b_verify_result.json").write_text("{}", encoding="utf-8")
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    found = subjects.of_files([tmp_path])
    assert [one.failed for one in found] == [True, False, True]
    assert "is no JSON" in found[2].notes[0]
    assert "`total_cases` is not there" in found[0].notes[0]


@pytest.mark.parametrize("text", [None, "{", "[]", "{}", '{"per_shape_results": 3}'])
def test_a_file_that_was_named_must_be_one(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "verify_result.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(files.FileError, match=r"verify_result\.json"):
        subjects.of_files([path])


def test_a_folder_without_results_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(files.FileError, match="there is no result in"):
        subjects.of_files([tmp_path])


def test_a_result_that_contradicts_itself_has_failed(tmp_path: Path) -> None:
    path = result(tmp_path / "verify_result.json")
    content = json.loads(path.read_text("utf-8"))
    workdirs.write_json(path, {**content, "failed_cases": 3})
    (found,) = subjects.of_files([path])
    assert found.failed
    assert "contradicts itself" in found.notes[0]


@pytest.mark.parametrize("status", ["passed", "failed", "skipped"])
def test_a_check_that_counts_no_cases_fails_its_pair_all_the_same(
    tmp_path: Path, status: str
) -> None:
    path = result(tmp_path / "verify_result.json")
    content = json.loads(path.read_text("utf-8"))
    told = {"status": status, "message": "UB overflow: required 2 bits"}
    workdirs.write_json(path, {**content, "compile": told})
    found = subjects.of_files([path])
    assert found[0].failed == (status == "failed")
    assert "UB overflow: required 2 bits" in Reader(page.html(found)).text


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result(tmp_path / "verify_result.json")
    report(tmp_path / "perf_result.json")
    output = tmp_path / "new" / "page.html"
    assert cli.main(["html", str(tmp_path), "--output", str(output)]) == 0
    assert capsys.readouterr().out == f"written: {output} (1 pair)\n"
    assert "speed-up: 2×" in Reader(output.read_text("utf-8")).text
    assert cli.main(["html", str(tmp_path), "--output", str(tmp_path), "--json"]) == 1
    captured = capsys.readouterr()
    assert "can't be written" in captured.err
    assert "can't be written" in json.loads(captured.out)["error"]
    assert cli.main(["html", str(tmp_path / "new"), "--output", str(output)]) == 1


class Run:
    """A run that has ended, as far as a page asks for it."""

    def __init__(self, root: Path, page: Path | None) -> None:
        self.stage = Stage(root)
        self.page = page

    @property
    def session(self) -> Any:
        session: Any = self.stage.session
        session.settings = Settings(html=self.page)
        return session


def test_a_run_writes_a_page_about_all_its_pairs(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path / "page.html")
    run.stage.judged("good", {})
    run.stage.judged("bad", {}, failed(error_msg="AccuracyError: a </script> b"), {}, cases=4)
    run.stage.ledger.add_load_failure(run.stage.pair("lost"), "SyntaxError", "SyntaxError: x", {})
    assert run_page.write(run.session) is None
    found = Reader((tmp_path / "page.html").read_text("utf-8"))
    assert {name: a["data-status"] for name, a in found.pairs().items()} == {
        "good triton_x": "passed",
        "bad triton_x": "failed",
        "lost triton_x": "failed",
    }
    assert "a </script> b" in found.text
    assert "1 of the selected cases did not run" in found.text
    assert "SyntaxError" in found.text
    screen = Screen()
    terminal.html_page(run.session, None, screen)
    assert screen.lines == ["page: page.html"]


def test_a_run_of_some_cases_says_so(tmp_path: Path) -> None:
    run = Run(tmp_path, tmp_path / "page.html")
    pair = run.stage.pair("part")
    run.stage.ledger.expect(pair, (), 5, [2])
    run.stage.ledger.add(pair, workdirs.record(2), {})
    assert run_page.write(run.session) is None
    found = Reader((tmp_path / "page.html").read_text("utf-8"))
    assert "only 1 of 5 cases were selected" in found.text
    assert "1/1 cases passed" in found.text


def test_an_old_page_is_gone_while_a_run_lasts(tmp_path: Path) -> None:
    old = tmp_path / "page.html"
    old.write_text("old", encoding="utf-8")
    run_page.clear(Run(tmp_path, None).session)
    assert old.exists()
    run_page.clear(Run(tmp_path, old).session)
    assert not old.exists()
    run_page.clear(Run(tmp_path, old).session)


def test_a_page_that_cannot_be_written_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = Run(tmp_path, tmp_path / "file" / "page.html")
    run_page.clear(run.session)
    problem = run_page.write(run.session)
    screen = Screen()
    terminal.html_page(run.session, problem, screen)
    assert len(screen.lines) == 1
    assert screen.lines[0].startswith("warning: ")
    assert "page.html can't be written" in screen.lines[0]


def load(cwd: Path, option: str | None, ini: str | None) -> Settings:
    found = {"verify_html": option}
    return Settings.load(
        found.get, lambda name: ini if name == "verify_html" else None, cwd, cwd / "ini"
    )


def test_where_the_page_goes(tmp_path: Path) -> None:
    assert load(tmp_path, None, None).html is None
    assert load(tmp_path, "a.html", "b.html").html == tmp_path / "a.html"
    assert load(tmp_path, None, "b.html").html == tmp_path / "ini" / "b.html"
    with pytest.raises(SettingsError, match=r"--verify-html: .* is a folder; name a file in it"):
        load(tmp_path, ".", None)
