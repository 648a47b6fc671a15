"""Modes of torch's dispatcher leave torch's compiler alone until somebody else has imported it."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pytest_tritonverify.execution.dispatching import without_compiler

if TYPE_CHECKING:
    import pytest


@without_compiler
class Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch gives it no types
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def noted() -> list[str]:
    x = torch.arange(4.0)
    with Noting() as mode:
        assert (x + 1).tolist() == [1, 2, 3, 4]
    return [name for name in mode.seen if "add" in name]


def test_a_mode_needs_no_compiler_and_works_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nobody can import it so.
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    assert noted() == ["aten.add.Tensor"]
    monkeypatch.undo()
    importlib.import_module("torch._dynamo")
    assert noted() == noted() == ["aten.add.Tensor"]
