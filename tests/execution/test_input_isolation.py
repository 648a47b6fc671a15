"""What one side does to its inputs reaches neither the other side nor a later case."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.results.records import CaseRecord
    from tests.support.workers import Bench

_SHARED = """
def get_input_groups():
    base = torch.arange(6.0)
    return [[base, base[1:5]], [base], [base.view(2, 3).t(), base]]
"""


def _pair(folder: Path, reference: str, implementation: str, inputs: str = _SHARED) -> Pair:
    """Write a pair from the statements of both forwards, which take `*args` as a tuple."""
    side = "import torch\n\nclass {}(torch.nn.Module):\n    def forward(self, *args):\n        {}\n"
    return write_pair(
        folder,
        side.format("Model", reference.replace("\n", "\n        ")) + inputs,
        side.format("ModelNew", implementation.replace("\n", "\n        ")),
    )


def _record(bench: Bench, pair: Pair, case_idx: int = 1) -> CaseRecord:
    return bench.verdict(pair, cases=case_idx)[case_idx - 1]


OVERWRITE = "args[0].fill_(77.0)\nreturn torch.zeros(1)"
REPORT = "return [arg.clone() for arg in args]"


@pytest.mark.parametrize(
    ("reference", "implementation", "side"),
    [(OVERWRITE, REPORT, "actual"), (REPORT, OVERWRITE, "golden")],
    ids=["reference_writes", "implementation_writes"],
)
def test_writing_is_invisible_to_the_other_side_and_to_later_cases(
    bench: Bench, tmp_path: Path, reference: str, implementation: str, side: str
) -> None:
    found = bench.both(_pair(tmp_path, reference, implementation), [1, 2, 3, 1])
    base = torch.arange(6.0)
    expected = [[base, base[1:5]], [base], [base.view(2, 3).t(), base], [base, base[1:5]]]
    for sides, tensors in zip(found, expected, strict=True):
        seen = sides.opened(getattr(sides, side))["outputs"]
        assert all(torch.equal(a, b) for a, b in zip(seen, tensors, strict=True))


def test_aliases_within_a_case_stay_aliases_on_both_sides(bench: Bench, tmp_path: Path) -> None:
    write = "args[0][2] = 50.0\nreturn [args[1].clone(), torch.tensor(args[1].storage_offset())]"
    (sides,) = bench.both(_pair(tmp_path, write, write))
    for seen in (sides.expected, sides.got):
        assert seen[0].tolist() == [1.0, 50.0, 3.0, 4.0]
        assert seen[1].item() == 1


def test_layout_reaches_both_sides(bench: Bench, tmp_path: Path) -> None:
    report = "return [[*arg.stride(), arg.storage_offset(), arg.requires_grad] for arg in args]"
    inputs = """
def get_inputs():
    x = torch.arange(24.0).reshape(2, 3, 4)
    return [x.transpose(0, 2)[1:], x[:1].expand(5, 3, 4), torch.ones(2, requires_grad=True)]
"""
    (sides,) = bench.both(_pair(tmp_path, report, report, inputs))
    assert sides.expected == sides.got
    assert sides.got == [[1, 4, 12, 1, False], [0, 4, 1, 0, False], [1, 0, True]]


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("args[0].add_(1.0)", ["input[0]", "input[1]"]),
        ("args[1].add_(1.0)", ["input[0]", "input[1]"]),
        ("args[0][0] = 9.0", ["input[0]"]),
        ("args[0].add_(0.0)", []),
        ("args[0][0] = -0.0", ["input[0]"]),
        ("args[0].resize_(2)", ["input[0]"]),
        ("args[0].unsqueeze_(0)", ["input[0]"]),
        ("args[0].data = torch.ones(6)", ["input[0]"]),
        ("args[1].set_(torch.ones(4))", ["input[1]"]),
    ],
)
def test_changed_inputs_are_named(
    bench: Bench, tmp_path: Path, statement: str, changed: list[str]
) -> None:
    forward = f"{statement}\nreturn torch.zeros(1)"
    sides = bench.golden(_pair(tmp_path, forward, forward))
    assert sorted(sides.opened(sides.golden)["changed"]) == changed


NESTED = """
import dataclasses

@dataclasses.dataclass
class Box:
    content: torch.Tensor

