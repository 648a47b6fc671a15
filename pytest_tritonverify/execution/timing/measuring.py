"""What a worker does when it is asked to measure one case."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution.timing import memory
from pytest_tritonverify.execution.timing.forward import Forward
from pytest_tritonverify.execution.timing.timers import Plan, Timer, timer_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_tritonverify.execution.running import Side
    from pytest_tritonverify.execution.wire import Message


class Measurer:
    """Measures cases of one side, and hands out the outputs that it kept.

    To be made before user code is imported: timers bind their clocks then.

    Args:
        device: name of the device on which both sides run.
    """

    def __init__(self, device: str) -> None:
        self._timer: Timer = timer_of(device)
        self._forward: Forward | None = None

    def measure(
        self, load: Callable[[], Side], request: Message, fd: int | None
    ) -> tuple[dict[str, Any], None]:
        """Time a case.

        Args:
            load: imports the user's code and says what runs where.
            request: the description of the inputs, as `sets.described` makes it, with `warmup`,
                `repeats`, `kept`, the numbers of timed forwards whose outputs the judge will ask
                for, and `welcome`, the numbers of others whose outputs are kept as long as all of
                these take at most `room` bytes.
            fd: the memory file of the inputs.

        Returns:
            `timing`, with the fields of `Timing`, `peak_memory_mb`, and `kept`, the numbers of the
            forwards whose outputs there are.
        """
        self.forget()
        side = load()
        forward = self._forward = Forward(side, request, fd)
        forward.prime()
        peak_mb, peak_note = memory.peak(forward)
        forward.load()
        forward.welcome(request["welcome"], request["room"])
        plan = Plan(
            warmup=request["warmup"],
            repeats=request["repeats"],
            kept=frozenset((*request["kept"], *request["welcome"])),
            entered=side.phase.enter,
        )
        with forward.graded():
            timing = self._timer.measure(forward, plan)
        notes = [*timing.notes, *([peak_note] if peak_note else [])]
        found = {**timing.to_json(), "notes": notes}
        return {"timing": found, "peak_memory_mb": peak_mb, "kept": sorted(forward.kept)}, None

    def kept(self, number: int) -> tuple[dict[str, Any], int]:
        """Hand out the outputs of a timed forward, once.

        Raises:
            LookupError: they were not kept.
        """
        if self._forward is None or number not in self._forward.kept:
            raise LookupError(f"the outputs of forward {number} were not kept")
        packed = self._forward.kept.pop(number)
        return {"result": packed.spec}, packed.fd

    def forget(self) -> None:
        """Free what the last case took."""
        if self._forward is None:
            return
        place = self._forward.side.place
        self._forward.drop()
        self._forward = None
        gc.collect()
        place.release()
