"""The static half of the check of a task file: what its source defines, and what lies beside it."""

from __future__ import annotations

import ast
import json
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_tritonverify import case_file
from pytest_tritonverify.discovery import TASK_SUFFIX
from pytest_tritonverify.workflow.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GROUPS = "get_input_groups"
INPUTS = "get_inputs"
INIT = "get_init_inputs"
COMPONENTS = ("Model", "forward", INIT, f"{INPUTS}|{GROUPS}")

_DRIVER_NAMES = ("main", "run_test", "run_tests", "benchmark")
_DRIVER_MODULES = ("pytest", "unittest")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Source:
    """What a task's source says.

    Attributes:
        findings: what is wrong.
        found, missing: the documented components, as far as they are there.
        groups: it defines `get_input_groups`.
        error: the syntax error, where there is one.
    """

    findings: tuple[Finding, ...]
    found: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    groups: bool = False
    error: str | None = None

    @property
    def passed(self) -> bool:
        """Whether nothing keeps the file from being run."""
        return not any(finding.severity == "error" for finding in self.findings)


def check(path: Path, source: bytes) -> Source:
    """Check a task's source; nothing of it is run.

    Args:
        path: the file, for its name and what lies beside it.
        source: its content.
    """
    try:
        with warnings.catch_warnings():
            # Of the user's code.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except SyntaxError as error:
        text = f"SyntaxError: {error.msg}"
        finding = Finding("syntax", text, path.name, error.lineno)
        return Source((finding,), missing=COMPONENTS, error=text)
    except (ValueError, RecursionError, MemoryError) as error:
        text = f"{type(error).__name__}: {error}"
        return Source((Finding("syntax", text, path.name),), missing=COMPONENTS, error=text)
    defined = _definitions(tree)
    findings = [*_components(defined, path), *_drivers(tree, defined, path.name)]
    findings += _data_files(tree, path)
    found, missing = _found(defined)
    return Source(tuple(findings), found, missing, GROUPS in defined)


def _definitions(tree: ast.Module) -> dict[str, ast.stmt]:
    """Return what the module defines by name, within conditions and `try` too."""
    found: dict[str, ast.stmt] = {}
    pending: list[ast.AST] = [tree]
    while pending:
        for node in ast.iter_child_nodes(pending.pop(0)):
            if isinstance(node, (*_Function, ast.ClassDef)):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                found.update({t.id: node for t in node.targets if isinstance(t, ast.Name)})
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found.update({(a.asname or a.name).split(".")[0]: node for a in node.names})
            elif isinstance(node, (ast.If, ast.Try, ast.With, ast.ExceptHandler)):
                pending.append(node)
    return found


def _components(defined: dict[str, ast.stmt], path: Path) -> Iterator[Finding]:
    name, model = path.name, defined.get("Model")
    if model is None:
        yield Finding("no_model", "there is no class `Model`", name)
    elif isinstance(model, ast.ClassDef):
        if not model.bases:
            text = "`Model` is no torch.nn.Module: derive it from one"
            yield Finding("no_module", text, name, model.lineno)
        if not _has_forward(model) and not _inherits(model, defined):
            text = "`Model` has no method `forward`"
            yield Finding("no_forward", text, name, model.lineno)
    if INIT not in defined:
        text = f"there is no `{INIT}()`: define it, returning [] where `Model` takes nothing"
        yield Finding("no_init_inputs", text, name)
    if GROUPS not in defined and INPUTS not in defined:
        text = f"there is neither `{GROUPS}()` nor `{INPUTS}()`"
        own = data_file(path)
        if own is not None:
            text += f": cases are made from {own.name}, which other verifiers don't do"
            yield Finding("no_inputs", text, name, severity="warning")
        else:
            yield Finding("no_inputs", text, name)


