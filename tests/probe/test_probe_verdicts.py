"""Pairs with known verdicts, from the suite's cases and the examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify import discovery

if TYPE_CHECKING:
    from pytest_tritonverify.discovery import Pair
    from tests.support.probing import Prober

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "verdicts"
EXAMPLES = ROOT / "examples"


def _pair(folder: Path) -> Pair:
    (implementation,) = folder.glob("*_triton_*.py")
    pair = discovery.pair_of(implementation)
    assert pair is not None
    return pair


@pytest.mark.parametrize(
    ("folder", "names", "words"),
    [
        (
            CASES / "32_hidden_weights_other_distribution",
            ["dense.weight", "dense.bias"],
            "another initialiser",
        ),
        (CASES / "33_hidden_rng_order", ["scale", "shift"], "order of random draws"),
        (CASES / "65_hidden_state_before_compile_error", ["shift"], "filled with 0"),
        (EXAMPLES / "broken" / "wrong_weights", ["weight"], "another scale"),
    ],
    ids=lambda value: value.name if isinstance(value, Path) else "",
)
def test_mismatch_of_known_pairs(probe: Prober, folder: Path, names: list[str], words: str) -> None:
    record = probe.pair(_pair(folder))
    assert (record.status, record.error_type) == ("failed", "HiddenStateMismatch")
    assert [entry["name"] for entry in record.report["mismatches"]] == names
    assert record.message is not None
    assert f"`{names[0]}`" in record.message.partition("\n")[0]
    assert words in record.message
    assert record.file == str(_pair(folder).implementation)


def test_renamed_weight_passes_without_a_warning(probe: Prober) -> None:
    record = probe.pair(_pair(CASES / "34_hidden_renamed_is_fine"))
    assert (record.status, record.report["warnings"]) == ("passed", [])


def _right_pairs() -> list[Path]:
    return sorted({path.parent for path in EXAMPLES.glob("[!b]*/**/*_triton_*.py")})


@pytest.mark.parametrize("folder", _right_pairs(), ids=lambda folder: folder.name)
def test_right_examples_are_not_objected_to(probe: Prober, folder: Path) -> None:
    for implementation in sorted(folder.glob("*_triton_*.py")):
        pair = discovery.pair_of(implementation)
        assert pair is not None
        assert probe.pair(pair).status in ("passed", "skipped")
