"""Input types, the choice of a rule, and the documented log lines."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from pytest_tritonverify.accuracy import InputType, Rules, infer_input_type, judge_outputs

# From the most precise on; equals in one row.
RANKING = [
    ["complex128"],
    ["float64"],
    ["complex64"],
    ["float32"],
    ["complex32"],
    ["float16"],
    ["bfloat16"],
    ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"],
    ["int64", "uint64"],
    ["int32", "uint32"],
    ["int16", "uint16"],
    ["int8", "uint8"],
    ["bool"],
]


def empty(name: str) -> torch.Tensor:
    return torch.empty(0, dtype=getattr(torch, name))


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_the_most_precise_tensor_decides() -> None:
    rows = [[name for name in row if hasattr(torch, name)] for row in RANKING]
    for better, worse in itertools.pairwise(rows):
        for left in better:
            for right in worse:
                for order in ([left, right], [right, left]):
                    inferred = infer_input_type([empty(name) for name in order])
                    assert inferred.dtype == getattr(torch, left)
                    assert inferred.candidates == tuple(f"torch.{name}" for name in order)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("row", RANKING, ids=lambda row: row[0])
def test_kinds_of_inputs(row: list[str]) -> None:
    for name in row:
        if hasattr(torch, name):
            kind = "float" if "float" in name or "complex" in name else "int"
            assert infer_input_type([empty(name)]).kind == kind


def test_the_documents_example() -> None:
    inferred = infer_input_type([empty("float16"), empty("float32"), empty("int64")])
    assert (inferred.kind, inferred.dtype, inferred.source) == ("float", torch.float32, "tensor")


HALF, INTS = empty("float16"), empty("int32")


@pytest.mark.parametrize(
    ("values", "kind", "dtype", "source"),
    [
        ([INTS, [HALF]], "int", torch.int32, "tensor"),
        ([3, [INTS, HALF]], "int", torch.int32, "tensor_list"),
        ([[], (HALF, INTS), [INTS]], "float", torch.float16, "tensor_list"),
        ([[None, HALF]], "float", torch.float16, "tensor_list"),
        ([[1, 2], [[INTS]]], "int", torch.int32, "tensor_list"),
        ([1, 2.0, "x", None, [1, 2]], "no_tensor", None, "none"),
        ([{"x": HALF}], "no_tensor", None, "none"),
        ([], "no_tensor", None, "none"),
    ],
)
def test_lists_count_only_without_tensors(
    values: list[Any], kind: str, dtype: torch.dtype | None, source: str
) -> None:
    inferred = infer_input_type(iter(values))
    assert (inferred.kind, inferred.dtype, inferred.source) == (kind, dtype, source)


def lines_of(golden: torch.Tensor, inputs: InputType, **rules: bool) -> list[str]:
    lines: list[str] = []
    verdict = judge_outputs(
        golden, golden.clone(), input_type=inputs, rules=Rules(**rules), log=lines.append
    )
    assert verdict.passed
    return lines


FLOATING, INTEGRAL, NOTHING = (infer_input_type(v) for v in ([HALF], [INTS], []))


@pytest.mark.parametrize(
    ("dtype", "inputs", "rules", "category"),
    [
        (torch.float32, FLOATING, {}, "eco_open_source"),
        (torch.float32, INTEGRAL, {}, "eco_open_source"),
        (torch.float8_e5m2, NOTHING, {}, "eco_open_source"),
        (torch.float64, FLOATING, {}, "float_compute"),
        (torch.complex64, FLOATING, {}, "float_compute"),
        (torch.int64, FLOATING, {}, "quant_fp_to_int"),
        (torch.int8, FLOATING, {"exact_int": True}, "quant_fp_to_int"),
        (torch.int64, FLOATING, {"exact_int": True}, "integer_compute"),
        (torch.int64, INTEGRAL, {}, "integer_compute"),
        (torch.int64, NOTHING, {}, "integer_compute"),
        (torch.bool, FLOATING, {}, "bool_output"),
        (torch.bool, INTEGRAL, {"non_compute": True}, "non_compute"),
        (torch.float32, FLOATING, {"non_compute": True}, "non_compute"),
    ],
)
def test_the_route_is_chosen_by_formats_and_logged(
    dtype: torch.dtype, inputs: InputType, rules: dict[str, bool], category: str
) -> None:
    golden = torch.ones(2).to(dtype)
    lines = lines_of(golden, inputs, **rules)
    assert lines[-1].startswith(f"[评测模式] 模式={category}(")
    assert f"输入 dtype={inputs.dtype}({inputs.kind}),输出 dtype={dtype};误差要求=" in lines[-1]
    verdict = judge_outputs(golden, golden, input_type=inputs, rules=Rules(**rules))
    assert verdict.outputs[0].category == category


def test_log_lines_are_the_documented_ones() -> None:
    (line,) = lines_of(torch.ones(2), FLOATING)
    assert line.startswith("[评测模式] 模式=eco_open_source(生态开源精度标准,第一标准),")
    fallback, mode = lines_of(torch.ones(2, dtype=torch.float64), FLOATING)
    assert fallback == (
        "[评测模式] 生态标准阈值表未覆盖 dtype=torch.float64,回退 NPU Benchmark 三项判定"
    )
    assert mode.startswith("[评测模式] 模式=float_compute(浮点计算类)")
    (line,) = lines_of(torch.ones(2), FLOATING, non_compute=True)
    assert line.startswith("[评测模式] 模式=non_compute(非计算类)")
    (line,) = lines_of(torch.ones(2, dtype=torch.int32), FLOATING)
    assert line.endswith("误差要求=|actual - golden| <= 1")


def test_the_input_type_describes_itself_for_the_log() -> None:
    assert infer_input_type([HALF, INTS, HALF]).log_line == (
        "[输入类型判定] 来源=tensor,候选 dtypes=['torch.float16', 'torch.int32'],"
        "最高精度=torch.float16,input_type=float"
    )
    assert infer_input_type([[INTS]]).log_line.startswith("[输入类型判定] 来源=tensor_list,")
    assert NOTHING.log_line == (
        "[输入类型判定] 来源=无 tensor 输入(全 attr 或空),input_type=no_tensor"
    )


def test_one_line_is_logged_per_output() -> None:
    lines: list[str] = []
    golden = (torch.ones(1), None, torch.ones(1, dtype=torch.bool), torch.ones(2))
    actual = (torch.ones(1), None, torch.ones(1, dtype=torch.bool), torch.ones(3))
    judge_outputs(golden, actual, input_type=FLOATING, rules=Rules(), log=lines.append)
    assert [line.split("(")[0] for line in lines] == [
        "[评测模式] 模式=eco_open_source",
        "[评测模式] 模式=bool_output",
    ]
