"""Say of failing outputs where their wrong elements lie and what is likely behind them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from pytest_tritonverify.accuracy.dtypes import kind_of
from pytest_tritonverify.forensics import (
    Diagnosis,
    FailedOutput,
    LaunchFacts,
    MaskedLoad,
    diagnose,
    heat_map,
    render,
)
from pytest_tritonverify.forensics.failing import failing_by
from pytest_tritonverify.forensics.spectrum import bounds_of, spectrum

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_tritonverify.accuracy import OutputVerdict
    from pytest_tritonverify.reported import RunFacts

Pairs = dict[str, tuple[torch.Tensor, torch.Tensor]]
_TOLERANT = ("eco_open_source", "float_compute")


@dataclass(frozen=True)
class Explanation:
    """What is known about one failing output.

    Attributes:
        diagnosis: where and why.
        picture: the share of failing elements over the output as text; empty where it says little.
        errors: how large the errors are, as `spectrum` returns it.
    """

    diagnosis: Diagnosis
    picture: str
    errors: dict[str, Any]

    def lines(self) -> list[str]:
        """Return the lines of a failure text."""
        return [*self.picture.splitlines(), *render(self.diagnosis)]


def explain(
    outputs: Iterable[OutputVerdict],
    pairs: Mapping[str, tuple[Any, Any]],
    inputs: Sequence[object],
    facts: RunFacts,
) -> dict[str, Explanation]:
    """Explain the failing ones among judged outputs, by path.

    Args:
        outputs: the verdicts.
        pairs: golden and actual value by path.
        inputs: the call's tensors.
        facts: what is known of the run.
    """
    launches = [LaunchFacts(**vars(launch)) for launch in facts.launches]
    loads = facts.undefined_loads
    masked_loads = None if loads is None else [MaskedLoad(**vars(load)) for load in loads]
    stray_reads = [str(stray) for stray in facts.strays if not stray.writes]
    tensors = {path: pair for path, pair in pairs.items() if _comparable(*pair)}
    found = {}
    for output in outputs:
        if output.passed or output.path not in tensors:
            continue
        golden, actual = tensors[output.path]
        tolerance = output.metrics.get("tolerance", 0)
        failing = failing_by(
            output.category, golden.dtype, tolerance if isinstance(tolerance, int) else 0
        )
        others = [other for path, (other, _) in tensors.items() if path != output.path]
        case = FailedOutput(
            golden,
            actual,
            failing,
            other_goldens=others,
            inputs=[value for value in inputs if isinstance(value, torch.Tensor)],
            launches=launches,
            masked_loads=masked_loads,
            stray_reads=stray_reads,
        )
        bounds = bounds_of(output.category, golden.dtype, output.metrics)
        errors = spectrum(golden, actual, bounds, case.survey.positions)
        found[output.path] = Explanation(diagnose(case), heat_map(case), errors)
    return found


def spectra(
    outputs: Iterable[OutputVerdict], pairs: Mapping[str, tuple[Any, Any]]
) -> dict[str, dict[str, Any]]:
    """Measure the errors of outputs that pass though they differ from the golden, by path.

    Only rules with a tolerance for floats: what passes another one differs in nothing worth a look.

    Args:
        outputs: the verdicts.
        pairs: golden and actual value by path.
    """
    found = {}
    for output in outputs:
        if not output.passed or not output.metrics.get("max_abs_diff"):
            continue
        golden, actual = pairs.get(output.path, (None, None))
        if output.category in _TOLERANT and _comparable(golden, actual):
            bounds = bounds_of(output.category, golden.dtype, output.metrics)
            found[output.path] = spectrum(golden, actual, bounds)
    return found


def _comparable(golden: object, actual: object) -> bool:
    """Say whether two values are tensors whose elements can be held against each other."""
    return (
        isinstance(golden, torch.Tensor)
        and isinstance(actual, torch.Tensor)
        and golden.shape == actual.shape
        and golden.numel() > 0
        and kind_of(golden.dtype) is not None
        and kind_of(golden.dtype) == kind_of(actual.dtype)
    )
