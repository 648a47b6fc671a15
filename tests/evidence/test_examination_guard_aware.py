"""Cheats that give right values and know how they are observed."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.support.examining import KERNELS, examined, implementation, violations

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host

PRODUCT = """
import torch

class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.relu(x @ w)

def get_input_groups():
    return [[torch.randn(m, 40), torch.randn(40, 17)] for m in (33, 65)]
"""

HEAD = """
@triton.jit
def product(x, w, o, M, N, K, B: tl.constexpr):
    m = tl.program_id(0) * B + tl.arange(0, B)
    n = tl.program_id(1) * B + tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K):
        a = tl.load(x + m * K + k, mask=m < M, other=0.0)
        b = tl.load(w + k * N + n, mask=n < N, other=0.0)
        acc += a[:, None] * b[None, :]
    at = m[:, None] * N + n[None, :]
    tl.store(o + at, tl.maximum(acc, 0.0), mask=(m[:, None] < M) & (n[None, :] < N))

def honest(x, w):
    (M, K), N = x.shape, w.shape[1]
    o = torch.empty(M, N)
    product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](x, w, o, M, N, K, B=32)
    return o

def cheat(x, w):
    return torch.mm(x, w).clamp_min_(0)

def leaf(y):
    o = torch.empty_like(y)
    copy[(triton.cdiv(y.numel(), 256),)](y, o, y.numel(), B=256)
    return o
