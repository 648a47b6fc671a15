"""The command-line options and ini values about compiling."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ASCEND_PYTHON = "--verify-ascend-python"
DEFAULT_LIMIT = 300.0
"""Seconds that compiling one kernel may take."""

_COMPILE = (
    "Compile every kernel that the cases launch for a target, which this machine need not have: "
    "cuda:80, cuda:90, cuda:100, hip:gfx942, Ascend910B4, ... (repeatable, or with commas)"
)
_ALL = "Compile every configuration of autotuned kernels, not only those that ran"
_TIMEOUT = f"Seconds that compiling one kernel may take (default {DEFAULT_LIMIT:g})"
_PYTHON = (
    "The interpreter of an environment with triton-ascend and ascendnpu-ir (default: this one if "
    "it has them, else .venv-ascend beside what is judged)"
)


def add_options(group: pytest.OptionGroup, parser: pytest.Parser) -> None:
    """Define them."""
    group.addoption(
        "--verify-compile", dest="verify_compile", action="append", metavar="TARGET", help=_COMPILE
    )
    group.addoption(
        "--verify-compile-all-configs",
        dest="verify_compile_all_configs",
        action="store_const",
        const=True,
        help=_ALL,
    )
    group.addoption(
        "--verify-compile-timeout",
        dest="verify_compile_timeout",
        metavar="SECONDS",
        help=_TIMEOUT,
    )
    group.addoption(ASCEND_PYTHON, dest="verify_ascend_python", metavar="PATH", help=_PYTHON)
    parser.addini("verify_compile", _COMPILE, type="args", default=[])
    parser.addini("verify_compile_all_configs", _ALL, type="bool", default=False)
    parser.addini("verify_compile_timeout", _TIMEOUT, default="")
    parser.addini("verify_ascend_python", _PYTHON, default="")
