"""Warnings about integers that the quantisation rule accepts although they are off by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from pytest_tritonverify.accuracy.chunks import chunk_pairs
from pytest_tritonverify.accuracy.dtypes import is_index_like, same_bits, wide_integers
from pytest_tritonverify.accuracy.verdict import Caution

if TYPE_CHECKING:
    from pytest_tritonverify.accuracy.routing import Route
    from pytest_tritonverify.accuracy.verdict import Finding

LEAST_SHARE = 0.05
"""Share of elements off by one from which their direction is told; rounding ties are rarer."""

_FEWEST = 16
_PIECE = 1 << 18


def off_by_one_cautions(
    path: str, golden: torch.Tensor, actual: torch.Tensor, route: Route, finding: Finding
) -> tuple[Caution, ...]:
    """Warn where differences of one were accepted that rounding alone may not explain.

    Args:
        path: The output's place among the outputs.
        golden: An integer tensor.
        actual: An integer tensor of the same shape, of any width.
        route: The rule that was applied.
        finding: What it found.
    """
    if route.category != "quant_fp_to_int" or not finding.passed:
        return ()
    if finding.metrics["max_abs_diff"] != route.tolerance:
        return ()
    if not is_index_like(golden.dtype):
        return _one_sided(path, golden, actual)
    text = (
        f"{path}: differences of exactly 1 were accepted by the quantisation rule because the "
        f"inputs are floating point and the output is {golden.dtype}; if these are indices or "
        f"counts, judge them exactly (--verify-exact-int)"
    )
    return (Caution("index_by_quantisation_rule", text),)


def _one_sided(path: str, golden: torch.Tensor, actual: torch.Tensor) -> tuple[Caution, ...]:
    """Warn where many elements are off by one, all in one direction."""
    total, below, shrunk, differing = golden.numel(), 0, 0, 0
    for _, expected, got in chunk_pairs(golden, actual, _PIECE):
        if expected.dtype == got.dtype and same_bits(expected, got):
            continue
        left, right = wide_integers(expected), wide_integers(got)
        differing += int(torch.count_nonzero(left != right))
        below += int(torch.count_nonzero(right < left))
        shrunk += int(torch.count_nonzero(right.abs() < left.abs()))
    if differing < _FEWEST or differing <= LEAST_SHARE * total:
        return ()
    directions = {
        "towards zero": shrunk == differing,
        "away from zero": shrunk == 0,
        "downwards": below == differing,
        "upwards": below == 0,
    }
    direction = next((words for words, all_are in directions.items() if all_are), None)
    if direction is None:
        return ()
    text = (
        f"{path}: {differing} of {total} elements ({100 * differing / total:.1f} %) are off by "
        f"exactly 1, all {direction}, which the quantisation rule accepts; truncation instead of "
        f"rounding does that: a cast to an integer cuts off, so round before it"
    )
    return (Caution("one_sided_rounding", text),)
