"""What the static check says of a pair, as a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify import discovery
from pytest_tritonverify.results.records import FAILED, PASSED, WARNED, CheckRecord
from pytest_tritonverify.screening import Screening
from pytest_tritonverify.settings import Settings
from tests.support.degeneration_snippets import model

if TYPE_CHECKING:
    from pathlib import Path


def screened(folder: Path, source: bytes | None, policy: str = "strict") -> CheckRecord:
    (folder / "op_torch.py").write_text("")
    implementation = folder / "op_triton_x.py"
    implementation.write_bytes(source or b"")
    pair = discovery.pair_of(implementation)
    assert pair is not None
    if source is None:
        implementation.unlink()
    record = Screening(Settings(degeneration=policy)).record(pair)
    assert record is not None
    return record


def test_a_file_that_passes(tmp_path: Path) -> None:
    record = screened(tmp_path, model("return launch(x)"))
    assert (record.status, record.error_type, record.message) == (PASSED, None, None)


def test_what_falls_back_has_its_type(tmp_path: Path) -> None:
    record = screened(tmp_path, model("return launch(x.relu())"))
    assert (record.status, record.error_type, record.regression_type) == (
        FAILED,
        "PyTorchFallback",
        3,
    )
    assert record.message is not None
    assert record.message.startswith("A-PyTorchFallback-Type3: op_triton_x.py:")


@pytest.mark.parametrize("policy", ["strict", "warn"])
def test_a_mistake_has_the_name_that_python_gives_it(tmp_path: Path, policy: str) -> None:
    record = screened(tmp_path, model("return lanch(x)"), policy)
    assert record.status == (WARNED if policy == "warn" else FAILED)
    assert (record.error_type, record.regression_type) == ("NameError", None)
    assert record.message is not None
    line, where, code, caret = record.message.splitlines()
    assert line == "NameError: name `lanch` is not defined; did you mean `launch`?"
    assert where == f'  File "op_triton_x.py", line {record.line}'
    assert code == "    return lanch(x)"
    assert caret == "           ^"


def test_another_class_than_the_model(tmp_path: Path) -> None:
    source = model("return launch(x)").replace(b"ModelNew", b"NewModel")
    record = screened(tmp_path, source)
    assert (record.error_type, record.regression_type) == ("MissingNameError", None)
    words = "MissingNameError: op_triton_x.py has no class `ModelNew` (it defines NewModel)"
    assert record.message == words
    assert record.line is None


def test_a_syntax_error_shows_its_line(tmp_path: Path) -> None:
    record = screened(tmp_path, b"import torch\n\nx = torch.ones(\n")
    assert (record.error_type, record.regression_type, record.line) == ("SyntaxError", None, 3)
    assert record.message is not None
    line, where, code, caret = record.message.splitlines()
    assert line.startswith("SyntaxError: ")
    assert where == '  File "op_triton_x.py", line 3'
    assert code == "    x = torch.ones("
    assert caret.index("^") == code.index("(")


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    record = screened(tmp_path, None)
    assert (record.error_type, record.regression_type) == ("FileNotFoundError", None)
    assert record.message == "FileNotFoundError: there is no such file"
