"""Which Triton the tests run with, and what ends differently with it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

_DEVIATIONS = Path(__file__).parents[1] / "lanes" / "deviations.json"


def _package() -> Path:
    spec = importlib.util.find_spec("triton")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


PACKAGE = _package()
ASCEND = (PACKAGE / "backends" / "ascend").is_dir()
_FOUND = re.search(r"__version__ = ['\"](\d+)\.(\d+)", (PACKAGE / "__init__.py").read_text("utf-8"))
assert _FOUND is not None, f"{PACKAGE} has no version"
VERSION = (int(_FOUND[1]), int(_FOUND[2]))


def deviations() -> dict[str, tuple[int, int, list[str]]]:
    """Return what is expected of cases on the interpreter instead of what their files say.

    Returns:
        Total, passed cases and error types, by the case's folder.
    """
    known = json.loads(_DEVIATIONS.read_text("utf-8"))
    chosen = known["triton-ascend 3.2"] if ASCEND else {}
    if VERSION < (3, 9):
        chosen = {**known["triton before 3.9"], **chosen}
    return {
        name: (entry["total_cases"], entry["passed_cases"], entry["error_types"])
        for name, entry in chosen.items()
    }
