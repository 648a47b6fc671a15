"""All failures of a result as one short text: what is alike is said once, no case is left out."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_tritonverify import figures
from pytest_tritonverify.execution import errors
from pytest_tritonverify.results.records import FALLBACK, TIMEOUT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_tritonverify.workflow.verification import FailedCase

LIMIT = 4000
"""Characters of a text, unless another number is asked for."""

_HEAD = 240
_SHOWN_GROUPS = 12
_SHOWN_CASES = 3

# Figures, shapes, dtypes and addresses differ where the failure is the same.
_FIGURES = re.compile(
    r"\[[\d, ]*\]|\btorch\.\w+|0x[0-9a-fA-F]+|[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\bnan\b|\binf\b"
)
# What a message says of the cause helps more than what it lists.
_TELLING = ("hint:", "where:", "likely cause:", "help:", "kernel:")
_SHOWN_LINES = 8
_TIMEOUT = re.compile(r"验证超时[（(]\s*([0-9.]+)\s*秒[）)]")


@dataclass
class Group:
    """Failures that are alike.

    Attributes:
        error_type: the name that they share.
        headline: the first line of the first one's message.
        members: the failures.
    """

    error_type: str
    headline: str
    members: list[FailedCase] = field(default_factory=list)

    @property
    def cases(self) -> list[int]:
        """Numbers of the cases, ascending."""
        return sorted({f.case_idx for f in self.members if f.case_idx is not None})


def headline(failure: FailedCase) -> str:
    """Return what a failure says in its first line, without its own name."""
    lines = [line.strip() for line in failure.error_msg.splitlines() if line.strip()]
    first = lines[0] if lines else ""
    if first.startswith("Traceback (most recent call last)") and len(lines) > 1:
        # Other programs keep Python's traceback, which says it in its last line.
        first = lines[-1]
    prefix = f"{failure.error_type}: "
    return first.removeprefix(prefix) or failure.error_type


def group(failures: Iterable[FailedCase]) -> list[Group]:
    """Put failures together that share their name and, but for figures, their first line.

    Returns:
        The groups, those with most cases first, else in the order of their first cases.
    """
    groups: dict[tuple[str, str], Group] = {}
    for failure in failures:
        first = headline(failure)
        key = (failure.error_type, _FIGURES.sub("#", first))
        groups.setdefault(key, Group(failure.error_type, first)).members.append(failure)
    return sorted(groups.values(), key=lambda one: -len(one.members))


def timeout_text(seconds: str) -> str:
    """Return the documented words for a verification whose time was up."""
    return f"验证超时({seconds}秒)"


def timeout_of(failures: Sequence[FailedCase]) -> str | None:
    """Return the seconds after which a verification was ended, where it was."""
    for failure in failures:
        match = _TIMEOUT.search(failure.error_msg) if failure.error_type == TIMEOUT else None
        if match:
            return match[1]
    return None


def text(
    failures: Sequence[FailedCase], total: int, limit: int = LIMIT, failed: int | None = None
) -> str:
    """Return `verifier_error`: all failures, in at most about `limit` characters.

    A degeneration and a timeout begin with the documented words for them.

    Args:
        failures: all failed cases.
        total: number of cases, failed or not.
        limit: characters that the reader has room for.
        failed: number of failed cases, where that is not the number of failures named.
    """
    groups = group(failures)
    lines: list[str] = []
    seconds = timeout_of(failures)
    fallbacks = [one for one in groups if one.error_type == FALLBACK]
    if fallbacks:
        # The documented form; every case fails for it, so it goes first and alone explains most.
        groups = [*fallbacks, *(one for one in groups if one not in fallbacks)]
        first = fallbacks[0]
        lines.append(errors.clip(first.headline, max(limit // 4, _HEAD)))
        lines.append(f"(in case {figures.numbers_text(first.cases)} of {total})")
    elif seconds is not None:
        lines.append(timeout_text(seconds))
    if not fallbacks:
        lines.append(f"{len(failures) if failed is None else failed} of {total} cases failed")
    if failed is not None and failed != len(failures):
        lines.append(f"(`failures` names {len(failures)})")
    shown = groups[:_SHOWN_GROUPS]
    heads = [_head(one) for one in shown if one not in fallbacks[:1]]
    rest = groups[_SHOWN_GROUPS:]
    if rest:
        members = [f.case_idx for one in rest for f in one.members if f.case_idx is not None]
        names = ", ".join(dict.fromkeys(one.error_type for one in rest))
        numbers = figures.numbers_text(members)
        heads.append(errors.clip(f"- {len(rest)} more kinds ({names}): case {numbers}", 2 * _HEAD))
    body = "\n".join([*lines, *heads])
    return _with_details(body, shown, limit)


def _head(one: Group) -> str:
    numbers = figures.numbers_text(one.cases) or "?"
    return f"- {one.error_type}, case {numbers}: {errors.clip(one.headline, _HEAD)}"


def _with_details(body: str, groups: Sequence[Group], limit: int) -> str:
    """Add what else is known of each group while there is room, the same share for each."""
    room = limit - len(body) - len(groups)  # and a line break each
    share = room // max(len(groups), 1)
    details = []
    for one in groups:
        known = "\n".join(_details(one))
        # Less than a line helps nobody.
        if known and share > _HEAD // 2:
            details.append(errors.clip(f"{one.error_type}:\n{known}", share))
    return "\n".join([body, *details])


def _details(one: Group) -> list[str]:
    """Return lines on the first cases of a group: inputs, figures, place, rest of the message."""
    lines = []
    for failure in one.members[:_SHOWN_CASES]:
        inputs = figures.inputs_text(failure.input_desc)
        metrics = failure.metrics or {}
        known = [
            f"{name} {figures.shown(value)}"
            for name in ("matched_ratio", "max_abs_diff", "MERE", "violation_count")
            if (value := figures.number(metrics.get(name))) is not None
        ]
        parts = [part for part in (inputs, ", ".join(known), failure.place) if part]
        if parts:
            lines.append(f"  case {failure.case_idx}: {'; '.join(parts)}")
    rest = [line for line in one.members[0].error_msg.strip().splitlines()[1:] if line.strip()]
    rest.sort(key=lambda line: not line.strip().lower().startswith(_TELLING))
    return [*lines, *(f"  {line}" for line in rest[:_SHOWN_LINES])]
