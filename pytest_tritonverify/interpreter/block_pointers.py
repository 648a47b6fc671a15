"""Block pointers where Triton has removed them: `tl.make_block_ptr`, `tl.advance`.

Triton 3.9 has none. Kernels for older versions and for triton-ascend are full of them, and what
they compute does not depend on how a tile is addressed. The meaning is that of Triton 3.8.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

_MADE = "make_block_ptr"
_PADDINGS = {"": None, "zero": 0.0, "nan": float("nan")}
_met: list[bool] = []


class BlockPointer:
    """A tile of a tensor in memory, at offsets that can be moved.

    Attributes:
        base: the pointer to the tensor's first element.
        shape: the tensor's sizes, integers of the language.
        strides: steps between its elements, likewise.
        offsets: where the tile begins, likewise.
        block_shape: the tile's sizes.
        type: what Triton's own had: a pointer to a block.
    """

    def __init__(
        self,
        base: Any,
        shape: Sequence[Any],
        strides: Sequence[Any],
        offsets: Sequence[Any],
        block_shape: Sequence[int],
        kind: Any,
    ) -> None:
        self.base, self.shape, self.strides = base, shape, strides
        self.offsets, self.block_shape = offsets, block_shape
        self.type = self.dtype = kind

    def moved(self, offsets: Sequence[NDArray[Any]]) -> BlockPointer:
        """Return a pointer to the tile that lies by offsets from this one."""
        moved = [place + by for place, by in zip(self.offsets, offsets, strict=True)]
        return BlockPointer(self.base, self.shape, self.strides, moved, self.block_shape, self.type)

    def lanes(self, checked: Iterable[int], width: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Return the addresses of the tile's elements, and which of them lie in the tensor.

        Args:
            checked: the dimensions whose bounds count.
            width: bytes of an element.
        """
        addresses = np.broadcast_to(self.base.handle.data, self.block_shape).astype(np.uint64)
        inside: NDArray[Any] | None = None
        for axis, size in enumerate(self.block_shape):
            along = [1] * len(self.block_shape)
            along[axis] = size
            places = (self.offsets[axis] + np.arange(size, dtype=np.int64)).reshape(along)
            addresses = addresses + (width * places * self.strides[axis]).astype(np.uint64)
            if axis in checked:
                there = (places >= 0) & (places < self.shape[axis])
                inside = there if inside is None else inside & there
        return addresses, None if inside is None else np.broadcast_to(inside, self.block_shape)


def forget() -> None:
    """Forget whether a kernel has made one."""
    _met.clear()


def met() -> bool:
    """Whether a kernel has made one since then, in a Triton that has removed them."""
    return bool(_met)


def restore(interpreter: Any) -> bool:
    """Give the language block pointers again; return False where it still has its own."""
    language = interpreter.tl
    core = language.core
    loading = inspect.signature(core.load).parameters
    if not hasattr(core, _MADE) or "boundary_check" in loading or "_semantic" not in loading:
        return False
    functions = _Functions(interpreter, core.load, core.store)
    for name in (_MADE, "advance", "load", "store"):
        function = core.builtin(getattr(functions, name))
        for module in (language, core):
            setattr(module, name, function)
    return True


