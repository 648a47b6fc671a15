"""Accesses outside of the tensors that a launch was given.

The interpreter follows any address: a store beyond the end of a tensor changes other data of the
process or crashes it, and a load there finds whatever is there. Here every address is looked up
among the storages of the launch's tensors. One that lies in none of them is led to spare memory
instead: what is stored is lost, what is loaded is poison, and the access is put on record.

Addresses may also come from elsewhere, as where a kernel is handed a table of pointers. A launch
that is handed integers as large as addresses is not looked at.
"""

from __future__ import annotations

import contextlib
import inspect
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from pytest_tritonverify.interpreter import masked_lanes, places
from pytest_tritonverify.interpreter.parallel_memory import Regions, UnknownMemoryError
from pytest_tritonverify.interpreter.patching import missing, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

LOAD, STORE, ATOMIC = "load", "store", "atomic"

_HOOKS = ("GridExecutor", "_interpreter")
_MEMORY_HOOKS = ("load", "store")
_ATOMICS = ("atomic_cas", "atomic_rmw")
# Neither sizes nor indices are as large, and no address is as small.
_LEAST_ADDRESS = 1 << 32
_PLAIN = (bool, int, float, str, type(None))
_MOST_STRAYS = 256


class Stray(TypedDict):
    """Accesses of one line outside of the launch's tensors, all nearest to the same tensor.

    Attributes:
        file: the source file of the kernel.
        line: the line of the access in it, from 1.
        kind: "load", "store" or "atomic".
        tensor: the parameter whose tensor is the nearest one, with dtype and size.
        side: "before" its first byte or "after" its last one.
        lanes: how many lanes were out of bounds, over all programs.
        reach: how many bytes the farthest of them lies, or ends, outside of the tensor.
    """

    file: str
    line: int
    kind: str
    tensor: str
    side: str
    lanes: int
    reach: int


_Key = tuple[str, int, str, str, str]


@dataclass
class _State:
    """What is known of the present launch, and what strayed since the last reset.

    Attributes:
        regions: the launch's storages; None where accesses are not looked at.
        given: its arguments by the names of their parameters.
        strays: number of lanes and farthest reach by place.
        refuse: called instead of keeping a record, where that would be lost.
    """

    regions: Regions | None = None
    given: list[tuple[str, Any]] = field(default_factory=list)
    strays: dict[_Key, tuple[int, int]] = field(default_factory=dict)
    refuse: Callable[[str], None] | None = None


_state = _State()


def reset() -> None:
    """Forget what strayed."""
    _state.strays.clear()


def strays() -> list[Stray]:
    """Return what strayed since the last reset, in order of appearance."""
    return [
        Stray(file=file, line=line, kind=kind, tensor=tensor, side=side, lanes=lanes, reach=reach)
        for (file, line, kind, tensor, side), (lanes, reach) in _state.strays.items()
    ]


def refuse_with(refuse: Callable[[str], None]) -> None:
    """Have a function called at the first stray access of this process, which may raise."""
    _state.refuse = refuse


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Let accesses go anywhere meanwhile: they are not a kernel's."""
    regions, _state.regions = _state.regions, None
    try:
        yield
    finally:
        _state.regions = regions


def within(addresses: NDArray[np.uint64], size: int) -> NDArray[np.bool_]:
    """Return which elements lie in the present launch's tensors: all where nobody looks.

    Args:
        addresses: of the elements.
        size: bytes of an element.
    """
    if _state.regions is None:
        return np.ones(addresses.shape, np.bool_)
    found: NDArray[np.bool_] = ~_beyond(_state.regions, addresses, size)
    return found


def obstacle(interpreter: Any) -> str | None:
    """Say what keeps accesses from being looked at in this version of Triton, if anything."""
    absent = missing(interpreter, _HOOKS)
    if not absent:
        absent = missing(interpreter._interpreter, _MEMORY_HOOKS)  # noqa: SLF001 - the module is what is changed
    return f"its interpreter has no {', '.join(absent)}" if absent else None


def install(interpreter: Any) -> None:
    """Look at the accesses of all launches, without an `obstacle`.

    Every access ends in a function of the interpreter's C++ module, whose stand-in this installs.
    """
    memory = interpreter._interpreter  # noqa: SLF001 - the module is what is changed
    watch = _Watch(memory, places.library_folders(interpreter))
    functions: dict[str, Any] = {LOAD: watch.load, STORE: watch.store}
    for name in _ATOMICS:
        if hasattr(memory, name):
            functions[name] = watch.atomic(name)
    names = {name: value for name, value in vars(memory).items() if not name.startswith("__")}
    interpreter._interpreter = SimpleNamespace(**{**names, **functions})  # noqa: SLF001 - as above
    replace(interpreter.GridExecutor, "__call__", _with_regions)


