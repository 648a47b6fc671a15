"""What the strict rule accepts and rejects of a generated corpus; a part of the benchmark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.strict_corpus import DTYPES, corpus, is_crude, is_real, judge
from tests.support.strict_operators import OPERATORS

if TYPE_CHECKING:
    from tests.support.strict_operators import Operator

# A seed that no threshold was looked at with.
SEED = 11
CHOSEN = ("rms_norm", "small_matmul", "bmm", "column_mean")


@pytest.mark.parametrize(
    "operator", [o for o in OPERATORS if o.name in CHOSEN], ids=lambda operator: operator.name
)
def test_honest_outputs_pass_and_wrong_ones_are_found(operator: Operator) -> None:
    outcomes = [judge(sample) for sample in corpus(SEED, [operator]) if is_real(sample)]
    assert {outcome.sample.dtype for outcome in outcomes} == set(DTYPES)
    honest = [o for o in outcomes if o.sample.right and not is_crude(o.sample)]
    assert len(honest) >= 9
    for outcome in honest:
        assert outcome.strict, (outcome.sample.kind, outcome.sample.dtype, outcome.gates)
    wrong = [outcome for outcome in outcomes if not outcome.sample.right]
    assert len(wrong) >= 25
    accepted = [o for o in wrong if o.strict]
    # What the operator's own rounding hides, in bfloat16.
    assert {str(o.sample.dtype) for o in accepted} <= {"torch.bfloat16"}
    assert len(accepted) <= 2
    # The gates never accept what the standard refuses.
    assert all(outcome.standard or not outcome.strict for outcome in outcomes)


def test_the_standard_alone_lets_wrong_outputs_through() -> None:
    (operator,) = (o for o in OPERATORS if o.name == "small_matmul")
    outcomes = [judge(s) for s in corpus(SEED, [operator]) if not s.right and is_real(s)]
    assert sum(outcome.standard for outcome in outcomes) > 5
