"""Signals that ask pytest to end."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from pytest_tritonverify.signals import Ending, Termination, held_back


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
                Termination(lambda _: None).forget()
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
        termination = Termination(lambda _: told.append(1))
        assert not termination.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert told == [1]
        assert termination.asked == signal.SIGTERM
        # Whoever has made arrangements keeps them.
        second = Termination(lambda _: told.append(2))
        second.forget()
        os.kill(os.getpid(), signal.SIGTERM)
        assert told == [1, 1]
        termination.forget()
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_terminal_that_is_gone_ends_a_run_unless_that_is_not_wanted() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        told: list[signal.Signals] = []
        # As under `nohup`.
        Termination(told.append).forget()
        os.kill(os.getpid(), signal.SIGHUP)
        assert told == []
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        termination = Termination(told.append)
        os.kill(os.getpid(), signal.SIGHUP)
        assert told == [signal.SIGHUP]
        termination.forget()
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_run_that_is_ending_is_told_so_once() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        ending = Ending()
        ending.begin()
        ending.begin()
        os.kill(os.getpid(), signal.SIGINT)
        ending.end()
        assert heard == []
        os.kill(os.getpid(), signal.SIGINT)
        assert heard == [signal.SIGINT]
        ending.end()
    finally:
        signal.signal(signal.SIGINT, before)
