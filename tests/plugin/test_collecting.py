"""What is collected: items, their names, and what may be given on the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.pairs import case_names, write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.runs import Runner

# Loaded by `-p spy`: what an IDE would read from the items, and what the process did.
SPY = """
import json
import os
import sys

started = []

def hook(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "os.system"):
        started.append(event)

sys.addaudithook(hook)

def pytest_collection_finish(session):
    items = [
        {
            "nodeid": item.nodeid,
            "name": item.name,
            "path": str(item.path),
            "location": list(item.location),
            "parametrized": hasattr(item, "callspec"),
        }
        for item in session.items
    ]
    facts = {"items": items, "started": started, "torch": "torch" in sys.modules}
    session.config.rootpath.joinpath("spied.json").write_text(json.dumps(facts))
"""

CONFTEST = """
collect_ignore = ["all/ops/skipped"]
"""


def ids(path: str, cases: int = 3) -> list[str]:
    return [f"{path}::{name}" for name in case_names(cases)]


COLLECT = ("--collect-only", "-q")
IMPL = "all/ops/double_triton_ascend_impl.py"
FAST = "all/ops/double_triton_fast.py"
TASK = "all/ops/double_torch.py"
TEST = "tests/test_own.py::test_own"
OTHER = "all/more/double_triton_ascend_impl.py"
BOTH = [*ids(IMPL), *ids(FAST)]
ALL = [*ids(OTHER, 2), *BOTH]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pairs, half pairs, ignored pairs and a test file; listings are kept between runs."""
    root = tmp_path_factory.mktemp("project")
    write_pair(root / "all" / "ops")
    write_pair(root / "all" / "ops", variant="fast")
    write_pair(root / "all" / "more", cases=2)
    write_pair(root / "all" / "more" / "build")
    write_pair(root / "all" / "ops" / "skipped")
    (root / "all" / "more" / "lonely_torch.py").write_text("raise RuntimeError('imported')\n")
    (root / "all" / "more" / "stray_triton_fast.py").write_text("raise RuntimeError('imported')\n")
    (root / "tests").mkdir()
    (root / "tests" / "test_own.py").write_text("def test_own(): pass\n")
    (root / "conftest.py").write_text(CONFTEST)
    (root / "pytest.ini").write_text("[pytest]\n")
    (root / "spy.py").write_text(SPY)
    return root


@pytest.fixture
def shared(runner: Runner, project: Path) -> Runner:
    """A runner in that project."""
    runner.move_to(project)
    return runner


def spied(runner: Runner) -> Any:
    return json.loads((runner.path / "spied.json").read_text())


def test_items_are_what_ides_and_command_lines_need(shared: Runner) -> None:
    run = shared.run("--verify-dir=all/ops", *COLLECT, "-p", "spy", fresh=True)
    facts = spied(shared)

    assert run.code == 0
    assert run.listed == BOTH
    assert "6 tests collected" in run.out
    assert "Triton verification" not in run.out
    assert not list((shared.path / "all" / "ops").glob("*.json*"))
    assert not facts["torch"]
    for item in facts["items"]:
        file, _, name = item["nodeid"].partition("::")
        path = shared.path / file
        line = path.read_text().splitlines().index("class ModelNew(torch.nn.Module):")
        assert item["path"] == str(path)
        assert item["location"] == [file, line, name]
        assert item["name"] == name
        assert not item["parametrized"]
        assert name.isascii()
        assert len(name) <= 80
        assert not set(name) & set("[]:./\\ @")


