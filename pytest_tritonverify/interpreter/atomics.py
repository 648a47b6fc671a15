"""Atomic operations on formats that the interpreter's C++ does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_tritonverify.interpreter.formats import Array, bits_of, convert, is_carrier, widen
from pytest_tritonverify.interpreter.patching import replace

if TYPE_CHECKING:
    from collections.abc import Callable

HOOKS = ("create_atomic_cas", "create_atomic_rmw")

_COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "ADD": np.add,
    "FADD": np.add,
    "MAX": np.fmax,
    "MIN": np.fmin,
    "XCHG": lambda _old, new: new,
}


def install(interpreter: Any) -> None:
    """Correct read-modify-write and compare-and-swap for carriers.

    float16 is emulated too where the version's C++ refuses it.
    """
    handle, language = interpreter.TensorHandle, interpreter.tl
    builder = interpreter.InterpreterBuilder
    emulated_half = not _adds_halves(interpreter)

    def make_rmw(original: Any) -> Any:
        names = {getattr(interpreter._ir.ATOMIC_OP, n): n for n in _COMBINE}  # noqa: SLF001 - the module is what is corrected

        def create_atomic_rmw(self: Any, op: Any, ptr: Any, val: Any, mask: Any, *args: Any) -> Any:
            half = emulated_half and val.data.dtype == np.float16
            if op not in names or not (half or is_carrier(val.data)):
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


def _adds_halves(interpreter: Any) -> bool:
    """Try whether an atomic addition of float16 works: some versions lack it."""
    handle, language = interpreter.TensorHandle, interpreter.tl
    number = np.ones(1, np.float16)
    address = handle(
        np.array([number.ctypes.data], np.uint64), language.pointer_type(language.float16)
    )
    arguments = (
        interpreter._ir.ATOMIC_OP.FADD,  # noqa: SLF001 - the module is what is probed
        address,
        handle(np.ones(1, np.float16), language.float16),
        handle(np.ones(1, np.bool_), language.int1),
        interpreter._ir.MEM_SEMANTIC.ACQUIRE_RELEASE,  # noqa: SLF001 - as above
        None,
    )
    try:
        interpreter.InterpreterBuilder().create_atomic_rmw(*arguments)
    except Exception:  # noqa: BLE001 - pybind raises whatever C++ threw
        return False
    return float(number[0]) == 2.0  # noqa: PLR2004 - 1 + 1


def _in_turn(
    memory: Any,
    addresses: Array,
    values: Array,
    active: Array,
    combine: Callable[[Array, Array], Array],
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
