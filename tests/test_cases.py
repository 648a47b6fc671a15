"""Whole runs over pairs with known verdicts: the result files must say what is expected.

They run on the CPU interpreter everywhere, and on the GPU too where there is one.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify import detection
from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.device import DEVICE, OPTIONS
from tests.support.emulated_npu import ON_NPU
from tests.support.installed import deviations

if TYPE_CHECKING:
    from tests.support.warm_start import WarmStart

_ROOT = Path(__file__).parents[1]
_VERDICTS = Path(__file__).with_name("cases") / "verdicts"
_BROKEN = _ROOT / "examples" / "broken"
_SLACK = 30  # what a run may need beyond its pairs, in seconds per pair


@dataclass(frozen=True)
class Case:
    """A folder with a pair and the verdict that it must get."""

    folder: Path
    expected: dict[str, Any]

    @property
    def options(self) -> tuple[str, ...]:
        chosen = self.expected.get("cli", {})
        options = ["--verify-non-compute"] if chosen.get("non_compute") else []
        if self.expected["expect"].get("static_types"):
            # Their counts are those of a run without that gate.
            options += ["--verify-degeneration=warn", "--verify-execution=off"]
        if self.expected.get("worker_dies") == "hang":
            # A loaded machine needs a multiple of it for the cases before.
            options.append(f"--verify-timeout={4 * chosen['timeout']}")
        return tuple(options)


def _cases(root: Path) -> list[Case]:
    files = sorted(root.glob("*/expected.json"))
    return [Case(f.parent, json.loads(f.read_text(encoding="utf-8"))) for f in files]


_CASES = [*_cases(_VERDICTS), *_cases(_BROKEN)]

# What differs where implementations run on a GPU: total, passed, error types.
_ON_CUDA: dict[str, tuple[int, int, list[str]]] = {
    # A GPU's addition gives NaN other bits.
    "22_noncompute_negative_zero": (3, 1, ["AccuracyError"]),
    "59_reference_refuses_cpu": (1, 1, []),
    "64_kernel_does_not_compile": (3, 2, ["CompilationError"]),
    "does_not_compile": (2, 1, ["CompilationError"]),
    # The lanes hold zeros there, as on most GPUs.
    "masked_lanes": (2, 2, []),
}

# The second case returns what the first one computed, without a launch: more than a wrong value.
_AS_A_CHEAT: dict[str, tuple[int, int, list[str]]] = {
    "09_result_cached_by_shape": (2, 0, ["PyTorchFallback"]),
}

# Its count here is one without the gate that fails it there.
_UNGATED = "29_static_alias_and_matmul_operator"
_EXCEPTIONS = {
    "cuda": _ON_CUDA,
    "npu": {name: found for name, found in ON_NPU.items() if name != _UNGATED},
    "cpu": deviations(),
}

_DEVICES = [DEVICE, *detection.likely(("cuda",))]


def _arguments(root: Path, *options: str) -> list[str]:
    given = [part for option in OPTIONS for part in ("-o", option)]
    return ["-p", "no:cacheprovider", "-p", "no:randomly", *given, f"--verify-dir={root}", *options]


def _patience(root: Path) -> float:
    return _SLACK * max(len(list(root.iterdir())), 4)


def _verify(root: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *_arguments(root, *options)],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=_patience(root),
    )


def _forked(warm_start: WarmStart, root: Path, *options: str) -> tuple[int, str, str]:
    """As `_verify`, without the time that a new interpreter takes."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("PYTEST_")]:
            patch.delenv(name)
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        arguments = ["-p", "tritonverify", *_arguments(root, *options)]
        return warm_start.run(arguments, _patience(root), folder=root)


def _strict_json(path: Path) -> dict[str, Any]:
    def refuse(word: str) -> None:
        raise AssertionError(f"{path} holds {word}")

    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    return content


