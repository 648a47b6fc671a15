"""Texts of others, made fit to be shown: nothing invisible, nothing that reorders, not too long."""

from __future__ import annotations

import re

from pytest_tritonverify.execution import errors

NAME_LIMIT = 160
MESSAGE_LIMIT = 4000

_COLOURS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]")
# Controls, and what makes text run in another direction than it is written in.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)


def shown(text: object, limit: int = MESSAGE_LIMIT) -> str:
    """Return a text for people: colours of terminals taken out, other controls written out.

    Args:
        text: anything; what is no text is turned into one.
        limit: characters that are kept, of both ends.
    """
    found = text if isinstance(text, str) else str(text)
    # Before it is searched: it may be huge.
    found = errors.clip(found, 4 * limit)
    found = _COLOURS.sub("", found.replace("\r\n", "\n"))
    found = errors.printable(_UNSEEN.sub(_written_out, found))
    return errors.clip(found, limit)


def name(text: object) -> str:
    """Return a name for people, on one line."""
    return " ".join(shown(text, NAME_LIMIT).split())


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 - one byte


def plural(count: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def times(factor: float) -> str:
    """Return a speed-up with three digits that count."""
    return f"{factor:.3g}×" if factor < 1000 else f"{factor:.0f}×"  # noqa: PLR2004 - three digits
