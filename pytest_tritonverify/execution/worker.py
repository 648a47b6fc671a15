"""The main loop of a worker process: one role, requests in, observations out.

Whatever user code raises, SystemExit and KeyboardInterrupt included, becomes an answer; only
the death of the process itself leaves the judge without one.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import signal
import socket
import sys
from typing import Any, Protocol

from pytest_tritonverify.execution import errors, wire
from pytest_tritonverify.execution.devices import DEVICES

# Signal on which a worker writes the Python stacks of its threads to its output. The handler
# runs in C, so it answers while the GIL is held too.
STACK_SIGNAL = signal.SIGUSR1
# Exit status of a worker that user code has made unable to go on.
UNABLE = 71

ROLES = {
    "describe": "pytest_tritonverify.execution.describe",
    "reference": "pytest_tritonverify.execution.reference",
    "candidate": "pytest_tritonverify.execution.candidate",
    "environment": "pytest_tritonverify.execution.surroundings",
    "observer": "pytest_tritonverify.execution.observer",
    "stored": "pytest_tritonverify.execution.stored",
    "compiler": "pytest_tritonverify.compilation.role",
}


class Role(Protocol):
    """What a worker does for the judge.

    Each operation is a method `do_<op>` that takes the request and the descriptor that came
    with it, and returns the answer and a descriptor to send along, or None.
    """


class Phase:
    """Tells the judge what is going on, so that a death or a hang can be located."""

    def __init__(self, channel: wire.Channel | None) -> None:
        self._channel = channel
        self.name = "start"

    def enter(self, name: str) -> None:
        """Report that the named phase begins (import, build, forward, transfer, ...)."""
        self.name = name
        if self._channel is not None:
            self._channel.send({"event": "phase", "phase": name})


def create_role(request: wire.Message, phase: Phase) -> Role:
    """Make the role that a start request names."""
    if request["role"] != "environment":  # which finds out whether it can be loaded
        DEVICES[request["device"]].load()
    module = importlib.import_module(ROLES[request["role"]])
    role: Role = module.create(request, phase)
    return role


def main(channel_fd: int) -> None:
    """Serve requests until the judge closes the socket or kills this process."""
    try:
        _serve(wire.Channel(socket.socket(fileno=channel_fd)))
    except BaseException as error:  # noqa: BLE001 - user code has changed what this here needs
        _complain(error)
        os._exit(UNABLE)


def _complain(error: BaseException) -> None:
    """Say as well as can be why this process can't go on: anything may be broken by now."""
    with contextlib.suppress(BaseException):
        described = errors.describe(error, "", ())
        text = f"{described['type']}: {described['message']}"
        os.write(2, f"{errors.clip(text, 1000)}\n".encode("utf-8", "backslashreplace"))


def _serve(channel: wire.Channel) -> None:
    sys.dont_write_bytecode = True
    sys.argv = ["tritonverify-worker"]
    # New streams on the pipe: the old ones were made for other files. Line by line, so that a
    # crash doesn't take with it what stands in a buffer.
    sys.stdout = open(1, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    faulthandler.enable()
    faulthandler.register(STACK_SIGNAL, all_threads=True)
    start = channel.receive()
    if start is None:
        return
    # Before the role is made: what it imports reads them.
    os.environ.update(start.message.get("environment", {}))
    phase = Phase(channel)
    role: Role | None = None
    answer: dict[str, Any]
    try:
        role = create_role(start.message, phase)
        answer = {}
    except BaseException as error:  # noqa: BLE001 - reported to the judge
        answer = {"error": errors.describe(error, phase.name, ())}
    channel.send({"event": "answer", "n": 0, **answer})
    while (frame := channel.receive()) is not None:
        answer, fd = perform(role, frame, phase)
        if "error" in answer:
            _tidy(start.message["device"])
        for stream in (sys.stdout, sys.stderr):
            # User code may have put anything there, which may raise anything.
            with contextlib.suppress(BaseException):
                stream.flush()
        head = {"event": "answer", "n": frame.message["n"]}
        try:
            channel.send({**head, **answer}, fd)
        except (wire.WireError, TypeError, ValueError, RecursionError) as error:
            # It is too long, or user code has put something into it that is no plain value.
            channel.send({**head, "error": errors.describe(error, phase.name, ())})
        for used in (frame.fd, fd):
            if used is not None:
                os.close(used)


def perform(
    role: Role | None, frame: wire.Frame, phase: Phase
) -> tuple[dict[str, Any], int | None]:
    """Run one operation and turn whatever it raises into an answer."""
    user_files = getattr(role, "user_files", ())
    try:
        answer, fd = getattr(role, f"do_{frame.message['op']}")(frame.message, frame.fd)
    except BaseException as error:  # noqa: BLE001 - reported to the judge
        return {"error": errors.describe(error, phase.name, user_files), **facts_of(role)}, None
    return answer, fd


def _tidy(device: str) -> None:
    """Give back the memory of a run that failed, so that the next one finds it."""
    # Of a device that has had a fault nothing is to be had, and what is freed may run user code.
    with contextlib.suppress(BaseException):
        gc.collect()
        DEVICES[device].release()


def facts_of(role: Role | None) -> dict[str, Any]:
    """Return what a role knows of a run that failed."""
    facts: dict[str, Any] = role.facts() if hasattr(role, "facts") else {}
    return facts
