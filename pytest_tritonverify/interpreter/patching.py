"""The one way in which the interpreter is changed: a name is given another value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    """Put what `make` returns for the present value in its place."""
    setattr(owner, name, make(getattr(owner, name)))


def set_for_launch(owner: Any, name: str, value: Any, scope: tuple[Any, ...]) -> None:
    """Set an attribute for the time of a launch, or for good in versions that never undo it.

    Args:
        owner: what the attribute belongs to.
        name: the attribute.
        value: its value.
        scope: what the interpreter hands to the functions that change the language, behind their
            first argument: nothing in older versions.
    """
    if scope:
        scope[0].set_attr(owner, name, value)
    else:
        setattr(owner, name, value)


def missing(owner: Any, names: Iterable[str]) -> list[str]:
    """Return those of the names that a module or a class lacks."""
    return [name for name in names if not hasattr(owner, name)]
