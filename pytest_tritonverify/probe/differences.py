"""How two tensors of one name differ, in words, and what that looks like.

Decides nothing: the digests have decided. Imports torch: only who has tensors at hand needs it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

# Ratios of elements that agree to this much are one ratio.
_SAME_RATIO = 1e-4
# The largest magnitude of uniform numbers is 1.73 standard deviations, of normal ones far more.
_UNIFORM_SPREAD = (1.4, 1.8)
_NORMAL_SPREAD = 2.2
# Fewer numbers show no distribution.
_FEWEST = 12
_SAME_SCALE = 0.2


@dataclass(frozen=True)
class Difference:
    """What two tensors of one name look like.

    Attributes:
        lines: counts, and elements with their values.
        cause: what probably lies behind it; None where nothing known fits.
    """

    lines: tuple[str, ...]
    cause: str | None


def describe(reference: torch.Tensor, implementation: torch.Tensor) -> Difference:
    """Compare the values of two tensors.

    Args:
        reference: the reference's, on the CPU.
        implementation: the implementation's, on the CPU.
    """
    if reference.shape != implementation.shape:
        return Difference((), _other_arrangement(reference, implementation))
    ours, theirs = _wide(reference), _wide(implementation)
    differing = _differing(reference, implementation)
    count = int(differing.sum())
    if not count:
        if reference.dtype != implementation.dtype:
            return Difference((), "the values are equal, only the dtype is another")
        return Difference(
            ("shown again the values are equal: one of the sides is not reproducible",), None
        )
    flat = differing.reshape(-1)
    # Infinities of one sign, and NaN against anything, have no distance.
    distance = (ours - theirs).abs().reshape(-1).nan_to_num(nan=math.inf)
    distance = torch.where(flat, distance, torch.zeros_like(distance))
    first, worst = int(flat.to(torch.uint8).argmax()), int(distance.argmax())
    lines = [f"{count} of {flat.numel()} elements differ"]
    lines.append(f"first: {_element(first, reference, implementation)}")
    if worst != first and float(distance[worst]) > 0:
        lines.append(f"worst: {_element(worst, reference, implementation)}")
    return Difference(tuple(lines), _cause(ours, theirs))


def _cause(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    if ours.is_complex() or not bool(torch.isfinite(ours).all() & torch.isfinite(theirs).all()):
        return None
    if torch.equal(ours, theirs):
        return "the values are equal, but not their bits: 0.0 and -0.0 differ in their sign"
    low, high = float(theirs.min()), float(theirs.max())
    if low == high and not bool((ours == ours.reshape(-1)[0]).all()):
        return f"the implementation's is filled with {low:g}: it was never initialised like that"
    factor = _ratio(ours, theirs)
    if factor is not None:
        return (
            f"the implementation's is the reference's times {factor:.6g}: an initialiser with "
            "another scale, or a scale factor too many or too few"
        )
    return _other_arrangement(ours, theirs) or _other_distribution(ours, theirs)


def _ratio(ours: torch.Tensor, theirs: torch.Tensor) -> float | None:
    """Return the factor between two tensors that are multiples of each other."""
    apart = ours != 0
    if int(apart.sum()) < 2 or not torch.equal(apart, theirs != 0):  # noqa: PLR2004 - one has any ratio
        return None
    ratios = theirs[apart] / ours[apart]
    low, high = float(ratios.min()), float(ratios.max())
    middle = (low + high) / 2
    return middle if high - low <= _SAME_RATIO * abs(middle) else None


def _other_arrangement(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    """Recognise the same numbers in another order."""
    if ours.numel() != theirs.numel() or ours.is_complex() or theirs.is_complex():
        return None
    mine, other = _wide(ours).reshape(-1), _wide(theirs).reshape(-1)
    if not torch.equal(mine.sort().values, other.sort().values):
        return None
    if torch.equal(mine, other):
        return "the same numbers in the same order, in another shape"
    return "the same numbers in another order: a transposed or permuted layout"


def _other_distribution(ours: torch.Tensor, theirs: torch.Tensor) -> str | None:
    if ours.numel() < _FEWEST:
        return None
    first, second = _distribution(ours), _distribution(theirs)
    text = f"reference: {first[0]}; implementation: {second[0]}"
    if abs(second[1] - first[1]) > _SAME_SCALE * first[1]:
        return f"another initialiser ({text})"
    return (
        f"the same kind of numbers, but drawn differently ({text}): another seed, another order "
        "of random draws, or a draw more or less before this one"
    )


def _distribution(tensor: torch.Tensor) -> tuple[str, float]:
    """Return how the numbers of a tensor are spread, in words, and their standard deviation."""
    mean, spread = float(tensor.mean()), float(tensor.std())
    widest = float((tensor - mean).abs().max()) / spread if spread else 0.0
    shape = ""
    if tensor.numel() >= 4 * _FEWEST:
        shape = "normal-like, " if widest > _NORMAL_SPREAD else ""
        if _UNIFORM_SPREAD[0] < widest < _UNIFORM_SPREAD[1]:
            shape = "uniform-like, "
    return f"{shape}mean {mean:.3g}, std {spread:.3g}", spread


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _differing(reference: torch.Tensor, implementation: torch.Tensor) -> torch.Tensor:
    """Return where two tensors of one shape differ; in their bits, where the dtype is one."""
    if reference.dtype != implementation.dtype or reference.dim() == 0:
        ours, theirs = _wide(reference), _wide(implementation)
        same_sign = torch.signbit(ours.real) == torch.signbit(theirs.real)
        return ~(((ours == theirs) & same_sign) | (torch.isnan(ours) & torch.isnan(theirs)))
    bytes_apart = _bytes(reference) != _bytes(implementation)
    return bytes_apart.reshape(*reference.shape, -1).any(-1)


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().unsqueeze(-1).view(torch.uint8)


def _element(at: int, reference: torch.Tensor, implementation: torch.Tensor) -> str:
    index = []
    rest = at
    for size in reversed(reference.shape):
        index.append(rest % size)
        rest //= size
    got = _value(implementation.reshape(-1)[at])
    return f"{index[::-1]} expected {_value(reference.reshape(-1)[at])}, got {got}"


def _value(element: torch.Tensor) -> str:
    value = element.item()
    return f"{value:.7g}" if isinstance(value, float) else str(value)
