"""Build one side's models, run them, and list the tensors that they hold.

Runs in workers of its own: a forward may leave traces in modules and classes, and no case may see
them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import errors, tensors
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.probe import digests, scanning

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_tritonverify.execution.running import Side
    from pytest_tritonverify.execution.wire import Message

# A tensor that is larger is compared by its digest alone.
MOST_SHOWN_BYTES = 128 << 20
# torch says this where a forward differentiates inside itself and gradients are switched off.
_NEEDS_AUTOGRAD = "does not require grad"
_REASON = 500


class Models:
    """Builds one side's models and looks into them.

    Args:
        side: what is built, and where.
        module: the file's module.
        folder: where its author's files are.
        module_level: chooses what of the file's top level counts, given model and module.
    """

    def __init__(
        self,
        side: Side,
        module: Any,
        folder: Path,
        module_level: Callable[[Any, Any], dict[str, Any]],
    ) -> None:
        self._side = side
        self._module = module
        self._folder = folder
        self._module_level = module_level

    def build(self, case: Message, fd: int | None) -> Any:
        """Return a new model, from the seed that every model is built from."""
        side = self._side
        side.phase.enter("inputs")
        init = _arguments(tensors.unpack(case["init"], fd))
        side.phase.enter("build")
        side.device.seed()
        model = side.model_class(*init.args, **(init.kwargs or {}))
        return model.to(side.place.name) if isinstance(model, torch.nn.Module) else model

    def call_of(
        self, case: Message, fd: int | None, change: Callable[[Arguments], object] | None = None
    ) -> Arguments:
        """Return a fresh copy of a case's inputs.

        Args:
            case: the packed inputs and constructor arguments.
            fd: their memory file.
            change: changes them in place, while they are on the CPU.
        """
        place = self._side.place.name
        if change is None:
            return _arguments(tensors.unpack(case["call"], fd, place))
        call = _arguments(tensors.unpack(case["call"], fd))
        change(call)
        if place == "cpu":
            return call
        packed = tensors.pack({"args": list(call.args), "kwargs": call.kwargs}, keep_layout=True)
        try:
            return _arguments(tensors.unpack(packed.spec, packed.fd, place))
        finally:
            packed.close()

    def forward(self, model: Any, call: Arguments, *, differentiable: bool = False) -> None:
        """Run a model for what it leaves behind.

        Raises:
            Exception: whatever the model raises.
        """
        side = self._side
        side.phase.enter("forward")
        side.device.seed()
        run = model if callable(model) else model.forward
        with torch.set_grad_enabled(differentiable):
            run(*call.args, **(call.kwargs or {}))
        side.place.synchronize()

    def warm_up(self, model: Any, case: Message, fd: int | None) -> tuple[Any, str | None]:
        """Run a new model once, and swallow what it raises.

        Returns:
            The model that was run, and in words what the run raised.
        """
        try:
            self.forward(model, self.call_of(case, fd))
        except RuntimeError as error:
            text = errors.message_of(error)
            if _NEEDS_AUTOGRAD not in text:
                return model, reason(error)
            model = self.build(case, fd)
            try:
                self.forward(model, self.call_of(case, fd), differentiable=True)
            except Exception as second:  # noqa: BLE001 - user code
                return model, reason(second)
        except Exception as error:  # noqa: BLE001 - user code
            return model, reason(error)
        return model, None

    def look(self, model: Any) -> scanning.Found:
        """Find the tensors that a model holds now."""
        self._side.phase.enter("probe")
        level = self._module_level(model, self._module)
        return scanning.scan(model, self._folder, level)

    def pick(
        self, case: Message, fd: int | None, names: Sequence[str], *, run: bool
    ) -> tuple[dict[str, Any], int]:
        """Pack tensors of a new model by their names, those that aren't too large to be shown.

        Args:
            case: the packed inputs and constructor arguments.
            fd: their memory file.
            names: which tensors.
            run: show them as the first forward leaves them.
        """
        model = self.build(case, fd)
        if run:
            model, _ = self.warm_up(model, case, fd)
        held = self.look(model).tensors
        shown = {}
        for name in names:
            with contextlib.suppress(Exception):  # tensors without plain memory
                bare = digests.plain(held[name].tensor)
                if bare.numel() * bare.element_size() <= MOST_SHOWN_BYTES:
                    shown[name] = bare.to_dense() if bare.layout is not torch.strided else bare
        self._side.phase.enter("transfer")
        packed = tensors.pack(shown, keep_layout=False)
        return {"tensors": packed.spec}, packed.fd


def inventory(found: scanning.Found, extra: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what was found in the form in which it travels.

    Args:
        found: tensors and sequences.
        extra: further facts by name.
    """
    # Shared tensors, and views of the same memory, are digested once.
    known: dict[tuple[Any, ...] | int, dict[str, Any]] = {}
    listed = []
    for name, held in found.tensors.items():
        key = _identity(held.tensor)
        if key not in known:
            known[key] = digests.facts(held.tensor)
        listed.append([name, {**known[key], "registered": held.registered, **extra.get(name, {})}])
    return {
        "tensors": listed,
        "sequences": [[name, length] for name, length in found.sequences.items()],
        "truncated": found.truncated,
    }


def _identity(tensor: torch.Tensor) -> tuple[Any, ...] | int:
    """Return what two tensors have in common that are the same values of the same memory."""
    try:
        bare = digests.plain(tensor)
        storage = bare.untyped_storage()._cdata
        views = (bare.is_conj(), bare.is_neg())
        return (storage, bare.dtype, bare.shape, bare.stride(), bare.storage_offset(), *views)
    except Exception:  # noqa: BLE001 - tensors without plain memory
        return id(tensor)


def reason(error: BaseException) -> str:
    """Say in one line what was raised."""
    text = f"{errors.type_name(error)}: {errors.message_of(error)}"
    return errors.clip(text.partition("\n")[0], _REASON)


def _arguments(tree: dict[str, Any]) -> Arguments:
    return Arguments(tuple(tree["args"]), dict(tree["kwargs"]))
