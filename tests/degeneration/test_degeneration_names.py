"""Names: what a piece of code at module level stands for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pytest_tritonverify.degeneration.findings import Findings
from pytest_tritonverify.degeneration.host import Host, canonical
from pytest_tritonverify.degeneration.machine import Machine
from pytest_tritonverify.degeneration.pool import Pool
from pytest_tritonverify.degeneration.reading import read
from pytest_tritonverify.degeneration.spelling import Names


def value_of(code: str) -> str:
    """Return what `y` stands for after some code, each atom as text."""
    pool = Pool()
    tree = read(code).tree
    host = Host(pool, Findings(), Names(tree), partial=False)
    machine = Machine(pool, host, most_steps=100_000)
    host.machine = machine
    machine.run_module(tree)
    return " or ".join(sorted(map(repr, machine.module.names["y"])))


@pytest.mark.parametrize(
    ("code", "meaning"),
    [
        ("import torch as t; y = t.mm", "torch.mm"),
        ("from torch import mm as empty; y = empty", "torch.mm"),
        ("from torch.nn import functional as f; y = f.relu", "torch.nn.functional.relu"),
        ("import torch.nn.functional as f; y = f.relu", "torch.nn.functional.relu"),
        ("import torch.nn.functional; y = torch.nn.functional.relu", "torch.nn.functional.relu"),
        ("import torch; a = b = torch; c = b; y = c.mm", "torch.mm"),
        ("import torch; a, (b, *c) = 1, (torch.mm, torch.exp); y = b", "torch.mm"),
        ("import torch; y = getattr(torch, f'{chr(109)}m')", "torch.mm"),
        ("import torch; y = getattr(torch, 'm' + 'm')", "torch.mm"),
        ("import torch; y = getattr(torch, 'MM'.lower())", "torch.mm"),
        ("import torch; y = torch.__dict__['mm']", "torch.mm"),
        ("y = __import__('torch').mm", "torch.mm"),
        ("import importlib; y = importlib.import_module('torch.nn').ReLU", "torch.nn.ReLU"),
        ("import sys; y = sys.modules['torch'].mm", "torch.mm"),
        ("import torch; d = {'a': [torch.mm]}; y = d['a'][0]", "torch.mm"),
        ("import torch\nclass C: f = torch.mm\ny = C.f", "torch.mm"),
        ("import torch\nclass C: pass\nC.f = torch.mm\ny = C().f", "torch.mm"),
        ("import torch\ndef f(): return torch.mm\ny = f()", "torch.mm"),
        ("import torch\ndef f(g): return g\ny = f(g=torch.mm)", "torch.mm"),
        ("import torch\ny = (lambda g: g)(torch.mm)", "torch.mm"),
        ("import torch\ndef f():\n    global y\n    y = torch.mm\nf()", "torch.mm"),
        ("import torch\nif torch: y = torch.mm\nelse: y = torch.exp", "torch.exp or torch.mm"),
        ("import torch\ny = torch.mm\nif False: y = torch.exp", "torch.mm"),
        ("import torch\ny = torch.mm\nfor i in (1,): y = torch.exp", "torch.exp or torch.mm"),
        ("import torch\ntry: y = torch.mm\nexcept E: y = torch.exp", "torch.exp or torch.mm"),
        ("import torch\nx = torch.exp\n[x for x in [1]]\ny = x", "torch.exp"),
        ("y = 'a' * 3 + 'b'[::-1]", "'aaab'"),
        ("y = 1\nwhile y < 9: y = y + 1", "number"),
        ("import torch\ny = torch.empty(3).t().contiguous()", "tensor"),
        ("import torch\ny = torch.empty(3).shape[0] * 2 + 1", "number"),
        ("import torch\ny = torch.empty(3).device.type", "device type"),
        ("import torch\ny = torch.empty(3).is_cuda", "on an accelerator"),
        ("import torch\ny = not torch.empty(3).is_cuda", "not on an accelerator"),
        ("import torch\ny = torch.empty(3).device.type in ('cuda', 'npu')", "on an accelerator"),
        ("import torch\ny = torch.empty(3).device.type != 'npu'", "not on an accelerator"),
        ("import torch\ny = [v * 2 for v in torch.empty(3).tolist()][0]", "host result"),
        ("import torch\ny = torch.empty(3).numpy()", "array"),
        ("y = __name__ == '__main__'", "False"),
    ],
)
def test_what_a_name_stands_for(code: str, meaning: str) -> None:
    assert value_of(code) == meaning


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("torch.nn.modules.linear.Linear", "torch.nn.Linear"),
        ("torch._tensor.Tensor", "torch.Tensor"),
        ("triton.runtime.jit.jit", "triton.jit"),
        ("triton.language.core.load", "triton.language.load"),
        ("torch.mm", "torch.mm"),
    ],
)
def test_canonical_names(name: str, known_as: str) -> None:
    assert canonical(name) == known_as


def test_the_check_imports_nothing_heavy() -> None:
    code = (
        "import sys, pytest_tritonverify.degeneration.command\n"
        "print(sorted({'torch', 'triton', 'numpy', 'pytest'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
