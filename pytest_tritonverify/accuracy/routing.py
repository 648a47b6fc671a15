"""Which rule judges an output: the inputs' type, the golden's dtype and the options decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from pytest_tritonverify.accuracy.dtypes import dtype_name, is_index_like
from pytest_tritonverify.accuracy.limits import (
    ECO_LIMIT_ULPS,
    ECO_REQUIRED_PERCENT,
    NPU_REQUIRED_PERCENT,
    QUANT_TOLERANCE,
    cap_limits,
    eco_limits,
    npu_limits,
    precision_rank,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_tritonverify.accuracy.dtypes import Kind
    from pytest_tritonverify.accuracy.rules import Rules
    from pytest_tritonverify.accuracy.verdict import Category

_TITLES: dict[Category, str] = {
    "eco_open_source": "生态开源精度标准,第一标准",
    "float_compute": "浮点计算类",
    "integer_compute": "整数计算类",
    "quant_fp_to_int": "量化计算类 fp→int",
    "bool_output": "bool 输出",
    "non_compute": "非计算类",
}


@dataclass(frozen=True)
class InputType:
    """What the inputs of a forward are, as far as the rules care.

    Attributes:
        kind: `float` (complex included), `int` (bool included) or `no_tensor`.
        dtype: The most precise tensor dtype, None without tensors.
        source: Where it was found: among the inputs, in the first list of tensors, or nowhere.
        candidates: The dtypes that were looked at, each once, in order of appearance.
    """

    kind: Literal["float", "int", "no_tensor"]
    dtype: torch.dtype | None
    source: Literal["tensor", "tensor_list", "none"]
    candidates: tuple[str, ...]

    @property
    def log_line(self) -> str:
        """The documented line for the log."""
        if self.kind == "no_tensor":
            return "[输入类型判定] 来源=无 tensor 输入(全 attr 或空),input_type=no_tensor"
        return (
            f"[输入类型判定] 来源={self.source},候选 dtypes={list(self.candidates)},"
            f"最高精度={self.dtype},input_type={self.kind}"
        )


def infer_input_type(values: Iterable[object]) -> InputType:
    """Infer the input type from the values that a forward really receives.

    Tensors among the values decide by the most precise dtype. Without any, the first list or tuple
    that holds a tensor (at any depth of lists) decides by its first one.

    Args:
        values: Positional, then keyword values.

    Returns:
        The input type; `no_tensor`, which leads to the strictest rules, where there is no tensor.
    """
    values = list(values)
    dtypes = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    if dtypes:
        best = max(dtypes, key=lambda dtype: precision_rank(dtype_name(dtype)))
        candidates = tuple(dict.fromkeys(str(dtype) for dtype in dtypes))
        return InputType(_input_kind(best), best, "tensor", candidates)
    listed = next(_listed_tensors(values), None)
    if listed is None:
        return InputType("no_tensor", None, "none", ())
    return InputType(_input_kind(listed.dtype), listed.dtype, "tensor_list", (str(listed.dtype),))


def _listed_tensors(values: Iterable[object]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _listed_tensors(value)


def _input_kind(dtype: torch.dtype) -> Literal["float", "int"]:
    return "float" if dtype.is_floating_point or dtype.is_complex else "int"


@dataclass(frozen=True)
class Route:
    """The rule chosen for an output.

    Attributes:
        category: The rule.
        tolerance: Greatest difference of integers; 0 elsewhere.
    """

    category: Category
    tolerance: int = 0


def choose_route(
    dtype: torch.dtype | None, kind: Kind | None, input_type: InputType, rules: Rules
) -> Route:
    """Choose the rule for an output.

    Args:
        dtype: The golden's dtype; None for an integer beyond 64 bits.
        kind: Its family; may be None (packed or raw formats) with `non_compute` only.
        input_type: What the inputs are.
        rules: The options.

    Returns:
        The rule.
    """
    if rules.non_compute:
        return Route("non_compute")
    if kind == "bool":
        return Route("bool_output")
    if kind == "int":
        exact = rules.exact_int and (dtype is None or is_index_like(dtype))
        if input_type.kind == "float" and not exact:
            return Route("quant_fp_to_int", QUANT_TOLERANCE)
        return Route("integer_compute")
    if dtype is not None and eco_limits(dtype_name(dtype)) is not None:
        return Route("eco_open_source")
    return Route("float_compute")


def route_log_lines(route: Route, dtype: str, input_type: InputType) -> tuple[str, ...]:
    """Return the documented lines that say which rule judges an output.

    Args:
        route: The rule.
        dtype: The golden's dtype as text, such as `torch.float32`.
        input_type: What the inputs are.
    """
    mode = (
        f"[评测模式] 模式={route.category}({_TITLES[route.category]}),"
        f"输入 dtype={input_type.dtype}({input_type.kind}),输出 dtype={dtype};"
        f"误差要求={_requirement(route, dtype)}"
    )
    if route.category != "float_compute":
        return (mode,)
    fallback = f"[评测模式] 生态标准阈值表未覆盖 dtype={dtype},回退 NPU Benchmark 三项判定"
    return (fallback, mode)


def _requirement(route: Route, dtype: str) -> str:
    name = dtype.removeprefix("torch.")
    eco = eco_limits(name)
    if route.category == "eco_open_source" and eco is not None:
        return (
            f"两项 AND:(1)|actual - golden| <= atol + rtol*|golden| "
            f"[atol={eco.atol:.3e}, rtol={eco.rtol:.3e}] 的元素占比 >= "
            f"{ECO_REQUIRED_PERCENT / 100},(2)逐元素 |actual - golden| <= "
            f"max({eco.max_abs_error_limit}, {ECO_LIMIT_ULPS}*ULP(|golden|), "
            f"atol + rtol*|golden|)"
        )
    if route.category == "float_compute":
        limits, cap = npu_limits(name), cap_limits(name)
        return (
            f"三项 AND:(1)max_error_cap |diff| <= atol + rtol*|golden| "
            f"[atol={cap.atol:.3e}, rtol={cap.rtol:.3e}],"
            f"(2)matched_ratio >= {NPU_REQUIRED_PERCENT / 100} "
            f"[small_value_threshold={limits.small_value_threshold:.3e}, "
            f"small_value_error={limits.small_value_error:.3e}, "
            f"rel_threshold={limits.rel_threshold:.3e}],"
            f"(3)MERE < {limits.rel_threshold:.3e}"
        )
    if route.category == "quant_fp_to_int":
        return f"|actual - golden| <= {route.tolerance}"
    if route.category == "integer_compute":
        return "|actual - golden| == 0"
    if route.category == "bool_output":
        return "torch.equal"
    return "二进制完全一致"
