"""The one way in which the interpreter is changed: a name is given another value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` returns for the present value in its place."""
    setattr(owner, name, make(getattr(owner, name)))


def missing(owner: Any, names: Iterable[str]) -> list[str]:
    """Return those of the names that a module or a class lacks."""
    return [name for name in names if not hasattr(owner, name)]
