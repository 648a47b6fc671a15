"""Whole runs on the emulated NPU: verdicts, the result file, and all checks."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.emulated_npu import CANN_VERSION, ON_NPU, emulated

pytestmark = emulated

_ROOT = Path(__file__).parents[2]
_VERDICTS = _ROOT / "tests" / "cases" / "verdicts"
_EXAMPLES = ("softmax", "layer_norm", "quantize", "matmul")
_CASES = (
    "05_shape_hidden_by_flatten",
    "07_kernel_zeroes_its_input",
    "08_inplace_but_right",
    "13_bf16_one_ulp_is_fine",
    "21_one_wrong_bool",
    "24_argmax_off_by_one_spec_hole",
    "29_static_alias_and_matmul_operator",
    "32_hidden_weights_other_distribution",
    "33_hidden_rng_order",
    "34_hidden_renamed_is_fine",
    "36_empty_tensors_pass",
    "41_fully_masked_softmax_row",
    "44_missing_and_none_outputs",
    "46_list_of_tensors_input",
    "50_sys_exit_zero",
    "52_segfault_in_second_case",
    "59_reference_refuses_cpu",
    "65_hidden_state_before_compile_error",
)

# What 40 % of the code for Ascend does: it asks for the device by its name.
TASK = """
import torch
import torch_npu

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8))

    def forward(self, x, scale):
        return x * self.weight.to(x.device) * scale

def get_input_groups():
    return [[torch.randn(k, 8, device="npu"), torch.ones(8).npu()] for k in (1, 5)]
"""
IMPLEMENTATION = """
import torch
import torch_npu
import triton
import triton.language as tl

DEVICE = torch.device("npu" if torch.npu.is_available() else "cpu")

