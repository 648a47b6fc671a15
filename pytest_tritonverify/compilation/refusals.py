"""What a compiler has raised, as plain data: its kind, its words, and the kernel's line."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import finding, words
from pytest_tritonverify.execution import errors

if TYPE_CHECKING:
    from collections.abc import Iterator

NOT_COMPILED = "not_compiled"

_LONGEST_WORDS = 8000
_LONGEST_MESSAGE = 1000
_MOST_CAUSES = 16
# In what Python says of a function: another one in each process, so that nothing would be alike.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+(?=>)")


def error(
    subkind: str, message: str, said: str = "", place: tuple[str, int] | None = None
) -> dict[str, Any]:
    """Return the description of a failure.

    Args:
        subkind: one of `words.SUBKINDS`, or `NOT_COMPILED`.
        message: what is wrong, in a line.
        said: all that the compiler said.
        place: file and line of the kernel.
    """
    file, line = place or (None, None)
    return {
        "subkind": subkind,
        "message": errors.clip(_ADDRESS.sub("", message).strip(), _LONGEST_MESSAGE),
        "words": errors.clip(_ADDRESS.sub("", said).strip(), _LONGEST_WORDS),
        "file": file,
        "line": line,
    }


def not_compiled(message: str) -> dict[str, Any]:
    """Return the description of a kernel that could not be handed to the compiler."""
    return error(NOT_COMPILED, message)


def described(
    raised: BaseException,
    entry: dict[str, Any],
    said: str,
    *,
    front_end: bool,
    died: str | None = None,
) -> dict[str, Any]:
    """Return the description of what compiling a kernel has raised.

    Args:
        raised: the exception.
        entry: the launch, as `recording` noted it.
        said: what compilers have printed.
        front_end: no stage of the back end has been finished.
        died: how a compiler that is a command was ended by a signal.
    """
    chain = list(_chain(raised))
    own = [errors.message_of(link) for link in chain]
    # The exception's own words first: what was printed may be long.
    everything = [own[0], *([own[-1]] if own[-1] not in own[0] else []), said]
    text = words.cleaned("\n".join(part for part in everything if part))
    message = _message(chain, text, front_end=front_end)
    if died is not None and not said:
        message = died
    if message.startswith("NameError"):
        # Triton's advice about it speaks of what is supported.
        kind = words.TRITON_ERROR
    else:
        asked = f"{message}\n{said}" if front_end else text
        kind = words.subkind(asked, front_end=front_end, crashed=died is not None)
    place = _place(chain) or _told_place(text) or (entry["file"], entry["line"])
    return error(kind, message, text, place)


def _chain(raised: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those that it was made from, the deepest last."""
    link: BaseException | None = raised
    for _ in range(_MOST_CAUSES):
        if link is None:
            return
        yield link
        link = link.__cause__


def _message(chain: list[BaseException], text: str, *, front_end: bool) -> str:
    deepest = chain[-1]
    if not front_end:
        found = words.gist(text)
        if found:
            return found
    own = getattr(deepest, "error_message", None)
    if isinstance(own, str) and own:
        return own
    told = errors.message_of(deepest)
    diagnosed = words.diagnostics(text)
    if diagnosed:
        return diagnosed[0][2]
    return f"{errors.type_name(deepest)}: {told}"


def _place(chain: list[BaseException]) -> tuple[str, int] | None:
    """Return where Triton's front end stood: in the deepest function whose file is known."""
    found = None
    for link in chain:
        node = getattr(link, "node", None)
        start = finding.line_of(getattr(link, "src", None))
        line = getattr(node, "lineno", None)
        if start is not None and isinstance(line, int):
            found = start[0], start[1] + line - 1
    return found


def _told_place(text: str) -> tuple[str, int] | None:
    """Return the first place in a source file that a compiler's words name."""
    for file, line, _ in words.diagnostics(text):
        if file.endswith(".py") and os.path.isfile(file):  # noqa: PTH113 - a foreign string
            return file, line
    return None
