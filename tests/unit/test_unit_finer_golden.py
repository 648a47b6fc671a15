"""Values of a higher precision in the place of a reference's own."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import torch

from pytest_tritonverify.finer_golden import refined

Pair = namedtuple("Pair", "a b")  # noqa: PYI024 - what user code may return


@dataclass
class Held:
    x: Any
    y: Any


def refine(own: Any, finer: Any, **changed: tuple[Any, Any]) -> tuple[Any, dict[str, Any], bool]:
    found, used = refined(
        {"outputs": own, "changed": {k: v[0] for k, v in changed.items()}},
        {"outputs": finer, "changed": {k: v[1] for k, v in changed.items()}},
    )
    return found["outputs"], found["changed"], used


def test_floats_are_rounded_once_to_the_dtype_that_the_output_has() -> None:
    third, huge = torch.tensor([1 / 3], dtype=torch.float64), torch.tensor([7e4, 1.0]).double()
    own = [torch.tensor([0.25]).half(), torch.tensor([torch.inf, 1.0]).half()]
    (low, large), changed, used = refine(own, [third, huge], x=(own[0], third))
    assert used
    assert torch.equal(low, third.half())
    assert torch.equal(large, torch.tensor([torch.inf, 1.0]).half())
    assert torch.equal(changed["x"], third.half())


def test_everything_else_stays_the_references_own() -> None:
    index, flag, other = torch.tensor([3]), torch.tensor([True]), torch.ones(2)
    own = {"i": index, "f": flag, "o": other, "c": torch.ones(1), "t": "text", "n": None}
    finer: dict[str, Any] = {
        "i": torch.tensor([4]),
        "f": torch.tensor([False]),
        "o": torch.ones(3).double(),
        "c": torch.ones(1, dtype=torch.complex128),
        "t": "other",
        "n": 3,
    }
    found, _, used = refine(own, finer)
    assert not used
    assert all(found[key] is own[key] for key in own)


def test_trees_keep_their_form() -> None:
    own = (Pair(torch.ones(1), 2.5), Held(torch.ones(1), [1, 2]), [torch.ones(1)])
    zero = torch.zeros(1).double()
    (pair, held, listed), _, used = refine(own, (Pair(zero, 3.5), Held(zero, [1, 2]), []))
    assert used
    assert (float(pair.a), pair.b, type(pair)) == (0.0, 3.5, Pair)
    assert (float(held.x), held.y) == (0.0, [1, 2])
    assert torch.equal(listed[0], torch.ones(1))
