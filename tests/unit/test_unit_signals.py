"""Signals that ask pytest to end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pytest_tritonverify.signals import Termination, held_back


def _failing_step(number: signal.Signals) -> None:
    with held_back():
        os.kill(os.getpid(), number)
        raise ValueError("of the step")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_for_the_last_steps(number: signal.Signals) -> None:
    done: list[str] = []
    before = signal.signal(number, lambda *_: done.append("ended"))
    try:
        with held_back():
            os.kill(os.getpid(), number)
            os.kill(os.getpid(), number)
            done.append("last step")
        assert done == ["last step", "ended"]
        with pytest.raises(ValueError, match="of the step"):
            _failing_step(number)
        assert done == ["last step", "ended", "ended"]
    finally:
        signal.signal(number, before)


def test_nothing_is_done_outside_of_the_main_thread() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    failures: list[Exception] = []

    def use() -> None:
        try:
            with held_back():
                Termination(lambda: None).forget()
        except Exception as error:
            failures.append(error)
            raise

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    assert failures == []
    assert before == [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]


def test_termination_is_told_once_the_system_has_said_so() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        told: list[int] = []
        termination = Termination(lambda: told.append(1))
        assert not termination.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert (told, termination.asked) == ([1], True)
        # Whoever has made arrangements keeps them.
        second = Termination(lambda: told.append(2))
        second.forget()
        os.kill(os.getpid(), signal.SIGTERM)
        assert told == [1, 1]
        termination.forget()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
