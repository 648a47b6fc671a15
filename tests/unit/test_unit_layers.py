"""Which module may import which, as docs/architecture.md has it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
NAME = "pytest_tritonverify"
HEAVY = {"torch", "triton", "numpy"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def modules() -> dict[str, Path]:
    """Return the package's modules by their name below it."""
    found = {}
    for path in (ROOT / NAME).rglob("*.py"):
        parts = path.relative_to(ROOT / NAME).with_suffix("").parts
        found[".".join(part for part in parts if part != "__init__")] = path
    return found


@cache
def page() -> str:
    return (ROOT / "docs" / "architecture.md").read_text("utf-8")


def statements(
    node: ast.AST, *, late: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield imports that run, without those for types alone, and whether they run late."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, late
        elif isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from statements(other, late=late)
        elif isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case)):
            yield from statements(child, late=late or isinstance(child, FUNCTIONS))


@cache
def imports(module: str) -> dict[str, bool]:
    """Return what a module imports, by full name, and whether it does so late alone."""
    found: dict[str, bool] = {}
    for statement, late in statements(ast.parse(modules()[module].read_bytes())):
        if isinstance(statement, ast.Import):
            names = [alias.name for alias in statement.names]
        else:
            names = [f"{statement.module}.{alias.name}" for alias in statement.names]
        for name in names:
            found[name] = found.get(name, True) and late
    return found


def at_top(module: str) -> list[str]:
    return [name for name, late in imports(module).items() if not late]


def ours(names: Iterable[str]) -> set[str]:
    """Return the modules of the package among names, or the ones that hold the names."""
    found = set()
    for name in names:
        package, _, rest = name.partition(".")
        if package != NAME:
            continue
        while rest and rest not in modules():
            rest = rest.rpartition(".")[0]
        found.add(rest)
    return found - {""}


def reached(start: Iterable[str], *, packages: bool) -> set[str]:
    """Return the modules whose code runs when some are imported, perhaps with their packages."""
    found: set[str] = set()
    pending = list(start)
    while pending:
        module = pending.pop()
        if module not in found:
            found.add(module)
            pending += ours(at_top(module))
            if packages and "." in module:
                pending.append(module.rpartition(".")[0])
    return found


def test_no_import_leads_back() -> None:
    back = {m for m in modules() if m in reached(ours(at_top(m)), packages=False)}
    assert {m for m in back if not m.startswith("degeneration.")} == set()


def test_pytest_stays_on_its_side() -> None:
    named = re.search(r"pytest is imported by (.*?)alone", page(), re.DOTALL)
    assert named is not None
    allowed = {
        name.removesuffix(".py").replace("/", ".") for name in re.findall(r"`(.+?)`", named[1])
    }
    users = {
        module
        for module in modules()
        if {name.partition(".")[0] for name in imports(module)} & {"pytest", "_pytest"}
    }
    assert users == allowed


@pytest.mark.parametrize(
    "start",
    ["plugin", "hooks", "cli", "workflow.command", "judge", "probe.probing", "environment"],
)
def test_the_judge_is_light(start: str) -> None:
    heavy = {
        module
        for module in reached([start], packages=True)
        if {name.partition(".")[0] for name in at_top(module)} & HEAVY
    }
    assert heavy == set()


def table() -> dict[str, set[str]]:
    """Return what the page allows every package to use."""
    allowed: dict[str, set[str]] = {}
    for packages, uses in re.findall(r"^\| ((?:`\w+/`(?:, )?)+) \| (.+) \|$", page(), re.MULTILINE):
        found = set(re.findall(r"`(\w+)(?:/|\.py)`", uses))
        if found or uses == "nothing":
            allowed |= dict.fromkeys(re.findall(r"`(\w+)/`", packages), found)
    return allowed


def test_packages_use_what_they_may() -> None:
    allowed = table()
    tops = {module.partition(".")[0] for module in modules()} - {"", "__main__"}
    packages = {path.parent.name for path in (ROOT / NAME).glob("*/__init__.py")}
    assert allowed.keys() == packages
    assert set().union(*allowed.values()) <= tops
    used: dict[str, set[str]] = {package: set() for package in packages}
    for module in modules():
        package = module.partition(".")[0]
        if package in packages:
            found = {name.partition(".")[0] for name in ours(imports(module))}
            used[package] |= found - {package}
    assert {p: uses - allowed[p] for p, uses in used.items() if not uses <= allowed[p]} == {}
