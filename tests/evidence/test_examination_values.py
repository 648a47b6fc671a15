"""What is right for a case must be right for other values; registered operators are seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.isolation import Limits
from tests.support.examining import TWICE, examine, examined, implementation, the, violations
from tests.support.workers import write_pair

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host

PRODUCT = """
import torch

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(16, 16), torch.randn(16, 16)]
"""
TABLE = """
import torch
import triton
import triton.language as tl

@triton.jit
def from_table(a, t, o, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(o + i, tl.load(t + i, mask=i < n) + tl.load(a + i, mask=i < n) * 1e-7, mask=i < n)

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Parameter(torch.randn(16, 16) @ torch.randn(16, 16))

    def forward(self, a, b):
        o = torch.empty_like(a)
        from_table[(1,)](a, self.table, o, 256, B=256)
        return o
"""


def test_a_table_of_answers_for_the_known_seed(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, TABLE, PRODUCT)
    assert violations(report) == {"wrong_on_other_values"}
    assert "output" in the(report, "wrong_on_other_values").message


def test_a_later_call_that_is_wrong_is_not_made_for_some_values(host: Host, tmp_path: Path) -> None:
    body = "CALLS.append(1)\nreturn twice(x) if len(CALLS) == 1 else twice(twice(twice(x)))"
    report = examined(host, tmp_path, implementation(body, "CALLS = []\n"))
    assert violations(report) == set(), report.message()


OPERATOR = """
@torch.library.custom_op("tritonverify_test_{name}::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    {body}
"""


@pytest.mark.parametrize(
    ("name", "body", "codes"),
    [
        ("honest", "return twice(x.contiguous())", set()),
        ("cheat", "return twice(x.contiguous()) * 1.0", {"torch_compute"}),
    ],
)
def test_what_a_registered_operator_consists_of_counts(
    host: Host, tmp_path: Path, name: str, body: str, codes: set[str]
) -> None:
    source = implementation("return double(x.t()).t()", OPERATOR.format(name=name, body=body))
    report = examined(host, tmp_path, source)
    assert violations(report) == codes, report.message()
    if not codes:
        assert report.passed, report.message()


def test_a_file_that_changes_meanwhile_is_no_cheat(host: Host, tmp_path: Path) -> None:
    source = implementation(
        "open(__file__, 'a').write('# saved\\n')\n        return twice(x)".replace("        ", "")
    )
    pair = write_pair(tmp_path, TWICE, source)
    report = examine(host, pair, limits=Limits("off"))
    assert [finding.code for finding in report.findings] == ["file_changed"]
    assert not report.passed