@pytest.fixture(scope="module", params=_DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    """Where implementations run."""
    return str(request.param)


@pytest.fixture(scope="module")
def judged(
    device: str, tmp_path_factory: pytest.TempPathFactory, warm_start: WarmStart
) -> dict[str, dict[str, Any]]:
    """Judge all cases, one run for each set of options; results by the folder's name."""
    results: dict[str, dict[str, Any]] = {}
    for options in dict.fromkeys(case.options for case in _CASES):
        root = tmp_path_factory.mktemp("cases")
        names = [case.folder for case in _CASES if case.options == options]
        for folder in names:
            shutil.copytree(folder, root / folder.name)
        code, out, err = _forked(warm_start, root, f"--verify-device={device}", *options)
        assert code in (0, 1), out + err
        for folder in names:
            (path,) = (root / folder.name).glob("verify_result*.json")
            results[folder.name] = _strict_json(path)
    return results


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.folder.name)
def test_verdict(case: Case, device: str, judged: dict[str, dict[str, Any]]) -> None:
    result, expect = judged[case.folder.name], case.expected["expect"]
    documented = (expect["total_cases"], expect["passed_cases"], expect["error_types"])
    documented = _AS_A_CHEAT.get(case.folder.name, documented)
    total, passed, kinds = _EXCEPTIONS[device].get(case.folder.name, documented)
    counts = (result["total_cases"], result["passed_cases"])
    assert counts == (total, passed), result["failures"]
    types = sorted({failure["error_type"] for failure in result["failures"]})
    if case.expected.get("worker_dies") in ("exit", "signal"):
        assert types == ["WorkerCrash"]
    else:
        assert types in [kinds, *case.expected.get("also_ok", {}).get("error_types", [])]
    assert result["op_name"] == case.expected["op_name"]
    assert result["failed_cases"] == total - passed


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.folder.name)
def test_result_follows_the_schema(case: Case, judged: dict[str, dict[str, Any]]) -> None:
    result = judged[case.folder.name]
    jsonschema.validate(result, json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    documented = ["op_name", "total_cases", "passed_cases", "failed_cases", "failures"]
    assert list(result)[:6] == [*documented, "environment"]


# What the notes of single cases ask for beyond counts.


def _as_everywhere(case: str) -> None:
    if case in deviations():
        pytest.skip("this case ends differently with the installed Triton")


def test_nan_failure_counts_each_side(judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["41_fully_masked_softmax_row"]["failures"]
    assert "golden has 40 NaN, implementation 0" in failure["error_msg"]


def test_shape_failure_shows_both_shapes(judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["05_shape_hidden_by_flatten"]["failures"]
    assert "[5, 3]" in failure["error_msg"]
    assert "[3, 5]" in failure["error_msg"]


def test_both_checks_of_the_first_standard_are_reported(
    judged: dict[str, dict[str, Any]],
) -> None:
    (failure,) = judged["10_tail_below_one_percent"]["failures"]
    assert failure["metrics"]["matched_ratio"] > 0.99
    assert failure["metrics"]["over_count"] == 8
    assert failure["metrics"]["checks"] == {"matched_ratio": True, "abs_limit": False}


def test_fallback_checks_are_reported_one_by_one(judged: dict[str, dict[str, Any]]) -> None:
    _as_everywhere("15_float64_takes_the_fallback")
    (failure,) = judged["15_float64_takes_the_fallback"]["failures"]
    checks = {"max_error_cap": True, "required_matched_ratio": False, "MERE": False}
    assert failure["metrics"]["checks"] == checks


def test_failure_carries_its_input(judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["42_padding_lane_wins_the_max"]["failures"]
    assert failure["input_desc"][0]["shape"] == [5, 123]


def test_inputs_that_json_cannot_hold_are_described(judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["47_inputs_json_cannot_hold"]["failures"]
    described = json.dumps(failure["input_desc"])
    for word in ("nan", "inf", "torch.float16", "null", "slice(0, 3, None)", "(1+2j)", "[2, 2]"):
        assert word in described


def test_compile_error_keeps_the_inner_message(judged: dict[str, dict[str, Any]]) -> None:
    _as_everywhere("64_kernel_does_not_compile")
    (failure,) = judged["64_kernel_does_not_compile"]["failures"]
    assert "power of 2" in failure["error_msg"]


def test_golden_falls_back_to_the_accelerator(
    device: str, judged: dict[str, dict[str, Any]]
) -> None:
    (case,) = judged["59_reference_refuses_cpu"]["cases"]
    assert case["golden_device"] == (None if device == "cpu" else device)


def test_signal_is_named(judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["52_segfault_in_second_case"]["failures"]
    assert failure["case_idx"] == 2
    assert "signal 11 (SIGSEGV)" in failure["error_msg"]


def test_reference_failure_is_told_apart(judged: dict[str, dict[str, Any]]) -> None:
    case = next(c for c in judged["reference_raises"]["cases"] if c["status"] == "failed")
    assert (case["side"], case["phase"]) == ("reference", "forward")
    assert "failure of the reference" in case["error_msg"]


def test_changed_input_is_warned_about(judged: dict[str, dict[str, Any]]) -> None:
    codes = [
        warning["code"]
        for case in judged["08_inplace_but_right"]["cases"]
        for warning in case["warnings"]
    ]
    assert codes == ["input_mutated", "input_mutated"]


def test_index_rule_is_warned_about(judged: dict[str, dict[str, Any]]) -> None:
    (case,) = judged["24_argmax_off_by_one_spec_hole"]["cases"]
    assert [warning["code"] for warning in case["warnings"]] == ["index_by_quantisation_rule"]


def test_hang_shows_the_line_of_the_loop(device: str, judged: dict[str, dict[str, Any]]) -> None:
    (failure,) = judged["endless_loop"]["failures"]
    assert "验证超时" in failure["error_msg"]
    # A process that waits inside of a GPU driver answers no signal.
    assert device == "cuda" or re.search(
        r'File ".*square_triton_ascend_impl\.py", line \d+ in', failure["error_msg"]
    )


def test_examples_are_all_green(device: str, tmp_path: Path) -> None:
    root = tmp_path / "examples"
    shutil.copytree(_ROOT / "examples", root, ignore=shutil.ignore_patterns("broken", "*.json"))
    shutil.copy(_ROOT / "examples/add_scaled/add_scaled.json", root / "add_scaled")
    run = _verify(root, f"--verify-device={device}")
    assert run.returncode == 0, run.stdout
    pairs = list(root.glob("*/*_triton_*.py"))
    results = [_strict_json(path) for path in root.glob("*/verify_result*.json")]
    assert len(results) == len(pairs) >= 12
    assert all(r["passed_cases"] == r["total_cases"] > 0 for r in results)


def test_movement_is_judged_bit_for_bit(warm_start: WarmStart, tmp_path: Path) -> None:
    root = tmp_path / "transpose"
    shutil.copytree(_ROOT / "examples/transpose", root)
    code, out, _ = _forked(warm_start, root, "--verify-non-compute")
    assert code == 0, out
    result = _strict_json(root / "verify_result.json")
    categories = {o["category"] for case in result["cases"] for o in case["outputs"]}
    assert categories == {"non_compute"}
    assert result["environment"]["cmdline"]["non_compute"] is True
