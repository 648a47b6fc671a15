"""The corpus of cheats and honest files: which must be red, which green, and by which type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_tritonverify.degeneration import check_source

CASES = Path(__file__).parents[1] / "cases"
CORPUS = CASES / "degeneration"

# What the source can't show: these are for the runs, or for the values.
INVISIBLE = {
    "39_uninitialised_return": "part of the output is never written",
    "41_fp16_downgrade": "computes in lower precision",
    "47_wrong_dtype_out": "returns another dtype",
    "48_transposed_shape_flat_equal": "returns another shape",
}
EXPECTED = {
    "01_pure_torch": (1,),
    "02_kernel_never_called": (2, 3),
    "03_F_partial": (3, 4),
    "04_spec_figleaf_helper": (3, 4),
    "07_kernel_under_if_false": (2, 3),
    "09_zero_grid_style_masked_off": (3,),
    "30_try_except_fallback": (3,),
    "38_patch_timer": (3,),
    "50_thread_injection": (3,),
    "A06_detect_poison": (3,),
    "A08_torch_after_5_calls": (3,),
}
REFERENCE = (CORPUS / "op_torch.py").read_bytes()


def files(folder: str) -> list[Path]:
    found = sorted((CORPUS / folder).glob("*.py"))
    assert found
    return found


@pytest.mark.parametrize("path", files("cheats"), ids=lambda p: p.stem)
def test_a_cheat_is_red_where_the_source_shows_it(path: Path) -> None:
    report = check_source(path.read_bytes(), filename=path.name, reference=REFERENCE)
    if path.stem in INVISIBLE:
        assert report.passed, report.to_text()
        return
    assert report.regression_types == EXPECTED.get(path.stem, (3, 4)), report.to_text()


@pytest.mark.parametrize("path", files("honest"), ids=lambda p: p.stem)
def test_an_honest_file_is_green(path: Path) -> None:
    report = check_source(path.read_bytes(), filename=path.name, reference=REFERENCE)
    assert report.passed, report.to_text()
    assert report.checks["kernel_called_from_forward"]["called"] == ["mm_relu"]


def verdicts() -> list[Path]:
    found = sorted(p.parent for p in (CASES / "verdicts").glob("*/expected.json"))
    assert found
    return found


@pytest.mark.parametrize("folder", verdicts(), ids=lambda p: p.name)
def test_pairs_with_known_verdicts(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text("utf-8"))
    (implementation,) = folder.glob("*_triton_ascend_impl.py")
    (task,) = folder.glob("*_torch.py")
    report = check_source(
        implementation.read_bytes(),
        filename=implementation.name,
        non_compute=(expected.get("cli") or {}).get("non_compute", False),
        reference=task.read_bytes(),
    )
    allowed = [expected["expect"].get("static_types", [])]
    allowed += (expected.get("also_ok") or {}).get("static_types", [])
    assert list(report.regression_types) in allowed, report.to_text()


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "path",
    sorted(p for p in EXAMPLES.rglob("*_triton_*.py") if "broken" not in p.parts),
    ids=lambda p: p.stem,
)
def test_the_examples_are_green(path: Path) -> None:
    (task,) = path.parent.glob("*_torch.py")
    report = check_source(path.read_bytes(), filename=path.name, reference=task.read_bytes())
    assert report.passed, report.to_text()