def _with_regions(original: Any) -> Any:
    """Know the tensors of a launch while it runs."""

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - stands for it
        outer = _state.regions, _state.given
        names = list(inspect.signature(self.fn).parameters)
        _state.given = [*zip(names, args, strict=False), *kwargs.items()]
        _state.regions = _regions_of([value for _, value in _state.given])
        try:
            return original(self, *args, **kwargs)
        finally:
            _state.regions, _state.given = outer

    return __call__


def _regions_of(values: list[Any]) -> Regions | None:
    """Return the storages of a launch's arguments, None where accesses are not to be looked at."""
    try:
        if any(_may_lead_elsewhere(value) for value in values):
            return None
        return Regions.of_arguments(values)
    except UnknownMemoryError:
        return None


def _name_at(start: int) -> str:
    """Say which of the present launch's arguments has its storage at an address."""
    for name, value in _state.given:
        if start in Regions.of_arguments([value]).starts:
            return f"{name}{_described(value)}"
    return "a tensor"


def _may_lead_elsewhere(value: Any) -> bool:
    """Whether a kernel may make addresses of an argument that are not those of its tensors."""
    import torch

    if isinstance(value, torch.Tensor):
        if value.dtype not in (torch.int64, getattr(torch, "uint64", torch.int64)):
            return False
        return _holds_addresses(Regions.of_arguments([value]))
    if isinstance(value, _PLAIN):
        return isinstance(value, int) and value >= _LEAST_ADDRESS
    if isinstance(value, (tuple, list)):
        return any(_may_lead_elsewhere(item) for item in value)
    if hasattr(value, "base"):  # a tensor descriptor, or a tensor under another dtype
        return _may_lead_elsewhere(value.base)
    # A dtype, a constant or a function of the language; or a foreign object with an address.
    return hasattr(value, "data_ptr")


