"""What a name can stand for: abstract values, and how they are joined.

A value is a frozen set of *atoms*, the things that an expression may evaluate to. Atoms are
compared by identity and made once each (`pool.Pool`), so that values are small and joining them is
cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

    from pytest_tritonverify.degeneration.code import Code


class Atom:
    """Something that an expression may evaluate to."""

    __slots__ = ()


Value = frozenset[Atom]

NOTHING: Value = frozenset()


class Kind(Atom):
    """An atom of which only the kind matters."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


NUMBER = Kind("number")  # a plain Python value: a number, a shape, a dtype, a device, a string
TENSOR = Kind("tensor")
PERMUTED = Kind("permuted tensor")  # a view whose copy rearranges memory
ARRAY = Kind("array")  # numpy's
HOST = Kind("host data")  # elements of a tensor, read by Python
HOST_RESULT = Kind("host result")  # what Python has computed from them
ADDRESS = Kind("address")  # a tensor's data pointer
DEVICE = Kind("device")
DEVICE_TYPE = Kind("device type")
ON_DEVICE = Kind("on an accelerator")  # a condition
OFF_DEVICE = Kind("not on an accelerator")  # a condition
OPAQUE = Kind("opaque")  # nothing is known

TENSORS = frozenset({TENSOR, PERMUTED, ARRAY})
HOSTED = frozenset({HOST, HOST_RESULT})


class Const(Atom):
    """A constant."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __repr__(self) -> str:
        return repr(self.value)


class External(Atom):
    """Something from outside of the file, by its canonical dotted name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


DEEP = 5  # so many operators are told apart


class Symbol(Atom):
    """An input of which the file doesn't say what it is, or what operators make of such inputs.

    Attributes:
        operands: the symbols of an operator's operands.
        site: the operator's node, None for inputs.
        items: what its elements are, by index; None for any of them.
    """

    __slots__ = ("depth", "items", "operands", "site")

    def __init__(self, site: ast.AST | None = None, operands: tuple[Symbol, ...] = ()) -> None:
        self.site = site
        self.operands = operands
        self.depth: int = 1 + max((operand.depth for operand in operands), default=0)
        self.items: dict[object, Symbol] = {}

    def element(self, index: object = None) -> Symbol:
        """Return the symbol of an element, or of any."""
        if self.depth > DEEP:
            return self  # as functions that call themselves go down for ever
        found = self.items.get(index)
        if found is None:
            found = self.items[index] = Symbol()
            found.depth = self.depth + 1
        return found


class Scope:
    """Names and their values; functions see those of the scopes around them."""

    __slots__ = ("names", "owner", "parent")

    def __init__(self, parent: Scope | None, owner: object = None) -> None:
        self.parent = parent
        self.names: dict[str, Value] = {}
        self.owner = owner


class Function(Atom):
    """A function, method or lambda of the file."""

    __slots__ = ("code", "contexts", "defaults", "general", "home", "node", "scope")

    def __init__(self, node: ast.AST, code: Code, scope: Scope, defaults: dict[str, Value]) -> None:
        self.node = node
        self.code = code
        self.scope = scope
        self.defaults = defaults
        self.home: Class | None = None
        self.contexts = 0
        # What it was called with altogether, once it was called in too many ways.
        self.general: list[set[Atom]] | None = None

    def __repr__(self) -> str:
        return f"function {self.code.name}"


