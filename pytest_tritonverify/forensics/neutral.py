"""Masked lanes that take part in a maximum or minimum with a value that wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.forensics.contents import Content, held
from pytest_tritonverify.forensics.reductions import reductions_of

if TYPE_CHECKING:
    from pytest_tritonverify.forensics.facts import FailedOutput
    from pytest_tritonverify.forensics.region import Region
    from pytest_tritonverify.forensics.sampling import Survey

_FEWEST = 3


def find_neutral(case: FailedOutput, survey: Survey, _region: Region) -> Content | None:
    """Explain zeros in a maximum of negative numbers, or a minimum of positive ones."""
    failing, passing = survey.failing, survey.passing
    if survey.count < _FEWEST or not held(failing.actual == 0):
        return None
    for name, sign in (("max", -1), ("min", 1)):
        if not held(failing.golden * sign > 0):
            continue
        # Where zero does not win, the result is right.
        if passing.count and not held(passing.golden * sign <= 0):
            continue
        found = reductions_of(case, survey, {name})
        if found is None:
            continue
        position, axis = found
        side = "negative" if name == "max" else "positive"
        return Content(
            "masked_lanes",
            f"Masked lanes win the {name}imum: they are filled with 0 instead of "
            f"{'-' if name == 'max' else ''}infinity.",
            "they hold the zeros of masked lanes",
            (
                f"the golden is the {name} of input {position} along axis {axis}",
                f"zero stands where all values are {side}, and only there",
            ),
            everywhere=True,
            decisive=True,
        )
    return None
