"""Which of torch's operators a forward issues, from which line, and on what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from pytest_tritonverify.evidence import operators
from pytest_tritonverify.execution.dispatching import without_compiler
from pytest_tritonverify.observing import places

if TYPE_CHECKING:
    from pytest_tritonverify.observing.provenance import Ledger

_MOST_OPERATORS = 2000
_NONE: frozenset[str] = frozenset()
# Name, file and line, what it depends on, whether it reorders, whether it runs on the device.
_Key: TypeAlias = tuple[str, "str | None", int, frozenset[str], bool, bool]


@without_compiler
class Census(TorchDispatchMode):
    """Records operators while it is active in this thread.

    Args:
        folder: the implementation's folder, with a separator at its end.
        ledger: follows the storages that operators read and write; None where nobody asks.
        given: the tensors that were passed in, whose copies reorder nothing.
    """

    def __init__(
        self, folder: str, ledger: Ledger | None = None, given: tuple[torch.Tensor, ...] = ()
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch gives it no types
        self._folder = folder
        self._ledger = ledger
        self._given = {_geometry(tensor) for tensor in given}
        self._counts: dict[_Key, int] = {}

    def recorded(self) -> list[dict[str, Any]]:
        """Return the distinct operators as plain data, in order."""
        return [
            {
                "name": name,
                "file": file,
                "line": line,
                "on": sorted(marks),
                "reorders": reorders,
                "on_device": on_device,
                "count": count,
            }
            for (name, file, line, marks, reorders, on_device), count in self._counts.items()
        ]

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Record an operator and run it."""
        kwargs = kwargs or {}
        kind = operators.kind(str(func))
        if kind == operators.PARTED or _is_composite(func):
            # Under inference mode operators that consist of others come in one piece.
            with self:
                made = func.decompose(*args, **kwargs)
            if made is not NotImplemented:
                return made
        inner = _written_in_python(func)
        if inner is not None:
            # An operator that user code has registered: what it consists of counts.
            with self:
                return inner(*args, **kwargs)
        name, place = str(func), places.user_line(self._folder)
        read = list(places.tensors_in((args, kwargs)))
        # Of a tensor that only says how much memory is wanted, no value is read.
        marks = self._read(read, name, place, kind) if not operators.makes_memory(name) else _NONE
        self._count((name, *place, marks, self._reorders(name, read), _on_device(read)))
        result = func(*args, **kwargs)
        if self._ledger is not None:
            self._follow(_written(func, args, kwargs), result, marks)
        return result

    def _read(
        self, read: list[torch.Tensor], name: str, place: tuple[str | None, int], kind: str
    ) -> frozenset[str]:
        """Check what an operator is going to read, and return what that may depend on."""
        marks = _NONE
        if self._ledger is not None:
            for tensor in read:
                if kind != operators.VIEW or not self._ledger.known(tensor):
                    self._ledger.check(tensor, f"the operator {name}", place)
                marks |= self._ledger.marks(tensor)
        return marks

    def _follow(self, written: list[torch.Tensor], result: Any, marks: frozenset[str]) -> None:
        assert self._ledger is not None  # noqa: S101 - the caller asked
        for tensor in written:
            self._ledger.explain(tensor, marks)
        for tensor in places.tensors_in(result):
            if not self._ledger.known(tensor):
                self._ledger.explain(tensor, marks)

    def _count(self, key: _Key) -> None:
        if key in self._counts or len(self._counts) < _MOST_OPERATORS:
            self._counts[key] = self._counts.get(key, 0) + 1

    def _reorders(self, name: str, read: list[torch.Tensor]) -> bool:
        """Whether an operator copies a view that user code made, in another order."""
        if operators.plain_name(name) not in operators.COPIES or not read:
            return False
        source = read[-1]
        try:
            return not source.is_contiguous() and _geometry(source) not in self._given
        except (NotImplementedError, RuntimeError):
            return False


def _on_device(read: list[torch.Tensor]) -> bool:
    """Whether a kernel of the device is needed for what an operator reads."""
    return bool(read) and all(t.device.type != "cpu" and t.numel() for t in read)


def _written(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Return the tensors that an operator writes to, by its own description."""
    schema = func._schema  # noqa: SLF001 - the operator's own description
    if not schema.is_mutable:
        return []
    written = []
    for index, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            written += list(places.tensors_in(value))
    return written


def _written_in_python(func: Any) -> Any:
    """Return the function behind an operator of `torch.library.custom_op`, if it is one."""
    try:
        from torch._library.custom_ops import OPDEFS

        operator = OPDEFS.get(func.name().partition(".")[0])
    except (AttributeError, ImportError):
        return None
    return getattr(operator, "_init_fn", None)


def _is_composite(func: Any) -> bool:
    try:
        return bool(
            torch._C._dispatch_has_kernel_for_dispatch_key(  # noqa: SLF001 - there is no other way
                func.name(), "CompositeImplicitAutograd"
            )
        )
    except (AttributeError, RuntimeError):
        return False


def _geometry(tensor: torch.Tensor) -> tuple[Any, ...]:
    storage = places.storage_of(tensor)
    identity = None if storage is None else storage._cdata
    try:
        return identity, tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
    except (NotImplementedError, RuntimeError):
        return identity, 0, (), ()
