"""False accepts and false rejects of the accuracy standard, and of the strict rule.

Run: python benchmarks/strictness.py [--markdown] [--seeds 1] [--list]

A corpus is generated (`tests/support/strict_corpus.py`): operators in float32, float16 and
bfloat16, each with wrong outputs of several kinds of fault and with honest ones, other orders of
computing and other precisions. Every output is judged by the standard alone and with the gates of
`--verify-strict`, whose golden is the operator in float64. With `--list`, what each of the two
gets wrong is named.

A fault counts only where it is one: an output that equals the golden to within rounding is left
out, such as a blanked row of a golden whose row is zero.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.strict_corpus import corpus, is_crude, is_real, judge

if TYPE_CHECKING:
    from tests.support.strict_corpus import Outcome, Sample


def kind_of(sample: Sample) -> str:
    """Return the row of the table that a sample belongs to."""
    return sample.kind.partition(":")[0]


def main() -> None:
    """Judge the corpus and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--list", action="store_true", help="name what is judged wrongly")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    samples = (sample for seed in arguments.seeds for sample in corpus(seed))
    outcomes = [judge(sample) for sample in samples if is_real(sample)]
    print_table(outcomes, markdown=arguments.markdown)
    if arguments.list:
        for outcome in outcomes:
            sample = outcome.sample
            if outcome.strict != sample.right or (sample.right and not outcome.standard):
                word = "rejected" if sample.right else "accepted"
                by = "the standard" if sample.right and not outcome.standard else "strict"
                gates = f" ({', '.join(outcome.gates)})" if outcome.gates else ""
                print(f"{word} by {by}{gates}: {sample.operator} {sample.dtype} {sample.kind}")


def print_table(outcomes: list[Outcome], *, markdown: bool) -> None:
    """Print false accepts and rejects by kind, and which gate found what."""
    rows = [("kind", "outputs", "the standard errs", "strict errs")]
    groups = (
        ("all wrong outputs", [o for o in outcomes if not o.sample.right]),
        ("all honest outputs", [o for o in outcomes if o.sample.right and not is_crude(o.sample)]),
        ("", [o for o in outcomes if is_crude(o.sample)]),
    )
    for title, chosen in groups:
        for kind in dict.fromkeys(kind_of(outcome.sample) for outcome in chosen):
            alike = [outcome for outcome in chosen if kind_of(outcome.sample) == kind]
            rows += [_row(kind, alike)]
        if title:
            rows.append(_row(title, chosen))
    for number, row in enumerate(rows):
        if markdown:
            print(f"| {' | '.join(row)} |")
            if number == 0:
                print("|---|---|---|---|")
        else:
            print(f"{row[0]:34} {row[1]:>8} {row[2]:>22} {row[3]:>18}")
    caught = [o for o in outcomes if not o.sample.right and o.standard and not o.strict]
    found = Counter(gate for outcome in caught for gate in outcome.gates)
    alone = Counter(outcome.gates[0] for outcome in caught if len(outcome.gates) == 1)
    print(f"\nof {len(caught)} wrong outputs that only the gates reject:")
    for gate, count in found.most_common():
        print(f"  {gate}: {count}, alone {alone[gate]}")
    left = [o for o in outcomes if not o.sample.right and o.strict]
    warned = sum(outcome.warned for outcome in left)
    print(
        f"wrong outputs accepted: {len(left)}, in {warned} of them the case is non_discriminating"
    )
    undecided = {(o.sample.operator, o.sample.dtype) for o in outcomes if o.standard and o.warned}
    for name, dtype in sorted(undecided, key=str):
        print(f"  strict finds no difference between right and wrong in: {name}, {dtype}")


def _row(kind: str, outcomes: list[Outcome]) -> tuple[str, str, str, str]:
    standard = sum(o.standard != o.sample.right for o in outcomes)
    strict = sum(o.strict != o.sample.right for o in outcomes)
    return kind, str(len(outcomes)), str(standard), str(strict)


if __name__ == "__main__":
    main()
