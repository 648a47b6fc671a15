"""Changes to other modules that can all be taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_ABSENT = object()


class Patches:
    """Remembers what was changed, in order."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Give an attribute a value, and return the one that it had (None if it had none)."""
        # What a class inherits isn't its own, and is there again when its own is gone.
        before = vars(owner).get(name, _ABSENT)
        inherited = getattr(owner, name, None)
        setattr(owner, name, value)
        if before is _ABSENT:
            self.later(lambda: delattr(owner, name))
        else:
            self.later(lambda: setattr(owner, name, before))
        return inherited

    def item(self, mapping: dict[str, Any], key: str, value: Any) -> None:
        """Put an item into a dictionary."""
        before = mapping.get(key, _ABSENT)
        mapping[key] = value
        if before is _ABSENT:
            self.later(lambda: mapping.pop(key, None))
        else:
            self.later(lambda: mapping.__setitem__(key, before))

    def later(self, action: Callable[[], object]) -> None:
        """Have something done when everything is taken back."""
        self._undo.append(action)

    def undo(self) -> None:
        """Take all changes back, the last one first."""
        while self._undo:
            self._undo.pop()()
