"""Whichever of our processes dies or is stopped, nothing of ours is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.living import is_alive
from tests.support.workers import (
    ESCAPE,
    PATIENCE,
    expect_gone,
    marked_processes,
    write_pair,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_tritonverify.discovery import Pair

_MARK = "TRITONVERIFY_TEST_DEATHS"

# A judge that starts everything, waits until both workers have let a process escape, and obeys.
_JUDGE = """
import json, sys
from pathlib import Path
from pytest_tritonverify.discovery import pair_of
from pytest_tritonverify.execution import host as host_module, processes
from pytest_tritonverify.execution.devices import DEVICES

host_module._KILL_TIMEOUT = host_module._END_TIMEOUT = 2.0
start, implementation = sys.argv[1:]
host = host_module.Host(host_module.HostConfig(DEVICES["cpu"], fork=start == "fork"))
host.spares = 1
host.start()
from tests.support.workers import PATIENCE, Bench, time, wait_for_text
bench = Bench(host)
pair = pair_of(Path(implementation))
reference, candidate = bench.start("reference", pair), bench.start("candidate", pair)
for worker in (reference, candidate):
    worker.result(time.monotonic() + PATIENCE)
inputs = bench.inputs(reference)
case = inputs.message["case"]
reference.post({"op": "golden", "case": case}, inputs.fd)
candidate.post({"op": "run", "case": case}, inputs.fd)
warden = host._process.pid
print(json.dumps({
    "warden": warden,
    "server": processes.children(warden)[0],
    "reference": reference.pid,
    "candidate": candidate.pid,
    "of_reference": int(wait_for_text(pair.task.with_suffix(".pid"))),
    "of_candidate": int(wait_for_text(pair.implementation.with_suffix(".pid"))),
    "scratch": host.scratch,
}), flush=True)
for line in sys.stdin:
    exec(line)
    print("done", flush=True)
"""
_SIDE = """
import os, signal, time
import torch
{escape}

class {name}(torch.nn.Module):
    def forward(self, x):
        escape(__file__.removesuffix(".py") + ".pid")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(1000)

def get_input_groups():
    return [[torch.ones(2)]]
"""


class Judge:
    """The process that plays the judge, and what it has started."""

    def __init__(self, start: str, pair: Pair) -> None:
        self.mark = uuid.uuid4().hex
        self.process = subprocess.Popen(
            [sys.executable, "-c", _JUDGE, start, str(pair.implementation)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, _MARK: self.mark},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the judge did not get ready"
        facts: dict[str, Any] = json.loads(line)
        self.scratch = Path(facts.pop("scratch"))
        self.pids: dict[str, int] = facts

    def tell(self, statement: str) -> None:
        """Have the judge run a statement."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{statement}\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def end(self) -> None:
        """Kill the judge."""
        self.process.kill()
        self.process.communicate()

    def expect_nothing_left(self, *, but_judge: bool = False) -> None:
        """Fail if a process that has to do with this judge lives on."""
        spared = {self.process.pid} if but_judge else set()
        deadline = time.monotonic() + PATIENCE / 2
        while left := set(marked_processes(self.mark)) - spared:
            names = {name for name, pid in self.pids.items() if pid in left}
            assert time.monotonic() < deadline, f"left: {left} ({names})"
            time.sleep(0.01)


@pytest.fixture
def start_judge(tmp_path: Path) -> Iterator[Callable[[str], Judge]]:
    """Starts judges, and ends them with the test."""
    started = []

    def start(mode: str) -> Judge:
        pair = write_pair(
            tmp_path,
            _SIDE.format(escape=ESCAPE, name="Model"),
            _SIDE.format(escape=ESCAPE, name="ModelNew"),
        )
        started.append(Judge(mode, pair))
        return started[-1]

    yield start
    for judge in started:
        judge.end()
        judge.expect_nothing_left()


@pytest.mark.parametrize(
    ("victim", "mode"), [("judge", "fork"), ("warden", "fork"), ("server", "spawn")]
)
def test_death_of_an_overseer_takes_everything_along(
    start_judge: Callable[[str], Judge], victim: str, mode: str
) -> None:
    judge = start_judge(mode)
    assert all(is_alive(pid) for pid in judge.pids.values())
    if victim == "judge":
        judge.end()
    else:
        os.kill(judge.pids[victim], signal.SIGKILL)
    expect_gone(*judge.pids.values())
    judge.expect_nothing_left(but_judge=True)
    if victim == "warden":
        # Whose duty falls to the judge.
        judge.tell("host.close()")
    assert not judge.scratch.exists()


def test_server_that_died_is_replaced(start_judge: Callable[[str], Judge]) -> None:
    judge = start_judge("fork")
    os.kill(judge.pids["server"], signal.SIGKILL)
    expect_gone(*judge.pids.values())
    judge.expect_nothing_left(but_judge=True)
    assert not judge.scratch.exists()
    # The first to ask is told; whoever asks then gets a new server.
    judge.tell("import contextlib")
    judge.tell("with contextlib.suppress(host_module.HostError): bench.ready('reference', pair)")
    judge.tell("assert bench.inputs(bench.ready('reference', pair)).fd is not None")
    # Nobody waits for the new server to kill the workers of the old one.
    judge.tell("started = time.monotonic(); candidate.kill(); reference.kill()")
    judge.tell("assert time.monotonic() - started < host_module._KILL_TIMEOUT")
    judge.tell("bench.close(); host.close()")
    judge.expect_nothing_left(but_judge=True)


def test_death_of_a_worker_takes_its_own_along_and_nobody_else(
    start_judge: Callable[[str], Judge],
) -> None:
    judge = start_judge("fork")
    pids = judge.pids
    os.kill(pids["candidate"], signal.SIGKILL)
    expect_gone(pids["candidate"], pids["of_candidate"])
    assert all(is_alive(pids[name]) for name in ("warden", "server", "reference"))
    judge.tell("reference.kill()")
    expect_gone(pids["reference"], pids["of_reference"])
    assert all(is_alive(pids[name]) for name in ("warden", "server"))
    judge.tell("host.close()")
    judge.expect_nothing_left(but_judge=True)
    assert not judge.scratch.exists()


def test_stopped_overseers_are_ended_too(start_judge: Callable[[str], Judge]) -> None:
    judge = start_judge("fork")
    for name in ("server", "warden"):
        os.kill(judge.pids[name], signal.SIGSTOP)
    judge.tell("candidate.kill()")
    judge.tell("reference.kill(); host.close()")
    judge.expect_nothing_left(but_judge=True)
