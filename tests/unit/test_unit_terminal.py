"""What people read: one header line, a row for every pair, and notes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from pytest_tritonverify import terminal
from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.results.ledger import Ledger
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord, CheckRecord
from pytest_tritonverify.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.session import VerifySession


class Screen:
    """Stands for pytest's terminal reporter."""

    def __init__(self) -> None:
        self.titles: list[str] = []
        self.lines: list[str] = []
        self.markup: list[dict[str, bool]] = []

    def write_sep(self, _sep: str, title: str) -> None:
        self.titles.append(title)

    def write_line(self, line: str, **markup: bool) -> None:
        self.lines.append(line)
        self.markup.append(markup)

    line = write_line


class Stage:
    """A session that has found out what a test tells it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ledger: Any = Ledger(None, {"non_compute": False})
        self.device = SimpleNamespace(name="cpu", interpreted=True)
        self.facts: dict[str, Any] = {}
        self.passed_over: dict[str, str] = {}
        self.keep_cache = False
        self.cache_ab = False
        self.in_process = False
        self.compilations: Any = None
        self.pairs: list[Pair] = []
        self.lonely: list[tuple[Path, str]] = []

    def pair(self, op: str, variant: str = "x") -> Pair:
        folder = self.root / op
        folder.mkdir(exist_ok=True)
        task, implementation = folder / f"{op}_torch.py", folder / f"{op}_triton_{variant}.py"
        task.touch()
        implementation.touch()
        self.pairs.append(Pair(op, variant, task, implementation))
        return self.pairs[-1]

    def judged(self, op: str, *outcomes: dict[str, Any], cases: int | None = None) -> Pair:
        """Make a pair with so many cases and enter the outcomes of the first ones."""
        pair = self.pair(op)
        total = cases or len(outcomes)
        entries = [CaseEntry(f"case{k}-float32-2", "float32") for k in range(1, total + 1)]
        self.ledger.expect(pair, entries, total, range(1, total + 1))
        for k, facts in enumerate(outcomes, 1):
            data = {"case_idx": k, "name": entries[k - 1].name, "status": PASSED, **facts}
            self.ledger.add(pair, CaseRecord.from_json(data), {})
        return pair

    @property
    def session(self) -> VerifySession:
        found = SimpleNamespace(
            ledger=self.ledger,
            benchmarks=None,
            compilations=self.compilations,
            engine=SimpleNamespace(
                device=self.device, device_facts=self.facts, passed_over=self.passed_over
            ),
            settings=Settings(
                in_process=self.in_process, keep_cache=self.keep_cache, cache_ab=self.cache_ab
            ),
            activation=SimpleNamespace(cwd=self.root, named=tuple(self.pairs[:1])),
            findings=SimpleNamespace(pairs=tuple(self.pairs), lonely=tuple(self.lonely)),
        )
        return cast("VerifySession", found)

    def summary(self) -> Screen:
        screen = Screen()
        terminal.summary(self.session, screen)
        return screen


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def failed(error_type: str | None = "AccuracyError", **facts: Any) -> dict[str, Any]:
    return {"status": FAILED, "error_type": error_type, **facts}


def warned(message: str) -> dict[str, Any]:
    return {"warnings": [{"code": "x", "message": message}]}


# The header


def test_the_header_says_what_is_judged_where(stage: Stage) -> None:
    stage.pair("a")
    assert terminal.header(stage.session) == [
        "tritonverify: 1 pair, device cpu (Triton's CPU interpreter)"
    ]
    stage.pair("b")
    stage.device = SimpleNamespace(name="cuda", interpreted=False)
    stage.facts = {"name": "NVIDIA H100"}
    assert terminal.header(stage.session) == ["tritonverify: 2 pairs, device cuda (NVIDIA H100)"]
    stage.facts = {}
    assert terminal.header(stage.session) == ["tritonverify: 2 pairs, device cuda (accelerator)"]


def test_the_header_says_which_accelerator_is_not_used_and_why(stage: Stage) -> None:
    stage.passed_over = {"npu": "torch_npu sees no NPU"}
    (line,) = terminal.header(stage.session)[1:]
    assert line == (
        "tritonverify: warning: there seems to be an accelerator, npu, but it can't be used: "
        "torch_npu sees no NPU"
    )


def test_the_header_warns(stage: Stage) -> None:
    stage.lonely = [(stage.root / "a_torch.py", "no implementation beside it")]
    stage.in_process = True
    stage.keep_cache = True
    assert terminal.header(stage.session)[1:] == [
        "tritonverify: in pytest's own process; nothing is isolated",
        "tritonverify: warning: --verify-keep-cache does nothing by itself",
        "tritonverify: warning: a_torch.py: no implementation beside it",
    ]


# The table


def rows(screen: Screen) -> list[list[str]]:
    """The cells of the rows below the headings."""
    table = [line for line in screen.lines if "triton_x" in line and ": " not in line[:10]]
    return [line.split(maxsplit=5) for line in table]


def test_a_row_for_every_pair_in_order(stage: Stage) -> None:
    stage.judged("softmax", {"seconds": 1.25}, {"seconds": 0.5})
    stage.judged("gelu", failed(), {}, failed("ValueError"), failed())
    stage.ledger.add_load_failure(stage.pair("bad"), "SyntaxError", "invalid syntax", {})
    stage.ledger.add_empty(stage.pair("none"), {})

    screen = stage.summary()

    assert screen.titles == ["Triton verification"]
    assert rows(screen) == [
        ["bad", "triton_x", "?", "0", "0.0", "failed: SyntaxError"],
        ["gelu", "triton_x", "4", "1", "0.0", "failed: 2 AccuracyError, 1 ValueError"],
        ["none", "triton_x", "0", "0", "0.0", "failed: no cases"],
        ["softmax", "triton_x", "2", "2", "1.8", "passed"],
    ]
    assert screen.markup[:5] == [
        {"bold": True},
        {"red": True},
        {"red": True},
        {"red": True},
        {"green": True},
    ]


def test_columns_line_up(stage: Stage) -> None:
    stage.judged("a", {})
    stage.judged("much_longer_operator", *[{"seconds": 100.0}] * 12)

    heading, short, long = stage.summary().lines[:3]

    assert heading.split() == list(terminal._HEADINGS)
    for name in ("operator", "implementation", "verdict"):
        at = heading.index(name)
        assert all(line[at - 2 : at] in ("  ", "") for line in (short, long))
        assert all(line[at] != " " for line in (short, long))
    for name in ("cases", "passed", "seconds"):
        end = heading.index(name) + len(name)
        assert all(line[end - 1].isdigit() and line[end] == " " for line in (short, long))
    # Nothing is padded beyond what it needs: it fits a narrow window.
    assert len(short) == heading.index("verdict") + len("passed")


@pytest.mark.parametrize(
    ("outcomes", "cases", "verdict"),
    [
        ([{}], 1, "passed"),
        ([{"flaky": True}], 1, "failed: 1 FlakyCase"),
        ([failed(None)], 1, "failed: 1 Error"),
        ([{}], 4, "failed: 3 NotRun"),
        ([failed("NotRun"), failed()], 3, "failed: 1 AccuracyError, 2 NotRun"),
        ([], 2, "failed: 2 NotRun"),
    ],
)
def test_verdicts(stage: Stage, outcomes: list[dict[str, Any]], cases: int, verdict: str) -> None:
    stage.judged("a", *outcomes, cases=cases)
    assert [row[-1] for row in rows(stage.summary())] == [verdict]


def test_nothing_judged_is_said(stage: Stage) -> None:
    assert stage.summary().lines == [
        "no pair was judged: nothing was selected, or nothing was found"
    ]
    stage.ledger = None
    assert stage.summary().titles == []


# Notes


def notes(stage: Stage) -> list[str]:
    return [
        line
        for line in stage.summary().lines
        if line.startswith(("result: ", "warning: ", "验证超时", "cache A/B: ")) or ": only" in line
    ]


def test_result_files_are_named_from_where_pytest_was_started(stage: Stage) -> None:
    stage.judged("a", {})
    stage.ledger._output = stage.root.parent / "elsewhere.json"
    stage.judged("b", {})
    assert notes(stage) == [
        "result: a/verify_result_x.json",
        f"result: {stage.root.parent / 'elsewhere.json'}",
    ]


def test_many_result_files_are_counted(stage: Stage) -> None:
    for number in range(13):
        stage.judged(f"op{number}", {})
    screen = stage.summary()
    assert "13 result files were written beside their pairs" in screen.lines
    assert not any(line.startswith("result: ") for line in screen.lines)


def test_a_partial_run_says_so(stage: Stage) -> None:
    pair = stage.pair("a")
    stage.ledger.expect(pair, (), 9, [2, 3])
    assert notes(stage) == [
        "a (triton_x): only 2 of 9 cases were selected, so verify_result_x.json was left as it was"
    ]


def test_timeouts_are_printed_as_documented(stage: Stage) -> None:
    stage.judged("a", failed("VerifyTimeout"), failed("NotRun"), failed("VerifyTimeout"))
    assert "验证超时: a (triton_x)" in notes(stage)


def test_warnings_are_told_once_with_their_cases(stage: Stage) -> None:
    stage.judged("a", warned("cast"), warned("index"), warned("cast"))
    stage.judged("b", warned("cast"))
    assert notes(stage)[2:] == [
        "warning: a (triton_x), case 1, 3: cast",
        "warning: a (triton_x), case 2: index",
        "warning: b (triton_x), case 1: cast",
    ]


def test_files_that_could_not_be_written_are_told(stage: Stage) -> None:
    (stage.root / "file").touch()
    stage.ledger._output = stage.root / "file" / "r.json"
    stage.judged("a", {})
    assert notes(stage) == [
        f"warning: a (triton_x): {stage.root / 'file' / 'r.json'} can't be written: Not a directory"
    ]


def test_a_missing_journal_is_told(stage: Stage) -> None:
    (stage.root / "r.journal.jsonl").mkdir()
    stage.ledger._output = stage.root / "r.json"
    stage.judged("a", {}, cases=2)
    assert notes(stage) == [
        (
            "warning: a (triton_x): no journal was kept: Is a directory: "
            f"{stage.root / 'r.journal.jsonl'}"
        ),
    ]


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("configfile: ../../../dev/null", ""),
        ("rootdir: /ops, configfile: ../dev/null", "rootdir: /ops"),
        ("configfile: pytest.ini", "configfile: pytest.ini"),
        ("rootdir: /dev/null", "rootdir: /dev/null"),
    ],
)
def test_a_configuration_file_that_is_none_is_left_out(line: str, kept: str) -> None:
    assert terminal.without_config_file(line, "/dev/null") == kept


def test_half_pairs_are_told_again(stage: Stage) -> None:
    stage.judged("a", {})
    stage.lonely = [(stage.root / "b_torch.py", "no implementation beside it")]
    assert notes(stage)[-1] == "warning: b_torch.py: no implementation beside it"


def test_what_a_second_run_on_an_empty_cache_has_shown(stage: Stage) -> None:
    stage.cache_ab = stage.keep_cache = True
    for op, conclusion, kept in (("a", "编译器缺陷嫌疑", "/kept"), ("b", None, None)):
        pair = stage.judged(op, failed())
        stage.ledger.account(pair).full = False
        stage.ledger.account(pair).cache_ab = {
            "conclusion": conclusion,
            "message": "so it is",
            "kept_cache": kept,
        }
    assert [note for note in notes(stage) if "cache" in note] == [
        "cache A/B: a (triton_x): 编译器缺陷嫌疑: so it is (/kept)",
        "cache A/B: b (triton_x): so it is",
    ]


def test_options_about_caches_that_do_nothing_are_named_at_the_end_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.judged("a", {})
    stage.keep_cache = True
    assert "warning: --verify-keep-cache does nothing by itself" in notes(stage)
    monkeypatch.setenv("TRITON_CACHE_MANAGER", "some.module:Manager")
    stage.cache_ab = True
    (warning,) = (note for note in notes(stage) if "keep-cache" in note or "CACHE" in note)
    assert "TRITON_CACHE_MANAGER is set" in warning


# Compiling


def test_kernels_that_do_not_compile_are_counted_by_target(stage: Stage) -> None:
    pair = stage.judged("a", {})
    kernels = [
        {"target": target, "compiles": compiles}
        for target, compiles in (("cuda:90", True), ("cuda:90", True), ("Ascend910B4", False))
    ]
    record = CheckRecord(
        name="compile",
        status=FAILED,
        error_type="CompilationError",
        message="CompilationError: it is too large\nby far",
        report={"kernels": kernels},
    )
    stage.ledger.add_check(pair, record, {})
    screen = stage.summary()
    assert screen.lines[1].endswith("failed: 1 CompilationError")
    assert (
        "a (triton_x): kernels that compile: 2 of 2 for cuda:90, 0 of 1 for Ascend910B4"
        in screen.lines
    )


def test_what_was_not_compiled_is_told_of_a_pair_that_passes(stage: Stage) -> None:
    pair = stage.judged("a", {})
    kernels = [{"target": "cuda:90", "compiles": True}]
    told = "44 launches were too many or too large to be recorded"
    record = CheckRecord(name="compile", status=PASSED, message=told, report={"kernels": kernels})
    stage.ledger.add_check(pair, record, {})
    lines = stage.summary().lines
    at = lines.index("a (triton_x): kernels that compile: 1 of 1 for cuda:90")
    assert lines[at + 1] == f"warning: a (triton_x), compile: {told}"


def test_progress_of_compiling_is_shown_on_a_terminal_alone(stage: Stage) -> None:
    class Terminal(Screen):
        isatty = True
        verbosity = 0

        def ensure_newline(self) -> None:
            self.lines.append("-")

        def rewrite(self, line: str, *, erase: bool) -> None:
            assert erase
            self.lines.append(line)

    pair = stage.pair("a")
    shown, piped = Terminal(), Terminal()
    piped.isatty = False
    for screen in (shown, piped, None):
        with terminal.compiling(pair, screen) as say:
            say(1, 2)
            say(2, 2)
    assert piped.lines == []
    assert shown.lines == [
        "-",
        "a (triton_x): 1 of 2 kernels compiled",
        "a (triton_x): 2 of 2 kernels compiled",
        "",
    ]


def test_the_header_says_what_compiles(stage: Stage) -> None:
    stage.pair("a")
    stage.compilations = SimpleNamespace(described=lambda: ["compiling for cuda:90 by triton 3"])
    assert "tritonverify: compiling for cuda:90 by triton 3" in terminal.header(stage.session)