def get_inputs():
    return [[torch.ones(2), torch.ones(3)], {"k": torch.ones(4)}, Box(torch.ones(5)), 3]
"""


@pytest.mark.parametrize(
    ("statement", "changed"),
    [
        ("args[0][1].zero_()", ["input[0][1]"]),
        ("args[1]['k'].zero_()", ["input[1]['k']"]),
        ("args[2].content.zero_()", ["input[2].content"]),
        ("args[0].pop(0)", ["input[0][0]"]),
        ("args[0].clear(); args[1].clear()", []),
        ("args[0][0] = torch.zeros(2)", ["input[0][0]"]),
        ("args[0].append(torch.zeros(9))", []),
    ],
)
def test_changed_inputs_in_containers_are_named(
    bench: Bench, tmp_path: Path, statement: str, changed: list[str]
) -> None:
    forward = f"{statement}\nreturn torch.zeros(1)"
    sides = bench.golden(_pair(tmp_path, forward, forward, NESTED))
    assert sorted(sides.opened(sides.golden)["changed"]) == changed


IN_PLACE = """
def get_inputs():
    return [torch.arange(4.0), torch.zeros(4)]
"""


def test_what_stored_outputs_are_held_against_may_write_into_its_inputs(
    bench: Bench, tmp_path: Path
) -> None:
    pair = _pair(tmp_path, "return args[0] + 1", "return args[0].add_(1)", IN_PLACE)
    task = pair.task.read_text()
    (record,) = bench.verdict(pair, strict=True)
    assert record.error_type == "InputMutation"
    # A GPU kernel's outputs, as `build-task` writes tasks: they say nothing of its inputs.
    pair.task.write_text(f"GPU_REFERENCE_MS = None\nPT_SHA256 = ''\n{task}")
    (record,) = bench.verdict(pair, strict=True)
    assert record.error_type != "InputMutation"
    assert [w["code"] for w in record.warnings if w["code"] == "input_mutated"] == []


@pytest.mark.parametrize(
    ("reference", "implementation", "status", "cautions"),
    [
        ("return args[0] + 1", "return args[0].add_(1)", "passed", ["input_mutated"]),
        ("return args[0].add_(1)", "return args[0].add_(1)", "passed", []),
        ("return args[0].add_(1)", "return args[0] + 1", "passed", ["input_not_mutated"]),
        (
            "args[1].fill_(3)\nreturn args[0] + 1",
            "args[1].fill_(4)\nreturn args[0] + 1",
            "failed",
            [],
        ),
        ("args[1].copy_(args[0] * 2)", "args[1].copy_(args[0] * 2)", "passed", []),
        ("args[1].copy_(args[0] * 2)", "args[1].copy_(args[0] * 3)", "failed", []),
        ("args[1].copy_(args[0] * 2)", "pass", "failed", []),
        ("args[1].copy_(args[0] * 2)", "return args[0] * 2", "failed", []),
    ],
    ids=[
        "only_implementation_writes",
        "both_write",
        "only_reference_writes",
        "both_write_differently",
        "result_by_writing",
        "wrong_result_by_writing",
        "nothing_written",
        "returned_instead",
    ],
)
def test_verdict_on_inputs_that_are_written(
    bench: Bench,
    tmp_path: Path,
    reference: str,
    implementation: str,
    status: str,
    cautions: list[str],
) -> None:
    record = _record(bench, _pair(tmp_path, reference, implementation, IN_PLACE))
    assert record.status == status, record.error_msg
    codes = [warning["code"] for warning in record.warnings]
    assert [code for code in codes if code.startswith("input_")] == cautions


def test_constructor_arguments_are_copies_too(bench: Bench, tmp_path: Path) -> None:
    side = """
    import torch

    class {}(torch.nn.Module):
        def __init__(self, table):
            super().__init__()
            self.table = table

        def forward(self, x):
            return self.table.add_(x)
    """
    task = (
        side.format("Model")
        + """
    TABLE = torch.zeros(2)

    def get_input_groups():
        return [[torch.ones(2)], [torch.ones(2)]]

    def get_init_inputs():
        return [TABLE]
    """
    )
    found = bench.both(write_pair(tmp_path, task, side.format("ModelNew")), [1, 2])
    assert all(sides.agree and sides.got.tolist() == [1.0, 1.0] for sides in found)
