"""What a kernel computes: its body run on values that are loaded, computed, or mere positions."""

# ruff: noqa: ARG002 - operations share one signature

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.degeneration.semantics import Semantics
from pytest_tritonverify.degeneration.values import (
    NOTHING,
    Atom,
    Const,
    External,
    Function,
    Kernel,
    Kind,
    Method,
    Store,
    Value,
    constant_of,
    join,
    join_all,
    only,
)

if TYPE_CHECKING:
    from pytest_tritonverify.degeneration.arguments import Arguments
    from pytest_tritonverify.degeneration.pool import Pool

LOADED = Kind("loaded")  # data as it lies in memory
COMPUTED = Kind("computed")  # data that an operation has made
POSITION = Kind("position")  # program numbers, offsets, masks of positions, sizes
DATA = frozenset({LOADED, COMPUTED})
_A_POSITION = only(POSITION)
_LARGE = 1e30


class Parameter(Atom):
    """A kernel's parameter: a pointer or a number, as it turns out."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass
class Work:
    """What a kernel does.

    Attributes:
        computes: something that it stores has been computed.
        stores: it stores at all.
        pointers: names of the parameters through which it loads or stores.
        offsets: names of parameters that are added to them, or the other way round.
        foreign: calls of what no device has, such as numpy, with their names.
    """

    computes: bool = False
    stores: bool = False
    pointers: set[str] = field(default_factory=set)
    offsets: set[str] = field(default_factory=set)
    foreign: dict[ast.AST, str] = field(default_factory=dict)


# What the interpreter lets a kernel call, and a device does not have.
_HOST_ONLY = ("numpy.", "scipy.", "torch.", "ctypes.", "triton.runtime.")
# What PyTorch's code generator writes its kernels with; all of it is compiled with them.
_GENERATORS_HELPERS = "torch._inductor.runtime.triton_helpers."
# Functions of triton.language that hand their first argument's data on.
_HANDING_ON = frozenset(
    [
        "advance",
        "bitcast",
        "broadcast",
        "broadcast_to",
        "cast",
        "cat",
        "constexpr",
        "expand_dims",
        "flip",
        "gather",
        "interleave",
        "join",
        "make_block_ptr",
        "make_tensor_descriptor",
        "max_constancy",
        "max_contiguous",
        "multiple_of",
        "permute",
        "ravel",
        "reshape",
        "split",
        "tensor",
        "to",
        "trans",
        "view",
        "_experimental_make_tensor_descriptor",
        "_experimental_reinterpret_tensor_descriptor",
        "insert_slice",
        "extract_slice",
        "get_element",
        "T",
    ]
)
_POSITIONS = frozenset(["arange", "cdiv", "num_programs", "program_id", "range", "static_range"])
_SILENT = frozenset(
    ["assume", "debug_barrier", "device_assert", "device_print", "static_assert", "static_print"]
)
_ATOMICS = frozenset(f"atomic_{name}" for name in ("add", "and", "max", "min", "or", "xor", "mul"))
_NEUTRAL: dict[tuple[str, bool], int] = {
    ("Add", False): 0,
    ("Add", True): 0,
    ("Sub", True): 0,
    ("Mult", False): 1,
    ("Mult", True): 1,
    ("Div", True): 1,
    ("FloorDiv", True): 1,
    ("Pow", True): 1,
    ("BitOr", False): 0,
    ("BitOr", True): 0,
    ("BitXor", False): 0,
    ("BitXor", True): 0,
    ("BitAnd", True): -1,
    ("LShift", True): 0,
    ("RShift", True): 0,
}


class Device(Semantics):
    """Semantics of a kernel's body."""

    def __init__(self, pool: Pool) -> None:
        super().__init__(pool)
        self.work = Work()

    # Operators.

    def binary(self, name: str, left: Value, right: Value, node: ast.AST) -> Value:
        """Return what an operator makes of two values."""
        if not left or not right:
            return NOTHING
        both = left | right
        if not both & DATA:
            folded = self.fold_binary(name, left, right)
            if folded is not None:
                return folded
            roots = frozenset(a for a in both if isinstance(a, Parameter))
            return _A_POSITION | roots if name in ("Add", "Sub") else _A_POSITION
        if COMPUTED in both:
            return only(COMPUTED)
        result = NOTHING
        for data, other, right_side in ((left, right, True), (right, left, False)):
            if LOADED not in data:
                continue
            neutral = _NEUTRAL.get((name, right_side))
            fine = [
                isinstance(a, Const) and neutral is not None and a.value == neutral for a in other
            ]
            if any(fine):
                result = join(result, only(LOADED))
            if not all(fine):
                result = join(result, only(COMPUTED))
        return result

    def unary(self, name: str, value: Value, node: ast.AST) -> Value:
        """Return what an operator makes of a value."""
        if value & DATA:
            return value & DATA if name == "UAdd" else only(COMPUTED)
        folded = self.fold_unary(name, value)
        return _A_POSITION if folded is None else folded

    def compare(self, names: tuple[str, ...], values: tuple[Value, ...], node: ast.AST) -> Value:
        """Return what a comparison makes of values."""
        if any(value & DATA for value in values):
            return only(COMPUTED)
        folded = self.fold_compare(names, values)
        return _A_POSITION if folded is None else folded

    def truth(self, value: Value) -> bool | None:
        """Say whether a value is true or false for certain."""
        if value & DATA:
            # What is stored depends on the data from here on.
            self.work.computes = True
        return super().truth(value)

    # Elements and attributes.

    def attribute(self, value: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute of a value."""
        result = NOTHING
        for atom in value:
            if isinstance(atom, External):
                result = join(result, self.pool.external(f"{atom.name}.{name}"))
            elif name == "T" and (atom in DATA or isinstance(atom, Parameter)):
                result = join(result, only(atom))
            elif name in ("dtype", "type", "shape", "element_ty", "value"):
                result = join(result, only(atom) if name == "value" else _A_POSITION)
            elif isinstance(atom, Store):
                result = join(result, atom.fields.get(name, self.pool.method(name, atom)))
            else:
                result = join(result, self.pool.method(name, atom))
        return result

    def subscript(self, value: Value, index: Value, node: ast.AST) -> Value:
        """Return an element of a value."""
        result = NOTHING
        for atom in value:
            if isinstance(atom, Store):
                key = constant_of(index)
                result = join(result, atom.get(key.value) if key else atom.all())
            elif isinstance(atom, Const):
                result = join(result, only(atom))
            else:
                result = join(result, only(atom))
        return result

    def element_of(self, atom: Any) -> Value:
        """Return what a loop over an atom yields."""
        if isinstance(atom, Store):
            return atom.all()
        return only(atom) if atom in DATA else _A_POSITION

    # Calls.

    def call(self, value: Value, arguments: Arguments, node: ast.AST) -> Value:
        """Return what a call returns."""
        result = NOTHING
        for atom in value:
            if isinstance(atom, Kernel):
                result = join(result, self.run(atom.function, arguments))
            elif isinstance(atom, Function):
                result = join(result, self.run(atom, arguments))
            elif isinstance(atom, External):
                result = join(result, self._external(atom.name, arguments, node))
            elif isinstance(atom, Method):
                result = join(result, self._method(atom, arguments, node))
            else:
                result = join(result, self._unknown(arguments))
        return result

    def decorate(self, decorator: Value, value: Value, node: ast.AST, definition: ast.AST) -> Value:
        """Return what a decorator makes of a definition."""
        return value

    def _external(self, name: str, arguments: Arguments, node: ast.AST) -> Value:
        short = name.rpartition(".")[2]
        if name.startswith(_HOST_ONLY) and not name.startswith(_GENERATORS_HELPERS):
            self.work.foreign[node] = name
        if name.startswith("builtins."):
            return self._builtin(short, arguments)
        if not name.startswith("triton.language.") or name.count(".") > 2:  # noqa: PLR2004 - tl.<name>
            return self._unknown(arguments)
        return self._language(short, arguments, node)

    def _builtin(self, short: str, arguments: Arguments) -> Value:
        given = arguments.all()
        if short in ("min", "max", "abs", "sum", "pow") and given & DATA:
            return only(COMPUTED)
        if short in ("float", "int", "tuple", "list") and arguments.values:
            constant = constant_of(arguments.values[0])
            if short == "float" and constant is not None and isinstance(constant.value, str):
                return self.pool.constant(float("-inf" if "-" in constant.value else "inf"))
            return arguments.values[0]
        return _A_POSITION

    def _unknown(self, arguments: Arguments) -> Value:
        return only(COMPUTED) if self._deep(arguments.all()) & DATA else _A_POSITION

    def _deep(self, value: Value) -> Value:
        return join_all((value, *(a.all() for a in value if isinstance(a, Store))))

    def _language(self, short: str, arguments: Arguments, node: ast.AST) -> Value:  # noqa: PLR0911 - one branch for each kind
        first = self._deep(arguments.get(0, "pointer", "input", "x", "base"))
        if short == "load":
            self._points(first)
            return only(LOADED)
        if short == "store":
            self._points(first)
            self._stored(arguments.get(1, "value"), arguments.get(2, "mask"))
            return _A_POSITION
        if short in ("atomic_xchg", "atomic_cas"):
            self._points(first)
            self._stored(arguments.get(2 if short == "atomic_cas" else 1, "val"), NOTHING)
            return only(LOADED)
        if short in _ATOMICS:
            self._points(first)
            self.work.stores = self.work.computes = True
            return only(LOADED)
        if short in ("zeros", "zeros_like"):
            return self.pool.constant(0)
        if short == "full":
            return arguments.get(1, "value")
        if short in _POSITIONS:
            return _A_POSITION
        if short in _SILENT:
            return _A_POSITION
        if short in _HANDING_ON:
            rest = (
                self._deep(arguments.all()) & DATA
                if short in ("cat", "join", "interleave")
                else NOTHING
            )
            return join(first, rest) or _A_POSITION
        return self._computing(short, first, arguments, node)

    def _computing(self, short: str, first: Value, arguments: Arguments, node: ast.AST) -> Value:
        if short == "where":
            return self._where(arguments, node)
        if short in ("maximum", "minimum", "clamp") and self._keeps_all(short, arguments):
            return join_all(v & DATA for v in arguments.values) or first
        if short == "fma" and len(arguments.values) > 2:  # noqa: PLR2004 - x * y + z
            product = self.binary("Mult", arguments.values[0], arguments.values[1], node)
            return self.binary("Add", product, arguments.values[2], node)
        given = self._deep(arguments.all())
        if given & DATA or POSITION in given or short.startswith("rand"):
            return only(COMPUTED)
        return _A_POSITION

    def _where(self, arguments: Arguments, node: ast.AST) -> Value:
        condition = arguments.get(0, "condition")
        one, other = arguments.get(1, "x"), arguments.get(2, "y")
        if condition & DATA and not _same(node):
            return only(COMPUTED)
        data = (one | other) & DATA
        return data or join(one, other)

    def _keeps_all(self, short: str, arguments: Arguments) -> bool:
        values = list(arguments.values)
        bounds = [constant_of(v) for v in values if not v & DATA]
        if len(bounds) != len(values) - 1:
            return False
        for bound in bounds:
            if bound is None:
                return False
            limit = bound.value
            if not isinstance(limit, (int, float)):
                return False
            low, high = limit <= -_LARGE, limit >= _LARGE
            if not (low or short != "maximum") or not (high or short != "minimum"):
                return False
            if short == "clamp" and not (low or high):
                return False
        return True

    def _method(self, atom: Method, arguments: Arguments, node: ast.AST) -> Value:
        receiver = only(atom.receiver)
        if isinstance(atom.receiver, Store):
            if atom.name in ("append", "extend", "insert"):
                self.machine.put(atom.receiver, None, arguments.all(), known=False)
            return atom.receiver.all() or _A_POSITION
        if atom.name == "store":  # of a descriptor
            self._points(receiver)
            self._stored(arguments.get(1, "value"), NOTHING)
            return _A_POSITION
        if atom.name in ("load", "gather") and not receiver & DATA:
            self._points(receiver)
            return only(LOADED)
        if atom.name == "scatter" or atom.name in _ATOMICS:
            self._points(receiver)
            self.work.stores = self.work.computes = True
            return _A_POSITION
        return self._language(atom.name, arguments.before(receiver), node)

    def _points(self, address: Value) -> None:
        names = {a.name for a in address if isinstance(a, Parameter)}
        if len(names) > 1:
            # `x_ptr + start`: only one of them is the pointer.
            self.work.offsets |= names
            names = {name for name in names if "ptr" in name.lower()}
        self.work.pointers |= names

    def _stored(self, value: Value, mask: Value) -> None:
        self.work.stores = True
        atoms = self._deep(value)
        if COMPUTED in atoms or COMPUTED in mask or POSITION in atoms:
            self.work.computes = True


def _same(node: ast.AST) -> bool:
    """Say whether both branches of a `where` are the same name."""
    if not isinstance(node, ast.Call) or len(node.args) != 3:  # noqa: PLR2004 - condition, x, y
        return False
    one, other = node.args[1:]
    return isinstance(one, ast.Name) and isinstance(other, ast.Name) and one.id == other.id
