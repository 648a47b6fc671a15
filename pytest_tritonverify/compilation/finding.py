"""Find a recorded kernel again, in a process that has imported the same implementation."""

from __future__ import annotations

import functools
import os
import sys
from types import CellType, CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.compilation import restoring, values

if TYPE_CHECKING:
    from collections.abc import Iterator

_made: list[Any] = []
_watching: list[bool] = []


class NotFoundError(LookupError):
    """A kernel isn't there; the text says where it was looked for."""


def watch() -> None:
    """Remember the kernels that are made from now on; a second call changes nothing."""
    if _watching:
        return
    _watching.append(True)
    from triton.runtime.jit import JITFunction

    make = JITFunction.__init__

    @functools.wraps(make)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - stands for it
        make(self, *args, **kwargs)
        _made.append(self)

    JITFunction.__init__ = __init__


def kernel(entry: dict[str, Any]) -> Any:
    """Return the kernel of a recorded launch, its variables as they were when it was launched.

    Args:
        entry: what `recording` noted.

    Raises:
        NotFoundError: no module that was imported here makes it.
        restoring.OpaqueError: a variable of it can't be made here.
    """
    for name, variables in entry["changed"].items():
        module = sys.modules.get(name)
        for variable, data in variables.items():
            if module is not None:
                setattr(module, variable, restoring.restore(data, at))
    return at(entry)


def at(entry: dict[str, Any]) -> Any:
    """Return the kernel whose `name`, `file` and `line` an entry holds.

    Raises:
        NotFoundError: there is none.
        restoring.OpaqueError: a variable of it can't be made here.
    """
    found = next((one for one in reversed(_made) if _is(one.fn.__code__, entry)), None)
    if found is not None and not found.fn.__code__.co_freevars:
        return found
    return _built(entry, found)


def line_of(source: str | None) -> tuple[str, int] | None:
    """Return file and line of the `def` of the kernel that has this source, as Triton cuts it."""
    for one in reversed(_made):
        if source is not None and getattr(one, "src", None) == source:
            code = one.fn.__code__
            return code.co_filename, values.definition_line(code)
    return None


def _is(code: CodeType, place: dict[str, Any]) -> bool:
    there = (place["name"], os.path.realpath(place["file"]), place["line"])
    # The line last: it takes reading the file.
    if (code.co_name, os.path.realpath(code.co_filename)) != there[:2]:
        return False
    return bool(values.definition_line(code) == there[2])


def _built(entry: dict[str, Any], template: Any) -> Any:
    """Make a kernel that is defined in another function, with the variables that it has there."""
    from triton.runtime.jit import JITFunction

    if "args" not in entry:
        raise NotFoundError(
            f"{entry['name']} ({entry['file']}:{entry['line']}), which is handed to another "
            "kernel, is not made when its module is imported"
        )
    module, code = _code(entry)
    cells = []
    for name in code.co_freevars:
        if name not in entry["closure"]:
            raise NotFoundError(f"{entry['name']} takes {name} from another function without value")
        cells.append(CellType(restoring.restore(entry["closure"][name], at)))
    function = FunctionType(code, vars(module), entry["name"], None, tuple(cells))
    function.__annotations__ = dict(entry["annotations"])
    function.__qualname__ = entry["qualname"]
    function.__module__ = module.__name__
    kind = type(template) if template is not None else JITFunction
    return kind(function, **entry["jit"])


def _code(entry: dict[str, Any]) -> tuple[Any, CodeType]:
    path = os.path.realpath(entry["file"])
    module = next(
        (m for m in list(sys.modules.values()) if _file_of(m) == path),
        None,
    )
    if module is None:
        raise NotFoundError(
            f"{entry['name']} stands in {entry['file']}, which importing the implementation does "
            "not import"
        )
    with open(path, "rb") as stream:  # noqa: PTH123 - a name as code objects have it
        whole = compile(stream.read(), entry["file"], "exec", dont_inherit=True)
    for code in _nested(whole):
        if _is(code, entry):
            return module, code
    raise NotFoundError(f"{entry['file']} has no {entry['name']} in line {entry['line']}")


def _file_of(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    return os.path.realpath(file) if isinstance(file, str) else None


def _nested(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _nested(constant)
