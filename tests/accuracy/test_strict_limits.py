"""Thresholds of the strict rule as users set them."""

from __future__ import annotations

import pytest

from pytest_tritonverify.strictness.limits import StrictLimits


def test_thresholds_are_set_by_name() -> None:
    limits = StrictLimits().changed(["error_ratio=8", " bias_errors = 2.5 ", "error_ratio=9"])
    assert (limits.error_ratio, limits.bias_errors) == (9.0, 2.5)
    assert limits.changed([]) == limits
    assert limits.ratio(narrow=False) == 9.0
    assert limits.ratio(narrow=True) == StrictLimits().error_ratio_low
    for name, value in StrictLimits().to_json().items():
        assert StrictLimits().changed([f"{name}={value}"]) == StrictLimits()


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ("eror_ratio=8", "'eror_ratio=8' is no NAME=VALUE with one of these names: matched_ratio,"),
        ("error_ratio", "'error_ratio' is no NAME=VALUE"),
        ("error_ratio=much", "'much' is no number"),
        ("error_ratio=0.5", "must be at least 1"),
        ("error_ratio=nan", "must be at least 1"),
        ("error_ratio=inf", "must be at least 1"),
        ("matched_ratio=1.5", "must be at least 0 and at most 1"),
        ("slice_failing=-0.1", "must be at least 0 and at most 1"),
        ("bias_errors=-1", "must be at least 0"),
    ],
)
def test_what_can_not_be_followed_is_refused(entry: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        StrictLimits().changed([entry])
    assert complaint in str(caught.value)