def test_listings_are_kept_until_the_task_changes(
    runner: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    (runner.path / "spy.py").write_text(SPY)
    arguments = ("--verify-dir=all/ops", *COLLECT, "-p", "spy")
    write_pair(runner.path / "all" / "ops", cases=2)
    first = runner.run(*arguments, fresh=True)
    assert spied(runner)["started"]
    assert first.listed == ids(IMPL, 2)

    again = runner.run(*arguments, fresh=True)
    assert again.listed == first.listed
    assert not spied(runner)["started"]
    assert not spied(runner)["torch"]

    # Ids are the same in every process, whatever its hashes.
    write_pair(runner.path / "all" / "ops", cases=4)
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    changed = runner.run(*arguments, fresh=True)
    monkeypatch.setenv("PYTHONHASHSEED", "2")
    uncached = runner.run(*arguments, "-p", "no:cacheprovider", fresh=True)
    assert changed.listed == uncached.listed == ids(IMPL, 4)
    assert spied(runner)["started"]


@pytest.mark.parametrize(
    ("arguments", "listed"),
    [
        pytest.param([IMPL], ids(IMPL), id="implementation"),
        pytest.param([TASK], BOTH, id="task"),
        pytest.param([IMPL, TASK], BOTH, id="implementation and task"),
        pytest.param([BOTH[1]], [BOTH[1]], id="item"),
        pytest.param([BOTH[1], BOTH[5]], [BOTH[1], BOTH[5]], id="items"),
        pytest.param([IMPL, TEST], [*ids(IMPL), TEST], id="implementation and test"),
        pytest.param(["--verify-dir=all/ops", BOTH[4]], [BOTH[4]], id="item of the dir"),
        pytest.param(["--verify-dir=all/ops", FAST], ids(FAST), id="implementation of the dir"),
        pytest.param(["--verify-dir=all/ops", TASK], BOTH, id="task of the dir"),
        pytest.param(["--verify-dir=all/ops", "all/ops"], BOTH, id="the dir itself"),
        pytest.param(["--verify-dir", "all/ops", "--verify-dir=all/ops"], BOTH, id="dir twice"),
        pytest.param(["--verify-dir=all", "--verify-dir=all/ops"], ALL, id="nested dirs"),
        pytest.param(
            ["--verify-dir=all/ops", "--verify-dir=all/more"],
            [*BOTH, *ids(OTHER, 2)],
            id="two dirs",
        ),
        pytest.param(["--verify-dir=all/ops", "tests"], [TEST, *BOTH], id="dir and tests"),
        pytest.param(["--verify-dir=all/ops", "--verify-impl=*fast"], ids(FAST), id="impl pattern"),
        pytest.param(["--verify-dir=all/ops", "--verify-op=d?uble"], BOTH, id="op pattern"),
        pytest.param(["--verify-dir=all/ops", "-k", "fast and case2"], [BOTH[4]], id="-k case"),
        pytest.param(["--verify-dir=all/ops", "-k", "triton_fast"], ids(FAST), id="-k impl"),
        pytest.param(["--verify-dir=all/ops", "-k", "double and float32"], BOTH, id="-k dtype"),
        pytest.param(["--verify-dir=all/ops", "tests", "-m", "verify"], BOTH, id="-m"),
        pytest.param(["--verify-dir=all/ops", "tests", "-m", "not verify"], [TEST], id="-m not"),
        pytest.param(
            ["--verify-dir=all/ops", f"--deselect={IMPL}"], ids(FAST), id="--deselect file"
        ),
        pytest.param(
            ["--verify-dir=all/ops", f"--deselect={BOTH[0]}"], BOTH[1:], id="--deselect item"
        ),
        pytest.param(["--verify-dir=all/ops", f"--ignore={FAST}"], ids(IMPL), id="--ignore"),
        pytest.param(["--verify-dir=all", "--ignore=all/ops"], ids(OTHER, 2), id="--ignore dir"),
        pytest.param(
            ["--verify-dir=all/ops", "--ignore-glob=all/ops/*ascend*"],
            ids(FAST),
            id="--ignore-glob",
        ),
        pytest.param(["--verify-dir=all", "-o", "norecursedirs=more"], BOTH, id="norecursedirs"),
        pytest.param(["-o", "verify_dirs=all/ops"], [*BOTH, TEST], id="ini dirs add to the tests"),
        pytest.param(
            ["-o", "verify_dirs=all/ops", "--verify-dir=all/more"], ids(OTHER, 2), id="over ini"
        ),
        pytest.param(
            ["-o", "verify_dirs=all/ops", "-o", "verify_impl=*fast"],
            [*ids(FAST), TEST],
            id="ini pattern",
        ),
        pytest.param(["-o", "verify_dirs=all/ops", "tests"], [TEST], id="tests despite ini"),
        pytest.param(["-o", "verify_dirs=all/ops", "all"], BOTH, id="folder above an ini dir"),
    ],
)
def test_arguments(shared: Runner, arguments: list[str], listed: list[str]) -> None:
    run = shared.run(*COLLECT, *arguments)
    assert run.listed == listed
    assert run.code == 0


def test_half_pairs_are_named_in_the_header(shared: Runner) -> None:
    run = shared.run("--verify-dir=all/more", "--collect-only")
    assert run.code == 0
    warning, more = "tritonverify: warning:", "all/more"
    header = [line for line in run.out.splitlines() if line.startswith("tritonverify:")]
    assert header == [
        "tritonverify: 1 pair, device cpu (Triton's CPU interpreter)",
        f"{warning} {more}/lonely_torch.py: no implementation lonely_triton_<variant>.py beside it",
        f"{warning} {more}/stray_triton_fast.py: no task file stray_torch.py beside it",
    ]
    assert "<VerifyFile double_triton_ascend_impl.py>" in run.out
    assert "<CaseItem case1-float32-1x8>" in run.out


def test_items_can_be_named_from_any_folder(
    shared: Runner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shared.path / "all" / "ops")
    run = shared.run("double_triton_fast.py::case2-float32-2x8", *COLLECT)
    assert run.code == 0
    assert run.listed == [BOTH[4]]


@pytest.mark.parametrize(
    "option",
    ["--collect-only", "--setup-only", "--setup-plan", "--fixtures", "--fixtures-per-test"],
)
def test_what_runs_nothing_touches_no_result(
    shared: Runner, request: pytest.FixtureRequest, option: str
) -> None:
    folder = shared.path / "all" / "ops"
    old = folder / "verify_result.json"
    old.write_text("old")
    request.addfinalizer(old.unlink)
    run = shared.run("--verify-dir=all/ops", option)
    assert run.code == 0
    assert old.read_text() == "old"
    assert list(folder.glob("*result*")) == [old]
    assert "Triton verification" not in run.out
