"""A reference in another precision than its own, whatever its code says about dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from pytest_tritonverify.execution.precise import Lift


class Norm(torch.nn.Module):
    """Says float32 and its input's dtype, as norms do."""

    def __init__(self) -> None:
        super().__init__()
        self.offset: torch.Tensor
        self.steps: torch.Tensor
        self.weight = torch.nn.Parameter(torch.rand(16).half())
        self.register_buffer("offset", torch.rand(16))
        self.register_buffer("steps", torch.tensor(3))
        self.table = torch.rand(16)
        self._hidden = torch.rand(16)
        self.scales = [torch.rand(16)]
        self.inner = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        wide = wide.to(torch.float16) * self.weight + self.offset.to(dtype=torch.bfloat16)
        wide = wide + self.table + self._hidden * self.scales[0] + torch.ones(16)
        wide = wide + torch.zeros(16, dtype=torch.float32) + self.steps
        result: torch.Tensor = self.inner(wide.type(torch.float32)).to(x.dtype)
        return result


def lifted_run(model: torch.nn.Module, x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    lift = Lift(dtype)
    lift.lift_model(model)
    with torch.no_grad(), lift.forward():
        result: torch.Tensor = model(lift.lifted(x))
    return result


def test_nothing_is_rounded_on_the_way() -> None:
    torch.manual_seed(0)
    model, x = Norm(), torch.randn(4, 16).half()
    state = {
        name: getattr(model, name).detach().double()
        for name in ("weight", "offset", "table", "_hidden")
    }
    inner, scale = model.inner, model.scales[0].double()
    w, b = inner.weight.detach().double(), inner.bias.detach().double()
    wide = x.double()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    wide = wide * state["weight"] + state["offset"] + state["table"] + state["_hidden"] * scale
    expected = torch.nn.functional.linear(wide + 1 + 3, w, b)

    found = lifted_run(model, x, torch.float64)

    assert found.dtype == torch.float64
    torch.testing.assert_close(found, expected, rtol=1e-13, atol=1e-13)
    assert model.steps.dtype == torch.int64
    assert torch.get_default_dtype() == torch.float32
    torch.manual_seed(0)
    single = lifted_run(Norm(), x, torch.float32)
    assert single.dtype == torch.float32
    torch.testing.assert_close(single.double(), expected, rtol=1e-5, atol=1e-5)


def test_complex_numbers_and_casts_of_integers() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
            return x.to(torch.complex64) * 2, n.half() / 3, n.to(torch.int32), x.to(torch.complex32)

    lift = Lift(torch.float64)
    with lift.forward():
        product, third, whole, cast = Model()(
            *lift.lifted((torch.randn(3, dtype=torch.complex64), torch.arange(3)))
        )
    assert (product.dtype, cast.dtype) == (torch.complex128, torch.complex128)
    assert torch.equal(third, torch.arange(3, dtype=torch.float64) / 3)
    assert whole.dtype == torch.int32


class Pair(NamedTuple):
    left: torch.Tensor
    right: int


@dataclass
class Record:
    values: list[torch.Tensor]
    name: str = "x"


def test_arguments_keep_their_form() -> None:
    lift = Lift(torch.float64)
    flags = torch.tensor([True])
    found = lift.lifted(
        [Pair(torch.zeros(2), 3), {"k": (torch.ones(1), flags)}, Record([torch.ones(2)]), None]
    )
    assert isinstance(found[0], Pair)
    assert (found[0].left.dtype, found[0].right) == (torch.float64, 3)
    assert found[1]["k"][0].dtype == torch.float64
    assert found[1]["k"][1] is flags
    assert found[2].values[0].dtype == torch.float64
    assert (found[2].name, found[3]) == ("x", None)


def test_the_precision_ends_with_the_run_whatever_happens() -> None:
    with pytest.raises(ZeroDivisionError), Lift(torch.float64).forward():
        raise ZeroDivisionError
    assert torch.get_default_dtype() == torch.float32
    assert torch.zeros(1).float().dtype == torch.float32
