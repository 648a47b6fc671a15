"""`explain`: nothing that failed is left out, the text stays short, and classes have evidence."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import figures
from pytest_tritonverify.results.records import CheckRecord
from pytest_tritonverify.workflow import classes, explaining, grouping, verification
from tests.support import pages
from tests.support.workdirs import FAKE, Builder, record, verify_result, write_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.workflow.conftest import Commands

FALLBACK = "A-PyTorchFallback-Type3: PyTorch computes: `torch.nn.functional.softmax`"


def failed(case_idx: int, error_type: str, message: str, **more: Any) -> verification.FailedCase:
    return verification.FailedCase(
        case_idx=case_idx,
        input_desc=[{"type": "tensor", "shape": [case_idx], "dtype": "torch.float16"}],
        error_type=error_type,
        error_msg=message,
        **more,
    )


def cases_in(text: str) -> set[int]:
    """Read the case numbers back out of a text."""
    found: set[int] = set()
    for line in text.splitlines():
        if not line.startswith("- "):
            continue
        numbers = line.partition(" case ")[2].partition(":")[0] or line.rpartition(" case ")[2]
        for part in numbers.split(", "):
            first, _, last = part.partition("-")
            found |= set(range(int(first), int(last or first) + 1))
    return found


messages = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=300
) | st.sampled_from(["3 of 8 elements differ", "12 of 80 elements differ", "no such kernel"])
failures = st.lists(
    st.tuples(st.integers(1, 400), st.sampled_from(["AccuracyError", "TypeError", "X"]), messages),
    min_size=1,
    max_size=60,
    unique_by=lambda entry: entry[0],
).map(lambda found: [failed(n, kind, text) for n, kind, text in found])


@given(failures, st.integers(200, 4000))
def test_every_failed_case_is_named_in_a_text_of_bounded_length(
    found: list[verification.FailedCase], limit: int
) -> None:
    text = grouping.text(found, 400, limit)
    groups = grouping.group(found)
    assert sum(len(one.members) for one in groups) == len(found)
    if len(groups) <= 12:
        assert cases_in(text) == {failure.case_idx for failure in found}
    assert text.startswith(f"{len(found)} of 400 cases failed")
    # Heads are never left out; each is bounded, and so is their number.
    assert len(text) <= limit + 15 * 600


@given(st.sets(st.integers(1, 60)))
def test_case_numbers_in_short_can_be_read_back(numbers: set[int]) -> None:
    text = figures.numbers_text(numbers)
    found = set()
    for part in filter(None, text.split(", ")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    assert found == numbers


def test_what_differs_in_figures_only_is_one_failure() -> None:
    found = [
        failed(1, "AccuracyError", "AccuracyError: 3 of 8 elements differ, worst 1e-3"),
        failed(2, "AccuracyError", "AccuracyError: 12 of 80 elements differ, worst 0.5"),
        failed(3, "AssertionError", "AssertionError: shapes differ"),
        failed(4, "AccuracyError", "AccuracyError: 1 of 5 elements differ, worst nan"),
    ]
    groups = grouping.group(found)
    assert [(one.error_type, one.cases) for one in groups] == [
        ("AccuracyError", [1, 2, 4]),
        ("AssertionError", [3]),
    ]
    text = grouping.text(found, 5)
    assert "- AccuracyError, case 1-2, 4: 3 of 8 elements differ, worst 1e-3" in text
    assert "case 1: float16[1]" in text


def test_shapes_and_dtypes_make_no_other_failure_and_causes_come_first() -> None:
    words = (
        "output (torch.{}, shape {}) is not accurate\n  worst:\n    [0, 1]: 3\n  where: all rows"
    )
    shapes = (("float32", "[8, 128]"), ("float16", "[4, 5, 100]"))
    found = [failed(k, "AccuracyError", words.format(*one)) for k, one in enumerate(shapes, 1)]
    (group,) = grouping.group(found)
    assert group.cases == [1, 2]
    text = grouping.text(found, 2)
    assert text.index("where: all rows") < text.index("worst:")


def test_a_traceback_says_what_it_is_about_in_its_last_line() -> None:
    text = "Traceback (most recent call last):\n  File 'x', line 3\nValueError: no such axis"
    (group,) = grouping.group([failed(1, "ValueError", text)])
    assert group.headline == "no such axis"


def test_many_kinds_of_failure_are_all_counted() -> None:
    found = [failed(n, f"Error{chr(64 + n)}", "") for n in range(1, 21)]
    text = grouping.text(found, 20)
    assert "8 more kinds" in text
    assert "case 13-20" in text


@pytest.mark.parametrize(
    ("failure", "letter"),
    [
        (failed(1, "AccuracyError", "AccuracyError: out of memory of words"), "A"),
        (failed(1, "AssertionError", "AssertionError: shapes differ"), "A"),
        (failed(1, "CompilationError", "at 12:8: unsupported"), "A"),
        (failed(1, "TypeError", "TypeError: forward() takes 1 argument"), "A"),
        (failed(1, "ModuleNotFoundError", "No module named 'my_helper'"), "A"),
        (failed(1, "ModuleNotFoundError", "No module named 'torch_npu'"), "B"),
        (failed(1, "ImportError", "No module named 'triton.backends.ascend'"), "B"),
        (failed(1, "FileNotFoundError", "[Errno 2] No such file: 'bishengir-compile'"), "B"),
        (failed(1, "RuntimeError", "NPU out of memory. Tried to allocate 2 GiB"), "B"),
        (failed(1, "OutOfMemoryError", "CUDA out of memory"), "B"),
        (failed(1, "RuntimeError", "No CUDA GPUs are available"), "B"),
        (failed(1, "RuntimeError", "device not found"), "B"),
        (failed(1, "OSError", "[Errno 28] No space left on device"), "B"),
        (failed(1, "WorkerStartError", "WorkerStartError: import torch fails"), "B"),
        (failed(1, "WorkerCrash", "WorkerCrash: the process ended; signal SIGKILL"), "B"),
        (failed(1, "WorkerCrash", "WorkerCrash: the process ended; signal SIGSEGV"), "A"),
        (failed(1, "ValueError", "bad shape", side="reference", phase="forward"), "B"),
        (failed(1, "ListingError", "it changed", side="verifier"), "B"),
        (failed(1, "VerifyTimeout", "VerifyTimeout: 验证超时（900秒）"), "B"),
        (
            failed(1, "VerifyTimeout", "x", side="implementation", phase="forward"),
            "A",
        ),
        (failed(1, "VerifyTimeout", "x", side="implementation", phase="start"), "B"),
        (failed(1, "PyTorchFallback", FALLBACK), "A"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.error_type,
)
def test_evidence_decides_the_class(failure: verification.FailedCase, letter: str) -> None:
    found = classes.of_failure(failure)
    assert (found.letter, found.subtype[:2]) == (letter, f"{letter}-")
    assert found.evidence


def result(tmp_path: Path, content: dict[str, Any], name: str = "verify_result.json") -> Path:
    return write_json(tmp_path / name, content)


def test_one_repairable_failure_makes_a_round_repairable(
    tmp_path: Path, commands: Commands
) -> None:
    records = [
        record(1, "OutOfMemoryError", "CUDA out of memory"),
        record(2, "OutOfMemoryError", "CUDA out of memory"),
        record(3, "AccuracyError"),
    ]
    path = result(tmp_path, verify_result(records))
    _, found = commands.json("explain", path)
    assert (found["class"], found["subtype"], found["terminate"]) == ("A", "A-AccuracyError", False)
    assert (found["failed_cases"], found["total_cases"]) == (3, 3)
    assert any("memory" in sentence.lower() for sentence in found["evidence"])
    path = result(tmp_path, verify_result(records[:2]))
    _, found = commands.json("explain", path)
    assert (found["class"], found["terminate"]) == ("B", True)


def test_a_broken_cann_is_repaired_before_anything_else(tmp_path: Path) -> None:
    content = verify_result([record(1, "AccuracyError")])
    content["environment"]["cann"] = {"error": "EnvironmentError: ASCEND_HOME_PATH is not set"}
    (found,) = explaining.of_path(result(tmp_path, content))
    assert found.kind is not None
    assert found.kind.subtype == "B-CANN"
    content["environment"]["device"] = {"backend": "cpu", "name": "x", "npu_name": None}
    (found,) = explaining.of_path(result(tmp_path, content))
    assert found.kind is not None
    assert found.kind.letter == "A"


def test_a_degeneration_begins_with_the_documented_words(
    tmp_path: Path, commands: Commands
) -> None:
    check = CheckRecord(
        name="degeneration", status="failed", error_type="PyTorchFallback", message=FALLBACK
    )
    content = verify_result([record(1), record(2)], checks={"degeneration": check})
    _, found = commands.json("explain", result(tmp_path, content))
    assert found["verifier_error"].startswith(FALLBACK)
    assert (found["class"], found["subtype"]) == ("A", "A-PyTorchFallback-Type3")
    assert found["failed_cases"] == 2


def test_what_validate_prints_is_explained(tmp_path: Path, commands: Commands) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(FAKE, encoding="utf-8")
    answer = commands.run("validate", fake, "--json")
    assert answer.code == 1
    _, found = commands.json("explain", result(tmp_path, answer.json, "check.json"))
    assert found["verifier_error"].startswith("A-PyTorchFallback-Type1: ")
    assert (found["class"], found["failed_cases"]) == ("A", None)
    documented = {
        "valid": False,
        "regression_type": 3,
        "checks": {
            "triton_kernel_exists": {"passed": True, "kernels": ["k"]},
            "kernel_called_from_forward": {"passed": True, "called": ["k"]},
            "no_forbidden_torch_ops": {
                "passed": False,
                "violations": [{"line": 45, "call": "F.softmax", "reason": "forbidden"}],
            },
        },
        "suggestion": "move it into the kernel",
    }
    _, found = commands.json("explain", result(tmp_path, documented, "documented.json"))
    assert found["verifier_error"].startswith("A-PyTorchFallback-Type3: ")
    assert "line 45: F.softmax: forbidden" in found["verifier_error"]
    assert "move it into the kernel" in found["verifier_error"]


def test_a_timeout_is_told_in_the_documented_words(tmp_path: Path, commands: Commands) -> None:
    _, found = commands.json("explain", "--timeout", "900")
    assert found["verifier_error"] == "验证超时(900秒)"
    assert (found["class"], found["terminate"]) == ("B", True)
    hung = "VerifyTimeout: 验证超时（12.5秒） while op.py was in phase 'forward'"
    records = [record(1, "VerifyTimeout", hung, phase="forward"), record(2, "NotRun", "NotRun: x")]
    _, found = commands.json("explain", result(tmp_path, verify_result(records)))
    assert found["verifier_error"].splitlines()[0] == "验证超时(12.5秒)"
    assert (found["class"], found["subtype"]) == ("A", "A-VerifyTimeout")


subtypes = st.lists(st.sampled_from(["X", "Y", "pass", "B"]), min_size=1, max_size=8)


def _as_class(word: str) -> classes.Class | None:
    if word == "pass":
        return None
    return classes.Class("B", "B-X", ("e",)) if word == "B" else classes.Class("A", word, ("e",))


def _is_c(words: Sequence[str]) -> bool:
    """Say by counting backwards whether the last rounds are the same subtype of class A."""
    count = 0
    for word in reversed(words):
        if word != words[-1]:
            break
        count += 1
    return words[-1] in ("X", "Y") and count >= 3


@given(subtypes)
def test_class_c_is_the_same_subtype_three_times_in_a_row(words: list[str]) -> None:
    found = classes.repeated([_as_class(word) for word in words])
    assert (found is not None) == _is_c(words)
    if found is not None:
        assert (found.letter, found.subtype) == ("C", words[-1])
        assert found.evidence


def test_rounds_are_taken_in_the_order_given(tmp_path: Path, commands: Commands) -> None:
    accuracy = result(tmp_path, verify_result([record(1, "AccuracyError")]), "a.json")
    compiling = result(tmp_path, verify_result([record(1, "CompilationError")]), "c.json")
    _, found = commands.json("explain", accuracy, accuracy, accuracy)
    assert (found["class"], found["subtype"]) == ("C", "A-AccuracyError")
    assert "3 rounds in a row" in found["evidence"][0]
    _, found = commands.json("explain", accuracy, compiling, accuracy)
    assert found["class"] == "A"
    assert [one["subtype"] for one in found["rounds"]] == [
        "A-AccuracyError",
        "A-CompilationError",
        "A-AccuracyError",
    ]


def test_a_round_that_was_never_verified_is_known_by_its_code(
    work: Builder, commands: Commands
) -> None:
    folder = work.iteration(0, [record(1, "AccuracyError")], code=FAKE)
    (folder / "verify" / "verify_result.json").unlink()
    _, found = commands.json("explain", work.folder)
    assert found["verifier_error"].startswith("A-PyTorchFallback-Type1: ")


def test_a_result_that_contradicts_itself_is_no_pass(tmp_path: Path, commands: Commands) -> None:
    content = verify_result([record(1), record(2)])
    content["failures"] = verify_result([record(1, "AccuracyError")])["failures"]
    _, found = commands.json("explain", result(tmp_path, content))
    assert (found["verifier_result"], found["class"]) == (False, "B")
    assert "contradicts itself" in found["verifier_error"]


def test_kernels_that_do_not_compile_are_told_beside_the_verdict(
    tmp_path: Path, commands: Commands
) -> None:
    checks = {"compile": pages.compiled("CompilationError: k for Ascend910B4: ub overflow")}
    said = "note: kernels for other devices: CompilationError: k for Ascend910B4: ub overflow"
    for cases, passed in (([record(1)], True), ([record(1), record(2, "AccuracyError")], False)):
        path = result(tmp_path, verify_result(cases, checks=checks))
        _, found = commands.json("explain", path)
        assert (found["verifier_result"], found["notes"]) == (passed, [said])
        assert found["verifier_error"] == "" or not passed
        assert explaining.explain(explaining.of_path(path)).to_text().endswith(said)
    _, found = commands.json("explain", result(tmp_path, verify_result([record(1)])))
    assert found["notes"] == []


def test_the_documented_result_is_explained(tmp_path: Path, commands: Commands) -> None:
    documented = {
        "op_name": "softmax",
        "total_cases": 5,
        "passed_cases": 4,
        "failed_cases": 1,
        "failures": [
            {
                "case_idx": 2,
                "input_desc": [{"type": "tensor", "shape": [128, 256], "dtype": "torch.float16"}],
                "error_type": "CompilationError",
                "error_msg": "...",
            }
        ],
        "environment": {},
    }
    _, found = commands.json("explain", result(tmp_path, documented))
    assert (found["class"], found["subtype"]) == ("A", "A-CompilationError")
    assert "float16[128, 256]" in found["verifier_error"]


def test_an_explanation_can_be_as_short_as_asked(tmp_path: Path, commands: Commands) -> None:
    long = "AccuracyError: wrong\n" + "\n".join(f"element {n} {'x' * 180}" for n in range(9))
    path = result(tmp_path, verify_result([record(1, "AccuracyError", long)]))
    _, short = commands.json("explain", path, "--limit", "400")
    _, full = commands.json("explain", path)
    assert len(short["verifier_error"]) <= 400 < len(full["verifier_error"]) <= 4000
    assert json.dumps(short["groups"]) == json.dumps(full["groups"])
