"""Build a model and run it once, the same way for references and implementations."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import errors, tensors
from pytest_tritonverify.execution.task import Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pytest_tritonverify.execution.devices import Device
    from pytest_tritonverify.execution.guard_bands import Bands
    from pytest_tritonverify.execution.precise import Lift
    from pytest_tritonverify.execution.wire import Message
    from pytest_tritonverify.execution.worker import Phase

# torch says this where a forward differentiates inside itself and gradients are switched off.
NEEDS_AUTOGRAD = "does not require grad"
# How packing names what stands below these keys of a result.
_OUTPUTS, _CHANGED = "['outputs']", "['changed']"


@dataclass(frozen=True)
class Side:
    """What runs, and where.

    Attributes:
        model_class: `Model` or `ModelNew`.
        place: the device of the run ("cpu" for a golden on a machine with an accelerator).
        device: the session's device, whose generators are seeded too.
        phase: where to report progress.
        lift: runs the model in another precision than its own, where it is given.
        bands: guard the inputs and fresh memory, where they are given.
        around: surrounds the forward.
    """

    model_class: Any
    place: Device
    device: Device
    phase: Phase
    lift: Lift | None = None
    bands: Bands | None = None
    around: Callable[[], AbstractContextManager[Any]] = contextlib.nullcontext


def run_case(side: Side, case: Message, fd: int | None) -> tuple[dict[str, Any], int]:
    """Build the model from seed 0 and run one forward on a fresh copy of the inputs.

    Args:
        side: what runs, and where.
        case: the packed inputs and constructor arguments, as the reference worker made them.
        fd: their memory file.

    Returns:
        The packed `outputs` and `changed` (the tensor inputs that the forward changed, by
        path), `views`, the paths of outputs that are memory of an input which was left alone, with
        the `breaches` of guard bands where there are some, and the descriptor of their memory file.
    """
    try:
        call, outputs = _attempt(side, case, fd, differentiable=False)
    except RuntimeError as error:
        if side.phase.name != "forward" or NEEDS_AUTOGRAD not in errors.message_of(error):
            raise
        # The first attempt may have changed its inputs and its model: all of it is made anew.
        call, outputs = _attempt(side, case, fd, differentiable=True)
    side.place.synchronize()
    side.phase.enter("transfer")
    breaches = _breaches(side.bands, call, outputs)
    pristine = _call(side, tensors.unpack(case["call"], fd))
    changed = changed_inputs(pristine, call)
    views = _views(call, changed, outputs)
    packed = pack_result(outputs, changed)
    del call, outputs, changed
    gc.collect()
    side.place.release()
    return {"result": packed.spec, "views": views, **breaches}, packed.fd


def _breaches(bands: Bands | None, call: Arguments, outputs: object) -> dict[str, Any]:
    if bands is None:
        return {}
    named = (*tensor_leaves(call.keyed(), "input"), *tensor_leaves(outputs, "output"))
    try:
        return {"breaches": bands.found(named), "unguarded": bands.problem}
    except RuntimeError as error:
        # The forward is over, and what it launched has ended well: this is the bands' own trouble.
        return {"breaches": [], "unguarded": errors.message_of(error)}
    finally:
        bands.close()


def _attempt(
    side: Side, case: Message, fd: int | None, *, differentiable: bool
) -> tuple[Arguments, object]:
    """Return the inputs as the forward left them, and its outputs."""
    side.phase.enter("inputs")
    move = side.bands.moved if side.bands is not None else None
    call = _call(side, tensors.unpack(case["call"], fd, side.place.name, move))
    init = _arguments(tensors.unpack(case["init"], fd))
    side.phase.enter("build")
    side.device.seed()
    model = side.model_class(*init.args, **(init.kwargs or {}))
    if isinstance(model, torch.nn.Module):
        model = model.to(side.place.name)
    if side.lift is not None:
        side.lift.lift_model(model)
    side.phase.enter("forward")
    run = model if callable(model) else model.forward
    side.device.seed()
    precision = side.lift.forward() if side.lift is not None else contextlib.nullcontext()
    guarded = side.bands.active() if side.bands is not None else contextlib.nullcontext()
    with torch.set_grad_enabled(differentiable), precision, guarded, side.around():
        return call, run(*call.args, **(call.kwargs or {}))


def _views(call: Arguments, changed: dict[str, torch.Tensor], outputs: object) -> list[str]:
    """Return the paths of outputs that show memory of an input that the forward left alone."""
    given = dict(tensor_leaves(call.keyed(), "input"))
    memory = {
        _identity(tensor)
        for path, tensor in given.items()
        if path not in changed and type(tensor) is torch.Tensor
    }
    return [
        path
        for path, tensor in tensor_leaves(outputs, "output")
        # A subclass could run code when it is asked; packing refuses it.
        if type(tensor) is torch.Tensor and _identity(tensor) in memory
    ]


def _identity(tensor: torch.Tensor) -> int | None:
    if tensor.layout is not torch.strided or not tensor.numel():
        return None
    storage: Any = tensor.untyped_storage()
    return int(storage._cdata)


def pack_result(outputs: object, changed: dict[str, torch.Tensor]) -> tensors.Packed:
    """Pack what a forward returned, and the inputs that it changed.

    Raises:
        tensors.UnsupportedValueError: a value has no plain form; the message says where it is.
    """
    try:
        return tensors.pack({"outputs": outputs, "changed": changed}, keep_layout=False)
    except tensors.UnsupportedValueError as error:
        text = str(error)
        if text.startswith(_OUTPUTS):
            text = "output" + text[len(_OUTPUTS) :]
        raise tensors.UnsupportedValueError(text.removeprefix(_CHANGED)) from None


def pack_case(call: Arguments, init: Arguments) -> tuple[dict[str, Any], int]:
    """Pack the inputs and the constructor arguments of one case into one memory file.

    Raises:
        tensors.UnsupportedValueError: a value has no plain form; the message says where it is.
    """
    tree = {
        "call": {"args": list(call.args), "kwargs": call.kwargs or {}},
        "init": {"args": list(init.args), "kwargs": init.kwargs or {}},
    }
    try:
        packed = tensors.pack(tree, keep_layout=True)
    except tensors.UnsupportedValueError as error:
        raise tensors.UnsupportedValueError(_readable(str(error))) from None
    nodes = dict(zip(tree, (node for _, node in packed.spec["tree"]["v"]), strict=True))
    segments = packed.spec["segments"]
    return {name: {"tree": node, "segments": segments} for name, node in nodes.items()}, packed.fd


def _readable(message: str) -> str:
    """Name an argument as its author would, not by its place in the packed tree."""
    for part, name in (("call", "input"), ("init", "init argument")):
        for kind in ("args", "kwargs"):
            message = message.replace(f"['{part}']['{kind}']", name)
    return message


def _call(side: Side, tree: dict[str, Any]) -> Arguments:
    return _arguments(tree if side.lift is None else side.lift.lifted(tree))


def _arguments(tree: dict[str, Any]) -> Arguments:
    return Arguments(tuple(tree["args"]), dict(tree["kwargs"]))


def tensor_leaves(value: object, path: str, depth: int = 0) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors in nested inputs with the path at which each stands.

    Raises:
        tensors.UnsupportedValueError: a container holds itself, or as good as that.
    """
    if depth > tensors.MAX_DEPTH:
        raise tensors.too_deep(path)
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from tensor_leaves(item, f"{path}[{index}]", depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from tensor_leaves(item, tensors.member(path, key), depth + 1)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield from tensor_leaves(getattr(value, field.name), f"{path}.{field.name}", depth + 1)


def changed_inputs(before: Arguments, after: Arguments) -> dict[str, torch.Tensor]:
    """Return the tensor inputs whose bits differ from what was passed in, by path."""
    changed: dict[str, torch.Tensor] = {}
    same_storage: dict[tuple[int, int], bool] = {}
    given, left = (dict(tensor_leaves(side.keyed(), "input")) for side in (before, after))
    for path, old in given.items():
        if path not in left:  # taken out of its list or dict
            continue
        new = left[path]
        key = (old.untyped_storage()._cdata, new.untyped_storage()._cdata)
        if key not in same_storage:
            same_storage[key] = _same_bytes(old.untyped_storage(), new.untyped_storage())
        untouched = same_storage[key] and _geometry(old) == _geometry(new)
        if not untouched and not _same_bits(old, new.detach().cpu()):
            changed[path] = new
    return changed


def _same_bytes(old: torch.UntypedStorage, new: torch.UntypedStorage) -> bool:
    return old.nbytes() == new.nbytes() and torch.equal(
        tensors.storage_bytes(old), tensors.storage_bytes(new)
    )


def _geometry(tensor: torch.Tensor) -> tuple[object, ...]:
    views = (tensor.is_conj(), tensor.is_neg())
    return (tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset(), *views)


def _same_bits(old: torch.Tensor, new: torch.Tensor) -> bool:
    if old.shape != new.shape or old.dtype != new.dtype:
        return False
    return torch.equal(_values_as_bytes(old), _values_as_bytes(new))


def _values_as_bytes(tensor: torch.Tensor) -> torch.Tensor:
    # Not by a view of another dtype: torch refuses it for some strides of a single element.
    plain = tensor.resolve_conj().resolve_neg().contiguous()
    size = plain.element_size()
    flat = torch.empty(0, dtype=torch.uint8, device="cpu")
    return flat.set_(
        plain.untyped_storage(), plain.storage_offset() * size, (plain.numel() * size,), (1,)
    )
