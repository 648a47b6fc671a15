"""Time and memory of a verdict, beside other ways to compare two tensors.

Run: python benchmarks/comparators.py [--sizes 20 23 26] [--dtypes float32 ...] [--markdown]
(on a busy machine, `--ways plugin assert_close` leaves out the slowest)

Four ways judge the same pairs: the plugin's comparators; `torch.testing.assert_close` and
`torch.allclose` with the tolerance of the standard's table; and the standard written down as it
reads, with temporaries as large as the tensors, whose verdict and counts have to be the plugin's.
Times are minima of interleaved runs. Memory is how far a run in a fresh process raises the peak of
its resident memory above what the two tensors and the imports take.

Pairs: `equal`; `near`, where every element differs slightly and all pass; `failing`, where in
addition one element in 50 is wrong; `wrong`, where every element is.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from pytest_tritonverify.accuracy import Rules, infer_input_type, judge_outputs
from pytest_tritonverify.accuracy.limits import FLOAT_FORMATS, eco_limits

if TYPE_CHECKING:
    from collections.abc import Callable

DTYPES = ("float32", "float16", "bfloat16", "int32")
CASES = ("equal", "near", "failing", "wrong")
WAYS = ("plugin", "assert_close", "allclose", "straightforward")

_FLOAT_INPUTS = infer_input_type([torch.zeros(1)])
_FILLED_AT_ONCE = 1 << 20
_ONE_IN = 50
_ONCE_IS_ENOUGH = 5.0
_WRONG_BY = {"float": 1.0, "int": 1000}
# Steps to the next representable value: far below the tolerance, and a difference everywhere.
_NEAR_STEPS = {"float32": 1 << 9, "float16": 1, "bfloat16": 1, "int32": 1}
_BITS = {2: torch.int16, 4: torch.int32}


@dataclass(frozen=True)
class Counts:
    """What a verdict says: floats are counted by match, integers by violation."""

    passed: bool
    counted: int
    over: int


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[20, 23, 26], help="powers of 2")
    parser.add_argument("--dtypes", nargs="+", default=list(DTYPES), choices=DTYPES)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(_measure(arguments.child, arguments.ways, arguments.repeats)))
        return
    ways = ["plugin", *(way for way in arguments.ways if way != "plugin")]
    form = _Form(ways, markdown=arguments.markdown)
    print(form.head(), flush=True)
    for size in arguments.sizes:
        for dtype in arguments.dtypes:
            for case in arguments.cases:
                pair = [dtype, str(size), case]
                times = _child(["times", *pair], ways, arguments.repeats)
                memory = {way: _child([way, *pair], ways, 1) for way in ways}
                print(form.row([dtype, f"2^{size}", case], times, memory), flush=True)


@dataclass(frozen=True)
class _Form:
    """How the table is written."""

    ways: list[str]
    markdown: bool

    def head(self) -> str:
        """Return the head of the table."""
        head = self._line(["dtype", "size", "pair", *self.ways])
        return head + "\n" + "|---" * (3 + len(self.ways)) + "|" if self.markdown else head

    def row(self, names: list[str], times: dict[str, float], memory: dict[str, float]) -> str:
        """Return a row: seconds, how many times the plugin's, and MiB of each way."""
        cells = []
        for way in self.ways:
            ratio = "" if way == "plugin" else f" ({times[way] / times['plugin']:.1f}x)"
            cells.append(f"{times[way]:.4f} s{ratio}, {memory[way]:.0f} MiB")
        return self._line([*names, *cells])

    def _line(self, cells: list[str]) -> str:
        if self.markdown:
            return f"| {' | '.join(cells)} |"
        return "".join(f"{cell:10}" for cell in cells[:3]) + "".join(f"{c:31}" for c in cells[3:])


def _child(what: list[str], ways: list[str], repeats: int) -> Any:
    command = [sys.executable, __file__, "--repeats", str(repeats), "--ways", *ways]
    command += ["--child", *what]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def _measure(what: list[str], ways: list[str], repeats: int) -> Any:
    """Run in a fresh process: the seconds of all ways, or the MiB of one."""
    wanted, dtype, size, case = what
    golden, actual = _pair(dtype, 1 << int(size), case)
    if wanted != "times":
        run = _WAYS[wanted]
        # Imports and thread pools that a first call brings along belong to no comparison.
        run(golden[:64].clone(), actual[:64].clone())
        before = _peak()
        run(golden, actual)
        return _peak() - before
    best: dict[str, float] = {}
    for _ in range(repeats):
        said = {}
        for way in ways:
            if way == "straightforward" and best.get(way, 0) > _ONCE_IS_ENOUGH:
                continue
            started = time.perf_counter()
            said[way] = _WAYS[way](golden, actual)
            seconds = time.perf_counter() - started
            best[way] = min(seconds, best.get(way, seconds))
        if said.get("straightforward", said["plugin"]) != said["plugin"]:
            raise SystemExit(f"{what}: two verdicts: {said}")
    return best


