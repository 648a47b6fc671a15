"""A second call of the same model: whether a reference carries anything over from its first one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import running, tensors
from pytest_tritonverify.execution.task import Arguments

if TYPE_CHECKING:
    from pytest_tritonverify.execution.running import Side


def second_call(
    side: Side, init: Arguments, first: Arguments, second: Arguments
) -> tuple[dict[str, Any], int]:
    """Build a model from seed 0, call it twice, and pack what the second call leaves behind.

    Args:
        side: what runs, and where.
        init: the constructor arguments.
        first: the arguments of the first call.
        second: those of the second one.

    Returns:
        The same as `running.run_case`.
    """
    side.phase.enter("build")
    side.device.seed()
    model = side.model_class(*init.args, **(init.kwargs or {}))
    if isinstance(model, torch.nn.Module):
        model = model.to(side.place.name)
    run = model if callable(model) else model.forward
    side.phase.enter("forward")
    before = tensors.pack(
        {"args": list(second.args), "kwargs": second.kwargs or {}}, keep_layout=True
    )
    try:
        tree = tensors.unpack(before.spec, before.fd)
    finally:
        before.close()
    pristine = Arguments(tuple(tree["args"]), dict(tree["kwargs"]))
    with torch.no_grad():
        side.device.seed()
        run(*first.args, **(first.kwargs or {}))
        side.device.seed()
        outputs = run(*second.args, **(second.kwargs or {}))
    changed = running.changed_inputs(pristine, second)
    packed = tensors.pack({"outputs": outputs, "changed": changed}, keep_layout=False)
    return {"result": packed.spec}, packed.fd
