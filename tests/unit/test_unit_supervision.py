"""What a worker's failure looks like in words, and what becomes of the worker."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.execution import errors
from pytest_tritonverify.execution.host import HostError
from pytest_tritonverify.execution.worker_handle import (
    Answer,
    WorkerBroken,
    WorkerDied,
    WorkerHung,
)
from pytest_tritonverify.results.records import TIMEOUT
from pytest_tritonverify.supervision import IMPLEMENTATION, REFERENCE, VERIFIER, Failure, Process

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

READY = Answer({}, None)


class FakeWorker:
    """Answers, or ends, as it is told."""

    def __init__(self, outcomes: Sequence[object], output: str = "") -> None:
        self.outcomes = list(outcomes)
        self.output = output
        self.posted: list[object] = []
        self.killed = False

    def post(self, message: object, fd: int | None = None) -> None:
        self.posted.append(message)

    def result(self, _deadline: float) -> object:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def take_output(self) -> str:
        return self.output

    def kill(self) -> None:
        self.killed = True


def process(
    *workers: FakeWorker, side: str = IMPLEMENTATION, device: str = "cpu"
) -> tuple[Process, list[FakeWorker]]:
    waiting, started = list(workers), []

    def spawn() -> FakeWorker:
        started.append(waiting.pop(0))
        return started[-1]

    return Process(spawn, side, "a_triton_x.py", device), started


def ask(one: Process) -> Answer:
    one.post({"op": "run"})
    return one.result(0.0, "5秒")


def failure_of(one: Process) -> Failure:
    with pytest.raises(Failure) as caught:
        ask(one)
    return caught.value


def error(**facts: Any) -> Answer:
    described = {
        "type": "ValueError",
        "message": "no such luck",
        "phase": "forward",
        "traceback": "  a_triton_x.py:7 in forward\n    raise ValueError",
        "file": "/ops/a_triton_x.py",
        "line": 7,
        "code": "raise ValueError",
        **facts,
    }
    return Answer({"error": described}, None)


# Workers


def test_a_worker_is_started_when_it_is_needed_and_then_kept() -> None:
    worker = FakeWorker([READY, Answer({"n": 1}, None), Answer({"n": 2}, None)], "printed")
    one, started = process(worker)
    assert started == []
    assert [ask(one).message["n"] for _ in range(2)] == [1, 2]
    assert started == [worker]
    assert one.output == "printed"
    one.close()
    one.close()
    assert worker.killed


def test_after_an_exception_the_worker_goes_on() -> None:
    one, started = process(FakeWorker([READY, error(), Answer({"n": 2}, None)]))
    failure_of(one)
    assert ask(one).message["n"] == 2
    assert len(started) == 1


@pytest.mark.parametrize(
    "lost",
    [
        WorkerDied(signal.SIGSEGV, "forward", ""),
        WorkerHung("no answer", "forward", ""),
        WorkerBroken("it sent no frame", "forward", ""),
        HostError("the process that starts workers has ended unexpectedly"),
    ],
)
def test_a_lost_worker_is_replaced(lost: Exception) -> None:
    one, started = process(FakeWorker([READY, lost]), FakeWorker([READY, Answer({"n": 2}, None)]))
    failure_of(one)
    assert ask(one).message["n"] == 2
    assert len(started) == 2


@pytest.mark.parametrize(
    "outcomes",
    [
        [READY, error(phase="import", type="SyntaxError")],
        [error(phase="start")],
        [READY, WorkerDied(0, "import", "")],
        [READY, WorkerHung("no answer", "import", "")],
    ],
)
def test_a_module_that_cannot_be_loaded_is_not_loaded_again(outcomes: list[object]) -> None:
    one, started = process(FakeWorker(outcomes))
    first = failure_of(one)
    assert failure_of(one) is first
    assert len(started) == 1


def test_a_worker_that_cannot_be_started_is_nobodys_fault() -> None:
    def spawn() -> Any:
        raise HostError("`import torch` fails: no space left")

    failure = failure_of(Process(spawn, IMPLEMENTATION, "a_triton_x.py", "cpu"))
    assert failure.side == VERIFIER
    assert failure.error_type == "WorkerStartError"
    assert failure.message == "WorkerStartError: `import torch` fails: no space left"


def test_a_host_that_has_ended_is_nobodys_fault() -> None:
    failure = failure_of(process(FakeWorker([READY, HostError("it has ended")]))[0])
    assert (failure.side, failure.error_type) == (VERIFIER, "WorkerCrash")
    assert "it has ended while a_triton_x.py ran" in failure.message


# Texts


def test_an_exception_of_an_implementation() -> None:
    failure = failure_of(process(FakeWorker([READY, error()], "printed"))[0])
    assert failure.message.splitlines() == [
        "ValueError: no such luck",
        "Raised by a_triton_x.py in phase 'forward'.",
        "  a_triton_x.py:7 in forward",
        "    raise ValueError",
    ]
    assert (failure.side, failure.error_type, failure.phase) == (
        IMPLEMENTATION,
        "ValueError",
        "forward",
    )
    assert (failure.file, failure.line, failure.output) == ("/ops/a_triton_x.py", 7, "printed")


def test_an_exception_of_a_reference() -> None:
    failure = failure_of(process(FakeWorker([READY, error(message="")]), side=REFERENCE)[0])
    assert failure.side == REFERENCE
    assert failure.message.splitlines()[:2] == [
        "ValueError",
        "This is a failure of the reference, a_triton_x.py, in phase 'forward'.",
    ]


@pytest.mark.parametrize(("device", "advised"), [("cpu", True), ("cuda", False)])
def test_an_exception_with_a_known_cause_comes_with_advice(device: str, advised: bool) -> None:
    answer = error(type="AssertionError", message="", code="assert x.is_cuda")
    failure = failure_of(process(FakeWorker([READY, answer]), device=device)[0])
    assert ("Hint: This code asks for an accelerator" in failure.message) is advised


def test_a_crash() -> None:
    dump = (
        "Fatal Python error: Segmentation fault\n"
        '  File "/ops/a_triton_x.py", line 7 in forward\n'
        '  File "/site-packages/pytest_tritonverify/execution/worker.py", line 3 in main\n'
        '  File "<string>", line 1 in <module>\n'
        "Extension modules: numpy (total: 1)\n"
    )
    lost = WorkerDied(signal.SIGSEGV, "forward", dump)
    failure = failure_of(process(FakeWorker([READY, lost]))[0])
    assert failure.error_type == "WorkerCrash"
    assert failure.message.splitlines() == [
        (
            "WorkerCrash: the process ended while a_triton_x.py was in phase 'forward'; "
            "killed by signal 11 (SIGSEGV): an access outside of its memory, as by a pointer "
            "out of bounds"
        ),
        "Last output of the process:",
        "  Fatal Python error: Segmentation fault",
        '    File "/ops/a_triton_x.py", line 7 in forward',
    ]
    assert failure.output == dump


def test_a_hang() -> None:
    failure = failure_of(process(FakeWorker([READY, WorkerHung("...", "forward", "")]))[0])
    assert failure.error_type == "VerifyTimeout"
    assert failure.message == (
        "VerifyTimeout: 验证超时（5秒） while a_triton_x.py was in phase 'forward'; "
        "its process was ended"
    )


def test_a_stack_of_which_nothing_is_the_users_is_left_out() -> None:
    own = '  File "/x/pytest_tritonverify/execution/worker.py", line 3 in main'
    user = '  File "/ops/a_triton_x.py", line 7 in forward'
    head = "{} 0x00007f9436eafb80 (most recent call first):"
    others, main = head.format("Thread"), head.format("Current thread")
    dump = f"printed\n{others}\n{own}\n\n{main}\n{user}\n{own}"
    assert errors.without_own_frames(dump) == f"printed\n\n{main}\n{user}"
    assert errors.without_own_frames(f"{others}\n{own}\n{main}\n{own}") == ""


def test_nonsense() -> None:
    lost = WorkerBroken("a frame holds no JSON", "forward", "")
    failure = failure_of(process(FakeWorker([READY, lost]))[0])
    assert failure.error_type == "WorkerCrash"
    assert "broke the protocol: a frame holds no JSON" in failure.message


def test_much_output_keeps_its_end() -> None:
    lost = WorkerDied(signal.SIGKILL, "forward", "x" * 10**6 + "\nlast words")
    failure = failure_of(process(FakeWorker([READY, lost]))[0])
    assert failure.message.endswith("last words")
    assert len(failure.message) < 5000


# Untrusted answers


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "text",
        [1, 2],
        {},
        {"type": 5, "message": ["x"], "phase": {}, "traceback": 1, "file": 2, "line": "3"},
        {"type": "", "line": True, "file": ""},
        {"type": "E" * 10**6, "message": "m" * 10**6, "traceback": "t" * 10**6, "line": -4},
        {"type": "E\udcff", "message": "\udcff", "code": None, "line": 1 << 70},
    ],
)
def test_a_forged_error_is_a_failure_like_any_other(sent: object) -> None:
    failure = failure_of(process(FakeWorker([READY, Answer({"error": sent}, None)]))[0])
    assert failure.side == IMPLEMENTATION
    assert failure.error_type
    assert len(failure.error_type) <= 200
    assert len(failure.message) < 50_000
    failure.message.encode()
    assert failure.file is None
    assert failure.line is None


@pytest.mark.parametrize("place", ["first answer", "error"])
def test_descriptors_that_nobody_asked_for_are_closed(place: str) -> None:
    fd = os.open(os.devnull, os.O_RDONLY)
    make: dict[str, Callable[[], list[object]]] = {
        "first answer": lambda: [Answer({}, fd), Answer({"n": 1}, None)],
        "error": lambda: [READY, Answer(error().message, fd)],
    }
    one, _ = process(FakeWorker(make[place]()))
    if place == "error":
        failure_of(one)
    else:
        ask(one)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


DUMP = """printed
  File "/ops/a_triton_x.py", line 99 in printed
