"""Where in a kernel's source the interpreter is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_OWN_CODE = str(Path(__file__).parent) + os.sep


def library_folders(interpreter: Any) -> tuple[str, ...]:
    """Return the folders of Triton itself and of this package, where no kernel's code stands."""
    return (str(Path(interpreter.triton.__file__).parent) + os.sep, _OWN_CODE)


def kernel_line(libraries: tuple[str, ...]) -> tuple[str, int]:
    """Return file and line (from 1) of the innermost frame outside of some folders."""
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(libraries) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno
