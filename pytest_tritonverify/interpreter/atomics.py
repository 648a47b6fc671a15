"""Atomic operations on formats that the interpreter's C++ does not know."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_tritonverify.interpreter import bounds
from pytest_tritonverify.interpreter.formats import Array, bits_of, convert, is_carrier, widen
from pytest_tritonverify.interpreter.patching import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    _Combine = Callable[[Array, Array], Array]

HOOKS = ("create_atomic_cas", "create_atomic_rmw")

_COMBINE: dict[str, _Combine] = {
    "ADD": np.add,
    "FADD": np.add,
    "MAX": np.fmax,
    "MIN": np.fmin,
    "XCHG": lambda _old, new: new,
}


def install(interpreter: Any) -> None:
    """Correct read-modify-write and compare-and-swap for carriers.

    What the version's C++ refuses for numpy's own float types is emulated too: additions of
    float16 in some, exchanges of any of them in all.
    """
    handle, language = interpreter.TensorHandle, interpreter.tl
    builder = interpreter.InterpreterBuilder

    def make_rmw(original: Any) -> Any:
        names = {getattr(interpreter._ir.ATOMIC_OP, n): n for n in _COMBINE}  # noqa: SLF001 - the module is what is corrected

        @functools.cache
        def known(op: Any, dtype: Any) -> bool:
            return _computes(interpreter, original, op, dtype, _COMBINE[names[op]])

        def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *args: Any) -> Any:
            ours = is_carrier(val.data) or val.data.dtype.kind == "f"
            if op not in names or not ours or known(op, val.data.dtype):
                return original(self, op, ptr, val, mask, *args)
            memory = interpreter._interpreter  # noqa: SLF001 - as above
            old = _in_turn(memory, ptr.data, val.data, mask.data, _COMBINE[names[op]])
            return handle(old, val.dtype.scalar)

        return create_atomic_rmw

    def make_cas(original: Any) -> Any:
        def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, *args: Any) -> Any:
            if not is_carrier(val.data):
                return original(self, ptr, cmp, val, *args)
            bits = bits_of(val.data.dtype)
            kind = language.uint16 if bits.itemsize == 2 else language.uint8  # noqa: PLR2004 - bytes
            patterns = (handle(x.data.view(bits), kind) for x in (cmp, val))
            old = original(self, ptr, *patterns, *args)
            return handle(old.data.view(val.data.dtype), val.dtype.scalar)

        return create_atomic_cas

    replace(builder, "create_atomic_rmw", make_rmw)
    replace(builder, "create_atomic_cas", make_cas)


def _computes(interpreter: Any, original: Any, op: Any, dtype: Any, combine: _Combine) -> bool:
    """Try whether the C++ knows an operation on a type."""
    number, operand = np.array([1.5], np.float32).astype(dtype), np.array([2.5]).astype(dtype)
    if is_carrier(number):
        return False
    wanted = combine(number, operand)
    handle, language = interpreter.TensorHandle, interpreter.tl
    kind = getattr(language, dtype.name)
    address = np.array([number.ctypes.data], np.uint64)
    try:
        with bounds.unwatched():
            original(
                interpreter.InterpreterBuilder(),
                op,
                handle(address, language.pointer_type(kind)),
                handle(operand, kind),
                handle(np.ones(1, np.bool_), language.int1),
                interpreter._ir.MEM_SEMANTIC.ACQUIRE_RELEASE,  # noqa: SLF001 - the module is what is probed
                None,
            )
    except Exception:  # noqa: BLE001 - pybind raises whatever C++ threw
        return False
    return bool(number[0] == wanted[0])


def _in_turn(
    memory: Any,
    addresses: Array,
    values: Array,
    active: Array,
    combine: _Combine,
) -> Array:
    """Update each lane's number in memory; lanes that share an address follow one another.

    Returns:
        What the lanes found, in the shape of the block; zero in lanes that are masked off.
    """
    addresses, values, active = np.broadcast_arrays(addresses, values, active)
    found = np.zeros(addresses.shape, values.dtype)
    before = np.zeros(np.count_nonzero(active), values.dtype)
    where, what = addresses[active], values[active]
    stored = np.dtype(f"u{values.dtype.itemsize}") if is_carrier(values) else values.dtype
    for lanes in _turns(where):
        at, every = where[lanes], np.ones(len(lanes), np.bool_)
        raw = memory.load(at, every, np.zeros(len(lanes), stored), stored)
        before[lanes] = raw.view(values.dtype)
        wide = combine(widen(before[lanes]), widen(what[lanes]))
        memory.store(at, convert(wide, values.dtype).view(stored), every)
    found[active] = before
    return found


def _turns(addresses: Array) -> list[Array]:
    """Split lanes into rounds in which every address occurs once, keeping the lanes' order."""
    if not addresses.size:
        return []
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    first = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    turn = np.arange(len(order)) - np.repeat(first, np.diff(np.r_[first, len(order)]))
    by_turn = np.argsort(turn, kind="stable")
    return np.split(order[by_turn], np.cumsum(np.bincount(turn))[:-1])
