"""The cheats and the honest files of the corpus, and what the examination finds in each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.examining import examined, violations

if TYPE_CHECKING:
    from pytest_tritonverify.execution.host import Host

CORPUS = Path(__file__).parents[1] / "cases" / "degeneration"

# By the beginning of the file's name. What has no finding launches kernels that do the work,
# and wrongly; that is for its values to tell.
FOUND = {
    "01": {"no_launch", "torch_compute"},
    "02": {"no_launch", "torch_compute"},
    "03": {"torch_compute"},
    "04": {"torch_compute"},
    "07": {"no_launch", "torch_compute"},
    "09": {"launch_not_needed", "output_not_written", "torch_compute"},
    "11": {"torch_compute"},
    "12": {"torch_compute"},
    "14": {"torch_compute"},
    "16": {"torch_compute"},
    "18": {"torch_compute"},
    "19": {"torch_compute"},
    "20": {"torch_compute"},
    "23": {"torch_compute"},
    "27": {"torch_compute"},
    "29": {"torch_compute"},
    "30": {"no_launch", "torch_compute"},
    "33": {"host_compute"},
    "38": {"function_replaced"},
    "39": set(),
    "41": set(),
    "47": set(),
    "48": set(),
    "50": {"thread_left"},
    "A01": {"unexplained_write"},
    "A03": {"unexplained_write", "hidden_operator"},
    "A05": {"torch_compute"},
    "A06": {"later_operator"},
    "A08": {"later_operator"},
}
# It can't read the task, so that the case fails by itself.
UNREADABLE = "31"


def files(kind: str) -> list[Path]:
    return sorted((CORPUS / kind).glob("*.py"))


@pytest.mark.parametrize("file", files("cheats"), ids=lambda file: file.stem)
def test_cheats(host: Host, tmp_path: Path, file: Path) -> None:
    report = examined(host, tmp_path, file.read_text(), (CORPUS / "op_torch.py").read_text())
    number = file.name.partition("_")[0]
    if number == UNREADABLE:
        assert [finding.code for finding in report.findings] == ["not_examined"]
        return
    if number not in FOUND:
        pytest.skip("a file that came later; say above what is to be found in it")
    assert FOUND[number] <= violations(report), report.to_json()
    if not FOUND[number]:
        assert report.passed, report.message()


@pytest.mark.parametrize("file", files("honest"), ids=lambda file: file.stem)
def test_honest_files(host: Host, tmp_path: Path, file: Path) -> None:
    report = examined(host, tmp_path, file.read_text(), (CORPUS / "op_torch.py").read_text())
    assert report.passed, report.message()
    assert all(case.examined and case.launches for case in report.cases)


def test_the_corpus_is_there() -> None:
    assert len(files("cheats")) >= len(FOUND)
    assert files("honest")
