"""Outcomes of runs by their bits, and what a golden is like: the judge's own look at tensors.

Imports torch: only what has outcomes at hand imports this module.
"""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.accuracy.dtypes import kind_of
from pytest_tritonverify.evidence.case import GoldenFact
from pytest_tritonverify.execution import running, tensors, wire

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_tritonverify.execution.wire import Message

# Two goldens that differ by less, relative to the larger one, may do so by rounding alone.
_MATERIAL = 0.02
# What is right by any rule is near the golden, relative to its largest element, nearly everywhere.
_NEAR = 0.1
_ALIKE = 0.95
# Where not even this part is, an outcome has nothing to do with the golden.
_FAR = 0.5


def digests(result: Message, fd: int | None) -> dict[str, str]:
    """Return a digest of the type, shape and bits of every tensor that a run left behind.

    Args:
        result: the description of `outputs` and `changed` that a worker sent.
        fd: their memory file.

    Returns:
        Digests by path: `output...`, and `input...` for inputs that the call changed.

    Raises:
        wire.WireError: an untrusted worker sent what is no result.
    """
    if fd is not None:
        wire.require_sealed(fd)
    try:
        tree = tensors.unpack(result, fd, bounded=True)
        return {path: _digest(tensor) for path, tensor in _leaves(tree)}
    except RuntimeError as error:  # of a dtype that torch can't copy
        raise wire.WireError(f"the bits of a tensor can't be read: {error}") from None


def differences(
    first: tuple[Message, int | None], other: tuple[Message, int | None]
) -> list[dict[str, Any]]:
    """Say how much what two runs have left behind differs, tensor by tensor.

    Args:
        first: the description of `outputs` and `changed`, and its memory file.
        other: the same of the other run.

    Returns:
        For each tensor whose bits differ its `path`, how many `elements` of the `total` do, and
        the largest absolute difference of finite numbers, `max_abs_diff`; None where there is none,
        as between tensors of different shape.
    """
    ours, theirs = (dict(_leaves(tensors.unpack(*one, bounded=True))) for one in (first, other))
    found = []
    for path in dict.fromkeys((*ours, *theirs)):
        mine, its = ours.get(path), theirs.get(path)
        if mine is None or its is None or (mine.shape, mine.dtype) != (its.shape, its.dtype):
            known = mine if mine is not None else its
            count = 0 if known is None else known.numel()
            found.append(_difference(path, count, count, None))
        elif _bits(mine) != _bits(its):
            found.append(_difference(path, *_distance(mine, its)))
    return found


def _difference(path: str, elements: int, total: int, max_abs_diff: float | None) -> dict[str, Any]:
    return {
        "path": path,
        "elements": elements,
        "total": total,
        "max_abs_diff": max_abs_diff,
    }


def _distance(first: torch.Tensor, other: torch.Tensor) -> tuple[int, int, float | None]:
    """Return how many elements differ by a bit, how many there are, and the largest difference."""
    differ = (_rows(first) != _rows(other)).any(1)
    largest = None
    if _computable(first):
        wide = torch.complex128 if first.is_complex() else torch.float64
        gap = (first.detach().to(wide) - other.detach().to(wide)).abs().reshape(-1)
        gap = gap[torch.isfinite(gap)]
        largest = float(gap.max()) if gap.numel() else None
    return int(differ.sum()), first.numel(), largest


def golden_facts(
    call: Mapping[str, Any],
    golden: Any,
    other: Any | None,
    actual: Any,
    replayed: Any | None = None,
    *,
    fixed: bool,
    views: frozenset[str] = frozenset(),
) -> dict[str, GoldenFact]:
    """Say what every tensor of a golden is like.

    Args:
        call: the unpacked arguments.
        golden: the unpacked `outputs` and `changed` of the reference.
        other: those for other inputs, None where there are none.
        actual: the unpacked `outputs` and `changed` of the implementation.
        replayed: those of the implementation for the other inputs, None where there are none.
        fixed: there are no inputs that could have been others.
        views: paths of outputs which the reference returns as views of inputs. Where it does so
            with all of them, the views are the work.
    """
    given = [tensor for _, tensor in running.tensor_leaves(dict(call), "input")]
    inputs = {_bits(tensor) for tensor in given}
    others = {} if other is None else dict(_leaves(other))
    found = dict(_leaves(actual))
    again = {} if replayed is None else dict(_leaves(replayed))
    facts = {}
    if views.issuperset(path for path, _ in _leaves(golden)):
        views = frozenset()
    for path, tensor in _leaves(golden):
        depends: bool | None = False if fixed else None
        if path in others:
            depends = _differs(tensor, others[path])
        facts[path] = GoldenFact(
            empty=tensor.numel() == 0,
            constant=_is_constant(tensor),
            # An input that the call changed is an outcome, too.
            same_as_input=_bits(tensor) in inputs,
            view=path in views,
            depends=depends,
            resembled=path in found and _share_near(tensor, found[path]) >= _ALIKE,
            followed=_share_near(others[path], again[path]) >= _FAR
            if path in others and path in again
            else None,
        )
    return facts


