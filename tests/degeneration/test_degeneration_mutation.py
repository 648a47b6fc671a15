"""Honest files are rewritten into cheats; every rewrite must be caught."""

# ruff: noqa: E501 - a case reads best on one line

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.degeneration import check_source
from tests.support.degeneration_snippets import model

ROOT = Path(__file__).parents[2]
HONEST = sorted((ROOT / "tests/cases/degeneration/honest").glob("*.py")) + sorted(
    p for p in (ROOT / "examples").rglob("*_triton_*.py")
    if "broken" not in p.parts and "transpose" not in p.name
)  # fmt: skip

FUNCTIONS = ["relu", "exp", "tanh", "abs", "sigmoid", "neg", "sqrt", "softmax", "cumsum", "sum"]
SPELLINGS = {
    "plain": "torch.{f}",
    "alias": "_alias.{f}",
    "imported": "_imported_{f}",
    "getattr": "getattr(torch, {a!r} + {b!r})",
    "dictionary": "torch.__dict__[{f!r}]",
    "unbound": "torch.Tensor.{f}",
    "bound": "(lambda v, m={f!r}: getattr(v, m)())",
    "caller": "_operator.methodcaller({f!r})",
    "reversed": "getattr(torch, {r!r}[::-1])",
    "module": "__import__('torch').{f}",
    "internal": "torch._C._VariableFunctions.{f}",
    "operators": "torch.ops.aten.{f}.default",
    "chosen": "{{'k': torch.{f}}}['k']",
    "partial": "_functools.partial(torch.{f})",
}
WRAPPERS = {
    "none": "{s}({x})",
    "lambda": "(lambda v: {s}(v))({x})",
    "list": "[{s}][0]({x})",
    "tuple": "({s}, 1)[0]({x})",
    "map": "list(map({s}, [{x}]))[0]",
    "comprehension": "[g({x}) for g in ({s},)][-1]",
    "conditional": "({s} if {x} is not None else None)({x})",
    "boolean": "(None or {s})({x})",
    "helper": "_helper({s}, {x})",
    "deep helper": "_helper(_helper, {s}, {x})",
    "stars": "_helper(*[{s}], **{{'v': {x}}})",
    "walrus": "(_w := {s})({x})",
    "generator": "next(g({x}) for g in [{s}])",
}
PREFIX = """
import torch as _alias
import operator as _operator
import functools as _functools
from torch import {f} as _imported_{f}
def _helper(f, *rest, v=None):
    return f(*rest) if v is None else f(v)
"""


def mutate(source: str, function: str, spelling: str, wrapper: str) -> str:
    """Return a file whose forward hands its first input through PyTorch before anything else."""
    tree = ast.parse(source)
    kind = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew")
    forward = next(n for n in kind.body if isinstance(n, ast.FunctionDef) and n.name == "forward")
    name = forward.args.args[1].arg
    middle = len(function) // 2
    spelled = SPELLINGS[spelling].format(
        f=function, a=function[:middle], b=function[middle:], r=function[::-1]
    )
    call = WRAPPERS[wrapper].format(s=spelled, x=name)
    forward.body.insert(0, ast.parse(f"{name} = {call}").body[0])
    text = ast.unparse(tree)
    future = "from __future__ import annotations\n"
    head = future if future in text else ""
    return head + PREFIX.format(f=function) + text.replace(future, "")


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_every_spelling_is_caught(path: Path) -> None:
    source = path.read_text("utf-8-sig")
    assert check_source(source.encode(), filename="f.py").passed
    for spelling in SPELLINGS:
        cheat = mutate(source, "relu", spelling, "none")
        report = check_source(cheat.encode(), filename="f.py")
        assert 3 in report.regression_types, f"{spelling}\n{report.to_text()}"


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(HONEST),
    st.sampled_from(FUNCTIONS),
    st.sampled_from(sorted(SPELLINGS)),
    st.sampled_from(sorted(WRAPPERS)),
)
def test_every_rewrite_is_caught(path: Path, function: str, spelling: str, wrapper: str) -> None:
    cheat = mutate(path.read_text("utf-8-sig"), function, spelling, wrapper)
    report = check_source(cheat.encode(), filename="f.py")
    assert 3 in report.regression_types, f"{cheat}\n{report.to_text()}"


OPERATORS = ["@", "+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<<", ">>", "==", "<"]


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_operators_on_the_output_are_caught(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8-sig"))
    for operator in OPERATORS:
        kind = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew")
        forward = next(
            n for n in kind.body if isinstance(n, ast.FunctionDef) and n.name == "forward"
        )
        returned = next(n for n in ast.walk(forward) if isinstance(n, ast.Return))
        before = returned.value
        assert before is not None
        first = before.elts[0] if isinstance(before, ast.Tuple) else before
        returned.value = ast.parse(f"({ast.unparse(first)}) {operator} 2", mode="eval").body
        report = check_source(ast.unparse(tree).encode(), filename="f.py")
        returned.value = before
        assert [v.call for v in report.violations] == [operator], report.to_text()


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["v", "(v)", "+v", "v.to(tl.float32)"]),
    st.lists(
        st.sampled_from(
            ["({v} * 1)", "({v} + 0)", "({v} - 0.0)", "(1.0 * {v})", "({v} / 1)", "(0 + {v})",
             "tl.maximum({v}, -float('inf'))", "tl.reshape({v}, (B,))", "tl.where(m, {v}, 0.0)",
             "({v}).to(tl.float16)", "one_more({v})", "({v} * ONE)", "({v} + tl.zeros((B,), tl.float32))"]
        ),
        max_size=5,
    ),
)  # fmt: skip
def test_no_chain_of_idle_operations_makes_a_copy_work(start: str, chain: list[str]) -> None:
    value = start
    for step in chain:
        value = step.format(v=value)
    kernel = f"""
@triton.jit
def one_more(v):
    return v

@triton.jit
def decoy(x_ptr, o_ptr, n, ONE: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    m = i < n
    v = tl.load(x_ptr + i, mask=m, other=0.0)
    tl.store(o_ptr + i, {value}, mask=m)
"""
    forward = "o = torch.empty_like(x)\ndecoy[(1,)](x, o, x.numel(), 1.0, B=256)\nreturn o"
    report = check_source(model(forward, module=kernel), filename="f.py")
    assert report.regression_types == (4,), report.to_text()
    real = kernel.replace(f"i, {value}, mask", f"i, {value} + v, mask")
    assert check_source(model(forward, module=real), filename="f.py").passed


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_get_an_answer(source: bytes) -> None:
    report = check_source(source, filename="f.py")
    assert not report.passed
    report.to_json()
    report.to_text()
