"""Real worker processes for tests: pairs written from source, questions asked, answers read."""

from __future__ import annotations

import os
import textwrap
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.catalogue import CaseEntry
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.execution import tensors
from pytest_tritonverify.execution.wire import require_sealed
from pytest_tritonverify.isolation import Limits
from pytest_tritonverify.judge import PairJudge
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.settings import Settings
from tests.support.living import is_alive

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.execution.host import Host
    from pytest_tritonverify.execution.worker_handle import Answer, Worker
    from pytest_tritonverify.results.records import CaseRecord
    from pytest_tritonverify.supervision import Process

# Generous: a loaded machine must not fail a test. What is wrong is told by waiting in vain.
PATIENCE = 120.0
# That a worker of these tests may have at once.
PROCESSES = 64

TWICE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2

def get_input_groups():
    return [[torch.arange(8.0).reshape(2, 4) + k] for k in range(3)]
"""


def write_pair(folder: Path, task: str, implementation: str, op: str = "op") -> Pair:
    """Write a pair from the source of both files."""
    folder.mkdir(parents=True, exist_ok=True)
    pair = Pair(
        op, "ascend_impl", folder / f"{op}_torch.py", folder / f"{op}_triton_ascend_impl.py"
    )
    pair.task.write_text(textwrap.dedent(task))
    pair.implementation.write_text(textwrap.dedent(implementation))
    return pair


def attack(folder: Path, forward: str, top: str = "", task: str = TWICE) -> Pair:
    """Write a pair whose implementation runs some statements first, and then is right.

    Args:
        folder: where.
        forward: statements at the start of `forward`.
        top: statements of the module.
        task: source of the task; its result is twice its input.
    """
    implementation = "\n".join(
        [
            "import ctypes, gc, os, signal, socket, sys, threading, time",
            "import torch",
            textwrap.dedent(top),
            "class ModelNew(torch.nn.Module):",
            "    def forward(self, x):",
            textwrap.indent(textwrap.dedent(forward), " " * 8),
            "        return x * 2",
        ]
    )
    return write_pair(folder, task, implementation)


class Bench:
    """Starts workers on a host, and ends them all with the test."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._workers: list[Worker] = []
        self._processes: list[Process | PairJudge] = []
        self._fds: list[int] = []

    def start(self, role: str, pair: Pair | None = None, **request: Any) -> Worker:
        """Start a worker; its first answer, that it is there, is still to be read."""
        if pair is not None:
            request = {
                "task": str(pair.task),
                "op_name": pair.op,
                "implementation": str(pair.implementation),
                "guarded": True,
                **request,
            }
        worker = self.host.spawn({"role": role, **request})
        self._workers.append(worker)
        return worker

    def ready(self, role: str, pair: Pair | None = None, **request: Any) -> Worker:
        """Start a worker and read its first answer."""
        worker = self.start(role, pair, **request)
        first = worker.result(time.monotonic() + PATIENCE)
        assert "error" not in first.message, first.message
        return worker

    def ask(
        self,
        worker: Worker,
        message: dict[str, Any],
        fd: int | None = None,
        seconds: float = PATIENCE,
    ) -> Answer:
        """Send a request and read its answer."""
        worker.post(message, fd)
        answer = worker.result(time.monotonic() + seconds)
        if answer.fd is not None:
            self._fds.append(answer.fd)
        return answer

    def inputs(self, reference: Worker, case_idx: int = 1) -> Answer:
        """Have the inputs of a case made."""
        answer = self.ask(reference, {"op": "inputs", "case_idx": case_idx})
        assert "error" not in answer.message, answer.message
        return answer

    def case(self, pair: Pair, case_idx: int = 1) -> dict[str, Any]:
        """Return the request that makes a candidate run a case, and the inputs' descriptor."""
        inputs = self.inputs(self.ready("reference", pair), case_idx)
        return {"message": {"op": "run", "case": inputs.message["case"]}, "fd": inputs.fd}

    def both(self, pair: Pair, cases: Sequence[int] = (1,)) -> list[Sides]:
        """Run cases on a reference and a candidate worker."""
        reference, candidate = self.ready("reference", pair), self.ready("candidate", pair)
        found = []
        for case_idx in cases:
            inputs = self.inputs(reference, case_idx)
            case = inputs.message["case"]
            golden = self.ask(reference, {"op": "golden", "case": case}, inputs.fd)
            actual = self.ask(candidate, {"op": "run", "case": case}, inputs.fd)
            found.append(Sides(inputs, golden, actual))
        return found

    def golden(self, pair: Pair, case_idx: int = 1) -> Sides:
        """Run a case on the reference alone."""
        reference = self.ready("reference", pair)
        inputs = self.inputs(reference, case_idx)
        golden = self.ask(reference, {"op": "golden", "case": inputs.message["case"]}, inputs.fd)
        return Sides(inputs, golden, golden)

    def golden_error(self, pair: Pair, case_idx: int = 1) -> dict[str, Any]:
        """Run a case on the reference alone, which raises; return how it is described."""
        error: dict[str, Any] = self.golden(pair, case_idx).golden.message["error"]
        return error

    def limits(self, **wanted: Any) -> Limits:
        """Return limits of an implementation's process; few processes unless said otherwise."""
        return Limits(**{"processes": PROCESSES, **wanted})

    def judge(self, pair: Pair, timeout: float = PATIENCE, **settings: Any) -> PairJudge:
        """Return a judge of a pair, with workers of its own."""
        device = self.host.config.device.name
        wanted = Settings(device=device, timeout=timeout, **settings)
        judge = PairJudge(PairProcesses(pair, wanted, device, self.host.spawn))
        self._processes += [judge.reference, judge]
        return judge

    def verdict(
        self, pair: Pair, timeout: float = PATIENCE, cases: int = 1, **settings: Any
    ) -> list[CaseRecord]:
        """Judge the first cases of a pair."""
        made = self.ask(self.ready("reference", pair), {"op": "inputs", "case_idx": 1}).message
        total = made.get("total", cases)
        judge = self.judge(pair, timeout, **settings)
        entries = [CaseEntry(f"case{k}", "float32") for k in range(1, cases + 1)]
        return [judge.run_case(k, entry, total, None) for k, entry in enumerate(entries, 1)]

    def close(self) -> None:
        """End everything that was started; may be called again."""
        while self._processes:
            self._processes.pop().close()
        while self._workers:
            self._workers.pop().kill()
        while self._fds:
            os.close(self._fds.pop())


