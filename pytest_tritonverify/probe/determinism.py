"""Two runs of one side on the same case: do they leave the same bits?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST_SHOWN = 6


def unlike(first: tuple[Any, int | None], second: tuple[Any, int | None]) -> list[str]:
    """Return the paths of outputs, and of changed inputs, whose bits differ between two runs.

    Args:
        first: what a run left behind: its description and its memory file.
        second: the same of the other run.

    Raises:
        WireError: an untrusted process sent what is no result.
    """
    from pytest_tritonverify import outcomes

    found = []
    for result, fd in (first, second):
        if not isinstance(result, dict):
            raise WireError("what came is no result")
        try:
            found.append(outcomes.digests(result, fd))
        except KeyError as error:
            raise WireError(f"a result lacks {error}") from None
    paths = dict.fromkeys((*found[0], *found[1]))
    return [path for path in paths if found[0].get(path) != found[1].get(path)]


def message(name: str, paths: Sequence[str]) -> str:
    """Return the warning's text."""
    shown = ", ".join(paths[:_MOST_SHOWN])
    if len(paths) > _MOST_SHOWN:
        shown += f" and {len(paths) - _MOST_SHOWN} more"
    return (
        f"two runs of {name} on the same inputs, built from the same seed, differ in {shown}. "
        "Atomic additions in changing order do that, memory that is read before it is written, "
        "and state that outlives a call"
    )
