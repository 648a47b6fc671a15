"""Files that a run or a workflow reads are used, or refused with a sentence; nothing else."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import case_file
from pytest_tritonverify.benchmark import compare, gate, perf_file
from pytest_tritonverify.results.reliance import Now
from pytest_tritonverify.workflow import classes, files, performance, task_source, verification
from tests.support.fuzzing import damaged, damaged_bytes, fuzzed
from tests.support.measurements import ENVIRONMENT, SOURCES
from tests.support.workdirs import perf_result, record, verify_result

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RESULT = verify_result([record(1), record(2, "AccuracyError"), record(3, "WorkerCrash")])
RESULT["environment"] = ENVIRONMENT
RESULT["sources"] = SOURCES
REPORT = perf_result([2.0, 1.5])
NOW = Now(op_name="op", sources=SOURCES, environment=ENVIRONMENT)
CASES = (
    b'{"inputs": [{"name": "x", "type": "tensor", "required": true, "dtype": "float32", '
    b'"shape": [4, 8]}, {"name": "xs", "type": "tensor_list", "dtype": "int64", "shapes": '
    b'[[2], [3]], "range": [0, 9]}, {"name": "d", "type": "attr", "dtype": "int", "value": -1}]}\n'
) * 2
WORDS = (b"1e999", b"NaN", b"-Infinity", b"[" * 2000, b"9" * 5000, b'"\\ud800"', b"null", b"{}")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "damaged.json"


def use_result(path: Path) -> None:
    with contextlib.suppress(files.FileError):
        found = verification.read(path)
        found.contradiction()
        for case_idx in (*found.cases, 1):
            found.status(case_idx)
            found.input_desc(case_idx)
        classes.of_verification(found)
    passage = gate.examine(path, NOW)
    passage.words().encode("utf-8", "surrogateescape")
    json.dumps(passage.to_json())


def use_report(path: Path) -> None:
    with contextlib.suppress(files.FileError):
        found = performance.read(path)
        assert found.speedup is None or found.speedup > 0
        found.disagreement()
        for name in performance.INDICES:
            found.indices(name)
        _ = found.in_mean, found.given_framework_ms
    with contextlib.suppress(perf_file.PerfFileError, compare.ComparisonError):
        content = perf_file.read(path)
        json.dumps(compare.compare(REPORT, content).to_json())
        json.dumps(compare.compare(content, content).to_json())


@pytest.mark.parametrize(
    ("sound", "use"), [(RESULT, use_result), (REPORT, use_report)], ids=["result", "report"]
)
@fuzzed
@given(data=st.data())
def test_results_and_reports(
    sound: dict[str, Any], use: Callable[[Path], None], data: st.DataObject, file: Path
) -> None:
    if data.draw(st.booleans()):
        content = json.dumps(data.draw(damaged(sound))).encode("utf-8", "surrogatepass")
    else:
        content = data.draw(damaged_bytes(json.dumps(sound).encode(), WORDS))
    file.write_bytes(content)
    use(file)


@fuzzed
@given(data=st.data())
def test_case_files(data: st.DataObject, file: Path) -> None:
    file.write_bytes(data.draw(damaged_bytes(CASES, WORDS)))
    with contextlib.suppress(case_file.CaseFileError):
        assert all(spec.inputs is not None for spec in case_file.load_case_specs(file))
    task_source.check(file, file.read_bytes())
    task_source.case_count(file)


def test_sound_files_are_used(file: Path) -> None:
    file.write_text(json.dumps(RESULT))
    assert verification.read(file).total == 3
    file.write_text(json.dumps(REPORT))
    assert len(performance.read(file).shapes) == 2
    file.write_bytes(CASES)
    assert len(case_file.load_case_specs(file)) == 2
