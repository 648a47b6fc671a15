"""Launches and outcomes as the judge reads them: from processes that may say anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify.compilation import launches, outcomes, refusals, targets
from pytest_tritonverify.compilation.launches import Launch, Recording, bounded, merged
from pytest_tritonverify.compilation.outcomes import CompileReport, Outcome
from pytest_tritonverify.compilation.toolchains import Toolchain
from pytest_tritonverify.results import result_file

if TYPE_CHECKING:
    from pathlib import Path

CUDA, CHIP = targets.parse(["cuda:90", "Ascend910B4"])
TOOLS = dict.fromkeys((CUDA, CHIP), Toolchain(None, (("triton", "3.9.0"),)))


def entry(name: str = "kernel", file: str = "/x/impl.py", n: int = 16) -> dict[str, Any]:
    return {
        "name": name,
        "file": file,
        "line": 3,
        "args": {
            "x": {"k": "tensor", "dtype": "float32", "aligned": False, "small": True},
            "n": {"k": "int", "v": n},
            "one": {"k": "int", "v": 1},
            "eps": {"k": "float", "v": "0x1p-1"},
            "none": None,
            "BLOCK": {"k": "int", "v": 64},
        },
        "constants": ["BLOCK"],
        "options": {"num_warps": {"k": "int", "v": 8}},
    }


def recording(*entries: Any, left_out: int = 0) -> Recording:
    found = Recording.of({"launches": list(entries), "left_out": left_out})
    assert found is not None
    return found


def launch(**facts: Any) -> Launch:
    return recording(entry(**facts)).launches[0]


def report(*told: dict[str, Any], **facts: Any) -> CompileReport:
    found = [Outcome.read(one, launch(), CHIP, [1, 2]) for one in told]
    return CompileReport(TOOLS, tuple(found), **facts)


def failure(subkind: str = "ub_overflow", **facts: Any) -> dict[str, Any]:
    error = {"subkind": subkind, "message": "too much", "words": "too much\nby far", **facts}
    return {"stage": "linalg", "seconds": 0.5, "error": error}


def section(found: CompileReport, folder: Path) -> dict[str, Any]:
    """Return the section of a result file, which the schema has to accept."""
    record = outcomes.concluded(found, folder)
    content = result_file.document("op", [], {}, {}, checks={"compile": record})
    schema = json.loads(result_file.SCHEMA_PATH.read_text(encoding="utf-8"))
    part = {**schema["properties"]["compile"], "$defs": schema["$defs"]}
    jsonschema.validate(content["compile"], part)
    compiled: dict[str, Any] = content["compile"]
    return compiled


def test_a_launch_is_described_as_a_compiler_sees_it() -> None:
    assert launch().description == (
        "x: *float32 (not aligned), n: i32 (16 divides it), one: 1, eps: fp32, none: None, "
        "BLOCK=64; num_warps=8"
    )
    assert ", n: i32, " in launch(n=3).description
    assert ", n: i64, " in launch(n=(1 << 32) + 3).description


def test_launches_that_lead_to_the_same_code_are_one() -> None:
    first, second = recording(entry(), entry(n=3)), recording(entry(n=3))
    found = merged({2: second, 1: first, 3: None})
    assert [(one.entry["args"]["n"]["v"], cases) for one, cases in found.items()] == [
        (16, [1]),
        (3, [1, 2]),
    ]


def test_only_so_many_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    found = merged({1: recording(*(entry(name=f"kernel{k}") for k in range(5)))})
    assert bounded(found) == (found, 0)
    with monkeypatch.context() as context:
        context.setattr(launches, "_MOST_COMPILED", 3)
        assert bounded(found) == (dict(list(found.items())[:3]), 2)
    size = len(next(iter(found)).key)
    monkeypatch.setattr(launches, "_LARGEST_REQUEST", 2 * size + 1)
    assert bounded(found) == (dict(list(found.items())[:2]), 3)


@pytest.mark.parametrize("told", [None, 3, [], "x"])
def test_what_is_no_recording_is_none(told: object) -> None:
    assert Recording.of(told) is None


def test_nonsense_among_launches_is_counted() -> None:
    huge = {**entry(), "args": {"x" * (1 << 17): None}}
    mad = [None, {}, {**entry(), "line": "3"}, {**entry(), "name": ""}, huge]
    found = recording(entry(), *mad, left_out=2)
    assert len(found.launches) == 1
    assert found.left_out == 7
    odd = recording({"name": "k", "file": "f", "line": 1, "args": 5})
    assert odd.launches[0].description == "?"


def test_a_forged_outcome_is_read_with_care(tmp_path: Path) -> None:
    mad: dict[str, Any] = {
        "stage": "moon",
        "mix_mode": ["aiv"],
        "seconds": -1.0,
        "figures": {"registers": True, "memory_bits": -4, "memory_space": 5, "spam": 3},
        "error": {"subkind": "fine", "message": 4, "words": "w" * 99999, "file": "/x", "line": -1},
    }
    unfinished = ({"stage": stage, "error": None} for stage in (None, "ttir", "linalg"))
    for told in (mad, {}, {**mad, "error": "no"}, *unfinished):
        found = section(report(told), tmp_path)
        assert found["status"] == "failed"
        assert found["kernels"][0]["error"]["subkind"] == "crash"
        assert found["kernels"][0]["seconds"] == 0.0


def test_success_is_told_with_its_figures(tmp_path: Path) -> None:
    told = {
        "stage": "binary",
        "seconds": 1.5,
        "figures": {"registers": 32, "spilled_bytes": 0, "shared_bytes": 8},
        "error": None,
    }
    found = section(report(told), tmp_path)
    (kernel,) = found["kernels"]
    assert (found["status"], found["message"], kernel["compiles"]) == ("passed", None, True)
    assert (kernel["registers"], kernel["shared_bytes"], kernel["cases"]) == (32, 8, [1, 2])
    assert found["targets"]["cuda:90"] == {"triton": "3.9.0"}


def test_a_failure_says_which_kernel_where_and_why(tmp_path: Path) -> None:
    source = tmp_path / "impl.py"
    source.write_text("one\ntwo\nthree = tl.load(x)\n")
    place: dict[str, Any] = {"file": str(source), "line": 3}
    record = outcomes.concluded(report({"stage": "hivm"}, failure(**place)), tmp_path)
    assert (record.error_type, record.file, record.line) == ("CompilationError", str(source), 3)
    lines = (record.message or "").splitlines()
    assert lines[0] == (
        "CompilationError: kernel for Ascend910B4: ub_overflow: too much "
        "(1 of 2 specialisations fail)"
    )
    assert "  kernel for Ascend910B4, cases 1, 2" in lines
    assert "    impl.py:3: three = tl.load(x)" in lines
    assert "      by far" in lines
    assert "unified buffer" in lines[-1]
    assert section(report(failure(**place)), tmp_path)["kernels"][0]["error"]["line"] == 3


def test_words_are_not_repeated_and_what_a_kernel_calls_is_advised(tmp_path: Path) -> None:
    said = "Unsupported function referenced: <function twice>"
    told = failure("unsupported_op", message=f"RuntimeError: {said}", words=f"{said}\nmore")
    message = outcomes.concluded(report(told), tmp_path).message or ""
    assert message.count(said) == 2
    *_, more, advice = message.splitlines()
    assert more == "      more"
    assert advice.startswith("    Hint: a function that a kernel calls needs @triton.jit, ")


def test_addresses_of_a_process_are_left_out() -> None:
    raised = RuntimeError("Unsupported function referenced: <function twice at 0x7f940bca00e0>")
    found = refusals.described(raised, {"file": "x.py", "line": 3}, "", front_end=True)
    assert found["message"] == "RuntimeError: Unsupported function referenced: <function twice>"
    assert "0x" not in found["words"]


def test_nothing_else_of_the_machine_is_shown(tmp_path: Path) -> None:
    secret, folder = tmp_path / "secret.py", tmp_path / "pair"
    folder.mkdir()
    secret.write_text("the answer\n")
    for path in (secret, folder / ".." / "secret.py"):
        record = outcomes.concluded(report(failure(file=str(path), line=1)), folder)
        assert record.file is None
        assert "the answer" not in (record.message or "")


def test_what_fails_alike_is_told_once(tmp_path: Path) -> None:
    alike = [Outcome.read(failure(), launch(), target, [1]) for target in (CUDA, CHIP)]
    record = outcomes.concluded(CompileReport(TOOLS, tuple(alike)), tmp_path)
    assert "  kernel for cuda:90, Ascend910B4, case 1" in (record.message or "").splitlines()
    assert (record.message or "").count("by far") == 1


def test_no_compiler_was_asked(tmp_path: Path) -> None:
    found = section(report(failure("not_compiled")), tmp_path)
    assert found["error_type"] == "NotCompiled"
    # Where one was, that counts.
    both = report(failure("not_compiled"), failure("crash"))
    assert section(both, tmp_path)["error_type"] == "CompilationError"


def test_nothing_to_compile_is_no_pass(tmp_path: Path) -> None:
    nothing = section(report(), tmp_path)
    assert (nothing["status"], nothing["message"]) == (
        "skipped",
        "no kernel was compiled: the cases launch none",
    )
    unknown = section(report(unknown={2: "ValueError: no such luck"}), tmp_path)
    assert unknown["status"] == "skipped"
    assert unknown["message"].endswith("case 2: ValueError: no such luck")
    assert unknown["unknown_cases"] == {"2": "ValueError: no such luck"}
    part = section(report({"stage": "binary"}, unknown={2: "it crashed"}, left_out=3), tmp_path)
    assert part["status"] == "passed"
    assert "it crashed" in part["message"]
    assert "3 launches" in part["message"]
