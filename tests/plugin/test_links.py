"""Folders and files that are symbolic links: pairs are found and judged under those names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.pairs import case_names, write_pair

if TYPE_CHECKING:
    from tests.support.pairs import WrittenPair
    from tests.support.runs import Runner

IMPL = "double_triton_ascend_impl.py"


@pytest.fixture
def pair(runner: Runner) -> WrittenPair:
    """A pair outside of the project, and links to its folder and to its implementation."""
    pair = write_pair(runner.path / "elsewhere", cases=2)
    project = runner.path / "project"
    (project / "kernels").mkdir(parents=True)
    (project / "kernels" / "linked").symlink_to(pair.folder)
    (project / "single").mkdir()
    (project / "single" / pair.task.name).symlink_to(pair.task)
    (project / "single" / IMPL).symlink_to(pair.implementation)
    (project / "pytest.ini").write_text("[pytest]\n")
    runner.move_to(project)
    return pair


def test_links_keep_their_names(runner: Runner, pair: WrittenPair) -> None:
    listed = [f"kernels/linked/{IMPL}::{name}" for name in case_names(2)]
    for arguments in (
        ["--verify-dir=kernels/linked"],
        [f"kernels/linked/{IMPL}"],
        [f"kernels/linked/{pair.task.name}"],
        listed,
    ):
        assert runner.run(*arguments, "--collect-only", "-q").listed == listed

    listed = [f"single/{IMPL}::{name}" for name in case_names(2)]
    for arguments in (["--verify-dir=single"], [f"single/{IMPL}"]):
        assert runner.run(*arguments, "--collect-only", "-q").listed == listed


def test_a_linked_folder_below_the_dir_is_judged(runner: Runner, pair: WrittenPair) -> None:
    run = runner.run("--verify-dir=kernels")
    assert "tritonverify: 1 pair," in run.out
    assert run.by_name == dict.fromkeys(case_names(2), "passed")
    assert "result: kernels/linked/verify_result.json" in run.out
    assert pair.result()["passed_cases"] == 2
    assert run.code == 0


def test_a_conftest_in_a_linked_folder_is_refused(runner: Runner, pair: WrittenPair) -> None:
    (pair.folder / "conftest.py").write_text("open('imported', 'w').close()\n")
    for arguments in (["--verify-dir=kernels"], [f"kernels/linked/{IMPL}"]):
        run = runner.run(*arguments)
        assert run.code == pytest.ExitCode.USAGE_ERROR
        assert "conftest.py lies among the files to be judged" in run.err
    assert not (runner.path / "imported").exists()