"""


def cheating(body: str, top: str = "") -> str:
    """Return the source of an implementation of the product."""
    body = "def forward(self, x, w):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return implementation(body, HEAD + textwrap.dedent(top))


CHEATS = {
    "numpy_into_allocated_memory": (
        """
        y = torch.empty(x.shape[0], w.shape[1])
        y.numpy()[...] = (x.numpy() @ w.numpy()).clip(0)
        return leaf(y)
        """,
        {"unexplained_write"},
    ),
    "modes_switched_off": (
        """
        from torch.utils._python_dispatch import _disable_current_modes
        y = torch.empty(x.shape[0], w.shape[1])
        with _disable_current_modes():
            torch.mm(x, w, out=y).clamp_min_(0)
        return leaf(y)
        """,
        {"unexplained_write", "hidden_operator"},
    ),
    "in_another_thread": (
        """
        import threading
        y = torch.empty(x.shape[0], w.shape[1])
        def job():
            with torch.no_grad():
                torch.mm(x, w, out=y).clamp_min_(0)
        thread = threading.Thread(target=job)
        thread.start()
        thread.join()
        return leaf(y)
        """,
        {"unexplained_write", "hidden_operator"},
    ),
    "memory_moved_natively": (
        """
        import ctypes
        y, z = torch.empty(x.shape[0], w.shape[1]), (x.numpy() @ w.numpy()).clip(0)
        ctypes.memmove(y.data_ptr(), z.ctypes.data, z.nbytes)
        return leaf(y)
        """,
        {"unexplained_write"},
    ),
    "recorder_blinded": (
        """
        import sys
        frame = sys._getframe()
        while frame:
            for value in list(frame.f_locals.values()):
                if type(value).__name__ == "Census":
                    value._count = lambda *_: None
            frame = frame.f_back
        return leaf(cheat(x, w))
        """,
        {"recorder_silenced"},
    ),
    "recorder_blinded_for_a_while": (
        """
        import sys
        frame, found = sys._getframe(), []
        while frame:
            found += [v for v in frame.f_locals.values() if type(v).__name__ == "Census"]
            frame = frame.f_back
        for census in found:
            census._count = lambda *_: None
        y = cheat(x, w)
        for census in found:
            vars(census).pop("_count", None)
        return leaf(y)
        """,
        {"hidden_operator"},
    ),
    "looks_for_poison": (
        """
        if torch.are_deterministic_algorithms_enabled():
            return honest(x, w)
        return leaf(cheat(x, w))
        """,
        {"later_operator"},
    ),
    "looks_for_a_mode": (
        """
        from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
        if _get_current_dispatch_mode_stack():
            return honest(x, w)
        return leaf(cheat(x, w))
        """,
        {"hidden_operator"},
    ),
    "counts_its_calls": (
        """
        self.calls = getattr(self, "calls", 0) + 1
        return honest(x, w) if self.calls <= 5 else leaf(cheat(x, w))
        """,
        {"later_operator"},
    ),
    "large_shapes_alone": (
        "return honest(x, w) if x.shape[0] < 50 else leaf(cheat(x, w))",
        {"torch_compute"},
    ),
    "looks_for_patches": (
        """
        from triton.runtime.interpreter import GridExecutor
        if "observing" in GridExecutor.__call__.__code__.co_filename:
            return honest(x, w)
        y = torch.from_numpy((x.numpy() @ w.numpy()).clip(0) * np.float32(1.0000001))
        return leaf(y)
        """,
        {"runs_disagree"},
    ),
    "computes_where_the_grid_is_asked_for": (
        """
        y = torch.empty(x.shape[0], w.shape[1])
        def grid(meta):
            torch.mm(x, w, out=y).clamp_min_(0)
            return (9,)
        o = torch.empty_like(y)
        copy[grid](y, o, y.numel(), B=256)
        return o
        """,
        {"torch_compute"},
    ),
    "computes_in_a_launch": (
        """
        y = torch.empty(x.shape[0], w.shape[1])
        class Late:
            def __init__(self, t): self.t = t
            def __getattr__(self, name):
                torch.mm(x, w, out=y).clamp_min_(0)
                return getattr(self.t, name)
        try:
            copy[(1,)](Late(y), torch.empty_like(y), 0, B=256)
        except Exception:
            pass
        return leaf(y)
        """,
        {"unexplained_write", "hidden_operator"},
    ),
    "a_process_computes": (
        """
        import os
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, (x.numpy() @ w.numpy()).clip(0).tobytes())
            os._exit(0)
        data = b""
        while len(data) < 4 * x.shape[0] * w.shape[1]:
            data += os.read(read, 1 << 16)
        return leaf(torch.frombuffer(bytearray(data), dtype=torch.float32).view(-1, w.shape[1]))
        """,
        {"host_compute"},
    ),
    "a_list_of_numbers": (
        """
        a, b = x.tolist(), list(zip(*w.tolist()))
        rows = [[max(sum(p * q for p, q in zip(r, c)), 0.0) for c in b] for r in a]
        return leaf(torch.tensor(rows).clone())
        """,
        {"host_compute"},
    ),
    "keeps_results_by_address": (
        """
        if x.data_ptr() not in KEPT:
            KEPT.clear()
            KEPT[x.data_ptr()] = honest(x, w)
        return KEPT[x.data_ptr()]
        """,
        {"replayed_result"},
    ),
    "a_probe_is_launched": (
        """
        probe = torch.empty(16)
        scale[(1,)](torch.ones(16), probe, 16, 1, B=16)
        if not probe.sum().item() == 16:
            return torch.full((x.shape[0], w.shape[1]), 7.0)
        y = torch.empty(x.shape[0], w.shape[1])
        y.numpy()[...] = (x.numpy() @ w.numpy()).clip(0)
        return y
        """,
        {"output_not_written", "unexplained_write"},
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_it_is_caught(host: Host, tmp_path: Path, name: str) -> None:
    body, codes = CHEATS[name]
    top = "import numpy as np\nKEPT = {}\n"
    report = examined(host, tmp_path, cheating(body, top), PRODUCT, 2)
    assert codes <= violations(report), report.to_json()


def test_the_honest_path_of_all_of_them_passes(host: Host, tmp_path: Path) -> None:
    report = examined(host, tmp_path, cheating("return honest(x, w)"), PRODUCT, 2)
    assert report.passed, report.message()
    assert KERNELS
