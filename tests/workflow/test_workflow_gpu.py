"""GPU-kernel mode: the three rules, stored data that runs no code, and the GPU's time."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch

from pytest_tritonverify import gpu_task
from pytest_tritonverify.workflow import files, gpu_mode, gpu_perf
from tests.support.workdirs import Builder, perf_result, record, sha256, verify_result, write_json
from tests.workflow.test_workflow_whole import GPU, keys_of

if TYPE_CHECKING:
    from tests.workflow.conftest import Commands

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def _helper(x):
    return x * 2


@triton.jit
def rotary(x_ptr, out_ptr, n, HEAD_DIM: tl.constexpr):
    tl.store(out_ptr, _helper(tl.load(x_ptr)))
"""

CSV = "Name,Duration(us)\nother,7.5\nrotary,2.072\n"


class Runs:
    """Would run code where a file that holds it were loaded without care."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (str(Path(__file__).parent / "executed"),))


def kernel_folder(tmp_path: Path, *, output: bool = True, csv: str | None = CSV) -> Path:
    folder = tmp_path / "vllm" / "a" / "b"
    folder.mkdir(parents=True)
    path = folder / "rotary.py"
    path.write_text(KERNEL, encoding="utf-8")
    stored: dict[str, Any] = {
        "input_data": {"HEAD_DIM": 16, "out_ptr": torch.zeros(2, 8), "x_ptr": torch.ones(2, 8)}
    }
    if output:
        stored["gpu_output"] = {"out_ptr": torch.full((2, 8), 2.0)}
    torch.save(stored, folder / "rotary.pt")
    if csv is not None:
        (tmp_path / gpu_perf.FILE_NAME).write_text(csv, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("path", "source", "named", "rules"),
    [
        ("ops/softmax.py", "class Model: ...\n", False, set()),
        ("ops/softmax.py", "# see @triton.jit\nclass Model: ...\n", False, set()),
        ("ops/softmax.py", KERNEL, False, {2}),
        ("ops/softmax.py", "@triton.jit(do_not_specialize=['n'])\ndef k(n): ...\n", False, {2}),
        ("ops/softmax.py", "@triton.autotune([])\n@triton.jit\ndef k(n): ...\n", False, {2}),
        ("ops/softmax.py", "def broken(:\n@triton.jit\ndef k(n): ...\n", False, {2}),
        ("GPU Kernel/softmax.py", "x = 1\n", False, {1}),
        ("my_gpu_kernels/softmax.py", "x = 1\n", False, {1}),
        ("benchmarks/TritonNPUKernelBench/softmax.py", KERNEL, False, {1, 2}),
        ("ops/softmax.py", "x = 1\n", True, {3}),
    ],
)
def test_the_three_rules(path: str, source: str, named: bool, rules: set[int]) -> None:
    pt_file = Path("softmax.pt") if named else None
    assert set(gpu_mode.rules_of(Path(path), source.encode(), pt_file)) == rules


def test_parameters_are_those_of_the_kernel_that_is_meant() -> None:
    names = ["x_ptr", "out_ptr", "n", "HEAD_DIM"]
    assert gpu_mode.kernel_parameters(KERNEL.encode(), "rotary") == names
    assert gpu_mode.kernel_parameters(KERNEL.encode(), "something") == names
    assert gpu_mode.kernel_parameters(KERNEL.encode(), "_helper") == ["x"]
    assert gpu_task.input_order(names, ["HEAD_DIM", "seed", "x_ptr"]) == [
        "x_ptr",
        "HEAD_DIM",
        "seed",
    ]


@pytest.mark.usefixtures("shared_host")
def test_a_task_is_made_from_what_the_gpu_has_left(tmp_path: Path, commands: Commands) -> None:
    path = kernel_folder(tmp_path)
    work = tmp_path / "work"

    code, built = commands.json("build-task", path, "--output", work)

    assert (code, built["mode"], built["reference_required"]) == (0, "gpu_kernel", False)
    assert [entry["name"] for entry in built["inputs"]] == ["x_ptr", "out_ptr", "HEAD_DIM"]
    assert built["gpu_reference_ms"] == pytest.approx(0.002072)
    assert built["benchmark_options"] == ["--skip_framework", "--framework_latency_ms", "0.002072"]
    task = work / "rotary.py"
    assert sha256(work / "rotary.pt") == sha256(path.with_suffix(".pt"))
    assert gpu_task.reference_of(task) == pytest.approx(0.002072)
    # In the folder of a round, three levels below its data, as the document has it.
    verify = work / "output" / "iter_0" / "verify"
    verify.mkdir(parents=True)
    copied = verify / "rotary_torch.py"
    copied.write_bytes(task.read_bytes())
    assert gpu_task.returns_stored_output(copied)
    code, report = commands.json("validate-task", copied, "--device", "cpu")
    assert (code, report["cases_passed"], report["findings"]) == (0, 1, [])


@pytest.mark.usefixtures("shared_host")
def test_data_that_was_changed_is_not_taken_for_the_same(
    tmp_path: Path, commands: Commands
) -> None:
    path = kernel_folder(tmp_path)
    commands.run("build-task", path, "--output", tmp_path / "work")
    torch.save({"input_data": {}, "gpu_output": 1}, tmp_path / "work" / "rotary.pt")
    namespace: dict[str, Any] = {"__file__": str(tmp_path / "work" / "rotary.py")}
    exec((tmp_path / "work" / "rotary.py").read_text("utf-8"), namespace)  # noqa: S102 - a generated task
    with pytest.raises(ValueError, match="is not the file that this task was made from"):
        namespace["get_inputs"]()


@pytest.mark.usefixtures("shared_host")
def test_without_stored_outputs_a_reference_must_be_written(
    tmp_path: Path, commands: Commands
) -> None:
    path = kernel_folder(tmp_path, output=False, csv=None)
    code, built = commands.json("build-task", path, "--output", tmp_path / "work")
    assert (code, built["reference_required"], built["files"]) == (1, True, [])
    assert built["inputs"][0] == {
        "name": "x_ptr",
        "desc": {"type": "tensor", "shape": [2, 8], "dtype": "torch.float32"},
    }
    assert gpu_perf.NOT_FOUND in built["messages"][0]
    assert "holds no gpu_output: write" in built["messages"][1]
    assert not (tmp_path / "work").exists()


@pytest.mark.usefixtures("shared_host")
def test_code_in_stored_data_is_refused_and_not_run(tmp_path: Path, commands: Commands) -> None:
    path = kernel_folder(tmp_path)
    torch.save({"input_data": {"x": Runs()}, "gpu_output": 1}, path.with_suffix(".pt"))
    answer = commands.run("build-task", path, "--output", tmp_path / "work")
    assert answer.code == 1
    assert "is not loaded, since that would run code from it; save it anew" in answer.err
    assert len(answer.err.splitlines()) == 1
    assert not (Path(__file__).parent / "executed").exists()
    path.with_suffix(".pt").write_bytes(b"no such thing")
    answer = commands.run("build-task", path, "--output", tmp_path / "work")
    assert (answer.code, len(answer.err.splitlines())) == (1, 1)
    torch.save({"input": 1}, path.with_suffix(".pt"))
    answer = commands.run("build-task", path, "--output", tmp_path / "work")
    assert "it has no input_data (it has input)" in answer.err


def test_missing_data_ends_it(tmp_path: Path, commands: Commands) -> None:
    path = kernel_folder(tmp_path)
    path.with_suffix(".pt").unlink()
    answer = commands.run("build-task", path, "--output", tmp_path / "work")
    assert answer.code == 1
    assert "rotary.pt: GPU-kernel mode (line 5 has @triton.jit) needs it" in answer.err


def test_times_are_looked_for_three_folders_up_and_no_further(tmp_path: Path) -> None:
    folder = tmp_path / "1" / "2" / "3" / "4"
    folder.mkdir(parents=True)
    (tmp_path / gpu_perf.FILE_NAME).write_text(CSV, encoding="utf-8")
    assert gpu_perf.find(folder) is None
    assert gpu_perf.find(folder.parent) == tmp_path / gpu_perf.FILE_NAME
    nearer = folder.parent / gpu_perf.FILE_NAME
    nearer.write_text(CSV, encoding="utf-8")
    assert gpu_perf.find(folder) == nearer


@pytest.mark.parametrize(
    ("text", "milliseconds", "message"),
    [
        (CSV, 0.002072, ""),
        ("\ufeff Name , Duration(us) \nrotary , 2.072\n", 0.002072, ""),
        ("Duration(us)\n1000\n", 1.0, ""),
        ("Name,Duration(us)\nother,1\n", None, "no row for `rotary`"),
        ("Name,Duration(us)\nrotary,1\nrotary,2\n", None, "2 rows for `rotary`"),
        ("Name,Duration(us)\nrotary,fast\n", None, "'fast', no time above 0"),
        ("Name,Duration(us)\nrotary,nan\n", None, "'nan', no time above 0"),
        ("Name,Duration(us)\nrotary,0\n", None, "'0', no time above 0"),
        ("Name,Time\nrotary,1\n", None, "no column Duration(us)"),
        ("", None, "no column Duration(us)"),
    ],
)
def test_times_are_read_with_care(
    tmp_path: Path, text: str, milliseconds: float | None, message: str
) -> None:
    path = tmp_path / gpu_perf.FILE_NAME
    path.write_text(text, encoding="utf-8")
    if milliseconds is None:
        with pytest.raises(files.FileError) as caught:
            gpu_perf.read(path, "rotary")
        assert message in str(caught.value)
    else:
        assert gpu_perf.read(path, "rotary").milliseconds == pytest.approx(milliseconds)


def gpu_work(work: Builder, reference: float | None = 0.002072) -> Builder:
    """Turn a work directory into one of GPU-kernel mode with one case."""
    text = gpu_task.source(work.op, ["x_ptr"], "0" * 64, reference)
    (work.folder / f"{work.op}.py").write_text(text, encoding="utf-8")
    (work.folder / f"{work.op}.pt").write_bytes(b"stored")
    folder = work.iteration(0, [record(1)], speedups=None)
    report = perf_result((0.002072 / 0.42,), op=work.op, implementation_ms=0.42)
    report["settings"] = {"skip_framework": True, "framework_latency_ms": 0.002072}
    write_json(folder / "perf_result.json", report)
    return work


def test_a_summary_compares_with_the_gpu(work: Builder, commands: Commands) -> None:
    gpu_work(work)
    _, summary = commands.json("report", work.folder)
    assert keys_of(GPU) <= keys_of(summary)
    assert summary["gpu_mode"] is True
    data = summary["perf_data"]
    assert data["gpu_reference_ms"] == 0.002072
    assert data["ascend_vs_gpu_ratio"] == 202.7027
    # The documented example has another one; the rule makes it the ratio's inverse.
    assert data["speedup_vs_torch"] == pytest.approx(1 / data["ascend_vs_gpu_ratio"], rel=1e-3)
    (shape,) = data["per_shape_results"]
    assert (shape["shape"], shape["ascend_vs_gpu_ratio"]) == ([1, 8], 202.7027)
    text = (work.folder / "report.md").read_text("utf-8")
    assert "- GPU 参考延迟：0.002072 ms" in text
    assert "- Ascend Triton 延迟：0.4200 ms" in text
    assert "- Ascend/GPU 倍数：202.7027" in text
    assert "framework 延迟不具备实际意义" in text


def test_without_gpu_times_the_report_says_so(work: Builder, commands: Commands) -> None:
    gpu_work(work, reference=None)
    folder = work.output / "iter_0"
    report = json.loads((folder / "perf_result.json").read_text("utf-8"))
    del report["settings"]
    write_json(folder / "perf_result.json", report)
    _, summary = commands.json("report", work.folder)
    assert summary["perf_data"]["gpu_reference_ms"] is None
    assert summary["perf_data"]["ascend_vs_gpu_ratio"] is None
    assert gpu_perf.NOT_FOUND in (work.folder / "report.md").read_text("utf-8")
    csv = work.folder.parent / gpu_perf.FILE_NAME
    csv.write_text(f"Name,Duration(us)\n{work.op},2.072\n", encoding="utf-8")
    _, summary = commands.json("report", work.folder, "--gpu-perf-csv", csv)
    assert summary["perf_data"]["gpu_reference_ms"] == 0.002072


def test_other_tasks_are_in_no_gpu_mode(work: Builder, commands: Commands) -> None:
    work.iteration(0)
    _, summary = commands.json("report", work.folder)
    assert "gpu_mode" not in summary
    assert verify_result([record(1)])["total_cases"] == 1
