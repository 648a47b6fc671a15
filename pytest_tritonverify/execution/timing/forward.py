"""One side's model and inputs, ready to be called many times."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import errors, running, tensors
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.execution.timing import sets
from pytest_tritonverify.execution.timing.rotation import Rotation
from pytest_tritonverify.execution.timing.taking import seized, taken

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pytest_tritonverify.execution.wire import Message


class Forward:
    """A model, the inputs that take turns, and the outputs that are kept for the judge.

    Args:
        side: what runs, and where.
        packed: the description of its inputs, as `sets.described` makes it.
        fd: their memory file.
    """

    def __init__(self, side: running.Side, packed: Message, fd: int | None) -> None:
        self._side = side
        self._packed = packed
        self._fd = fd
        self._differentiable = False
        self._call = Arguments()
        self._model: Any = None
        self._rotation: Rotation | None = None
        self._welcome: frozenset[int] = frozenset()
        self._room = 0
        self._primed: Any = None
        self.kept: dict[int, tensors.Packed] = {}

    @property
    def side(self) -> running.Side:
        """What runs, and where."""
        return self._side

    def prime(self) -> None:
        """Build the model and call it once, which compiles and tunes whatever needs it.

        Only one set of inputs is there yet, so that memory in use is the side's own.
        """
        self._rotate(1)
        self._build()
        try:
            self._attempt()
        except RuntimeError as error:
            if running.NEEDS_AUTOGRAD not in errors.message_of(error):
                raise
            self._differentiable = True
            self._build()
            self._attempt()
        self._side.place.synchronize()
        # What the first one takes is no part of a timed loop.
        self.keep(0, self._primed)
        self._primed = None
        self.drop()

    def load(self) -> None:
        """Bring in all sets of inputs."""
        self._rotation = None
        self._call = Arguments()
        self._rotate(len(self._packed["sets"]))

    def _rotate(self, count: int) -> None:
        calls = [sets.case_of(self._packed, number)["call"] for number in range(count)]
        turning = self._packed["turning"]
        self._rotation = Rotation(calls, self._fd, self._side.place.name, turning)

    def _build(self) -> None:
        self._side.phase.enter("build")
        init = tensors.unpack(sets.case_of(self._packed, 0)["init"], self._fd)
        self._side.device.seed()
        model = self._side.model_class(*init["args"], **init["kwargs"])
        if isinstance(model, torch.nn.Module):
            model = model.to(self._side.place.name)
        self._model = model if callable(model) else model.forward

    def _attempt(self) -> None:
        self._side.phase.enter("forward")
        with self.graded():
            self.turn(0)
            self._primed = self.call()

    @contextlib.contextmanager
    def graded(self) -> Iterator[None]:
        """Switch gradients off, but for a model that differentiates inside itself."""
        with torch.set_grad_enabled(self._differentiable):
            yield

    def turn(self, number: int) -> None:
        """Prepare a call, outside of its time: inputs of the set whose turn it is, and the seed."""
        assert self._rotation is not None  # noqa: S101 - `prime` comes first
        # Before the inputs: it goes through functions that user code may have replaced.
        self._side.device.seed()
        self._call = self._rotation.turn(number)

    def call(self) -> Any:
        """Run the forward, and take apart what it returns: looking into it belongs to its time."""
        return taken(self._model(*self._call.args, **(self._call.kwargs or {})))

    def welcome(self, numbers: Sequence[int], room: int) -> None:
        """Name calls whose outputs are kept only while all of theirs take at most `room` bytes."""
        self._welcome = frozenset(numbers)
        self._room = room

    def keep(self, number: int, outputs: Any) -> None:
        """Keep the outputs of a timed call as they are now.

        To be called before anything waits for the device: what the forward has left to a thread
        or another stream is missing then.
        """
        if number in self._welcome and self._room <= 0:
            return
        copies = seized(outputs)
        pristine = tensors.unpack(sets.case_of(self._packed, number)["call"], self._fd)
        before = Arguments(tuple(pristine["args"]), dict(pristine["kwargs"]))
        changed = running.changed_inputs(before, self._call)
        result = {"outputs": copies, "changed": changed}
        packed = self.kept[number] = tensors.pack(result, keep_layout=False)
        if number in self._welcome:
            self._room -= sum(size for _, size in packed.spec["segments"])

    def drop(self, numbers: Sequence[int] = ()) -> None:
        """Forget kept outputs, all of them by default."""
        for number in numbers or list(self.kept):
            self.kept.pop(number).close()
