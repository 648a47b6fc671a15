"""What a rule has found about an output, in one sentence."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.html_report import text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ROUTES = {
    "eco_open_source": "open ecosystem standard",
    "float_compute": "NPU benchmark standard",
    "integer_compute": "integers, exactly",
    "quant_fp_to_int": "quantised integers",
    "bool_output": "booleans",
    "non_compute": "bit for bit",
}
"""The routes of the accuracy rules, in words."""


def sentence(category: object, metrics: Mapping[str, Any]) -> str:
    """Return what a rule has counted and what it asks for.

    Args:
        category: the rule.
        metrics: its figures; any of them may be missing.

    Returns:
        Nothing for an unknown rule, or one without figures.
    """
    describe = _SENTENCES.get(str(category))
    return describe(metrics) if describe is not None and metrics else ""


def _eco(metrics: Mapping[str, Any]) -> str:
    return (
        f"{_share(metrics.get('matched_ratio'))} of {_number(metrics.get('total_finite'))} "
        f"elements within {_power(metrics.get('atol'))} + {_power(metrics.get('rtol'))}·|golden| "
        f"({_share(metrics.get('required_matched_ratio'))} required); "
        f"{_number(metrics.get('over_count'))} above the hard limit (0 allowed); greatest "
        f"difference {_number(metrics.get('max_abs_diff'))}"
    )


def _three_way(metrics: Mapping[str, Any]) -> str:
    return (
        f"{_share(metrics.get('matched_ratio'))} of {_number(metrics.get('total_finite'))} "
        f"elements match ({_share(metrics.get('required_matched_ratio'))} required); mean relative "
        f"error {_number(metrics.get('MERE'))} (below {_power(metrics.get('rel_threshold'))} "
        f"required); {_number(metrics.get('max_error_cap_violation_count'))} above the hard limit "
        f"(0 allowed); greatest difference {_number(metrics.get('max_abs_diff'))}"
    )


def _integers(metrics: Mapping[str, Any]) -> str:
    return (
        f"{_number(metrics.get('violation_count'))} of {_number(metrics.get('total_finite'))} "
        f"elements differ by more than {_number(metrics.get('tolerance'))}; greatest difference "
        f"{_number(metrics.get('max_abs_diff'))}"
    )


def _exactly(metrics: Mapping[str, Any]) -> str:
    total = metrics.get("total_finite", metrics.get("total_elements"))
    return f"{_number(metrics.get('violation_count'))} of {_number(total)} elements differ"


_SENTENCES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "eco_open_source": _eco,
    "float_compute": _three_way,
    "integer_compute": _integers,
    "quant_fp_to_int": _integers,
    "bool_output": _exactly,
    "non_compute": _exactly,
}


def _number(value: object) -> str:
    if type(value) is int:
        return text.shown(f"{value:,}", 40)
    found = figures.number(value)
    return "?" if found is None else f"{found:.4g}"


def _share(value: object) -> str:
    found = figures.number(value)
    if found is None:
        return "none" if value is None else "?"
    # 99.996 % is not all.
    percent = math.floor(found * 1e4) / 1e2 if found < 1 else found * 100
    return f"{percent:.4g} %"


def _power(value: object) -> str:
    """Return a limit: most of them are powers of two."""
    found = figures.number(value)
    if found is None:
        return "?"
    mantissa, exponent = math.frexp(found)
    if mantissa == 0.5 and exponent < -2:  # noqa: PLR2004 - 0.25 and more are read more easily so
        return f"2{str(exponent - 1).translate(_SUPERSCRIPT)}"
    return f"{found:g}"


_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
