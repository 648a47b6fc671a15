"""Which operators a reference consists of, measured as those of an implementation are."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.execution import running
from pytest_tritonverify.execution.task import Arguments
from pytest_tritonverify.observing.census import Census
from pytest_tritonverify.observing.provenance import INPUT, Ledger

if TYPE_CHECKING:
    from pytest_tritonverify.execution.wire import Message


def operators_of(side: running.Side, case: Message, fd: int | None) -> dict[str, Any]:
    """Run a reference once under the recorder of operators.

    Returns:
        `operators` as plain data, and `pure`: torch's operators are all that it consists of.
    """
    told: dict[str, Any] = {}

    def make(*args: Any, **kwargs: Any) -> Any:
        model = side.model_class(*args, **kwargs)
        if isinstance(model, torch.nn.Module):
            model = model.to(side.place.name)

        def call(*args: Any, **kwargs: Any) -> Any:
            keyed = Arguments(args, kwargs).keyed()
            given = tuple(tensor for _, tensor in running.tensor_leaves(keyed, "input"))
            ledger = Ledger()
            ledger.know(given, INPUT)
            census = Census(os.sep, ledger, given)
            with census:
                outputs = (model if callable(model) else model.forward)(*args, **kwargs)
            for path, tensor in running.tensor_leaves(outputs, "output"):
                ledger.check(tensor, path, (None, 0))
            writes = any(event["kind"] == "write" for event in ledger.events)
            foreign = any(event["where"].startswith("output") for event in ledger.events)
            told.update(operators=census.recorded(), pure=not (writes or foreign))
            return outputs

        return call

    _, result = running.run_case(dataclasses.replace(side, model_class=make), case, fd)
    os.close(result)
    return told
