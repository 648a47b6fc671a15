"""Run a reference in another precision than its own, whatever it says about dtypes."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_COMPLEX = {torch.float64: torch.complex128, torch.float32: torch.complex64}
_CASTS = ("float", "half", "bfloat16", "double", "cfloat", "cdouble", "chalf")


class Lift(TorchFunctionMode):
    """Makes every floating-point number that a model computes with one of a given precision.

    A model may name dtypes: `x.float()`, `.to(torch.float16)`, `torch.zeros(n, dtype=...)`. Each
    floating-point or complex dtype that is handed to torch is replaced, so that nothing is
    rounded to less and nothing mixes.

    Args:
        dtype: float64 or float32.
    """

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self._dtype = dtype

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call a function with other dtypes."""
        name = getattr(func, "__name__", "")
        if name in _CASTS and args and isinstance(args[0], torch.Tensor):
            tensor = args[0]
            complex_ = tensor.is_complex() or name.startswith("c")
            return tensor.to(self._complex if complex_ else self._dtype)
        given = {key: self._other(value) for key, value in (kwargs or {}).items()}
        return func(*(self._other(value) for value in args), **given)

    @property
    def _complex(self) -> torch.dtype:
        return _COMPLEX[self._dtype]

    def _other(self, value: Any) -> Any:
        if not isinstance(value, torch.dtype):
            return value
        if value.is_complex:
            return self._complex
        return self._dtype if value.is_floating_point else value

    def lifted(self, value: Any) -> Any:
        """Return arguments with their floating-point tensors in the precision, others as is."""
        if isinstance(value, torch.Tensor):
            inexact = value.is_complex() or value.is_floating_point()
            return value.to(self._other(value.dtype)) if inexact else value
        if isinstance(value, (list, tuple)):
            items = [self.lifted(item) for item in value]
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if isinstance(value, dict):
            return {key: self.lifted(item) for key, item in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = [field.name for field in dataclasses.fields(value) if field.init]
            members = {name: self.lifted(getattr(value, name)) for name in fields}
            return dataclasses.replace(value, **members)
        return value

    def lift_model(self, model: Any) -> None:
        """Turn a model's parameters, buffers and tensor attributes into the precision."""
        parts = model.modules() if isinstance(model, torch.nn.Module) else (model,)
        for part in parts:
            if isinstance(part, torch.nn.Module):
                _replace_state(part, self.lifted)
            for name, value in list(getattr(part, "__dict__", {}).items()):
                if not name.startswith("_") or isinstance(value, torch.Tensor):
                    changed = self.lifted(value) if _holds_tensors(value) else value
                    if changed is not value:
                        setattr(part, name, changed)

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Run what is inside in the precision."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(self._dtype)
        try:
            with self:
                yield
        finally:
            torch.set_default_dtype(before)


def _replace_state(module: torch.nn.Module, change: Callable[[Any], Any]) -> None:
    """Replace a module's own parameters and buffers."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        changed = torch.nn.Parameter(change(parameter.detach()), parameter.requires_grad)
        module.register_parameter(name, changed)
    for name, buffer in list(module.named_buffers(recurse=False)):
        setattr(module, name, change(buffer))


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_tensors(item) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, torch.Tensor)
