"""The role that lists a task's cases without computing or storing their inputs."""

from __future__ import annotations

import contextlib
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytest_tritonverify.execution import describing, loading, naming
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.task import Task, seeded_groups

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase

# Files below these are part of the installation, which the cache's key holds as versions.
_INSTALLED = tuple({sys.prefix, sys.base_prefix, "/usr", "/proc", "/sys", "/dev", "/etc"})


def create(request: Message, phase: Phase) -> Describe:
    """Make the role."""
    return Describe(request, phase)


class Describe:
    """Runs a task's input function under FakeTensorMode, or for real where that fails."""

    def __init__(self, request: Message, phase: Phase) -> None:
        self._path = Path(request["task"])
        self._op: str = request["op_name"]
        self._device = DEVICES[request["device"]]
        self._phase = phase
        self.user_files = (str(self._path.parent),)

    def do_describe(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """List the cases: number, input descriptions, and the files that decided about them."""
        opened: set[str] = set()
        _record_opened_files(opened)
        self._phase.enter("import")
        task = Task(self._path, self._op)
        self._phase.enter("inputs")
        mode: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if request["fake"]:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode, torch.no_grad():
            groups = seeded_groups(task, self._device)
        cases = []
        for number, group in enumerate(groups, 1):
            values = group.values()
            cases.append(
                {
                    "name": naming.case_name(number, values),
                    "dtype": naming.dtype_word(values),
                    "input_desc": [describing.describe(value) for value in values],
                }
            )
        looked_for = [] if cases else self._data_files_looked_for(opened)
        return {"cases": cases, "files": _digests(opened), "looked_for": looked_for}, None

    def _data_files_looked_for(self, opened: set[str]) -> list[str]:
        """Name data files that a task without cases seems to lack."""
        missing = [p for p in opened if p.endswith((".json", ".jsonl")) and not Path(p).is_file()]
        if not missing and loading.data_file(self._path, self._op) is None:
            missing = [
                str(self._path.with_suffix(".json")),
                str(self._path.with_name(f"{self._op}.json")),
            ]
        return sorted(missing)


def _record_opened_files(opened: set[str]) -> None:
    """Note every file of the user's that is opened from now on."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str):
            return
        path = str(Path(arguments[0]).absolute())
        if not path.startswith(_INSTALLED) and "__pycache__" not in path:
            opened.add(path)

    sys.addaudithook(hook)


def _digests(paths: set[str]) -> dict[str, str | None]:
    """Return sha256 by path; null for a file that was looked for and isn't there."""
    found: dict[str, str | None] = {}
    for path in sorted(paths):
        try:
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError:
            found[path] = None
    return found
