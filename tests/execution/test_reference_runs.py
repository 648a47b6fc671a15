"""What the reference makes of a task, and that both sides get the same to work on."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest
import torch

from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from tests.support.workers import Bench


def _mirrored(folder: Path, model: str, inputs: str, top: str = "") -> Pair:
    """Write a pair whose implementation is the reference itself, under its other name."""
    head = f"import os\nimport torch\n{textwrap.dedent(top)}\n"
    task = f"{head}\n{textwrap.dedent(model)}\n{textwrap.dedent(inputs)}\n"
    implementation = f"{head}\n{textwrap.dedent(model).replace('class Model', 'class ModelNew')}\n"
    return write_pair(folder, task, implementation)


ONE_INPUT = """
def get_inputs():
    return [torch.randn(3, 4)]
"""


@pytest.mark.parametrize(
    "model",
    [
        """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = torch.nn.Linear(4, 5)

            def forward(self, x):
                return self.linear(x)
        """,
        """
        class Model(torch.nn.Module):
            def forward(self, x):
                return x + torch.randn(3, 4)
        """,
        """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = torch.nn.Dropout(0.5)

            def forward(self, x):
                return self.drop(x)
        """,
        """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(hash("a key") % 1000)
                self.weight = torch.nn.Parameter(torch.randn(4))

            def forward(self, x):
                return x * self.weight
        """,
        """
        class Model:
            def forward(self, x):
                return x * torch.rand(())
        """,
        """
        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.noise = torch.nn.BatchNorm1d(4)

            def forward(self, x):
                return self.noise(x) + torch.rand(4)
        """,
    ],
    ids=["weights", "rng_in_forward", "dropout", "hash_seed", "no_module", "training_mode"],
)
def test_both_sides_start_from_the_same_seeds(bench: Bench, tmp_path: Path, model: str) -> None:
    (sides,) = bench.both(_mirrored(tmp_path, model, ONE_INPUT))
    assert sides.agree


def test_seeds_do_not_depend_on_what_ran_before(bench: Bench, tmp_path: Path) -> None:
    model = """
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.randn(4)
    """
    inputs = """
    def get_input_groups():
        return [[torch.randn(k)] for k in (1, 2, 3)]
    """
    found = bench.both(_mirrored(tmp_path, model, inputs), [1, 2, 3, 1])
    assert all(sides.agree for sides in found)
    assert all(torch.equal(sides.expected, found[0].expected) for sides in found)
    # All groups are made once, in sequence, from one seed.
    torch.manual_seed(0)
    expected = [torch.randn(k) for k in (1, 2, 3)]
    for sides, tensor in zip(found, expected, strict=False):
        assert torch.equal(sides.call()["args"][0], tensor)


def test_forward_runs_without_gradients_unless_it_needs_them(bench: Bench, tmp_path: Path) -> None:
    model = """
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.tensor(torch.is_grad_enabled())
    """
    (sides,) = bench.both(_mirrored(tmp_path, model, ONE_INPUT))
    assert sides.expected.item() is False
    assert sides.agree


@pytest.mark.parametrize(
    "body",
    [
        "x = x.detach().requires_grad_()\nreturn torch.autograd.grad((x ** 2).sum(), x)[0]",
        "w = torch.nn.Parameter(x.clone())\n(w ** 3).sum().backward()\nreturn w.grad",
    ],
    ids=["grad", "backward"],
)
def test_forward_that_differentiates_is_run_again_from_the_start(
    bench: Bench, tmp_path: Path, body: str
) -> None:
    # What the first attempt changed, in its input and in its model, must not be seen.
    model = f"""
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.weight = torch.nn.Parameter(torch.randn(3, 4))

    def forward(self, x):
        self.calls += 1
        assert self.calls == 1
        x.add_(1.0)
        x = x * self.weight.detach() + torch.randn(3, 4)
{textwrap.indent(body, " " * 8)}
"""
    sides = bench.golden(_mirrored(tmp_path, model, ONE_INPUT))
    torch.manual_seed(0)
    weight = torch.randn(3, 4)
    torch.manual_seed(0)
    x = (sides.call()["args"][0] + 1.0) * weight + torch.randn(3, 4)
    expected = 2 * x if "autograd.grad" in body else 3 * x**2
    assert torch.allclose(sides.expected, expected)


def test_exception_that_only_mentions_gradients_is_an_exception(
    bench: Bench, tmp_path: Path
) -> None:
    model = """
    class Model(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("this does not require grad, and fails twice")
    """
    sides = bench.golden_error(_mirrored(tmp_path, model, ONE_INPUT))
    assert sides["type"] == "RuntimeError"
    assert "fails twice" in sides["message"]


GROUPS = {
    "lists": "[[torch.ones(2), 3], [torch.zeros(2), 4]]",
    "tuples": "((torch.ones(2), 3), (torch.zeros(2), 4))",
    "dicts": "[{'x': torch.ones(2), 'n': 3}, {'n': 4, 'x': torch.zeros(2)}]",
    "generator": "([torch.full((2,), float(k < 1)), 3 + k] for k in range(2))",
    "iterator": "iter([(torch.ones(2), 3), [torch.zeros(2), 4]])",
}


@pytest.mark.parametrize("groups", GROUPS.values(), ids=GROUPS)
def test_forms_of_groups(bench: Bench, tmp_path: Path, groups: str) -> None:
    model = """
    class Model(torch.nn.Module):
        def forward(self, x, n):
            return x * n
    """
    inputs = f"def get_input_groups():\n    return {groups}\n"
    first, second = bench.both(_mirrored(tmp_path, model, inputs), [1, 2])
    assert first.agree
    assert second.agree
    assert first.expected.tolist() == [3.0, 3.0]
    assert second.expected.tolist() == [0.0, 0.0]


INITS: dict[str, tuple[str, Any]] = {
    "positional": ("[2, 3.0]", [2, 3.0]),
    "keywords": ("{'b': 3.0, 'a': 2}", [2, 3.0]),
    "empty": ("[]", [1, 1.0]),
    "nothing": ("None", [1, 1.0]),
    # Where the constructor can be called with the two parts, they are two arguments.
    "pair_taken_literally": ("[[2], {'b': 3.0}]", [[2], {"b": 3.0}]),
    "empty_pair": ("[[], {}]", [[], {}]),
    "single_tensor": ("torch.tensor(5)", [torch.tensor(5), 1.0]),
}


@pytest.mark.parametrize(("given", "expected"), INITS.values(), ids=INITS)
def test_forms_of_constructor_arguments(
    bench: Bench, tmp_path: Path, given: str, expected: Any
) -> None:
    model = """
    class Model(torch.nn.Module):
        def __init__(self, a=1, b=1.0):
            super().__init__()
            self.a, self.b = a, b

        def forward(self, x):
            return [self.a, self.b]
    """
    inputs = f"{ONE_INPUT}\ndef get_init_inputs():\n    return {given}\n"
    (sides,) = bench.both(_mirrored(tmp_path, model, inputs))
    assert sides.got == sides.expected == expected


def test_pair_of_both_where_the_constructor_cannot_take_it(bench: Bench, tmp_path: Path) -> None:
    model = """
    class Model(torch.nn.Module):
        def __init__(self, a, *, b):
            super().__init__()
            self.a, self.b = a, b

        def forward(self, x):
            return [self.a, self.b]
    """
    inputs = f"{ONE_INPUT}\ndef get_init_inputs():\n    return [[2], {{'b': 3.0}}]\n"
    (sides,) = bench.both(_mirrored(tmp_path, model, inputs))
    assert sides.expected == sides.got == [2, 3.0]


def test_random_constructor_arguments_are_seeded_for_every_case(
    bench: Bench, tmp_path: Path
) -> None:
    model = """
    class Model(torch.nn.Module):
        def __init__(self, w):
            super().__init__()
            self.w = w

        def forward(self, x):
            return x * self.w
    """
    inputs = """
    def get_input_groups():
        return [[torch.ones(2)], [torch.ones(2)]]

    def get_init_inputs():
        return [torch.randn(2)]
    """
    first, second = bench.both(_mirrored(tmp_path, model, inputs), [1, 2])
    assert first.agree
    assert torch.equal(first.expected, second.expected)


def test_case_that_vanished_since_listing_is_told(bench: Bench, tmp_path: Path) -> None:
    model = "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    reference = bench.ready("reference", _mirrored(tmp_path, model, ONE_INPUT))
    answer = bench.ask(reference, {"op": "inputs", "case_idx": 3})
    assert "case 3 is missing" in answer.message["error"]["message"]
    # The worker goes on.
    assert "error" not in bench.inputs(reference).message


def test_inputs_that_cannot_travel_are_an_error_of_the_reference(
    bench: Bench, tmp_path: Path
) -> None:
    model = "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    pair = _mirrored(tmp_path, model, "def get_inputs():\n    return [object()]\n")
    answer = bench.ask(bench.ready("reference", pair), {"op": "inputs", "case_idx": 1})
    assert answer.message["error"]["type"] == "UnsupportedValueError"
    (record,) = bench.verdict(pair)
    assert record.side == "reference"


def test_answer_that_is_too_long_is_an_error_and_no_death(bench: Bench, tmp_path: Path) -> None:
    model = "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    inputs = "def get_inputs():\n    return ['x' * 70_000_000]\n"
    reference = bench.ready("reference", _mirrored(tmp_path, model, inputs))
    answer = bench.ask(reference, {"op": "inputs", "case_idx": 1})
    assert "handed over as tensors" in answer.message["error"]["message"]
