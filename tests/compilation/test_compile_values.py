"""Arguments as data: what compilers can't tell apart is the same, all else comes back."""

from __future__ import annotations

import enum
import json
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from hypothesis import example, given, settings
from hypothesis import strategies as st
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime import jit

from pytest_tritonverify.compilation import restoring, values

Pair = namedtuple("Pair", ["left", "right"])  # noqa: PYI024 - what users have


class Mode(enum.Enum):
    FAST = 1


def nowhere(place: dict[str, Any]) -> Any:
    raise LookupError(place["name"])


def round_trip(value: Any, *, constant: bool) -> Any:
    data = json.loads(json.dumps(values.describe(value, constant=constant)))
    return restoring.restore(data, nowhere)


def specialisations(value: Any) -> list[Any]:
    """Ask the installed Triton, for every back end that it has."""
    specialise = getattr(jit, "native_specialize_impl", None)
    if specialise is None:
        pytest.skip("this Triton specialises elsewhere")
    targets = (GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64))
    backends = [type(make_backend(target)) for target in targets]
    return [
        specialise(backend, value, False, specialised, aligned)  # noqa: FBT003 - positional only
        for backend in backends
        for specialised in (True, False)
        for aligned in (True, False)
    ]


@settings(deadline=None)
@given(st.integers(-(1 << 63), (1 << 64) - 1))
@example(1)
@example(0)
@example(-1)
@example((1 << 31) - 1)
@example(1 << 31)
@example(-(1 << 31))
@example(1 << 63)
def test_a_number_that_is_no_constant_is_specialised_as_the_original(value: int) -> None:
    restored = round_trip(value, constant=False)
    assert specialisations(restored) == specialisations(value)
    # Triton before 3.2 looks at this, too.
    assert (restored % 8 == 0) == (value % 8 == 0) or value == 1
    assert values.representative(restored) == restored


@settings(deadline=None)
@given(st.sampled_from([torch.float32, torch.bfloat16, torch.int8, torch.bool]), st.integers(0, 40))
def test_a_tensor_is_specialised_by_type_and_alignment(dtype: torch.dtype, offset: int) -> None:
    tensor = torch.empty(64, dtype=dtype)[offset:]
    aligned = offset * dtype.itemsize % 16 == 0
    restored = round_trip(tensor, constant=False)
    assert restored.data_ptr() % 16 == 0 if aligned else restored.data_ptr() % 16 != 0
    assert specialisations(restored) == specialisations(tensor)


@settings(deadline=None)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=9)
        | st.floats(allow_nan=False),
        lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
        max_leaves=8,
    )
)
def test_constants_come_back(value: Any) -> None:
    assert round_trip(value, constant=True) == value


def test_other_constants_come_back() -> None:
    assert np.isnan(round_trip(float("nan"), constant=True))
    assert round_trip(tl.float16, constant=True) == tl.float16
    assert round_trip(torch.bfloat16, constant=True) is torch.bfloat16
    assert round_trip(tl.constexpr(3), constant=True).value == 3
    assert round_trip(Pair(1, (2, "x")), constant=True) == Pair(1, (2, "x"))
    assert round_trip(np.int64(5), constant=True) == np.int64(5)
    assert isinstance(round_trip(np.int64(5), constant=True), np.int64)
    assert round_trip(tl, constant=True) is tl
    assert round_trip(tl.exp, constant=True) is tl.exp
    wrapped = triton.reinterpret(torch.empty(4, dtype=torch.uint8), tl.float8e5)
    assert round_trip(wrapped, constant=False).dtype == tl.float8e5


def test_what_a_process_can_not_hand_over_is_named() -> None:
    with pytest.raises(restoring.OpaqueError, match="type object"):
        round_trip(object(), constant=True)
    with pytest.raises(restoring.OpaqueError, match="can't be made here"):
        restoring.restore({"k": "name", "module": "no.such", "v": "thing"}, nowhere)
    deep: Any = 1
    for _ in range(20):
        deep = [deep]
    with pytest.raises(restoring.OpaqueError):
        round_trip(deep, constant=True)
    with pytest.raises(LookupError, match="kernel"):
        restoring.restore({"k": "jit", "v": {"name": "kernel"}}, nowhere)


def test_values_are_shown_as_people_write_them() -> None:
    given_ = {"a": 64, "b": True, "c": "x", "d": 0.5, "e": (1, None), "f": tl.float16}
    shown = {k: values.shown(values.describe(v, constant=True)) for k, v in given_.items()}
    assert shown == {"a": "64", "b": "True", "c": "'x'", "d": "0.5", "e": "(1, None)", "f": "fp16"}
