"""Runs of pytest that start in a moment, since a process that has imported all of it forks them.

A run in a new interpreter, with another one for its fork server, takes six seconds of a core
before the first case; most of that is two imports of PyTorch. A run that is forked here has its
own process, environment, folder, files and exit status, as has its fork server, and neither has
seen anything of earlier runs. Tests of what happens before that, or of what is imported when, make
fresh runs.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import processes
from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.device import DEVICE
from tests.support.living import is_alive
from tests.support.warm_process import MAX_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

RUN_MARK = "TRITONVERIFY_TEST_RUN"
"""Every process that a fresh run starts inherits this variable: so none of them can hide."""
_BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tests.support import warm_process; warm_process.main(int(sys.argv[2]))"
)
_ROOT = str(Path(__file__).parents[2])


class WarmStart:
    """Runs pytest, one run at a time. Starts nothing before it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None

    def _started(self) -> socket.socket:
        if self._control is not None:
            return self._control
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = Host(HostConfig(DEVICES[DEVICE], fork=True))._environment()
        # It outlives the test that starts it, and is none of its processes.
        environment.pop(RUN_MARK, None)
        path = [_ROOT, *(entry for entry in sys.path if entry)]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, json.dumps(path), str(there.fileno())],
            env=environment,
            stdin=subprocess.DEVNULL,
            pass_fds=[there.fileno()],
        )
        there.close()
        self._control = here
        self._answer(time.monotonic() + 300)
        return here

    def run(
        self,
        arguments: Sequence[str],
        patience: float,
        stdin: bytes = b"",
        folder: Path | None = None,
    ) -> tuple[int, str, str]:
        """Run pytest in the present environment.

        Args:
            arguments: pytest's.
            patience: seconds after which it is killed.
            stdin: what it can read.
            folder: where; None for the present folder.

        Returns:
            Exit code, output, and error output.
        """
        control = self._started()
        given = os.environ.get("PYTHONPATH", "")
        # The current folder comes first, as with `python -m pytest`.
        entries = [str(folder or Path.cwd()), *filter(None, given.split(os.pathsep))]
        request = {
            "arguments": list(arguments),
            "environment": dict(os.environ),
            "folder": entries[0],
            "path": [*entries, *(entry for entry in sys.path if entry and entry != _ROOT), _ROOT],
        }
        with (
            tempfile.TemporaryFile() as given_in,
            tempfile.TemporaryFile() as out,
            tempfile.TemporaryFile() as err,
        ):
            given_in.write(stdin)
            given_in.seek(0)
            files = [file.fileno() for file in (given_in, out, err)]
            socket.send_fds(control, [json.dumps(request).encode()], files)
            deadline = time.monotonic() + patience
            pid = self._answer(deadline)["pid"]
            try:
                code = self._answer(deadline)["code"]
            except TimeoutError:
                processes.kill_family(pid)
                self._answer(deadline + 60)
                raise
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(file.read().decode("utf-8", "backslashreplace"))
        return code, texts[0], texts[1]

    def _answer(self, deadline: float) -> dict[str, Any]:
        assert self._control is not None
        self._control.settimeout(max(deadline - time.monotonic(), 0.1))
        data = self._control.recv(MAX_MESSAGE)
        assert data, "the process that runs are forked from has ended"
        message: dict[str, Any] = json.loads(data)
        return message

    def survivors(self) -> list[int]:
        """Return living processes that are left of runs that have ended."""
        if self._process is None:
            return []
        return [pid for pid in processes.descendants(self._process.pid) if is_alive(pid)]

    def close(self) -> None:
        """End the process, and all that it has started."""
        if self._process is not None and self._control is not None:
            self._control.close()
            self._process.wait(60)
        self._process = self._control = None
