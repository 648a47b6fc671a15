"""What user code asked the stand-in for, told apart from what libraries ask for themselves."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_words: set[str] = set()

_PACKAGE = "pytest_tritonverify"
_LIBRARIES = ("torch", "triton", _PACKAGE)


def note(word: str) -> None:
    """Remember that a facility was used, if the nearest caller outside of here is user code."""
    if word not in _words and asked_by_user():
        _words.add(word)


def words() -> list[str]:
    """Return what was used, sorted."""
    return sorted(_words)


def forget() -> None:
    """Forget what was used."""
    _words.clear()


def asked_by_user() -> bool:
    """Whether the nearest frame outside of the stand-in is neither of a library nor of ours."""
    frame: FrameType | None = sys._getframe(1)
    # An import's own frames lie between the stand-in and whoever imports.
    while frame is not None and frame.f_code.co_filename.startswith((_here(), "<frozen ")):
        frame = frame.f_back
    return frame is not None and not is_library(frame)


def is_library(frame: FrameType) -> bool:
    """Whether a frame runs code of torch, triton or this package."""
    return frame.f_code.co_filename.startswith(_library_folders())


def our_folder() -> str:
    """Return where this package's code is, which knows that tensors are on the CPU."""
    return _library_folders()[-1]


@functools.cache
def _here() -> str:
    return str(Path(__file__).parent) + os.sep


@functools.cache
def _library_folders() -> tuple[str, ...]:
    found = []
    for name in _LIBRARIES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            found.append(str(Path(spec.origin).parent) + os.sep)
    return tuple(found)