class _Functions:
    """Those of the language that make block pointers, or take them."""

    def __init__(self, interpreter: Any, load: Any, store: Any) -> None:
        self._interpreter, self._language = interpreter, interpreter.tl
        self._load, self._store = load, store

    def make_block_ptr(
        self,
        base: Any,
        shape: Any,
        strides: Any,
        offsets: Any,
        block_shape: Any,
        order: Any,
        _semantic: Any = None,
    ) -> BlockPointer:
        """Make a pointer to a tile of the tensor that begins at `base`."""
        _met.append(True)
        types = self._language
        if not base.type.is_ptr():
            raise ValueError("make_block_ptr: `base` must be a pointer to one element")
        element = types.int8 if base.type.element_ty == types.int1 else base.type.element_ty
        sizes = [int(_plain(size)) for size in _listed(block_shape)]
        if any(size < 1 or size & (size - 1) for size in sizes):
            raise ValueError(f"make_block_ptr: sizes in `block_shape` {sizes} must be powers of 2")
        axes = [_plain(axis) for axis in _listed(order)]
        given = (shape, strides, offsets)
        extents, steps, starts = (self._numbers(part, _semantic) for part in given)
        if {len(part) for part in (extents, steps, starts, axes)} != {len(sizes)}:
            raise ValueError(
                "make_block_ptr: shape, strides, offsets, block_shape and order must be as long"
            )
        if sorted(axes) != list(range(len(axes))):
            raise ValueError(f"make_block_ptr: `order` {axes} must name every dimension once")
        kind = types.pointer_type(types.block_type(element, sizes))
        return BlockPointer(base, extents, steps, starts, sizes, kind)

    def advance(self, base: BlockPointer, offsets: Any, _semantic: Any = None) -> BlockPointer:
        """Return a pointer to the tile that lies by offsets from another one."""
        by = self._numbers(offsets, _semantic)
        if len(by) != len(base.offsets):
            raise ValueError(f"advance: {len(base.offsets)} offsets are wanted, not {len(by)}")
        return base.moved(by)

    def load(
        self,
        pointer: Any,
        mask: Any = None,
        other: Any = None,
        boundary_check: Any = (),
        padding_option: Any = "",
        *,
        _semantic: Any = None,
        **policy: Any,
    ) -> Any:
        """Load through a block pointer, or as Triton's own function does."""
        padding = _plain(padding_option)
        checked = self._checked(pointer, boundary_check, padding)
        if not isinstance(pointer, BlockPointer):
            return self._load(pointer, mask, other, _semantic=_semantic, **policy)
        if mask is not None or other is not None:
            raise ValueError("`mask` and `other` are not for block pointers; see `boundary_check`")
        lanes, inside = self._tensors(pointer, checked)
        fill = _PADDINGS[padding]
        if fill is None or inside is None:
            return self._load(lanes, inside, _semantic=_semantic, **policy)
        element = pointer.type.element_ty.element_ty
        if fill != fill and not element.is_floating():  # noqa: PLR0124 - NaN alone differs
            raise ValueError(f"padding_option='nan' is not for {element}")
        return self._load(lanes, inside, fill, _semantic=_semantic, **policy)

    def store(
        self,
        pointer: Any,
        value: Any,
        mask: Any = None,
        boundary_check: Any = (),
        *,
        _semantic: Any = None,
        **policy: Any,
    ) -> Any:
        """Store through a block pointer, or as Triton's own function does."""
        checked = self._checked(pointer, boundary_check, "")
        if not isinstance(pointer, BlockPointer):
            return self._store(pointer, value, mask, _semantic=_semantic, **policy)
        if mask is not None:
            raise ValueError("`mask` is not for block pointers; see `boundary_check`")
        lanes, inside = self._tensors(pointer, checked)
        return self._store(lanes, value, inside, _semantic=_semantic, **policy)

    def _numbers(self, values: Any, semantic: Any) -> list[NDArray[Any]]:
        """Return integers of any kind as arrays of one 64-bit element."""
        tensors = (semantic.to_tensor(value) for value in _listed(values))
        return [tensor.handle.data.astype(np.int64) for tensor in tensors]

    def _tensors(self, pointer: BlockPointer, checked: Iterable[int]) -> tuple[Any, Any]:
        types, handle = self._language, self._interpreter.TensorHandle
        element = pointer.type.element_ty.element_ty
        addresses, inside = pointer.lanes(checked, max(1, element.primitive_bitwidth // 8))
        kind = types.pointer_type(element)
        lanes = types.tensor(
            handle(addresses, kind), types.block_type(kind, list(pointer.block_shape))
        )
        if inside is None:
            return lanes, None
        block = types.block_type(types.int1, list(pointer.block_shape))
        return lanes, types.tensor(handle(inside, types.int1), block)

    def _checked(self, pointer: Any, boundary_check: Any, padding: Any) -> list[int]:
        checked = [_plain(axis) for axis in _listed(boundary_check)]
        if padding not in _PADDINGS:
            raise ValueError(f"padding_option must be 'zero' or 'nan', not {padding!r}")
        if not isinstance(pointer, BlockPointer):
            if checked or padding:
                raise ValueError(
                    "`boundary_check` and `padding_option` are for block pointers; plain pointers "
                    "take `mask` and `other`"
                )
            return checked
        axes = range(len(pointer.block_shape))
        if len(set(checked)) != len(checked) or any(axis not in axes for axis in checked):
            raise ValueError(f"boundary_check {checked} must name dimensions of {len(axes)}, once")
        return checked


def _plain(value: Any) -> Any:
    return getattr(value, "value", value)


def _listed(values: Any) -> list[Any]:
    values = _plain(values)
    return list(values) if hasattr(values, "__iter__") else [values]
