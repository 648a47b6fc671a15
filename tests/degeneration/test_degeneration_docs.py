"""The examples of docs/degeneration.md have the verdicts that stand above them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_tritonverify.degeneration import check_source

TEXT = (Path(__file__).parents[2] / "docs" / "degeneration.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n# (.+?)\n(.*?)```", TEXT, flags=re.DOTALL)
IMPORTS = """import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import triton
import triton.language as tl
"""
SHARED = next(code for title, code in BLOCKS if title == "shared")
EXAMPLES = [(title, code) for title, code in BLOCKS if title != "shared"]


def test_every_type_has_an_example() -> None:
    titles = " ".join(title for title, _ in EXAMPLES)
    assert all(f": {number}" in titles for number in (1, 2, 3, 4))
    assert titles.count("good") >= 6
    assert len(re.findall("```python", TEXT)) == len(BLOCKS)


@pytest.mark.parametrize(
    ("title", "code"), EXAMPLES, ids=[f"{i}-{t}" for i, (t, _) in enumerate(EXAMPLES)]
)
def test_an_example_has_its_verdict(title: str, code: str) -> None:
    shared = "" if title.endswith(": 1") else SHARED
    report = check_source(
        (IMPORTS + shared + code).encode(),
        filename="example.py",
        non_compute="--non-compute" in title,
    )
    wanted = re.search(r": (\d)$", title)
    assert report.regression_types == ((int(wanted[1]),) if wanted else ()), report.to_text()


def test_the_notes_are_listed() -> None:
    source = Path(__file__).parents[2] / "pytest_tritonverify" / "degeneration"
    codes = set()
    for name in ("lints.py", "check.py"):
        text = (source / name).read_text("utf-8")
        codes |= set(
            re.findall(r'"(load-without-other|half-accumulator|hf32|store-then-load)"', text)
        )
        codes |= set(re.findall(r'"(device-fallback|empty-grid)"', text))
    assert len(codes) == 6
    assert all(f"| `{code}` |" in TEXT for code in codes)
