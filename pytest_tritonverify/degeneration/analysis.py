"""Run a file's model on abstract values and collect what is found."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration import attributes, calling
from pytest_tritonverify.degeneration.arguments import Arguments
from pytest_tritonverify.degeneration.code import Code
from pytest_tritonverify.degeneration.device import Work
from pytest_tritonverify.degeneration.findings import HOST, TORCH, Findings
from pytest_tritonverify.degeneration.frames import Frame, Summary
from pytest_tritonverify.degeneration.host import Host
from pytest_tritonverify.degeneration.kernels import examine
from pytest_tritonverify.degeneration.machine import Machine
from pytest_tritonverify.degeneration.pool import Pool
from pytest_tritonverify.degeneration.spelling import Names
from pytest_tritonverify.degeneration.values import (
    A_TENSOR,
    AN_OPAQUE,
    NOTHING,
    Bound,
    Function,
    Instance,
    Kernel,
    Method,
    Scope,
    Symbol,
    Value,
    constant_of,
    only,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.findings import Launch
    from pytest_tritonverify.degeneration.reading import Source

_MOST_RUNS = 5
_MOST_BINDINGS = 4
_MANY = 32  # more inputs than any forward(*args) takes


@dataclass
class Analysis:
    """What running a model has shown.

    Attributes:
        found: violations, movement, launches.
        kernels: all kernels that were seen, in the order of their lines.
        works: what each launched kernel does.
        missing: there is no such class.
        idle: the model's class, where it has no `forward`.
        exhausted: the file is too entangled for the check.
        module: the file's names and what they stand for.
        names: all names that the file binds and mentions.
    """

    found: Findings
    module: Scope
    names: Names
    kernels: list[Kernel] = field(default_factory=list)
    works: dict[Kernel, Work] = field(default_factory=dict)
    missing: bool = False
    idle: ast.ClassDef | None = None
    exhausted: bool = False


def analyse(source: Source, model: str, *, partial: bool = False) -> Analysis:
    """Run a file, build its model and call it.

    Args:
        source: the file.
        model: the model's name.
        partial: PyTorch may compute beside kernels.
    """
    tree = source.tree
    pool = Pool()
    found = Findings()
    names = Names(tree)
    host = Host(pool, found, names, partial=partial)
    # A line makes some ten instructions, and functions are run for several kinds of arguments.
    machine = Machine(pool, host, most_steps=400 * len(source.lines) + 10_000)
    host.machine = machine
    machine.run_module(tree)
    result = Analysis(found, machine.module, names)
    for _ in range(_MOST_RUNS):
        machine.forget()
        entry = machine.module.names.get(model, NOTHING)
        if not entry:
            result.missing = True
            break
        result.idle = _run_model(host, machine, entry, tree)
        if not machine.dirty or machine.exhausted:
            break
    result.exhausted = machine.exhausted
    result.kernels = _kernels(pool)
    _examine_launches(result)
    found.settle()
    return result


def _run_model(host: Host, machine: Machine, entry: Value, tree: ast.Module) -> ast.ClassDef | None:
    """Build a model and call it; return its class if that has nothing to be called."""
    idle = None
    host.found.recording = False
    unknown = Arguments(rest=AN_OPAQUE)
    instances = machine.call(entry, unknown, tree)
    host.found.recording = True
    for atom in instances:
        if isinstance(atom, Instance):
            if not _run_forward(host, machine, atom, tree):
                idle = atom.kind.node
        else:
            machine.call(only(atom), Arguments(rest=_input(host, tree, "*")), tree)
    if host.hooks:
        handed = machine.store("a hook's inputs")
        machine.put(handed, None, A_TENSOR, known=False)
        given = calling.given(instances, only(handed), A_TENSOR)
        for atom in list(host.hooks):
            machine.call(only(atom), given, tree)
    if host.found.launches:
        handed = machine.store("a launch's arguments")
        machine.put(handed, None, _input(host, tree, "launch"), known=False)
        for atom in list(host.later):
            machine.call(only(atom), calling.given(only(handed)), tree)
    return idle if len(instances) == 1 else None


def _run_forward(host: Host, machine: Machine, instance: Instance, tree: ast.Module) -> bool:
    """Call a model; say whether it has anything to be called."""
    entry = NOTHING
    for name in ("__call__", "forward"):
        machine.frames.append(_idle(machine))
        entry = attributes.of_instance(host, instance, name, tree, missing=NOTHING)
        machine.frames.clear()
        machine.waiting.clear()
        if any(isinstance(a, (Bound, Function)) for a in entry):
            break
    for callee in entry:
        function = callee
        while isinstance(function, Bound):
            function = function.function
        if isinstance(function, Function):
            skip = 1 if isinstance(callee, Bound) else 0
            returned = machine.call(only(callee), _inputs(host, function, skip), tree)
        else:
            returned = machine.call(only(callee), Arguments(rest=_input(host, tree, "*")), tree)
        for atom in calling.deep(returned):
            # What a forward pass returns is a tensor, as far as that isn't known.
            symbol = atom.receiver if isinstance(atom, Method) else atom
            if isinstance(symbol, Symbol) and symbol.site is not None:
                host.found.is_tensor(only(symbol))
    return bool(entry)


def _idle(machine: Machine) -> Frame:
    return Frame(Code(ast.Module([], [])), Scope(machine.module), Summary())


def _input(host: Host, node: ast.AST, name: str) -> Value:
    return host.pool.one((Symbol, node, name), Symbol)


def _inputs(host: Host, function: Function, skip: int) -> Arguments:
    """Return the inputs of a forward pass: what they are shows in how they are used."""
    code = function.code
    annotations = code.annotations()
    values: list[Value] = []
    keywords: dict[str, Value] = {}
    for position, name in enumerate(code.parameters):
        if position < skip:
            continue
        annotation = annotations.get(name)
        value = _input(host, function.node, name)
        if annotation is not None and _is_tensor(annotation):
            value = A_TENSOR
        if position < code.positional:
            values.append(value)
        else:
            keywords[name] = value
    rest = _input(host, function.node, "*")
    if code.variadic:
        values += [_input(host, function.node, f"*{index}") for index in range(_MANY)]
    return Arguments(
        tuple(values),
        keywords,
        NOTHING,
        rest if code.keywords else NOTHING,
    )


def _is_tensor(annotation: ast.expr) -> bool:
    """Say whether an annotation is that of a tensor, and not of a list of them."""
    tensor = False
    for node in ast.walk(annotation):
        name = getattr(node, "id", getattr(node, "attr", getattr(node, "value", None)))
        if isinstance(name, str):
            lowered = name.lower()
            if any(word in lowered for word in ("list", "tuple", "sequence", "dict", "iterable")):
                return False
            tensor = tensor or name.rpartition(".")[2] in ("Tensor", "Parameter")
    return tensor


def _kernels(pool: Pool) -> list[Kernel]:
    kernels = {a for value in pool.values() for a in value if isinstance(a, Kernel)}
    return sorted(kernels, key=lambda k: getattr(k.function.node, "lineno", 0))


def _examine_launches(result: Analysis) -> None:  # noqa: C901 - one branch for each kind
    """Find out what the launched kernels do, and what that says about the forward's inputs."""
    launches: dict[Kernel, list[Launch]] = {}
    for launch in result.found.launches.values():
        launches.setdefault(launch.kernel, []).append(launch)
    for kernel, those in launches.items():
        parameters = kernel.function.code.parameters
        bindings: list[dict[str, Value]] = []
        for launch in those:
            handed = _handed(launch.arguments, parameters)
            known = {n: v for n, v in handed.items() if _is_plain(v)}
            if len(bindings) <= _MOST_BINDINGS and known not in bindings:
                bindings.append(known)
        if len(bindings) > _MOST_BINDINGS:
            bindings = [{}]
        work = Work()
        for known in bindings:
            one = examine(kernel, known, result.module)
            work.computes = work.computes or one.computes
            work.stores = work.stores or one.stores
            work.pointers |= one.pointers
            work.offsets |= one.offsets
            work.foreign.update(one.foreign)
        result.works[kernel] = work
        for launch in those:
            for name, value in _handed(launch.arguments, parameters).items():
                if name in work.pointers:
                    result.found.is_tensor(frozenset(calling.deep(value)))
                elif work.pointers and name not in work.offsets:
                    result.found.is_number(value)


