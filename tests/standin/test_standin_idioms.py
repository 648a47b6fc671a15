"""What published code does with its device works under the stand-in, idiom by idiom."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def test_the_idiom_works(idiom: Callable[[], str]) -> None:
    problem = idiom()
    assert not problem, problem
