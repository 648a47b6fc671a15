"""The meaning of a file's Python side: which values are tensors, and who computes on them."""

# ruff: noqa: ARG002 - operations share one signature

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.degeneration import attributes, calling, elements, findings, tables
from pytest_tritonverify.degeneration.findings import Finding, Findings
from pytest_tritonverify.degeneration.semantics import IDENTITY_TESTS, SYMBOLS, Semantics
from pytest_tritonverify.degeneration.symbols import derived, symbols_in
from pytest_tritonverify.degeneration.values import (
    A_NUMBER,
    A_TENSOR,
    AN_ARRAY,
    ARRAY,
    DEVICE,
    DEVICE_TYPE,
    HOST_RESULT,
    HOSTED,
    NOTHING,
    OFF_DEVICE,
    ON_DEVICE,
    OPAQUE,
    TENSOR,
    TENSORS,
    Atom,
    Bound,
    Class,
    Const,
    External,
    Function,
    Instance,
    Kernel,
    Launcher,
    Prepared,
    Store,
    Symbol,
    Value,
    constant_of,
    join,
    only,
    text_of,
)

if TYPE_CHECKING:
    import ast

    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.pool import Pool
    from pytest_tritonverify.degeneration.spelling import Names

SPECIAL = {
    name: f"__{stem}__"
    for name, stem in {
        "Add": "add",
        "Sub": "sub",
        "Mult": "mul",
        "MatMult": "matmul",
        "Div": "truediv",
        "FloorDiv": "floordiv",
        "Mod": "mod",
        "Pow": "pow",
        "BitAnd": "and",
        "BitOr": "or",
        "BitXor": "xor",
        "LShift": "lshift",
        "RShift": "rshift",
    }.items()
}
_CALLABLE = (Function, Bound, Prepared, External, Class)


