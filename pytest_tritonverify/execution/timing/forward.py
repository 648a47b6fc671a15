"""One side's model and inputs, ready to be called many times."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import errors, running, tensors
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.execution.timing import sets
from pytest_tritonverify.execution.timing.rotation import Rotation

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

    def load(self) -> None:
        """Bring in all sets of inputs."""
        self._rotation = None
        self._call = Arguments()
        self._rotate(len(self._packed["sets"]))

    def _rotate(self, count: int) -> None:
        calls = [sets.case_of(self._packed, number)["call"] for number in range(count)]
        self._rotation = Rotation(calls, self._fd, self._side.place.name)

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
            self.call()

    @contextlib.contextmanager
    def graded(self) -> Iterator[None]:
        """Switch gradients off, but for a model that differentiates inside itself."""
        with torch.set_grad_enabled(self._differentiable):
            yield

    def turn(self, number: int) -> None:
        """Prepare a call, outside of its time: inputs of the set whose turn it is, and the seed."""
        assert self._rotation is not None  # noqa: S101 - `prime` comes first
        self._call = self._rotation.turn(number)
        self._side.device.seed()

    def call(self) -> Any:
        """Run the forward."""
        return self._model(*self._call.args, **(self._call.kwargs or {}))

    def keep(self, number: int, outputs: Any) -> None:
        """Keep the outputs of a timed call as they are now.

        To be called before anything waits for the device: what the forward has left to a thread
        or another stream is missing then.
        """
        seized = _seized(outputs)
        pristine = tensors.unpack(sets.case_of(self._packed, number)["call"], self._fd)
        before = Arguments(tuple(pristine["args"]), dict(pristine["kwargs"]))
        changed = running.changed_inputs(before, self._call)
        result = {"outputs": seized, "changed": changed}
        self.kept[number] = tensors.pack(result, keep_layout=False)

    def drop(self, numbers: Sequence[int] = ()) -> None:
        """Forget kept outputs, all of them by default."""
        for number in numbers or list(self.kept):
            self.kept.pop(number).close()


def _seized(value: Any) -> Any:
    """Return outputs with copies of their tensors, made in the order of the current stream.

    Subclasses of tensors stay as they are, as copying one might run code that was put off; packing
    refuses them.
    """
    if type(value) in (torch.Tensor, torch.nn.Parameter):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _seized(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_seized(item) for item in value))
    if type(value) in (list, tuple):
        return type(value)(_seized(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        copied = copy.copy(value)
        for field in dataclasses.fields(value):
            object.__setattr__(copied, field.name, _seized(getattr(value, field.name)))
        return copied
    return value
