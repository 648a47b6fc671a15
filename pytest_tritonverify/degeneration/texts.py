"""Strings that a file makes of constants: computed where that costs nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.values import A_NUMBER, Const, Store, Value, constant_of

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.host import Host

# A width of thousands, or one that is given elsewhere.
_WIDE = re.compile(r"\d{4}|\*|:[^}]*\{")


def is_wide(form: str | bytes) -> bool:
    """Say whether a format may make a long text of short values."""
    return _WIDE.search(str(form)) is not None


def text_method(host: Host, name: str, receiver: Const, arguments: Arguments) -> Value:
    """Call a method of a string; what is known is computed."""
    allowed = (
        "join",
        "lower",
        "upper",
        "strip",
        "lstrip",
        "rstrip",
        "replace",
        "format",
        "title",
        "removeprefix",
        "removesuffix",
        "decode",
        "encode",
        "swapcase",
        "capitalize",
    )
    if name not in allowed or not isinstance(receiver.value, (str, bytes)):
        return A_NUMBER
    if name == "format" and is_wide(receiver.value):
        return A_NUMBER
    values: list[Any] = []
    for value in arguments.values:
        parts = [a for a in value if isinstance(a, Store)]
        known: Any = constant_of(value)
        if parts and name == "join":
            fields = [constant_of(v) for v in parts[0].fields.values()]
            if not all(fields) or parts[0].rest:
                return A_NUMBER
            values.append([f.value for f in fields if f])
        elif known is None:
            return A_NUMBER
        else:
            values.append(known.value)
    try:
        result = getattr(receiver.value, name)(*values)
    except Exception:  # noqa: BLE001 - the file's own mistake
        return A_NUMBER
    return host.pool.constant(result) if len(result) < 1 << 12 else A_NUMBER
