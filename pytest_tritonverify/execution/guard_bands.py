"""Memory with a value of our own before and behind it, so that stray accesses show.

On a device nobody looks at addresses: a store beyond the end of a tensor lands in what the
allocator keeps behind it, and mostly nothing comes of it there. So a run's inputs, and what
`torch.empty` and its kin return, lie between bands. A band that has changed was written to by
somebody who had no business there; what is read from one is NaN, or a large integer.

Tensors look as they would without: they begin at the start of their storage, on an address of the
same alignment, with the same strides.
"""

from __future__ import annotations

import contextlib
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict, cast

import torch
from torch.utils import dlpack

from pytest_tritonverify.execution import errors
from pytest_tritonverify.observing import places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

BAND_BYTES = 64 << 10
"""On either side; a multiple of every alignment that an allocator keeps (512 bytes on GPUs)."""

# What the implementation has let go of is kept for the check, up to so many bytes.
_MOST_KEPT = 1 << 30
_MOST_BREACHES = 64
# Every byte of a float is set in a NaN that no arithmetic makes; these formats have one NaN alone.
_NAN_BYTE, _INTEGER_BYTE = 0xFF, 0x7F
_ONE_NAN = ("float8_e4m3fnuz", "float8_e5m2fnuz")
_ONE_NAN_BYTE = 0x80
_FUNCTIONS = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided")
# Arguments with which a tensor has other memory than the device's own.
_SPECIAL = ("out", "pin_memory", "names")
_FIXED = "not resizable"
# Without types.
_STORAGE: Any = torch.UntypedStorage
_dlpack: Any = dlpack


class Breach(TypedDict):
    """A band that was written to.

    Attributes:
        tensor: the tensor beside it, with dtype and size.
        side: "before" its first byte or "after" its last one.
        count: how many bytes of the band have changed.
        reach: how far from the tensor the farthest of them lies, in bytes, itself included.
        file: where the tensor was made; empty for inputs.
        line: its line there, from 1; 0 for inputs.
    """

    tensor: str
    side: str
    count: int
    reach: int
    file: str
    line: int


@dataclass
class _Guarded:
    """Memory between bands.

    Attributes:
        sides: the bands before and behind it, byte by byte.
        start: its address.
        size: its bytes.
        canary: the byte that the bands are filled with.
        described: what was made of it.
        place: where it was made; None for inputs.
        alive: a weak reference to its storage; None where that is the bands' storage, too.
    """

    sides: tuple[torch.Tensor, torch.Tensor]
    start: int
    size: int
    canary: int
    described: str
    place: tuple[str, int] | None
    alive: Any

    @property
    def released(self) -> bool:
        return self.alive is not None and bool(_STORAGE._expired(self.alive))  # noqa: SLF001 - as StorageWeakRef does

    def close(self) -> None:
        if self.alive is not None:
            _STORAGE._free_weak_ref(self.alive)  # noqa: SLF001 - as above
            self.alive = None


@dataclass
class _State:
    """What holds for this process.

    Attributes:
        bands: those of the present run; None where fresh memory is made as torch makes it.
    """

    bands: Bands | None = None


_state = _State()
_originals: dict[str, Callable[..., torch.Tensor]] = {}
_LIKE = frozenset({"empty_like", *_METHODS})


def install() -> None:
    """Let `torch.empty` and its kin be asked for bands: before any user code runs."""
    if _originals:
        return
    owners = [(torch, _FUNCTIONS), (torch.Tensor, _METHODS)]
    for owner, names in owners:
        for name in names:
            original = getattr(owner, name, None)
            if original is not None:
                _originals[name] = original
                setattr(owner, name, _guarding(original, like=name in _LIKE))


def _guarding(original: Any, *, like: bool) -> Any:
    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
        bands = _state.bands
        if bands is None or any(kwargs.get(name) for name in _SPECIAL):
            return original(*args, **kwargs)
        return bands.fresh(original, args, kwargs, like=like)

    return made


def is_fixed(error: BaseException) -> bool:
    """Whether an error says that memory between bands can't be given another size."""
    return isinstance(error, RuntimeError) and _FIXED in errors.message_of(error)