class Host(Semantics):
    """Semantics of everything outside of kernels.

    Attributes:
        found: where violations, movement and launches are recorded.
        later: functions that a launch calls: hooks of configurations, heuristics.
        names: what the file binds and mentions.
        partial: PyTorch may compute, so that it need not be known what it has.
        lacking: attributes that instances of the file's classes don't have, by node.
        operators: functions that the file registers as operators of PyTorch, by `torch.ops` name.
    """

    def __init__(self, pool: Pool, found: Findings, names: Names, *, partial: bool) -> None:
        super().__init__(pool)
        self.found = found
        self.names = names
        self.partial = partial
        self.lacking: dict[int, str] = {}
        self.later: dict[Atom, None] = {}
        self.hooks: dict[Atom, None] = {}
        self.operators: dict[str, Value] = {}

    # Reports.

    @property
    def guarded(self) -> bool:
        """Whether the current code is reached only where there is no accelerator."""
        return self.machine.frame.guarded

    def report(self, kind: str, node: ast.AST, reason: str, call: str = "") -> None:
        """Record a violation."""
        self.found.add(kind, node, call, reason, guarded=self.guarded)

    def moves(self, node: ast.AST, name: str, kind: str) -> None:
        """Record movement."""
        self.found.move(node, name, kind, guarded=self.guarded)

    # Operators.

    def operate(self, symbol: str, operands: tuple[Value, ...], node: ast.AST) -> Value:  # noqa: PLR0911 - one branch for each kind
        """Return what an operator, or a function of Python, makes of values."""
        if not all(operands):
            return NOTHING
        atoms = frozenset().union(*operands)
        if atoms & TENSORS:
            array = ARRAY in atoms and TENSOR not in atoms
            what = "numpy computes" if array else "PyTorch computes"
            kind = findings.HOST if array else findings.TORCH
            self.report(kind, node, f"{what} on tensors with `{symbol}`", symbol)
            return AN_ARRAY if array else A_TENSOR
        if atoms & HOSTED:
            return only(HOST_RESULT)
        symbols = symbols_in(atoms)
        if not symbols:
            return A_NUMBER
        if symbol == "@":
            self.found.is_tensor(atoms)
            self.report(findings.TORCH, node, "PyTorch computes on tensors with `@`", symbol)
            return A_TENSOR
        if any(isinstance(a, Store) for a in atoms) and symbol in ("+", "*"):
            return join(A_NUMBER, frozenset(symbols))
        result = derived(self.pool, node, symbols)
        reason = f"PyTorch computes on tensors with `{symbol}`"
        finding = Finding(findings.TORCH, node, symbol, reason, self.guarded)
        self.found.suspect(result, finding)
        return only(result)

    def binary(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        """Return what an operator makes of two values."""
        folded = self.fold_binary(name, left, right)
        if folded is not None:
            return folded
        result = NOTHING
        for atom in left:
            if isinstance(atom, Instance):
                method = attributes.of_instance(self, atom, SPECIAL[name], node, missing=NOTHING)
                result = join(result, calling.call(self, method, calling.given(right), node))
        stores = {a for a in (*left, *right) if isinstance(a, Store)}
        if stores and name in ("Add", "Mult", "BitOr") and not (left | right) & TENSORS:
            made = self.machine.store(node)
            for store in stores:
                self.machine.put(made, None, store.all(), known=False)
            symbols = frozenset(a for a in (*left, *right) if isinstance(a, Symbol))
            return join(join(result, only(made)), symbols)
        return join(result, self.operate(SYMBOLS[name], (left, right), node))

    def unary(self, name: str, value: Value, node: ast.AST) -> Value:
        """Return what an operator makes of a value."""
        folded = self.fold_unary(name, value)
        if folded is not None:
            return folded
        if name == "Not":
            flipped: dict[Atom, Atom] = {ON_DEVICE: OFF_DEVICE, OFF_DEVICE: ON_DEVICE}
            return frozenset(flipped.get(a, A_NUMBER_ATOM) for a in value) or A_NUMBER
        return self.operate(SYMBOLS[name], (value,), node)

    def compare(self, names: tuple[str, ...], values: tuple[Value, ...], node: ast.AST) -> Value:
        """Return what a comparison makes of values."""
        folded = self.fold_compare(names, values)
        if folded is not None:
            return folded
        device = self._device_test(names, values)
        if device is not None:
            return device
        if all(name in IDENTITY_TESTS for name in names):
            return A_NUMBER
        if any(text_of(v) is not None or _is_none(v) for v in values):
            return A_NUMBER
        return self.operate(SYMBOLS.get(names[0], "=="), values, node)

    def _device_test(self, names: tuple[str, ...], values: tuple[Value, ...]) -> Value | None:
        """Recognise `x.device.type == "cuda"` and the like."""
        if len(values) != 2 or not values[0]:  # noqa: PLR2004 - two sides
            return None
        sides = values if DEVICE_TYPE in values[0] or DEVICE in values[0] else values[::-1]
        if not sides[0] <= {DEVICE_TYPE, DEVICE}:
            return None
        wanted = []
        for atom in sides[1]:
            parts = atom.all() if isinstance(atom, Store) else only(atom)
            wanted += [a.value if isinstance(a, Const) else None for a in parts]
        types = [str(w).partition(":")[0] for w in wanted]
        positive = names[0] in ("Eq", "In", "Is")
        if types and all(t in tables.ACCELERATORS for t in types):
            return only(ON_DEVICE if positive else OFF_DEVICE)
        if types == ["cpu"]:
            return only(OFF_DEVICE if positive else ON_DEVICE)
        return A_NUMBER

    def both(self, left: Value, right: Value, *, conjunction: bool) -> Value:
        """Return what `and` and `or` make of values; the first one does not decide."""
        if left <= {ON_DEVICE, OFF_DEVICE} or right <= {ON_DEVICE, OFF_DEVICE}:
            # "all on the device" and "any off the device" are still about nothing but devices.
            wanted = only(ON_DEVICE if conjunction else OFF_DEVICE)
            if left == right == wanted:
                return wanted
            if self.truth(right) is conjunction:
                return left
            if not self._plain(left) and not self._plain(right):
                return A_NUMBER
        return super().both(left, right, conjunction=conjunction)

    @staticmethod
    def _plain(value: Value) -> bool:
        return bool(value) and all(isinstance(a, Const) for a in value)

    def off_device(self, test: Value) -> int | None:
        """Say which branch of a test is for machines without an accelerator: 0, 1 or neither."""
        if test == only(OFF_DEVICE):
            return 0
        return 1 if test == only(ON_DEVICE) else None

    # Elements and attributes.

    def element_of(self, atom: Atom) -> Value:
        """Return what a loop over an atom yields."""
        if atom in TENSORS or atom in HOSTED or atom is OPAQUE:
            return only(atom)
        if isinstance(atom, Symbol):
            return only(atom.element())
        if isinstance(atom, Instance):
            return attributes.iterate(self, atom)
        return super().element_of(atom)

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute of a value."""
        result = NOTHING
        for atom in value:
            result = join(result, attributes.of_atom(self, atom, name, node))
        return result

    def subscript(self, value: Value, index: Value, node: ast.AST) -> Value:
        """Return an element of a value."""
        result = NOTHING
        for atom in value:
            result = join(result, elements.item(self, atom, index, node))
        return result

    def store_attribute(self, owner: Value, name: str, value: Value, node: ast.AST) -> None:
        """Set an attribute."""
        for atom in owner:
            if isinstance(atom, (Instance, Class)):
                self.machine.put(atom.store, name, value)
            elif isinstance(atom, Store):
                self.machine.put(atom, name, value)
            elif isinstance(atom, (Function, Kernel)):
                self.machine.put(self.machine.store((atom, "attributes")), name, value)
            elif isinstance(atom, External):
                self.patch(f"{atom.name}.{name}", value, node)

    def patch(self, name: str, value: Value, node: ast.AST) -> None:
        """Judge the assignment of an attribute of something foreign."""
        if name.startswith(tables.SETTINGS) or not any(isinstance(a, _CALLABLE) for a in value):
            return
        if not any(isinstance(a, _CALLABLE[:3]) for a in value) and "." not in name:
            return
        self.report(findings.EVASION, node, f"replaces `{name}`, which other code relies on", name)

    def store_item(self, owner: Value, index: Value, value: Value, node: ast.AST) -> None:
        """Set an element."""
        super().store_item(owner, index, value, node)
        if owner & TENSORS:
            elements.check_index(self, index, node)
            if value & {HOST_RESULT}:
                self.report(findings.HOST, node, "writes what Python has computed into a tensor")
            elif value & TENSORS:
                self.moves(node, "assignment to a slice", "move")
                self.found.is_tensor(value)
        for atom in owner:
            if isinstance(atom, External) and atom.name == "sys.modules":
                self.report(findings.EVASION, node, "replaces an imported module", "sys.modules")
            elif isinstance(atom, External) and atom.name == "builtins.globals.made":
                scope = self.machine.module.names
                name = text_of(index)
                if name is not None:
                    scope[name] = join(scope.get(name, NOTHING), value)
                    self.machine.dirty = True
            elif isinstance(atom, External) and atom.name.endswith(".__dict__"):
                name = text_of(index) or "?"
                self.patch(f"{atom.name.removesuffix('__dict__')}{name}", value, node)

    def entered(self, value: Value, node: ast.AST) -> Value:
        """Return what `with` binds."""
        result = NOTHING
        for atom in value:
            if isinstance(atom, Instance):
                enter = attributes.of_instance(self, atom, "__enter__", node, missing=NOTHING)
                leave = attributes.of_instance(self, atom, "__exit__", node, missing=NOTHING)
                result = join(result, calling.call(self, enter, calling.given(), node))
                calling.call(self, leave, calling.given(A_NUMBER, A_NUMBER, A_NUMBER), node)
            elif isinstance(atom, Store):
                result = join(result, atom.all())
        return result or value

    # Calls and definitions.

    def call(self, value: Value, arguments: Arguments, node: ast.AST) -> Value:
        """Return what a call returns."""
        return calling.call(self, value, arguments, node)

    def decorate(self, decorator: Value, value: Value, node: ast.AST, definition: ast.AST) -> Value:
        """Return what a decorator makes of a definition."""
        return calling.call(self, decorator, calling.given(value), node)

    def external(self, name: str) -> Value:
        """Return what stands for something from outside of the file."""
        return self.pool.external(canonical(name))

    def imported(self, module: str, node: ast.AST) -> None:
        """Take note of an import."""
        if is_reference(module):
            reason = f"imports the task's own file `{module}`"
            self.report(findings.REFERENCE, node, reason, f"import {module}")

    def defined(self, kind: Class, keywords: dict[str | None, Value]) -> None:
        """Take note of a class."""
        _, foreign = kind.lineage()
        for name in foreign:
            if name in ("torch.Tensor", "torch._tensor.Tensor"):
                reason = "defines a subclass of torch.Tensor, whose operators can do anything"
                self.report(findings.EVASION, kind.node, reason, f"class {kind.name}")
            if name.startswith(("torch.overrides.", "torch.utils._python_dispatch.")):
                reason = f"inherits from `{name}`, which changes what PyTorch's functions do"
                self.report(findings.EVASION, kind.node, reason, f"class {kind.name}")
            module = name.rpartition(".")[0]
            if is_reference(module):
                reason = f"inherits from the task's own `{name}`"
                self.report(findings.REFERENCE, kind.node, reason, f"class {kind.name}")
        for atom in keywords.get("metaclass", NOTHING):
            if isinstance(atom, Class):
                reason = "has a metaclass of its own, which decides what an instance is"
                self.report(findings.EVASION, kind.node, reason, f"class {kind.name}")

    def launch(self, launcher: Launcher, arguments: Arguments, node: ast.AST) -> None:
        """Record a launch."""
        if launcher.empty:
            if self.found.recording:
                self.found.empty_launches[id(node)] = node
            return
        self.found.launch(launcher.kernel, arguments, node, guarded=self.guarded)


A_NUMBER_ATOM: Atom = next(iter(A_NUMBER))
_CANONICAL = (
    ("torch.nn.modules.", None),
    ("torch.functional.", "torch."),
    ("torch._tensor.Tensor", "torch.Tensor"),
    ("torch.nn.parameter.Parameter", "torch.nn.Parameter"),
    ("torch.ops.inductor._reinterpret_tensor", "torch._C._dynamo.guards._reinterpret_tensor"),
    ("torch.ops.inductor._alloc_from_pool", "torch._inductor.alloc_from_pool"),
    ("triton.runtime.jit.jit", "triton.jit"),
    ("triton.runtime.jit.JITFunction", "triton.jit"),
    ("triton.runtime.JITFunction", "triton.jit"),
    ("triton.runtime.autotuner.", "triton."),
    ("triton.language.core.", "triton.language."),
    ("triton.language.standard.", "triton.language."),
    ("_operator.", "operator."),
    ("_functools.", "functools."),
    ("posix.", "os."),
)


def canonical(name: str) -> str:
    """Return the name under which something is best known."""
    for start, other in _CANONICAL:
        if name.startswith(start):
            if other is None:
                return f"torch.nn.{name.rpartition('.')[2]}"
            return other + name[len(start) :]
    return name


def is_reference(module: str) -> bool:
    """Say whether a module is named like a task's file."""
    last = module.rpartition(".")[2]
    return last.endswith("_torch") and last != "_torch"


def _is_none(value: Value) -> bool:
    constant = constant_of(value)
    return constant is not None and constant.value is None