def _holds_addresses(regions: Regions) -> bool:
    """Whether a 64-bit word of some memory may be an address; no operator of torch is called."""
    words = [regions.memory(region) for region in range(len(regions))]
    return any(
        int(part[: part.size // 8 * 8].view(np.int64).max(initial=0)) >= _LEAST_ADDRESS
        for part in words
    )


def _described(value: Any) -> str:
    tensor = getattr(value, "base", value)
    if not hasattr(tensor, "dtype"):
        return ""
    return f" ({tensor.dtype}, shape {list(tensor.shape)})"


class _Watch:
    """Stand-ins for functions of the interpreter's C++ module."""

    def __init__(self, memory: Any, libraries: tuple[str, ...]) -> None:
        self._memory = memory
        self._libraries = libraries

    def load(self, ptrs: Any, mask: Any, other: Any, dtype: Any) -> Any:
        """Load; what lies outside of the launch's tensors is poison."""
        size = np.dtype(dtype).itemsize
        outside = self._outside(ptrs, mask, size, LOAD)
        if outside is None:
            return self._memory.load(ptrs, mask, other, dtype)
        patterns = masked_lanes.poison(np.dtype(dtype))
        spare = patterns[np.arange(int(np.count_nonzero(outside))) % len(patterns)]
        return self._memory.load(_led_to(spare, ptrs, outside), mask, other, dtype)

    def store(self, ptrs: Any, value: Any, mask: Any) -> Any:
        """Store; what lies outside of the launch's tensors is lost."""
        dtype = np.asarray(value).dtype
        outside = self._outside(ptrs, mask, dtype.itemsize, STORE)
        if outside is None:
            return self._memory.store(ptrs, value, mask)
        spare = np.zeros(int(np.count_nonzero(outside)), dtype)
        return self._memory.store(_led_to(spare, ptrs, outside), value, mask)

    def atomic(self, name: str) -> Any:
        """Return a stand-in for an atomic operation, which finds zeros where it finds nothing."""
        original = getattr(self._memory, name)
        at = 1 if name == "atomic_rmw" else 0  # the operation comes first there

        def function(*args: Any) -> Any:
            ptrs, value = args[at], args[at + 1]
            mask = args[at + 2] if name == "atomic_rmw" else np.True_
            dtype = np.asarray(value).dtype
            outside = self._outside(ptrs, mask, dtype.itemsize, ATOMIC)
            if outside is None:
                return original(*args)
            spare = np.zeros(int(np.count_nonzero(outside)), dtype)
            return original(*args[:at], _led_to(spare, ptrs, outside), *args[at + 1 :])

        return function

    def _outside(self, ptrs: Any, mask: Any, size: int, kind: str) -> NDArray[np.bool_] | None:
        """Return which lanes are on and outside of the launch's tensors; None if none is."""
        regions = _state.regions
        addresses = np.asarray(ptrs)
        if regions is None or not addresses.size:
            return None
        # Most blocks lie in one tensor as a whole, those lanes included that are off.
        if regions.holding(int(addresses.min()), int(addresses.max()) + size) is not None:
            return None
        active = np.broadcast_to(np.asarray(mask, np.bool_), addresses.shape)
        outside = active & _beyond(regions, addresses, size)
        if not outside.any():
            return None
        home = _home(regions, addresses[active & ~outside])
        self._note(_nearest(regions, addresses[outside].ravel(), size, home), kind)
        return outside

    def _note(self, found: Iterator[tuple[str, str, int, int]], kind: str) -> None:
        if _state.refuse is not None:
            _state.refuse("a program left the launch's tensors")
        file, line = places.kernel_line(self._libraries)
        for tensor, side, lanes, reach in found:
            key = file, line, kind, tensor, side
            before = _state.strays.get(key)
            if before is None and len(_state.strays) >= _MOST_STRAYS:
                continue
            count, farthest = before or (0, 0)
            _state.strays[key] = count + lanes, max(farthest, reach)


def _led_to(spare: Any, ptrs: Any, outside: NDArray[np.bool_]) -> Any:
    """Return addresses of which those outside are elements of an array that the caller keeps."""
    addresses = np.array(ptrs)
    steps = np.arange(spare.size, dtype=np.uint64) * np.uint64(spare.itemsize)
    addresses[outside] = np.uint64(spare.ctypes.data) + steps
    return addresses


def _beyond(regions: Regions, addresses: Any, size: int) -> NDArray[np.bool_]:
    """Return which elements do not lie in a region as a whole."""
    if not len(regions):
        return np.ones(addresses.shape, np.bool_)
    starts, stops = (np.array(ends, np.uint64) for ends in (regions.starts, regions.stops))
    at = np.searchsorted(starts, addresses, side="right").astype(np.int64) - 1
    stop = stops[np.maximum(at, 0)]
    inside = (at >= 0) & (addresses < stop) & (stop - addresses >= np.uint64(size))
    found: NDArray[np.bool_] = ~inside
    return found


def _home(regions: Regions, addresses: Any) -> int | None:
    """Return the region that the other lanes of an access lie in, if that is one."""
    if not addresses.size:
        return None
    return regions.holding(int(addresses.min()), int(addresses.max()) + 1)


def _nearest(
    regions: Regions, addresses: Any, size: int, home: int | None
) -> Iterator[tuple[str, str, int, int]]:
    """Yield tensor, side, number of lanes and farthest reach for each end that was passed.

    Args:
        regions: the launch's storages.
        addresses: of elements outside of them.
        size: bytes of an element.
        home: the region that they have left; the nearest one where it is None.
    """
    if not len(regions):
        yield "any tensor", "after", addresses.size, 0
        return
    if home is not None:
        regions = Regions(regions.starts[home : home + 1], regions.stops[home : home + 1])
    starts, stops = (np.array(ends, np.float64) for ends in (regions.starts, regions.stops))
    where = addresses.astype(np.float64)
    at = np.searchsorted(starts, where, side="right") - 1
    lower, upper = np.maximum(at, 0), np.minimum(at + 1, len(regions) - 1)
    past = np.where(at >= 0, where + size - stops[lower], np.inf)
    ahead = np.where(at + 1 < len(regions), starts[upper] - where, np.inf)
    after = past <= ahead
    ends = np.where(after, lower, upper)
    reach = np.where(after, past, ahead)
    for region in np.unique(ends):
        for side, chosen in (("after", after), ("before", ~after)):
            lanes = chosen & (ends == region)
            if lanes.any():
                yield (
                    _name_at(regions.starts[region]),
                    side,
                    int(lanes.sum()),
                    int(reach[lanes].max()),
                )
