"""What the whole suite shares: pytest's own plugin tester, and the order of the files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("pytester",)

# The slowest first: with one process a core, the last file should be a short one. pytest-xdist
# needs --no-loadscope-reorder, else it begins with the files that hold most tests.
_SLOW = (
    "test_cases.py",
    "plugin",
    "npu",
    "test_unit_cli_processes.py",
    "test_benchmark_plugin.py",
    "interpreter",
    "evidence",
    "probe",
    "execution",
    "forensics",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files that take long in front; the order within a file stays."""
    items.sort(key=lambda item: _rank(item.path))


def _rank(path: Path) -> int:
    places = [place for place, name in enumerate(_SLOW) if name in path.parts]
    return min(places, default=len(_SLOW))
