"""The names of PyTorch that the static check knows, as the installed version has them.

`python -m tests.support.torch_names` adds the installed version's names to the table.
"""

from __future__ import annotations

import importlib
import pkgutil
import textwrap
from pathlib import Path

import torch

from pytest_tritonverify.degeneration import spelling

OWNERS = ("torch", "torch.Tensor", "torch.nn.Module", "torch.nn.functional", "triton.language")
_WIDTH = 100


def installed(owner: str) -> set[str]:
    """Return the names of a module or class of the installed PyTorch."""
    module, *parts = (owner,) if owner.startswith("triton.") else owner.split(".")
    value: object = importlib.import_module(module)
    for part in parts:
        value = getattr(value, part)
    # Modules have names that their constructor sets.
    names = set(dir(torch.nn.Module() if value is torch.nn.Module else value))
    if owner == "torch":
        names |= {module.name for module in pkgutil.iter_modules(torch.__path__)}
    return names


def _write() -> None:
    path = Path(spelling.__file__).with_name("torch_names.txt")
    lines = []
    for owner in OWNERS:
        known = spelling.names_of(owner) if path.exists() else frozenset()
        text = " ".join(sorted(known | installed(owner)))
        lines += [f"[{owner}]", *textwrap.wrap(text, _WIDTH, break_on_hyphens=False)]
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


if __name__ == "__main__":
    _write()
