"""Signals that ask pytest to end: each ends a run in good order, and none ends its last steps."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What the system ends a process with of itself: on a wish, and when its terminal is gone.
_FATAL = (signal.SIGTERM, signal.SIGHUP)
_ENDING = (signal.SIGINT, *_FATAL)


def _of_python(number: signal.Signals) -> bool:
    """Say whether this thread may handle a signal, and nothing outside of Python does."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(number) is not None
    )


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let what is done inside come to its end; what arrives meanwhile takes effect afterwards."""
    before: dict[signal.Signals, Any] = {}
    arrived: list[int] = []
    for number in _ENDING:
        if _of_python(number) and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, lambda n, _: arrived.append(n))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            os.kill(os.getpid(), arrived[0])


class Ending:
    """Has a run that is ending already pay no heed to being told so again."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {}

    def begin(self) -> None:
        """Be deaf from now on; may be called again."""
        for number in _ENDING:
            heard = number not in self._before and _of_python(number)
            if heard and signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, lambda *_: None)

    def end(self) -> None:
        """Listen again."""
        while self._before:
            signal.signal(*self._before.popitem())


class Termination:
    """Ends a run in good order where the system would end the process at once.

    Args:
        end: what to do when SIGTERM or SIGHUP arrives; it is told which.
    """

    def __init__(self, end: Callable[[signal.Signals], None]) -> None:
        self.asked: signal.Signals | None = None
        self._end = end
        # Whoever has made arrangements of their own keeps them, as `nohup` does.
        self._ours = [n for n in _FATAL if _of_python(n) and signal.getsignal(n) == signal.SIG_DFL]
        for number in self._ours:
            signal.signal(number, self._arrived)

    def _arrived(self, number: int, _frame: Any) -> None:
        self.asked = signal.Signals(number)
        self._end(self.asked)

    def forget(self) -> None:
        """Let the system end the process again."""
        while self._ours:
            signal.signal(self._ours.pop(), signal.SIG_DFL)