Fatal Python error: Segmentation fault

Thread 0x00007f01 (most recent call first):
  File "/ops/a_triton_x.py", line 3 in waits

Current thread 0x00007f02 (most recent call first):
  File "/lib/triton/interpreter.py", line 550 in create_masked_load
  File "/ops/a_triton_x.py", line 12 in gather_kernel
  File "/ops/a_triton_x.py", line 20 in forward

Thread 0x00007f03 (most recent call first):
  File "/ops/a_triton_x.py", line 4 in waits
"""


@pytest.mark.parametrize(
    ("dump", "place"),
    [
        (DUMP, ("/ops/a_triton_x.py", 12)),
        (DUMP.replace("/ops/a_triton_x.py", "/ops/b.py"), (None, None)),
        (DUMP.partition("Fatal")[0], (None, None)),
        ("", (None, None)),
    ],
)
def test_a_death_is_shown_where_the_users_file_was(
    dump: str, place: tuple[str | None, int | None]
) -> None:
    lost = WorkerDied(signal.SIGSEGV, "forward", dump)
    failure = failure_of(process(FakeWorker([READY, lost]))[0])
    assert (failure.file, failure.line) == place


def test_a_reference_that_was_left_no_time_is_not_to_blame() -> None:
    text = "VerifyTimeout: op_torch.py did not answer"
    slow = Failure(REFERENCE, TIMEOUT, text, "forward", "op_torch.py", 7)
    slow.apportion(4.9, 10.0)
    assert (slow.side, slow.line, slow.message) == (REFERENCE, 7, text)
    slow.apportion(9.5, 10.0)
    assert (slow.side, slow.file) == (IMPLEMENTATION, None)
    assert slow.message.startswith(f"{text}\n")
    assert "took 9.5 s" in slow.message
    raised = Failure(REFERENCE, "ValueError", "ValueError: no", "forward", "op_torch.py", 7)
    raised.apportion(9.5, 10.0)
    assert raised.side == REFERENCE
