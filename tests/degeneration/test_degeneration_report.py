"""The documented JSON to the letter, the text, and files that are no Python."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.degeneration import check_source
from pytest_tritonverify.degeneration.command import validate
from tests.support.degeneration_snippets import model

if TYPE_CHECKING:
    from pathlib import Path

FIGLEAF = b"""import torch, triton
import triton.language as tl
import torch.nn.functional as F

@triton.jit
def identity_kernel(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(o_ptr + i, tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = F.softmax(x, -1)
        o = torch.empty_like(y)
        identity_kernel[(1,)](y, o, 4, BLOCK=4)
        return o
"""


def test_the_documented_keys_in_their_order() -> None:
    document = check_source(FIGLEAF, filename="f.py").to_json()
    assert list(document)[:4] == ["valid", "regression_type", "checks", "suggestion"]
    assert document["valid"] is False
    assert document["regression_type"] == 3
    assert document["regression_types"] == [3, 4]
    checks = document["checks"]
    assert list(checks)[:3] == [
        "triton_kernel_exists",
        "kernel_called_from_forward",
        "no_forbidden_torch_ops",
    ]
    assert checks["triton_kernel_exists"] == {"passed": True, "kernels": ["identity_kernel"]}
    assert checks["kernel_called_from_forward"] == {"passed": True, "called": ["identity_kernel"]}
    (violation,) = checks["no_forbidden_torch_ops"]["violations"]
    assert checks["no_forbidden_torch_ops"]["passed"] is False
    assert list(violation)[:3] == ["line", "call", "reason"]
    assert (violation["line"], violation["column"], violation["call"]) == (12, 13, "F.softmax")
    assert checks["kernel_does_compute"]["passed"] is False
    assert checks["kernel_does_compute"]["placeholders"] == ["identity_kernel"]
    assert document["suggestion"]
    json.dumps(document, allow_nan=False)


def test_a_file_that_passes() -> None:
    document = check_source(model("return launch(x)"), filename="f.py").to_json()
    assert document["valid"] is True
    assert document["regression_type"] is None
    assert document["regression_types"] == []
    assert document["suggestion"] == ""
    assert all(check["passed"] for check in document["checks"].values())
    assert document["checks"]["no_forbidden_torch_ops"]["violations"] == []


def test_the_text_shows_the_line_and_a_caret() -> None:
    text = check_source(FIGLEAF, filename="f.py").to_text()
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("f.py:12:13: error:"))
    assert lines[at + 1] == "    y = F.softmax(x, -1)"
    assert lines[at + 2] == "        ^"
    assert lines[at + 3].startswith("  help: ")
    assert "Type 4" in text


def test_the_caret_stands_under_wide_characters() -> None:
    source = model('s = "\u4e2d\u6587"; return launch(x.relu())')
    report = check_source(source, filename="f.py")
    (violation,) = report.violations
    assert violation.call == "x.relu"
    lines = report.to_text().splitlines()
    at = next(i for i, line in enumerate(lines) if "error:" in line)
    # Two columns for each of the two characters.
    assert lines[at + 2].index("^") == lines[at + 1].index("x.relu") + 2


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (b"def f(:\n", "SyntaxError"),
        (b"Here is the kernel that you asked for:\n", "SyntaxError"),
        (b"x = 1\0\n", "null"),
        (b"\xff\xfe\x00", "decode"),
        (b"# -*- coding: no-such-codec -*-\n", "codec"),
        (b"x = " + b"(" * 5000 + b")" * 5000, ""),
        (b"x = " + b"-" * 200_000 + b"1", "deep"),
        (b"", "no function"),
        (b"pass", "no function"),
    ],
)
def test_files_that_hold_no_kernel(source: bytes, words: str) -> None:
    report = check_source(source, filename="f.py")
    assert report.regression_types == (1,)
    document = report.to_json()
    assert document["valid"] is False
    assert document["regression_type"] == 1
    assert document["suggestion"]
    assert words in document["checks"]["triton_kernel_exists"]["error"]
    report.to_text()


def test_without_a_model_nothing_is_launched() -> None:
    source = model("return launch(x)").replace(b"class ModelNew", b"class Other")
    report = check_source(source, filename="f.py")
    assert report.regression_types == (2,)
    assert "ModelNew" in report.checks["kernel_called_from_forward"]["error"]


def test_partial_allows_torch_beside_kernels_that_work() -> None:
    source = model("return launch(x @ w)")
    assert check_source(source, filename="f.py", policy="partial").passed
    assert not check_source(FIGLEAF, filename="f.py", policy="partial").passed
    evasion = model("exec('x')\nreturn launch(x @ w)")
    report = check_source(evasion, filename="f.py", policy="partial")
    assert [v.call for v in report.violations] == ["exec"]
    host = model("return launch(torch.from_numpy(x.numpy() * 2))")
    assert not check_source(host, filename="f.py", policy="partial").passed


MOVING_TASK = b"""import torch
class Model(torch.nn.Module):
    def forward(self, x, w):
        return torch.cat([x, w], dim=0)
"""
TRANSPOSE_TASK = b"""import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.transpose(0, 1).contiguous()
"""
COPY = FIGLEAF.replace(b"F.softmax(x, -1)", b"x.contiguous()")


def test_a_copying_kernel_is_honest_where_moving_is_the_task() -> None:
    assert check_source(COPY, filename="f.py").regression_types == (4,)
    assert check_source(COPY, filename="f.py", non_compute=True).passed
    assert check_source(COPY, filename="f.py", reference=MOVING_TASK).passed
    assert check_source(COPY, filename="f.py", reference=TRANSPOSE_TASK).passed
    computing = MOVING_TASK.replace(b"torch.cat([x, w], dim=0)", b"torch.cat([x, w]) * 2")
    assert check_source(COPY, filename="f.py", reference=computing).regression_types == (4,)
    broken = check_source(COPY, filename="f.py", reference=b"class Model(:")
    assert broken.regression_types == (4,)


@pytest.mark.parametrize(
    "moves",
    [
        "return self.layer(x)", "return self.weight[x]", "return x[w]", "return x[:, w]",
        "x[w] = y\n        return x", "z = x.clone()\n        z[w] = y\n        return z",
        "out = torch.zeros(4, 8)\n        out[:, ::2] = x\n        return out",
        "x[w // 16, w % 16] = y\n        return x", "return x.clone()",
    ],
)  # fmt: skip
@pytest.mark.parametrize("layer", ["Embedding(9, 4)", "ZeroPad2d(1)", "PixelShuffle(2)"])
def test_a_task_that_computes_nothing_lets_a_kernel_copy(moves: str, layer: str) -> None:
    task = f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.{layer}
        self.weight = torch.nn.Parameter(torch.randn(9, 4))

    def forward(self, x, w, y):
        {moves}
"""
    assert check_source(COPY, filename="f.py", reference=task.encode()).passed
    computing = task.replace("return ", "return 2 * ").encode()
    assert check_source(COPY, filename="f.py", reference=computing).regression_types == (4,)


HOST_KERNEL = """
def product(a, b):
    import numpy as np
    return np.matmul(a.handle.data, b.handle.data)

@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(o_ptr + offs, product(x, x), mask=offs < n)
"""


def test_a_kernel_calls_no_numpy() -> None:
    body = "o = torch.empty_like(x)\nk[(1,)](x, o, 4, BLOCK=4)\nreturn o"
    report = check_source(model(body, module=HOST_KERNEL), filename="f.py")
    assert report.regression_types == (3,)
    (violation,) = report.violations
    assert (violation.call, violation.kind) == ("numpy.matmul", "evasion")


@pytest.mark.parametrize(
    "moved",
    ["torch.cat([x, x])", "x.transpose(0, 1).contiguous()", "x.t().reshape(-1)", "F.pad(x, (0, 1))",
     "x.repeat(2, 1)", "x.flip(0)"],
)  # fmt: skip
def test_moving_in_torch_is_a_violation_where_moving_is_the_task(moved: str) -> None:
    source = COPY.replace(b"x.contiguous()", moved.encode())
    plain = check_source(model(f"return launch({moved})"), filename="f.py")
    assert plain.passed
    assert plain.movements
    for report in (
        check_source(source, filename="f.py", reference=MOVING_TASK),
        check_source(source, filename="f.py", non_compute=True),
    ):
        assert report.regression_types == (3,)
        assert [v.kind for v in report.violations] == ["movement"]


def test_device_fallbacks_are_noted() -> None:
    source = model("if not x.is_cuda:\n    return torch.relu(x)\nreturn launch(x)")
    report = check_source(source, filename="f.py")
    assert report.passed
    assert [n.code for n in report.notes] == ["device-fallback"]


LINTED = """
@triton.jit
def k(x_ptr, o_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK,), dtype=tl.float16)
    for i in range(4):
        acc += tl.load(x_ptr + offs, mask=offs < n)
    d = tl.dot(acc, acc, input_precision="hf32")
    tl.store(o_ptr + offs, acc)
    again = tl.load(o_ptr + offs)
    tl.store(o_ptr + offs, again + d)
"""


def test_lints_are_notes_that_fail_nothing() -> None:
    source = model("o = torch.empty_like(x)\nk[(1,)](x, o, 4, BLOCK=4)\nreturn o", module=LINTED)
    report = check_source(source, filename="f.py")
    assert report.passed, report.to_text()
    codes = sorted(n.code for n in report.notes)
    assert codes == ["half-accumulator", "hf32", "load-without-other", "store-then-load"]


def test_lints_leave_good_kernels_alone() -> None:
    report = check_source(model("return launch(x)"), filename="f.py")
    assert report.notes == ()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.py", tmp_path / "bad.py"
    good.write_bytes(model("return launch(x)"))
    bad.write_bytes(FIGLEAF)
    assert validate(str(good)) == 0
    assert "passed" in capsys.readouterr().out
    assert validate(str(bad), as_json=True) == 1
    assert json.loads(capsys.readouterr().out)["regression_types"] == [3, 4]
    assert validate(str(tmp_path / "absent.py"), as_json=True) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["valid"] is False
    assert "error" in document
    copying = tmp_path / "copy.py"
    copying.write_bytes(COPY)
    assert validate(str(copying)) == 1
    assert validate(str(copying), non_compute=True) == 0


def test_the_command_reads_the_task_beside_a_pair(tmp_path: Path) -> None:
    implementation = tmp_path / "join_triton_ascend_impl.py"
    implementation.write_bytes(COPY)
    assert validate(str(implementation)) == 1
    (tmp_path / "join_torch.py").write_bytes(MOVING_TASK)
    assert validate(str(implementation)) == 0


def test_nothing_of_the_file_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    source = f"open({str(mark)!r}, 'w')\nraise SystemExit(0)\n".encode() + model("return launch(x)")
    check_source(source, filename="f.py")
    assert not mark.exists()
