"""Texts of verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_tritonverify.accuracy.verdict import Category, Finding, OutputVerdict

MAX_IN_FULL = 20
"""Failing outputs described in full; of further ones only the first line is given."""

_RULE_NAMES: dict[Category, str] = {
    "eco_open_source": "the open ecosystem accuracy standard",
    "float_compute": "the NPU Benchmark three-way test",
    "integer_compute": "exact integers",
    "quant_fp_to_int": "the quantisation rule",
    "bool_output": "equal booleans",
    "non_compute": "equal bits",
}


def place(path: str, dtype: str | None, shape: tuple[int, ...] | None) -> str:
    """Return which output is meant: `output[0] (torch.float32, shape [2, 3])`."""
    return path if shape is None else f"{path} ({dtype}, shape {list(shape)})"


def rule_message(where: str, category: Category, finding: Finding) -> str:
    """Return the text of an output that a rule decided; the first line stands on its own."""
    word = "agrees with the golden" if finding.passed else "is not accurate"
    head = f"{where} {word} by {_RULE_NAMES[category]} ({category}): {finding.summary}"
    return "\n".join((head, *(f"  {line}" for line in finding.details)))


def precheck_message(where: str, problems: Sequence[str]) -> str:
    """Return the text of an output that a check before the rules decided."""
    head = f"{where} does not match: {problems[0]}"
    return "\n".join((head, *(f"  {line}" for line in problems[1:])))


def outputs_message(outputs: Sequence[OutputVerdict]) -> str:
    """Return the text of a case: a verdict in one line, then every failing output."""
    failing = [output for output in outputs if not output.passed]
    count = f"{len(outputs)} output{'' if len(outputs) == 1 else 's'}"
    if not failing:
        return f"{count} {'agrees' if len(outputs) == 1 else 'agree'} with the golden"
    heads = [output.message.partition("\n")[0] for output in failing]
    blocks = [output.message for output in failing[:MAX_IN_FULL]] + heads[MAX_IN_FULL:]
    if len(outputs) == 1:
        return blocks[0]
    return "\n".join((f"{len(failing)} of {count} failed; first: {heads[0]}", *blocks))