@triton.jit
def scaled(x, w, s, o, n, N: tl.constexpr, B: tl.constexpr):
    for block in range(tl.program_id(0), tl.cdiv(n, B), tl.num_programs(0)):
        i = block * B + tl.arange(0, B)
        value = tl.load(x + i, mask=i < n, other=0) * tl.load(w + i % N) * tl.load(s + i % N)
        tl.store(o + i, value, mask=i < n)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8)).npu()

    def forward(self, x, scale):
        assert x.is_npu and scale.device.type == "npu", "the inputs must be on the NPU"
        with torch.npu.device(x.device):
            o = torch.empty(x.shape, device="npu", dtype=x.dtype)
            cores = triton.runtime.driver.active.utils.get_device_properties(
                torch.npu.current_device()
            )["num_vectorcore"]
            scaled[(min(cores, triton.cdiv(x.numel(), 4)),)](
                x.npu(), self.weight, scale, o, x.numel(), N=8, B=4, multibuffer=True
            )
        torch.npu.current_stream().synchronize()
        start, end = (torch.npu.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record()
        torch.npu.synchronize()
        return o
"""
CUDA_TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(3, 16)]
"""
CUDA_IMPLEMENTATION = """
import torch
import torch_npu
from torch_npu.contrib import transfer_to_npu
import triton
import triton.language as tl

@triton.autotune([triton.Config({"B": 16}), triton.Config({"B": 32}, num_warps=8)], key=["n"])
@triton.jit
def plus_one(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert x.is_cuda
        o = torch.empty(x.shape, device="cuda")
        plus_one[lambda meta: (triton.cdiv(x.numel(), meta["B"]),)](x.cuda(), o, x.numel())
        return o
"""


@dataclass(frozen=True)
class Judged:
    """A run over all pairs.

    Attributes:
        code: exit status.
        out: what pytest printed.
        log: the warnings that were logged.
        results: result files by the name of their pair's folder and their own.
        importers: the processes that have imported torch_npu.
        judge: pytest's own process.
    """

    code: int
    out: str
    log: str
    results: dict[tuple[str, str], dict[str, Any]]
    importers: set[int]
    judge: int

    def of(self, folder: str, name: str = "verify_result.json") -> dict[str, Any]:
        return self.results[folder, name]


@pytest.fixture(scope="module")
def judged(surroundings: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Judge everything in one run."""
    root = tmp_path_factory.mktemp("pairs")
    for name in _EXAMPLES:
        shutil.copytree(
            _ROOT / "examples" / name, root / name, ignore=shutil.ignore_patterns("*.json")
        )
    for name in _CASES:
        shutil.copytree(_VERDICTS / name, root / name)
    for name, task, implementation in (
        ("scaled", TASK, IMPLEMENTATION),
        ("plus_one", CUDA_TASK, CUDA_IMPLEMENTATION),
    ):
        (root / name).mkdir()
        (root / name / f"{name}_torch.py").write_text(textwrap.dedent(task))
        (root / name / f"{name}_triton_ascend_impl.py").write_text(textwrap.dedent(implementation))
    options = [
        f"--verify-dir={root}",
        "--verify-device=npu",
        "--verify-start=fork",
        f"--log-file={root / 'log'}",
        "--log-file-level=WARNING",
    ]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly"]
    environment = {**os.environ, **surroundings, "ASCEND_RT_VISIBLE_DEVICES": "1"}
    imports = root / "imports"
    with subprocess.Popen(
        [*command, *options],
        cwd=root,
        env={**environment, "EMULATED_NPU_LOG": str(imports)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        out, _ = process.communicate(timeout=600)
    results = {
        (path.parent.name, path.name): json.loads(path.read_text(encoding="utf-8"))
        for path in root.glob("*/verify_result*.json")
    }
    log = (root / "log").read_text(encoding="utf-8")
    importers = {int(line) for line in imports.read_text().splitlines()}
    return Judged(process.returncode, out, log, results, importers, process.pid)


@pytest.mark.parametrize("name", _CASES)
def test_verdicts(judged: Judged, name: str) -> None:
    expected = json.loads((_VERDICTS / name / "expected.json").read_text(encoding="utf-8"))
    documented = expected["expect"]
    total, passed, kinds = ON_NPU.get(
        name, (documented["total_cases"], documented["passed_cases"], documented["error_types"])
    )
    result = judged.of(name)
    counts = (result["total_cases"], result["passed_cases"])
    assert counts == (total, passed), result["failures"]
    assert sorted({failure["error_type"] for failure in result["failures"]}) == kinds
    assert judged.code == 1


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *((name, "verify_result.json") for name in (*_EXAMPLES, "scaled", "plus_one")),
        ("softmax", "verify_result_optimized.json"),
    ],
)
def test_honest_pairs_pass_with_all_checks(judged: Judged, folder: str, name: str) -> None:
    result = judged.of(folder, name)
    assert result["passed_cases"] == result["total_cases"] > 0, result["failures"]
    checks = result["degeneration"]
    assert checks["degeneration"]["status"] == checks["execution"]["status"] == "passed"
    report = checks["execution"]["report"]
    assert all(case["launches"] for case in report["cases"])
    # The device's own profile has seen the launches, and nothing else that computes.
    codes = {finding["code"] for finding in report["findings"]}
    assert not codes & {"device_not_profiled", "device_kernel"}


def test_results_follow_the_schema(judged: Judged) -> None:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    for result in judged.results.values():
        jsonschema.validate(result, schema)


def test_result_has_every_key_of_the_documents_example(
    judged: Judged, surroundings: dict[str, str]
) -> None:
    result = judged.of("05_shape_hidden_by_flatten")
    assert list(result)[:6] == [
        "op_name",
        "total_cases",
        "passed_cases",
        "failed_cases",
        "failures",
        "environment",
    ]
    for failure in result["failures"]:
        assert list(failure)[:4] == ["case_idx", "input_desc", "error_type", "error_msg"]
        for described in failure["input_desc"]:
            assert list(described) == ["type", "shape", "dtype"]
    environment = result["environment"]
    assert list(environment)[:7] == [
        "timestamp",
        "triton",
        "cache",
        "cann",
        "torch",
        "device",
        "cmdline",
    ]
    assert dt.datetime.fromisoformat(environment["timestamp"]).tzinfo is not None
    types: dict[str, dict[str, type]] = {
        "triton": {"version": str, "path": str, "key_sha256": str},
        "cache": {"dir": str, "fresh": bool, "fresh_effective": bool, "always_compile": bool},
        "cann": {"ascend_home_path": str, "info_file": str, "info_sha256": str, "version": str},
        "torch": {"version": str, "torch_npu_version": str},
        "device": {"ASCEND_RT_VISIBLE_DEVICES": str, "current_device": int, "npu_name": str},
        "cmdline": {"triton_impl_name": str, "non_compute": bool},
    }
    for section, keys in types.items():
        assert list(environment[section])[: len(keys)] == list(keys), section
        for key, kind in keys.items():
            assert type(environment[section][key]) is kind, (section, key)
        assert "error" not in environment[section]
    assert environment["device"] == {
        "ASCEND_RT_VISIBLE_DEVICES": "1",
        "current_device": 0,
        "npu_name": "Ascend910B4",
    }
    assert environment["cann"]["ascend_home_path"] == surroundings["ASCEND_HOME_PATH"]
    assert environment["cann"]["version"] == CANN_VERSION
    assert "interpreter" not in environment
    assert len(environment["triton"]["key_sha256"]) == 64


def test_header_names_the_device(judged: Judged) -> None:
    assert "device npu (Ascend910B4)" in judged.out


def test_golden_is_the_cpus_unless_it_refuses(judged: Judged) -> None:
    devices = {
        folder: {case["golden_device"] for case in result["cases"]}
        for (folder, _), result in judged.results.items()
    }
    assert devices.pop("59_reference_refuses_cpu") == {"npu"}
    # None where the case ended before there was one.
    assert set().union(*devices.values()) == {"cpu", None}
    lines = [line for line in judged.log.splitlines() if "golden" in line]
    assert len(lines) == 1
    (case,) = judged.of("59_reference_refuses_cpu")["cases"]
    assert "[用例 1/1] golden 落 CPU 时执行失败,回退 golden 到 NPU 重试: " in lines[0]
    assert case["status"] == "passed"


def test_workers_use_the_device_and_the_judge_never_does(judged: Judged) -> None:
    assert len(judged.importers) > len(judged.results)
    assert judged.judge not in judged.importers


def test_hidden_state_is_compared_between_the_cpu_and_the_device(judged: Judged) -> None:
    status = {
        name: judged.of(name)["hidden_state"]["status"]
        for name in (
            "32_hidden_weights_other_distribution",
            "33_hidden_rng_order",
            "34_hidden_renamed_is_fine",
            "scaled",
        )
    }
    assert list(status.values()) == ["failed", "failed", "passed", "passed"]
