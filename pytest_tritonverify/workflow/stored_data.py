"""What a file of stored tensors holds, asked from a worker: nothing in it is executed."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.engine import DeviceMissingError, Engine
from pytest_tritonverify.execution.host import HostError
from pytest_tritonverify.settings import Settings
from pytest_tritonverify.supervision import VERIFIER, Failure, Process
from pytest_tritonverify.workflow import files

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT = 600.0
_ADVICE = (
    "save it anew with tensors, numbers, strings, lists and dicts alone: "
    'torch.save({"input_data": {...}, "gpu_output": ...}, path)'
)


@dataclass(frozen=True)
class StoredData:
    """What a file holds.

    Attributes:
        keys: names of the inputs, or their places in a list.
        inputs: descriptions of them, in the same order.
        output: description of what the GPU returned; None where it is not stored.
    """

    keys: tuple[str | int, ...]
    inputs: tuple[Any, ...]
    output: Any


def survey(path: Path) -> StoredData:
    """Look into a file.

    Raises:
        files.FileError: it can't be read without executing code, or it holds no inputs.
    """
    files.require_file(path, _ADVICE)
    try:
        engine = Engine(Settings(device="cpu"), None, frozenset())
    except (DeviceMissingError, HostError) as error:
        raise files.FileError(f"{path} can't be read, no process can be started: {error}") from None
    start = {"role": "stored", "path": str(path.resolve())}
    process = Process(lambda: engine.spawn(start), VERIFIER, path.name, "cpu")
    try:
        process.post({"op": "survey"})
        answer = process.result(time.monotonic() + _TIMEOUT, f"{_TIMEOUT:g}秒").message
    except Failure as failure:
        raise files.FileError(_refusal(path, failure)) from None
    finally:
        process.close()
        engine.close()
    return StoredData(tuple(answer["keys"]), tuple(answer["inputs"]), answer["output"])


def _refusal(path: Path, failure: Failure) -> str:
    if failure.error_type == "StoredDataError":
        reason = failure.message.partition("\n")[0].partition(": ")[2]
        return f"{path} holds no inputs of a kernel: {reason}; {_ADVICE}"
    if failure.error_type == "UnpicklingError":
        return (
            f"{path} holds more than tensors and plain values, and is not loaded, since that "
            f"would run code from it; {_ADVICE}"
        )
    first = failure.message.partition("\n")[0]
    return f"{path} can't be loaded with torch.load(weights_only=True): {first}; {_ADVICE}"
