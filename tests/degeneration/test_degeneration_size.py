"""Long files and deep nesting: work grows with the length, and nothing recurses."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.degeneration import analysis, check_source, machine, reading
from tests.support.degeneration_snippets import model

if TYPE_CHECKING:
    from types import FrameType

DEPTH = 600  # what every supported Python can parse


def shapes(count: int) -> dict[str, bytes]:
    """Return files that grow with a count, each in its own way."""
    chain = "\n".join(f"def f{i}(v): return f{i + 1}(v)" for i in range(count))
    back = "\n".join(f"def f{count - i}(v): return f{count - i - 1}(v)" for i in range(count))
    return {
        "statements": model(
            "\n".join(f"n{i} = x.shape[0] * {i}" for i in range(count)) + "\nreturn launch(x)"
        ),
        "chain": model("return launch(f0(x))", module=f"{chain}\ndef f{count}(v): return v"),
        "chain, backwards": model(
            f"return launch(f{count}(x))", module=f"def f0(v): return v\n{back}"
        ),
        "aliases": model(
            f"return a{count}(x)",
            module="a0 = launch\n" + "\n".join(f"a{i + 1} = a{i}" for i in range(count)),
        ),
        "branches": model(
            "\n".join(f"if x.shape[0] > {i}: n{i % 7} = {i}" for i in range(count))
            + "\nreturn launch(x)"
        ),
        "callers": model(
            "\n".join(f"v{i} = h(lambda a: a.view({i}), x)" for i in range(count))
            + "\nreturn launch(x)",
            module="def h(f, v): return f(v)",
        ),
        "launches": model("\n".join(f"launch(x[{i}])" for i in range(count)) + "\nreturn x"),
        "appends": model(
            "out = []\n"
            + "\n".join(f"out.append(x.view({i}))" for i in range(count))
            + "\nreturn launch(out[0])"
        ),
    }


def steps(source: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many instructions a check runs."""
    machines = []
    make = machine.Machine

    def watched(*args: object, **keywords: object) -> object:
        made = make(*args, **keywords)  # type: ignore[arg-type]
        machines.append(made)
        return made

    monkeypatch.setattr(analysis, "Machine", watched)
    report = check_source(source, filename="f.py")
    assert report.passed, report.to_text()
    return int(sum(made._steps for made in machines))


@pytest.mark.parametrize("shape", shapes(1))
def test_work_grows_with_the_length(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short = steps(shapes(100)[shape], monkeypatch)
    long = steps(shapes(800)[shape], monkeypatch)
    assert long <= 10 * short


def test_twenty_thousand_lines() -> None:
    source = shapes(20_000)["statements"]
    assert check_source(source, filename="f.py").passed
    cheat = source.replace(b"return launch(x)", b"return launch(x.relu())")
    assert check_source(cheat, filename="f.py").regression_types == (3,)


NESTED = {
    "sum": " + ".join(["x.shape[0]"] * DEPTH),
    "brackets": "[" * 80 + "x.shape" + "]" * 80,
    "calls": "x" + ".view(-1)" * DEPTH,
    "lambdas": "(lambda: " * 80 + "1" + ")" * 80,
    "not": "not " * DEPTH + "x.shape",
    "conditions": " if x.shape else ".join(["1"] * 200),
}


@pytest.mark.parametrize("shape", NESTED)
def test_nesting_needs_no_recursion(shape: str) -> None:
    source = model(f"n = {NESTED[shape]}\nreturn launch(x)")
    cheat = model(f"n = {NESTED[shape]}\nreturn launch(x.relu())")
    frame: FrameType | None = sys._getframe()
    depth = 0
    while frame is not None:
        depth += 1
        frame = frame.f_back
    parsed = reading.read(source)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + 60)
    try:
        result = analysis.analyse(parsed, "ModelNew")
    finally:
        sys.setrecursionlimit(limit)
    assert not result.found.found
    assert check_source(source, filename="f.py").passed
    assert check_source(cheat, filename="f.py").regression_types == (3,)


def test_recursion_in_the_file_ends() -> None:
    source = model(
        "return launch(even(x, 4))",
        module="def even(v, n): return v if n == 0 else odd(v, n - 1)\n"
        "def odd(v, n): return v.relu() if n == 1 else even(v, n - 1)",
    )
    assert check_source(source, filename="f.py").regression_types == (3,)
    endless = model("return self.forward(x, w)")
    assert check_source(endless, filename="f.py").regression_types == (2,)