def _leaves(tree: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a result by path, unless they claim too much."""
    leaves = list(_all_leaves(tree))
    tensors.require_modest(tensor for _, tensor in leaves)
    yield from leaves


def _all_leaves(tree: Any) -> Iterator[tuple[str, torch.Tensor]]:
    if not isinstance(tree, dict) or "outputs" not in tree:
        raise wire.WireError("what came is no result")
    yield from running.tensor_leaves(tree["outputs"], "output")
    changed = tree.get("changed")
    if not isinstance(changed, dict):
        raise wire.WireError("what came is no result")
    for path, tensor in changed.items():
        if not isinstance(path, str) or not isinstance(tensor, torch.Tensor):
            raise wire.WireError("what came is no result")
        yield path, tensor


def _digest(tensor: torch.Tensor) -> str:
    head = f"{tensor.dtype} {tuple(tensor.shape)} ".encode()
    return hashlib.sha256(head + _bits(tensor)).hexdigest()


def _bits(tensor: torch.Tensor) -> bytes:
    """Return a digest of a tensor's type and of its bits in order, whatever its shape."""
    flat = tensor.detach().resolve_conj().resolve_neg().contiguous()
    raw = torch.empty(0, dtype=torch.uint8)
    size = flat.element_size()
    raw.set_(flat.untyped_storage(), flat.storage_offset() * size, (flat.numel() * size,), (1,))
    return hashlib.sha256(f"{tensor.dtype} ".encode() + raw.numpy().tobytes()).digest()


def _is_constant(tensor: torch.Tensor) -> bool:
    if tensor.numel() == 0:
        return True
    rows = _rows(tensor)
    return bool((rows == rows[0]).all())


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """Return the bytes of a tensor, a row for each element."""
    raw = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1, 1)
    return raw.view(torch.uint8).reshape(-1, tensor.element_size())


def _computable(*tensors: torch.Tensor) -> bool:
    """Whether torch computes with numbers of these dtypes; of others there are only the bits."""
    return all(kind_of(tensor.dtype) is not None for tensor in tensors)


def _share_near(golden: torch.Tensor, actual: torch.Tensor) -> float:
    """Return the share of elements that any rule of accuracy could take for the golden's."""
    if golden.shape != actual.shape:
        return 0.0
    if not golden.numel():
        return 1.0
    if not _computable(golden, actual):
        same = golden.dtype == actual.dtype
        return float((_rows(golden) == _rows(actual)).all(1).double().mean()) if same else 0.0
    complex_ = golden.is_complex() or actual.is_complex()
    wide = torch.complex128 if complex_ else torch.float64
    expected, got = golden.detach().to(wide), actual.detach().to(wide)
    finite = torch.isfinite(expected)
    size = float(expected[finite].abs().max()) if bool(finite.any()) else 0.0
    near = (got - expected).abs() <= max(_NEAR * size, 1.0 if not _inexact(golden) else 0.0)
    alike = torch.where(finite, near, ~torch.isfinite(got))
    return float(alike.double().mean())


def _inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _differs(golden: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two goldens differ by more than rounding."""
    if golden.shape != other.shape or golden.dtype != other.dtype:
        return True
    if not _computable(golden):
        return _bits(golden) != _bits(other)
    if not _inexact(golden):
        return not torch.equal(golden, other)
    wide = torch.complex128 if golden.is_complex() else torch.float64
    first, second = golden.detach().to(wide), other.detach().to(wide)
    finite = torch.isfinite(first) & torch.isfinite(second)
    if not torch.equal(torch.isfinite(first), torch.isfinite(second)):
        return True
    if not bool(finite.any()):
        return False
    gap = float((first - second)[finite].abs().max())
    size = float(first[finite].abs().max())
    return gap > _MATERIAL * size and not math.isnan(gap)