class Bands:
    """The bands of one run.

    Args:
        device: torch's name of the device.
        folder: of the implementation, with a separator at its end.
        byte: what bands are filled with; None for what shows most.

    Attributes:
        problem: why some tensor has no bands, if one has none.
    """

    def __init__(self, device: str, folder: str, byte: int | None = None) -> None:
        self._device = device
        self._folder = folder
        self._byte = byte
        self.problem: str | None = None
        self._guarded: list[_Guarded] = []
        self._found: list[Breach] = []

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make what fresh memory is asked for meanwhile between bands."""
        _state.bands = self
        try:
            yield
        finally:
            _state.bands = None

    def close(self) -> None:
        """Forget the memory; tensors that are still in use keep theirs."""
        for one in self._guarded:
            one.close()
        self._guarded.clear()

    def moved(self, flat: torch.Tensor) -> torch.Tensor:
        """Return a contiguous tensor of the host on the device, between bands."""
        if not flat.numel():
            return flat.to(self._device)
        try:
            place = self._between(flat.numel(), flat.dtype, "", None)
            return _plain(place.copy_(flat.reshape(-1)).view(flat.shape))
        except NotImplementedError:
            raise
        except RuntimeError as error:
            # What a device can't do must not fail a case; memory that runs out does so again.
            self.problem = errors.message_of(error)
            return flat.to(self._device)

    def fresh(
        self, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, like: bool
    ) -> torch.Tensor:
        """Return what `torch.empty` or one of its kin returns, between bands on the device."""
        wanted = kwargs.get("device")
        if wanted is None:
            wanted = args[0].device if like and args else _originals["empty"](0).device
        device = torch.device(wanted)
        if device.type != self._device:
            return cast("torch.Tensor", original(*args, **kwargs))
        try:
            # It tells size and strides, and takes no memory.
            shape: torch.Tensor = original(*args, **{**kwargs, "device": "meta"})
        except (RuntimeError, TypeError):  # the caller's fault, or a rare type
            return cast("torch.Tensor", original(*args, **kwargs))
        needed = _elements(shape)
        if shape.layout is not torch.strided or not needed:
            return cast("torch.Tensor", original(*args, **kwargs))
        if not self._has_room(needed * shape.element_size()):
            self.problem = f"the run asked for more than {_MOST_KEPT >> 20} MiB of fresh memory"
            return cast("torch.Tensor", original(*args, **kwargs))
        place = places.user_line(self._folder)
        try:
            flat = self._between(needed, shape.dtype, _described(shape), place, device)
            found = _plain(flat.as_strided(shape.size(), shape.stride(), flat.storage_offset()))
        except RuntimeError as error:  # as above
            self.problem = errors.message_of(error)
            self._drop_released()
            return cast("torch.Tensor", original(*args, **kwargs))
        return found.requires_grad_() if shape.requires_grad else found

    def _has_room(self, size: int) -> bool:
        if self._kept() + size > _MOST_KEPT:
            self._drop_released()
        # The first one may be larger than all that is kept otherwise.
        return self._kept() + size <= _MOST_KEPT or not self._kept()

    def _drop_released(self) -> None:
        """Look at the bands of memory that nobody else holds any more, and let it go."""
        released = [one for one in self._guarded if one.released]
        self._check(released, [])
        for one in released:
            one.close()
        gone = {id(one) for one in released}
        self._guarded = [one for one in self._guarded if id(one) not in gone]

    def _kept(self) -> int:
        return sum(one.size for one in self._guarded if one.place is not None)

    def _between(
        self,
        count: int,
        dtype: torch.dtype,
        described: str,
        place: tuple[str | None, int] | None,
        device: torch.device | None = None,
    ) -> torch.Tensor:
        """Return a flat tensor without values between bands."""
        size = _originals["empty"](0, dtype=dtype).element_size()
        band, device = BAND_BYTES // size, device or torch.device(self._device)
        # As one of its type, so that poison is, too, and a device knows what it holds.
        whole = _originals["empty"](band + count + band, dtype=dtype, device=device)
        sides = (whole[:band].view(torch.uint8), whole[band + count :].view(torch.uint8))
        canary = self._byte if self._byte is not None else _canary(dtype)
        for side in sides:
            side.fill_(canary)
        inner, alive = whole[band : band + count], None
        if device.type in ("cuda", "cpu"):
            # Its storage begins where the band ends. Other devices know more of a storage than
            # its memory, so that theirs can't be made of a part of another one.
            part = _dlpack.from_dlpack(_dlpack.to_dlpack(inner.view(torch.uint8)))
            storage = part.untyped_storage()
            alive = storage._weak_ref()  # noqa: SLF001 - as StorageWeakRef does
            inner = _originals["empty"](0, dtype=dtype, device=device).set_(storage)
        made = None if place is None else (place[0] or "", place[1])
        start = whole.data_ptr() + BAND_BYTES
        one = _Guarded(sides, start, count * size, canary, described, made, alive)
        self._guarded.append(one)
        return _plain(inner)

    def found(self, named: Iterable[tuple[str, torch.Tensor]]) -> list[Breach]:
        """Return the bands that were written to, when all work of the device is done.

        Args:
            named: inputs and outputs by path.
        """
        names = [
            (tensor.data_ptr(), f"{path} {_described(tensor)}")
            for path, tensor in named
            if tensor.device.type == self._device
        ]
        self._check(self._guarded, names)
        return self._found[:_MOST_BREACHES]

    def _check(self, guarded: list[_Guarded], names: list[tuple[int, str]]) -> None:
        sides = [(one, k, part) for one in guarded for k, part in enumerate(one.sides)]
        if not sides:
            return
        # All at once: each question by itself would wait for the device.
        changed = torch.stack([(part != one.canary).any() for one, _, part in sides]).tolist()
        for (one, k, part), differs in zip(sides, changed, strict=True):
            if differs and len(self._found) < _MOST_BREACHES:
                self._found.append(_breach(one, part.cpu(), after=k == 1, names=names))


def _breach(
    one: _Guarded, band: torch.Tensor, *, after: bool, names: list[tuple[int, str]]
) -> Breach:
    name = next((name for at, name in names if 0 <= at - one.start <= one.size), "")
    where = (band != one.canary).nonzero().flatten()
    reach = int(where[-1]) + 1 if after else BAND_BYTES - int(where[0])
    file, line = one.place or ("", 0)
    return Breach(
        tensor=name or one.described or "an input",
        side="after" if after else "before",
        count=where.numel(),
        reach=reach,
        file=file,
        line=line,
    )


def _canary(dtype: torch.dtype) -> int:
    if not (dtype.is_floating_point or dtype.is_complex):
        return _INTEGER_BYTE
    return _ONE_NAN_BYTE if str(dtype).endswith(_ONE_NAN) else _NAN_BYTE


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor that is no view to torch."""
    made = _originals["empty"](0, dtype=tensor.dtype, device=tensor.device)
    return made.set_(
        tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride()
    )


def _elements(shape: torch.Tensor) -> int:
    """Return how many elements of memory a tensor takes, gaps between them included."""
    if 0 in shape.size():
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape.size(), shape.stride(), strict=True))


def _described(tensor: torch.Tensor) -> str:
    return f"({tensor.dtype}, shape {list(tensor.shape)})"
