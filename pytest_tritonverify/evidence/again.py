"""Conclusions from a second call of the same model that came out wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.evidence.report import ERROR, Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.evidence.case import GoldenFact

_SHOWN = 4


def wrong_again(later: Mapping[str, GoldenFact], first: Mapping[str, GoldenFact]) -> list[str]:
    """Return the outcomes that a second call gets wrong and a first one gets right.

    Args:
        later: facts of the replay, which was the second call of its model.
        first: facts of a first call on the same values.
    """
    return [
        path
        for path, fact in later.items()
        if fact.followed is False and first[path].followed and fact.resembled
    ]


def finding(case_idx: int, paths: Sequence[str]) -> Finding:
    """Return what is said of such outcomes, where the reference's second call is as its first."""
    text = (
        f"{', '.join(paths[:_SHOWN])}: a second call of the same model is wrong, and a first one "
        "on the same values is right: something is left from the call before, as in a buffer that "
        "is kept and not set anew; start every call from a clean state"
    )
    return Finding("second_call_wrong", ERROR, text, case_idx)
