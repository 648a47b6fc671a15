"""The reference's output in a higher precision, in the place of its own.

Imports torch: only a judge with something to compare imports this module.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

OWN = "own"
"""The reference's own precision."""


def refined(own: Mapping[str, Any], finer: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Put values of a higher precision in the place of a golden's.

    Each is rounded once to the dtype that the reference's own output has, so that the limits of
    that dtype hold, and a number that it can't hold is infinite on both sides. Integers, booleans
    and text stay the reference's own, as does what has another shape or kind in the other run.

    Args:
        own: `outputs` and `changed` of the reference.
        finer: the same, computed in a higher precision.

    Returns:
        The golden, and whether anything in it is of the higher precision.
    """
    refiner = _Refiner()
    outputs = refiner.value(own["outputs"], finer["outputs"])
    changed = {
        path: refiner.value(tensor, finer["changed"].get(path))
        for path, tensor in own["changed"].items()
    }
    return {**own, "outputs": outputs, "changed": changed}, refiner.used


class _Refiner:
    """Goes through two trees at the same time.

    Attributes:
        used: a value was taken from the second one.
    """

    def __init__(self) -> None:
        self.used = False

    def value(self, own: Any, finer: Any) -> Any:  # noqa: PLR0911 - one case a kind
        if isinstance(own, torch.Tensor):
            return self._tensor(own, finer)
        if isinstance(own, float) and isinstance(finer, float):
            self.used = True
            return finer
        if isinstance(own, (list, tuple)) and isinstance(finer, (list, tuple)):
            if len(own) != len(finer):
                return own
            items = [self.value(a, b) for a, b in zip(own, finer, strict=True)]
            return type(own)(*items) if hasattr(own, "_fields") else type(own)(items)
        if isinstance(own, dict) and isinstance(finer, dict):
            return {key: self.value(item, finer.get(key)) for key, item in own.items()}
        if dataclasses.is_dataclass(own) and not isinstance(own, type):
            names = [field.name for field in dataclasses.fields(own)]
            members = {n: self.value(getattr(own, n), getattr(finer, n, None)) for n in names}
            return dataclasses.replace(own, **members)
        return own

    def _tensor(self, own: torch.Tensor, finer: Any) -> torch.Tensor:
        if (
            not isinstance(finer, torch.Tensor)
            or finer.shape != own.shape
            or finer.is_complex() != own.is_complex()
            or not (own.is_complex() or (own.is_floating_point() and finer.is_floating_point()))
        ):
            return own
        self.used = True
        return finer.detach().to(own.dtype)