def _handed(arguments: Arguments, parameters: list[str]) -> dict[str, Value]:
    handed = dict(zip(parameters, arguments.values, strict=False))
    handed.update({n: v for n, v in arguments.keywords.items() if n in parameters})
    return handed


def _is_plain(value: Value) -> bool:
    constant = constant_of(value)
    return constant is not None and constant.value is not None


def flat_names(source: Source) -> dict[str, str]:
    """Return what the imports of a file bind, wherever they stand."""
    names: dict[str, str] = {}
    for node in source.statements:
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                names[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def dotted(node: ast.AST, names: dict[str, str]) -> str | None:
    """Return the canonical dotted name of an expression, by the imports alone."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    root = names.get(node.id)
    return None if root is None else ".".join((root, *reversed(parts)))


def decorated_kernels(source: Source, names: dict[str, str]) -> list[ast.FunctionDef]:
    """Return the functions decorated with `triton.jit`, reached or not."""
    found = []
    for node in source.statements:
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                if dotted(target, names) in ("triton.jit", "triton.runtime.jit.jit"):
                    found.append(node)
                    break
    return found


def computes(result: Analysis) -> bool:
    """Say whether a model computes: more than moving, gathering and casting."""
    gathered = {id(f.node) for f in result.found.moved.values() if f.kind == "gather"}
    return any(
        f.kind in (TORCH, HOST) and id(f.node) not in gathered for f in result.found.found.values()
    ) or any(f.kind not in (TORCH, HOST) for f in result.found.found.values())