def _peak() -> float:
    """Return the process's greatest resident memory so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _pair(dtype: str, count: int, case: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Make two tensors without temporaries that would hide those of a comparison."""
    torch.manual_seed(0)
    kind: Literal["int", "float"] = "int" if dtype.startswith("int") else "float"
    golden = torch.empty(count, dtype=getattr(torch, dtype))
    actual = torch.empty_like(golden)
    for start in range(0, count, _FILLED_AT_ONCE):
        left, right = (side[start : start + _FILLED_AT_ONCE] for side in (golden, actual))
        left.copy_(torch.randn(left.numel()) * (1 if kind == "float" else 1000))
        right.copy_(left)
        if case != "equal":
            right.view(_BITS[right.element_size()]).add_(_NEAR_STEPS[dtype])
        if case in {"failing", "wrong"}:
            right[:: _ONE_IN if case == "failing" else 1] += _WRONG_BY[kind]
    return golden, actual


def _plugin(golden: torch.Tensor, actual: torch.Tensor) -> Counts:
    verdict = judge_outputs(golden, actual, input_type=_FLOAT_INPUTS, rules=Rules())
    metrics: dict[str, Any] = verdict.outputs[0].metrics
    if golden.dtype.is_floating_point:
        return Counts(verdict.passed, metrics["matched_count"], metrics["over_count"])
    return Counts(verdict.passed, metrics["violation_count"], metrics["max_abs_diff"])


def _tolerance(dtype: torch.dtype) -> tuple[float, float]:
    limits = eco_limits(str(dtype).removeprefix("torch."))
    return (limits.rtol, limits.atol) if limits else (0, 1)


def _assert_close(golden: torch.Tensor, actual: torch.Tensor) -> bool:
    rtol, atol = _tolerance(golden.dtype)
    try:
        torch.testing.assert_close(actual, golden, rtol=rtol, atol=atol)
    except AssertionError:
        return False
    return True


def _allclose(golden: torch.Tensor, actual: torch.Tensor) -> bool:
    rtol, atol = _tolerance(golden.dtype)
    return torch.allclose(actual, golden, rtol=rtol, atol=atol)


def _straightforward(golden: torch.Tensor, actual: torch.Tensor) -> Counts:
    """Judge by the standard as it reads."""
    name = str(golden.dtype).removeprefix("torch.")
    limits = eco_limits(name)
    if limits is None:
        distance = (actual.to(torch.int64) - golden.to(torch.int64)).abs()
        violations = int((distance > 1).sum())
        return Counts(violations == 0, violations, int(distance.max()))
    expected, got = golden.to(torch.float64), actual.to(torch.float64)
    same = torch.equal(expected.isnan(), got.isnan())
    same &= torch.equal(expected == torch.inf, got == torch.inf)
    same &= torch.equal(expected == -torch.inf, got == -torch.inf)
    if not same:
        return Counts(passed=False, counted=0, over=0)
    finite = torch.isfinite(expected) & torch.isfinite(got)
    expected, got = expected[finite], got[finite]
    difference, magnitude = (got - expected).abs(), expected.abs()
    tolerance = limits.atol + limits.rtol * magnitude
    form = FLOAT_FORMATS[name]
    exponent = (torch.frexp(magnitude).exponent - 1 - form.mantissa_bits).clamp(
        min=form.smallest_subnormal_exponent
    )
    limit = torch.ldexp(torch.ones_like(magnitude), exponent) * 32
    limit = limit.clamp(min=limits.max_abs_error_limit).maximum(tolerance)
    matched = int((difference <= tolerance).sum())
    over = int((difference > limit).sum())
    return Counts(matched >= 0.99 * expected.numel() and over == 0, matched, over)


_WAYS: dict[str, Callable[[torch.Tensor, torch.Tensor], object]] = {
    "plugin": _plugin,
    "assert_close": _assert_close,
    "allclose": _allclose,
    "straightforward": _straightforward,
}


if __name__ == "__main__":
    main()
