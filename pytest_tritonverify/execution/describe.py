"""The role that lists a task's cases without computing or storing their inputs."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from pytest_tritonverify import standin
from pytest_tritonverify.execution import describing, loading, naming
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.task import Arguments, Task, seeded_groups

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase

# Files below these are part of the installation, which the cache's key holds as versions.
_LIBRARIES = ("stdlib", "platstdlib", "purelib", "platlib")
_INSTALLED = ("/proc/", "/sys/", "/dev/", *(f"{sysconfig.get_path(n)}/" for n in _LIBRARIES))


def create(request: Message, phase: Phase) -> Describe:
    """Make the role."""
    return Describe(request, phase)


class Describe:
    """Runs a task's input function under FakeTensorMode, or for real where that fails."""

    def __init__(self, request: Message, phase: Phase) -> None:
        standin.install(request.get("standin", standin.OFF))
        self._path = Path(request["task"])
        self._op: str = request["op_name"]
        self._device = DEVICES[request["device"]]
        self._phase = phase
        self.user_files = (str(self._path.parent),)

    def do_describe(self, request: Message, _fd: int | None) -> tuple[dict[str, Any], None]:
        """List the cases: number, input descriptions, and the files that decided about them."""
        with loading.working_in(self._path.parent), _record_opened_files() as opened:
            groups = self._groups(fake=request["fake"])
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
        # What decides where the data are takes part too, so that a file that appears counts.
        places = loading.data_candidates(self._path, self._op)
        files = opened | {str(path) for place in places for path in place}
        return {"cases": cases, "files": _digests(files), "looked_for": looked_for}, None

    def _groups(self, *, fake: bool) -> list[Arguments]:
        self._phase.enter("import")
        task = Task(self._path, self._op)
        self._phase.enter("inputs")
        mode: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()
        if fake:
            mode = FakeTensorMode(allow_non_fake_inputs=True)
        with mode, torch.no_grad():
            return seeded_groups(task, self._device)

    def _data_files_looked_for(self, opened: set[str]) -> list[str]:
        """Name data files that a task without cases seems to lack."""
        missing = [p for p in opened if p.endswith((".json", ".jsonl")) and not Path(p).is_file()]
        if not missing and loading.data_file(self._path, self._op) is None:
            missing = [
                str(self._path.with_suffix(".json")),
                str(self._path.with_name(f"{self._op}.json")),
            ]
        return sorted(missing)


@contextlib.contextmanager
def _record_opened_files() -> Iterator[set[str]]:
    """Note every file of the user's that is opened, or looked for, from now on."""
    opened: set[str] = set()
    listening = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not listening:
            return
        with contextlib.suppress(TypeError, ValueError):  # a descriptor; no path at all
            path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100 - resolves `..` too
            if "__pycache__" in path:
                # A module comes from there only as long as its source stays the same.
                path = importlib.util.source_from_cache(path)
            if not path.startswith(_INSTALLED):
                opened.add(path)

    sys.addaudithook(hook)
    try:
        yield opened
    finally:
        listening = False


def _digests(paths: set[str]) -> dict[str, str | None]:
    """Return sha256 by path; null for a file that was looked for and isn't there."""
    found: dict[str, str | None] = {}
    for path in sorted(paths):
        try:
            found[path] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        except OSError:
            found[path] = None
    return found