class Sides:
    """What both sides made of a case.

    Attributes:
        inputs, golden, actual: the answers.
    """

    def __init__(self, inputs: Answer, golden: Answer, actual: Answer) -> None:
        self.inputs, self.golden, self.actual = inputs, golden, actual

    @property
    def expected(self) -> Any:
        """What the reference returned."""
        return self.opened(self.golden)["outputs"]

    @property
    def got(self) -> Any:
        """What the implementation returned."""
        return self.opened(self.actual)["outputs"]

    @property
    def agree(self) -> bool:
        """Whether both returned the same single tensor."""
        return torch.equal(self.expected, self.got)

    @staticmethod
    def opened(answer: Answer) -> Any:
        """Return `outputs` and `changed` of an answer."""
        assert "error" not in answer.message, answer.message
        assert answer.fd is not None
        require_sealed(answer.fd)
        return tensors.unpack(answer.message["result"], answer.fd)

    def call(self) -> Any:
        """Return the inputs as they were packed."""
        return tensors.unpack(self.inputs.message["case"]["call"], self.inputs.fd)

    def init(self) -> Any:
        """Return the constructor arguments as they were packed."""
        return tensors.unpack(self.inputs.message["case"]["init"], self.inputs.fd)


def marked_processes(mark: str) -> list[int]:
    """Return living processes whose environment, at their start, held some text."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            with suppress(OSError):
                if mark.encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
    return [pid for pid in found if is_alive(pid)]


def wait_for_text(path: Path) -> str:
    """Return what another process writes into a file, as soon as it is there."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with suppress(OSError):
            text = path.read_text()
            if text.endswith("\n"):
                return text
        assert time.monotonic() < deadline, f"nothing came in {path}"
        time.sleep(0.02)


def expect_gone(*pids: int) -> None:
    """Fail if one of some processes is still alive after a while."""
    deadline = time.monotonic() + PATIENCE / 2
    while alive := [pid for pid in pids if is_alive(pid)]:
        assert time.monotonic() < deadline, f"still alive: {alive}"
        time.sleep(0.01)


# Statements with which user code leaves a process behind: in a session of its own, orphaned, deaf
# to SIGTERM and SIGHUP, holding every descriptor. It writes its number to the file at `mark`.
ESCAPE = """
def escape(mark):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            with open(mark + ".part", "w") as file:
                file.write(f"{os.getpid()}\\n")
            os.rename(mark + ".part", mark)
            while True:
                time.sleep(1000)
        os._exit(0)
    while not os.path.exists(mark):
        time.sleep(0.01)
"""
