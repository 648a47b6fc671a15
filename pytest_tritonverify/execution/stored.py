"""The role that looks into a file of stored tensors. It runs no code that the file may hold."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import describing

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase

_INPUTS = "input_data"
_OUTPUT = "gpu_output"


class StoredDataError(ValueError):
    """A file that holds something else than inputs, and outputs where there are some."""


def create(request: Message, phase: Phase) -> Stored:
    """Make the role."""
    return Stored(request, phase)


class Stored:
    """Reads one file with `torch.load`, which is told to make tensors and plain values only."""

    def __init__(self, request: Message, phase: Phase) -> None:
        self._path = Path(request["path"])
        self._phase = phase

    def do_survey(self, _request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """Describe the inputs (`keys` and `inputs`), and the `output` where there is one.

        Raises:
            StoredDataError: the file holds no such thing.
        """
        self._phase.enter("inputs")
        content = torch.load(self._path, map_location="cpu", weights_only=True)
        if not isinstance(content, dict):
            raise StoredDataError(f"it holds a {type(content).__name__}, not a dict")
        if _INPUTS not in content:
            keys = ", ".join(map(str, content)) or "nothing"
            raise StoredDataError(f"it has no {_INPUTS} (it has {keys})")
        inputs = content[_INPUTS]
        if isinstance(inputs, dict):
            if not all(isinstance(key, str) for key in inputs):
                raise StoredDataError(f"a key of {_INPUTS} is no name")
            named: dict[Any, Any] = dict(inputs)
        elif isinstance(inputs, (list, tuple)):
            named = dict(enumerate(inputs))
        else:
            raise StoredDataError(f"{_INPUTS} is a {type(inputs).__name__}, not a dict or a list")
        output = content.get(_OUTPUT)
        return {
            "keys": list(named),
            "inputs": [describing.describe(value) for value in named.values()],
            "output": None if output is None else describing.describe(output),
        }, None
