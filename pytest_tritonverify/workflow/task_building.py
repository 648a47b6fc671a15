"""Phase 1: from a description file to the task in the work directory, as far as no one must think.

Tasks are copied byte for byte. A GPU kernel's description becomes a task whose reference returns
what the GPU returned; where that is not stored, somebody must write a reference, and is told.
"""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify import figures, gpu_task
from pytest_tritonverify.workflow import files, gpu_mode, stored_data, task_source

if TYPE_CHECKING:
    from pathlib import Path

Mode = Literal["single_case", "multi_case", "gpu_kernel"]

_ADVICE = "give the description file of an operator (.py)"


@dataclass(frozen=True, kw_only=True)
class Built:
    """What came of Phase 1's deterministic part.

    Attributes:
        mode: the form of the task.
        op_name: the operator.
        reasons: by what the form was told.
        written: the files that were written.
        reference_required: a reference must be written by hand, and nothing was written.
        inputs: what `forward` takes, in order: `{"name", "desc"}`. GPU-kernel mode only.
        gpu_reference_ms: the GPU's time; None where it is not known.
        options: for the benchmark.
        messages: sentences.
    """

    mode: Mode
    op_name: str
    reasons: tuple[str, ...]
    written: tuple[Path, ...] = ()
    reference_required: bool = False
    inputs: tuple[dict[str, Any], ...] = ()
    gpu_reference_ms: float | None = None
    options: tuple[str, ...] = ()
    messages: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as builtins."""
        return {
            "mode": self.mode,
            "op_name": self.op_name,
            "reasons": list(self.reasons),
            "files": [str(path) for path in self.written],
            "reference_required": self.reference_required,
            "inputs": [dict(entry) for entry in self.inputs],
            "gpu_mode": self.mode == "gpu_kernel",
            "gpu_reference_ms": self.gpu_reference_ms,
            "benchmark_options": list(self.options),
            "messages": list(self.messages),
        }

    def to_text(self) -> str:
        """Return the outcome for people."""
        lines = [f"{self.op_name}: {self.mode} ({'; '.join(self.reasons)})"]
        lines += [f"written: {path}" for path in self.written]
        if self.reference_required:
            lines += [
                f"  {entry['name']}: {figures.inputs_text([entry['desc']])}"
                for entry in self.inputs
            ]
        if self.options:
            lines.append(f"benchmark: {' '.join(self.options)}")
        return "\n".join([*lines, *self.messages])


def build(
    path: Path,
    output: Path,
    *,
    pt_file: Path | None = None,
    gpu_perf_csv: Path | None = None,
) -> Built:
    """Put a task into a work directory.

    Args:
        path: the description file, as the user has named it.
        output: the work directory; it is made where it is not there.
        pt_file: the GPU's data, where the user names it.
        gpu_perf_csv: the GPU's times, likewise.

    Raises:
        files.FileError: a file is missing, broken, or can't be written.
    """
    mode = gpu_mode.detect(path, pt_file, gpu_perf_csv)
    if mode is not None:
        return _gpu_kernel(path, output, mode)
    source = files.read_bytes(path, _ADVICE)
    static = task_source.check(path, source)
    data = path.with_suffix(".json")
    reasons = []
    if static.groups:
        reasons.append(f"it defines {task_source.GROUPS}")
    if data.is_file():
        reasons.append(f"{data.name} lies beside it")
    copies = {output / path.name: source}
    if data.is_file():
        copies[output / data.name] = files.read_bytes(data, "it holds the cases")
    return Built(
        mode="multi_case" if reasons else "single_case",
        op_name=path.stem,
        reasons=tuple(reasons) or (f"no {task_source.GROUPS} and no {data.name}",),
        written=_write(output, copies),
        messages=tuple(finding.to_text() for finding in static.findings),
    )


def _gpu_kernel(path: Path, output: Path, mode: gpu_mode.GpuMode) -> Built:
    stored = stored_data.survey(mode.pt_file)
    parameters = gpu_mode.kernel_parameters(files.read_bytes(path, _ADVICE), mode.op_name)
    order = _order(parameters, stored.keys)
    described = dict(zip(stored.keys, stored.inputs, strict=True))
    milliseconds = mode.reference.milliseconds if mode.reference else None
    messages = [mode.warning] if mode.warning else []
    reference_required = stored.output is None
    written: tuple[Path, ...] = ()
    if reference_required:
        messages.append(
            f"{mode.pt_file.name} holds no gpu_output: write {output / path.name} with a `Model` "
            "that computes in PyTorch what the kernel computes, taking the inputs in the order "
            "above, or save gpu_output with them; nothing was written"
        )
    else:
        digest = hashlib.sha256(mode.pt_file.read_bytes()).hexdigest()
        text = gpu_task.source(mode.op_name, order, digest, milliseconds)
        written = _write(output, {output / path.name: text.encode()}, keep=path)
        copy = output / f"{mode.op_name}.pt"
        _copy(mode.pt_file, copy)
        written += (copy,)
    return Built(
        mode="gpu_kernel",
        op_name=mode.op_name,
        reasons=tuple(f"rule {number}: {text}" for number, text in mode.rules.items()),
        written=written,
        reference_required=reference_required,
        inputs=tuple({"name": str(key), "desc": described[key]} for key in order),
        gpu_reference_ms=milliseconds,
        options=tuple(gpu_task.benchmark_options(milliseconds)),
        messages=tuple(messages),
    )


def _order(parameters: list[str], keys: tuple[str | int, ...]) -> list[str | int]:
    names = [key for key in keys if isinstance(key, str)]
    if len(names) < len(keys):
        # A list is in order already.
        return list(keys)
    return list(gpu_task.input_order(parameters, names))


def _write(output: Path, contents: dict[Path, bytes], keep: Path | None = None) -> tuple[Path, ...]:
    """Write files into the work directory.

    Args:
        output: the work directory.
        contents: by path.
        keep: a file that must not be overwritten.
    """
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        text = f"the work directory {output} can't be made: {error.strerror or error}"
        raise files.FileError(text) from None
    for path, content in contents.items():
        if keep is not None and path.resolve() == keep.resolve():
            raise files.FileError(
                f"{path} is the description file itself: give another folder with --output"
            )
        if path.is_file() and path.read_bytes() == content:
            continue
        files.write_bytes(path, content)
    return tuple(contents)


def _copy(source: Path, target: Path) -> None:
    if target.exists() and target.samefile(source):
        return
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise files.FileError(f"{target} can't be written: {error.strerror or error}") from None
