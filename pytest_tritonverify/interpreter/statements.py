"""What statements of a kernel mean to Triton's compiler, for the interpreter to call.

The interpreter runs kernels as Python. To the compiler some statements mean something else: a loop
counts in tensors, `and` and `min` work on every element. `rewriting` puts calls of these in.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

import numpy as np

from pytest_tritonverify.interpreter import semantics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_NOT_INTEGERS = "For loop bounds and step must all be ints"


class Statements:
    """The meanings, for one interpreter."""

    def __init__(self, interpreter: Any) -> None:
        self._language = interpreter.tl
        self._semantic = semantics.of(interpreter)
        self._handle = interpreter.TensorHandle
        self._np_dtype = interpreter._get_np_dtype  # noqa: SLF001 - the module is what is corrected
        self._tuples = (tuple, list, getattr(interpreter.tl.core, "tuple", tuple))
        # During a launch other functions stand for them in the language.
        self._range = interpreter.tl.range
        self._static_range = interpreter.tl.static_range

    def assigned(self, value: Any) -> Any:
        """Return what a variable holds: numbers become tensors, unless declared as constants."""
        return self._semantic.to_tensor(value, check_type=False)

    def unpacked(self, values: Any) -> Any:
        """Return what several variables hold after one assignment."""
        if isinstance(values, self._tuples):
            return tuple(self.unpacked(one) for one in values)
        return self.assigned(values)

    def truth(self, condition: Any) -> Any:
        """Pass a condition on if it is one: a block of several elements is none to the compiler.

        Raises:
            ValueError: it is a block of several elements.
        """
        if self._is_tensor(condition) and condition.handle.data.size != 1:
            raise ValueError(
                "Boolean value of Tensor with more than one value is ambiguous: a branch or a "
                "loop takes one condition for the whole block; use tl.where or a mask to choose "
                "element by element"
            )
        return condition

    def conjunction(self, *operands: Callable[[], Any]) -> Any:
        """Compute `a and b`, element by element where one of them is a block."""
        return self._joined(operands, "logical_and", decisive=False)

    def disjunction(self, *operands: Callable[[], Any]) -> Any:
        """Compute `a or b`, element by element where one of them is a block."""
        return self._joined(operands, "logical_or", decisive=True)

    def negation(self, operand: Any) -> Any:
        """Compute `not a`, element by element."""
        return self._bit(operand).__not__() if self._is_tensor(operand) else not operand

    def minimum(self, *operands: Any, **options: Any) -> Any:
        """Compute `min(a, b)`, element by element where one of them is a block."""
        return self._chosen(operands, options, builtins.min, "minimum")

    def maximum(self, *operands: Any, **options: Any) -> Any:
        """Compute `max(a, b)`, element by element where one of them is a block."""
        return self._chosen(operands, options, builtins.max, "maximum")

    def iterated(self, iterator: Any, *args: Any, **kwargs: Any) -> Any:
        """Return what a `for` statement goes through."""
        if iterator is builtins.range or iterator is self._range:
            return self.counted(*args, **kwargs)
        if iterator is self._static_range:
            return self._constants(*args, **kwargs)
        return iterator(*args, **kwargs)

    def counted(self, arg1: Any, arg2: Any = None, step: Any = None, **_: Any) -> Iterator[Any]:
        """Count in tensors, as `range` and `tl.range` do; what only concerns speed is ignored.

        Raises:
            TypeError: a bound is no integer.
        """
        first, last = (0, arg1) if arg2 is None else (arg1, arg2)
        bounds = [self._semantic.to_tensor(x) for x in (first, last, 1 if step is None else step)]
        if not all(bound.dtype.is_int() for bound in bounds):
            kinds = ", ".join(str(bound.dtype) for bound in bounds)
            raise TypeError(f"{_NOT_INTEGERS}, are ({kinds})")
        promote = self._semantic.integer_promote_impl
        kind = promote(promote(bounds[0].dtype, bounds[1].dtype), bounds[2].dtype)
        return self._count(kind, *(int(bound.handle.data.item()) for bound in bounds))

    def value(self, constant: Any) -> Any:
        """Return the `value` of a constant: the interpreter passes the bare value already."""
        bare = constant is None or isinstance(
            constant, (bool, int, float, str, self._language.dtype)
        )
        return constant if bare and not hasattr(constant, "value") else constant.value

    def _is_tensor(self, value: Any) -> bool:
        return isinstance(value, self._language.tensor)

    def _bit(self, value: Any) -> Any:
        # The compiler turns an integer argument of 1 into a constant, and so takes it here.
        scalar = value.handle.data.size == 1 and not value.type.scalar.is_ptr()
        return value if value.type.scalar.is_int1() or not scalar else value != 0

    def _joined(self, operands: tuple[Callable[[], Any], ...], name: str, *, decisive: bool) -> Any:
        tensors: list[Any] = []
        value: Any = None
        for operand in operands:
            value = operand()
            if self._is_tensor(value):
                tensors.append(value)
            elif bool(value) is decisive:
                return value
        if not tensors:
            return value
        while len(tensors) > 1:
            right, left = self._bit(tensors.pop()), self._bit(tensors.pop())
            tensors.append(getattr(left, name)(right))
        return tensors[0]

    def _chosen(
        self, operands: tuple[Any, ...], options: dict[str, Any], plain: Any, name: str
    ) -> Any:
        if not any(self._is_tensor(one) for one in operands):
            return plain(*operands, **options)
        if len(operands) == 1:
            raise TypeError(f"{plain.__name__} requires at least 2 values")
        # As it is during this launch, not as it was when this was made.
        choose = getattr(self._language, name)
        found, *others = operands
        for other in others:
            found = choose(found, other, **options)
        return found

    def _count(self, kind: Any, first: int, last: int, step: int) -> Iterator[Any]:
        dtype = self._np_dtype(kind)
        for number in range(first, last, step):
            yield self._language.tensor(self._handle(np.array([number], dtype), kind), kind)

    @staticmethod
    def _constants(arg1: Any, arg2: Any = None, step: Any = None) -> range:
        first, last = (0, arg1) if arg2 is None else (arg1, arg2)
        return range(first, last, 1 if step is None else step)
