"""Signals that ask pytest to end: each ends a run in good order, and none ends its last steps."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_ENDING = (signal.SIGINT, signal.SIGTERM)


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


class Termination:
    """Ends a run in good order where the system would end the process at once.

    Args:
        end: what to do when SIGTERM arrives.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self.asked = False
        self._end = end
        # Whoever has made arrangements of their own keeps them.
        self._ours = (
            _of_python(signal.SIGTERM) and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        )
        if self._ours:
            signal.signal(signal.SIGTERM, self._arrived)

    def _arrived(self, _number: int, _frame: Any) -> None:
        self.asked = True
        self._end()

    def forget(self) -> None:
        """Let the system end the process again."""
        if self._ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._ours = False