def _has_forward(model: ast.ClassDef) -> bool:
    names = [node.name for node in model.body if isinstance(node, _Function)]
    assigned = [
        target.id
        for node in model.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    return "forward" in names or "forward" in assigned


def _inherits(model: ast.ClassDef, defined: dict[str, ast.stmt]) -> bool:
    """Say whether a base class other than torch's own may bring the method."""
    for base in model.bases:
        last = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        known = defined.get(last)
        if last != "Module" and not (isinstance(known, ast.ClassDef) and not _has_forward(known)):
            return True
    return False


def _found(defined: dict[str, ast.stmt]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    model = defined.get("Model")
    forward = model is not None and (
        not isinstance(model, ast.ClassDef) or _has_forward(model) or _inherits(model, defined)
    )
    there = {
        "Model": model is not None,
        "forward": forward,
        INIT: INIT in defined,
        f"{INPUTS}|{GROUPS}": INPUTS in defined or GROUPS in defined,
    }
    found = [name for name in ("Model", "forward", INPUTS, GROUPS, INIT) if name in defined]
    if forward:
        found.insert(1, "forward")
    return tuple(found), tuple(name for name, is_there in there.items() if not is_there)


def _drivers(tree: ast.Module, defined: dict[str, ast.stmt], name: str) -> Iterator[Finding]:
    """Yield what runs or tests the task instead of defining it."""
    advice = "a task holds no test driver: take it out"
    for node in tree.body:
        if isinstance(node, ast.If) and _names_main(node.test):
            yield Finding("test_driver", f"`if __name__ == ...`: {advice}", name, node.lineno)
        elif isinstance(node, _Function) and (
            node.name.startswith("test_") or node.name in _DRIVER_NAMES
        ):
            yield Finding("test_driver", f"`{node.name}()`: {advice}", name, node.lineno)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            named = [m for m in modules if m.partition(".")[0] in _DRIVER_MODULES]
            if named:
                yield Finding("test_driver", f"`{named[0]}`: {advice}", name, node.lineno)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            called = _called(node.value)
            own = isinstance(defined.get(called), (*_Function, ast.ClassDef))
            if called == "print" or own:
                yield Finding("test_driver", f"`{called}(...)`: {advice}", name, node.lineno)


def _names_main(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def _called(call: ast.Call) -> str:
    function: ast.expr = call.func
    while isinstance(function, (ast.Attribute, ast.Call)):
        function = function.value if isinstance(function, ast.Attribute) else function.func
    return function.id if isinstance(function, ast.Name) else ""


def _data_files(tree: ast.Module, path: Path) -> Iterator[Finding]:
    """Yield what is wrong with the JSON files that a task names, and with the one of its name."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        named = node.value
        if not named.endswith(".json") or named == ".json" or any(c in named for c in "\n{%*"):
            continue
        beside = path.parent / named.rpartition("/")[2]
        if not beside.is_file():
            text = f"there is no {beside.name} beside it: copy it with the task, byte for byte"
            yield Finding("no_data_file", text, path.name, node.lineno)
        elif beside.name not in _data_names(path):
            text = f"its data file {beside.name} has another name than the task: {path.stem}.json"
            yield Finding("data_file_name", text, path.name, node.lineno, "warning")
    own = data_file(path)
    if own is not None:
        yield from _lines(own)


def _data_names(path: Path) -> tuple[str, ...]:
    """Return the names of a task's data file: its own, or its operator's."""
    stems = (path.stem, path.stem.removesuffix(TASK_SUFFIX))
    return tuple(dict.fromkeys(f"{stem}.json" for stem in stems))


def data_file(path: Path) -> Path | None:
    """Return the JSON file of a task's name beside it; None where there is none."""
    places = (path.with_name(name) for name in _data_names(path))
    return next((place for place in places if place.is_file()), None)


def case_count(path: Path) -> int | None:
    """Return the number of cases in a task's data file; None where it has none, or no such form."""
    own = data_file(path)
    if own is None or any(True for _ in _lines(own)):
        return None
    try:
        return len(case_file.load_case_specs(own))
    except ValueError:
        return None


def _lines(path: Path) -> Iterator[Finding]:
    """Yield the lines of a data file that are no JSON."""
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        yield Finding("data_file", f"it can't be read: {error}", path.name)
        return
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        pass
    else:
        # One document, in whatever form the task reads.
        return
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = str(error).partition(":")[0]
            yield Finding("data_file", f"it is no JSON: {reason}", path.name, number)
