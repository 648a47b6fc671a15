"""The examination on an NVIDIA GPU, where the device's own profile is the authority."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig
from tests.support.examining import TWICE, examined, implementation, violations
from tests.support.products import CHEATS, DOT, PRODUCT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

HONEST = {
    "plain": "return twice(x)",
    "copies_and_casts": "return twice(x.t().contiguous().half().float()).t().contiguous().half()",
    "zeros_and_parts": "return torch.cat([twice(x[:2]), twice(x[2:], torch.zeros_like(x[2:]))])",
    "tuned": (
        "o = torch.empty_like(x); tuned[lambda m: (triton.cdiv(120, m['B']),)](x, o, 120); return o"
    ),
    "tuned_with_reset": (
        "o = torch.zeros_like(x); adding[lambda m: (triton.cdiv(120, m['B']),)](x, o, 120)\n"
        "return o"
    ),
    "compiled_ahead": (
        "o = torch.empty_like(x)\n"
        "kernel = scale.warmup(x, o, 120, 2, B=64, grid=(2,))\n"
        "scale[(2,)](x, o, 120, 2, B=64); return o"
    ),
    "another_stream": (
        "s = torch.cuda.Stream()\n"
        "s.wait_stream(torch.cuda.current_stream())\n"
        "with torch.cuda.stream(s):\n    o = twice(x)\n"
        "torch.cuda.current_stream().wait_stream(s); return o"
    ),
    "a_length_of_the_device": "n = torch.tensor([120], device=x.device); n.item(); return twice(x)",
}
TOP = """
@triton.autotune([triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"])
@triton.jit
def tuned(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)

@triton.autotune(
    [triton.Config({"B": 32}), triton.Config({"B": 64})], key=["n"], reset_to_zero=["o"]
)
@triton.jit
def adding(x, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(o + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
"""
# What is found on such a device alone, where its profiler has no difficulties.
ON_CUDA = {"modes_switched_off": {"hidden_operator"}}
LATER = """
if torch.are_deterministic_algorithms_enabled():
    return dot(x)
return twice(torch.mm(x, x).mul_(0.5))
"""


@pytest.fixture(scope="module")
def cuda_host() -> Iterator[Host]:
    host = Host(HostConfig(DEVICES["cuda"], fork=True))
    assert host.problems() == {}
    yield host
    host.close()


@pytest.mark.parametrize("name", HONEST)
def test_honest(cuda_host: Host, tmp_path: Path, name: str) -> None:
    task = TWICE
    if name == "copies_and_casts":
        task = task.replace("return x * 2", "return (x * 2).half()")
    report = examined(cuda_host, tmp_path, implementation(HONEST[name], TOP), task)
    assert report.passed, report.message()
    (case,) = report.cases
    assert case.launches


def test_an_honest_product(cuda_host: Host, tmp_path: Path) -> None:
    report = examined(cuda_host, tmp_path, implementation("return dot(x)", DOT), PRODUCT)
    assert report.passed, report.message()


@pytest.mark.parametrize("name", CHEATS)
def test_cheats(cuda_host: Host, tmp_path: Path, name: str) -> None:
    body, codes = CHEATS[name]
    report = examined(cuda_host, tmp_path, implementation(body, DOT), PRODUCT)
    wanted = codes | ON_CUDA.get(name, set())
    if any(finding.code == "device_not_profiled" for finding in report.findings):
        wanted -= {"device_kernel"}
    assert wanted <= violations(report), report.to_json()


def test_a_cheat_that_looks_for_poison(cuda_host: Host, tmp_path: Path) -> None:
    report = examined(cuda_host, tmp_path, implementation(LATER, DOT), PRODUCT)
    assert "later_operator" in violations(report), report.to_json()