class Bound(Atom):
    """A callable with its first argument."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Atom, receiver: Atom) -> None:
        self.function = function
        self.receiver = receiver


class Wrapped(Atom):
    """What `staticmethod`, `classmethod` or `property` make of a function."""

    __slots__ = ("how", "inner")

    def __init__(self, how: str, inner: Value) -> None:
        self.how = how
        self.inner = inner


class Store(Atom):
    """Something that holds values under keys: a list, a dict, an instance, a container of modules.

    Attributes:
        site: where it was made.
        fields: values under constant keys.
        rest: values under keys that are not known.
        module: the name of the class from torch.nn, for containers of modules.
    """

    __slots__ = ("fields", "fixed", "module", "read", "rest", "site")

    def __init__(self, site: object, module: str = "") -> None:
        self.site = site
        self.fields: dict[object, Value] = {}
        self.rest: Value = NOTHING
        self.module = module
        self.read = False
        self.fixed = False

    def get(self, key: object) -> Value:
        """Return what may stand under a key."""
        self.read = True
        return join(self.fields.get(key, NOTHING), self.rest)

    def all(self) -> Value:
        """Return what may stand under any key."""
        self.read = True
        return join_all((self.rest, *self.fields.values()))

    def put(self, key: object, value: Value, *, known: bool = True) -> bool:
        """Add a value; say whether that changes what was read before."""
        if not known:
            before, self.rest = self.rest, widened(join(self.rest, value))
            return self.read and before is not self.rest and before != self.rest
        before = self.fields.get(key, NOTHING)
        after = widened(join(before, value))
        self.fields[key] = after
        return self.read and before is not after and before != after


class Class(Atom):
    """A class of the file."""

    __slots__ = ("bases", "instance", "line", "name", "node", "store")

    def __init__(self, node: ast.ClassDef, bases: Value) -> None:
        self.node = node
        self.name = node.name
        self.bases = bases
        self.store = Store(node)
        self.instance = Instance(self)

    def lineage(self) -> tuple[list[Class], list[str]]:
        """Return the classes of the file that it inherits from, itself first, and foreign ones."""
        ours: list[Class] = []
        foreign: list[str] = []
        pending: list[Atom] = [self]
        while pending:
            atom = pending.pop(0)
            if isinstance(atom, Class) and atom not in ours:
                ours.append(atom)
                pending.extend(sorted(atom.bases, key=repr))
            elif isinstance(atom, External):
                foreign.append(atom.name)
            elif atom is OPAQUE:
                foreign.append("?")
        return ours, foreign

    def __repr__(self) -> str:
        return f"class {self.name}"


class Instance(Atom):
    """The instances of a class of the file, all of them together."""

    __slots__ = ("kind", "store")

    def __init__(self, kind: Class) -> None:
        self.kind = kind
        self.store = Store(kind)


class Parent(Atom):
    """What `super()` returns."""

    __slots__ = ("home", "receiver")

    def __init__(self, home: Class, receiver: Atom) -> None:
        self.home = home
        self.receiver = receiver


class Layer(Atom):
    """An instance of a class of torch.nn."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Kernel(Atom):
    """A function that Triton compiles."""

    __slots__ = ("function",)

    def __init__(self, function: Function) -> None:
        self.function = function

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.code.name


class Launcher(Atom):
    """A kernel with its grid."""

    __slots__ = ("empty", "kernel")

    def __init__(self, kernel: Kernel, *, empty: bool) -> None:
        self.kernel = kernel
        self.empty = empty


class Method(Atom):
    """A method of a value that is not of the file: a tensor's, a container's, a number's."""

    __slots__ = ("name", "receiver")

    def __init__(self, name: str, receiver: Atom) -> None:
        self.name = name
        self.receiver = receiver


class Prepared(Atom):
    """A callable with some of its arguments: `functools.partial`, `operator.methodcaller`."""

    __slots__ = ("arguments", "how", "inner", "keywords", "site")

    def __init__(
        self,
        how: str,
        inner: Value,
        arguments: tuple[Value, ...] = (),
        keywords: dict[str, Value] | None = None,
        site: ast.AST | None = None,
    ) -> None:
        self.site = site
        self.how = how
        self.inner = inner
        self.arguments = arguments
        self.keywords = keywords or {}


def only(atom: Atom) -> Value:
    """Return the value that is one atom."""
    return frozenset((atom,))


A_NUMBER = only(NUMBER)
A_TENSOR = only(TENSOR)
A_PERMUTED = only(PERMUTED)
AN_ARRAY = only(ARRAY)
AN_OPAQUE = only(OPAQUE)

_MOST_CONSTANTS = 12
_FEW = 4


def join(left: Value, right: Value) -> Value:
    """Return what is one or the other."""
    if left is right or not right or right <= left:
        return left
    if not left or left <= right:
        return right
    both = left | right
    if len(both) > _MOST_CONSTANTS:
        numbers = {a for a in both if isinstance(a, Const) and not isinstance(a.value, (str, bool))}
        if len(numbers) > _FEW:
            both = (both - numbers) | A_NUMBER
    return both


def join_all(values: Iterable[Value]) -> Value:
    """Return what is any of several values."""
    several = [value for value in values if value]
    if len(several) < _FEW:
        result = NOTHING
        for value in several:
            result = join(result, value)
        return result
    return join(several[0], NOTHING.union(*several))


def widened(value: Value) -> Value:
    """Take several different numbers for any number: something counts."""
    if len(value) < 2:  # noqa: PLR2004 - one number is no several
        return value
    numbers = {a for a in value if isinstance(a, Const) and type(a.value) in (int, float)}
    return (value - numbers) | A_NUMBER if len(numbers) > 1 else value


def constant_of(value: Value) -> Const | None:
    """Return the constant that a value is for certain, else None."""
    if len(value) == 1:
        (atom,) = value
        if isinstance(atom, Const):
            return atom
    return None


def text_of(value: Value) -> str | None:
    """Return the string that a value is for certain, else None."""
    constant = constant_of(value)
    return constant.value if constant is not None and isinstance(constant.value, str) else None
