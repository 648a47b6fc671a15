"""The static check, and whatever else reads source, ends on any source, and says what it is."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import discovery
from pytest_tritonverify.degeneration import check_source
from pytest_tritonverify.execution import task_faults
from pytest_tritonverify.standin import choosing
from tests.support.fuzzing import damaged_bytes, fuzzed

if TYPE_CHECKING:
    from collections.abc import Callable

_ROOT = Path(__file__).parents[2]
CORPUS = [
    path.read_bytes()
    for folder in ("examples", "tests/cases/verdicts", "tests/cases/degeneration")
    for path in sorted((_ROOT / folder).rglob("*_triton_*.py"))
]
WORDS = (
    b"lambda", b"await ", b"yield ", b"match x:\n case _: pass\n", b"*", b"**", b":=", b"@", b"...",
    b"global x\n", b"del x\n", b"class A(A): pass\n", b"def f(f=f): return f(f)\n", b"\\\n", b"'''",
    b"async ", b"for x in x: x\n", b"try:\n pass\nexcept* A: pass\n", b"with x as x: pass\n",
    b"f'{x!r:{x}}'", b"(", b")", b"[", b"]", b"{", b"}", b"\t", b"\x0c", b"\xef\xbb\xbf", b"\x00",
    b"# coding: utf-7\n", b"import torch as torch.torch\n", b"nonlocal x\n", b"x.x", b"x[x:x,...]",
    b"getattr(x, 'x')", b"exec('x')", b"torch.ops.aten", b"self.forward(self)", b"@triton.jit\n",
    b"kernel[grid](x, **x)", b"functools.partial(f, f)", b"super().forward(x)", b"x if x else x",
)  # fmt: skip
# A check takes milliseconds; on a loaded machine more, but no file makes it take minutes.
LONGEST = 60.0


def checked(source: bytes | str) -> None:
    """Make every check that reads a file's source."""
    started = time.monotonic()
    report = check_source(source, filename="op_triton_x.py", reference=source)
    json.dumps(report.to_json(), allow_nan=False)
    report.to_text().encode("utf-8", "surrogateescape")
    assert time.monotonic() - started < LONGEST


@fuzzed
@given(st.data())
def test_damaged_implementations(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(CORPUS))
    checked(data.draw(damaged_bytes(source, WORDS)))


@fuzzed
@given(st.lists(st.sampled_from(WORDS) | st.binary(max_size=4) | st.just(b"\n"), max_size=30))
def test_words_in_any_order(words: list[bytes]) -> None:
    checked(b" ".join(words))


@fuzzed
@given(st.text(max_size=60))
def test_any_text(text: str) -> None:
    checked(text)
    checked(f"class ModelNew:\n    def forward(self, x):\n        return {text}\n")


@fuzzed
@given(data=st.data())
def test_other_readers_of_source(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed_torch.py"
    path.write_bytes(data.draw(damaged_bytes(data.draw(st.sampled_from(CORPUS)), WORDS)))
    assert choosing.choose(choosing.AUTO, path, path) in ("off", "cuda", "npu")
    for name in ("get_inputs", "Model", "ModelNew"):
        for line in (task_faults.line_of(path, name), discovery.class_line(path, name)):
            assert line is None or line > 0


MANY = 5_000
FEW = 500  # statements
FORWARD = b"class ModelNew:\n def forward(self, x):\n  "
NASTY: dict[str, Callable[[], bytes | str]] = {
    "nothing": lambda: b"",
    "null bytes": lambda: b"x = 1\x00\n",
    "a lone surrogate": lambda: "x = '\ud800'\n\ud800",
    "bytes of no encoding": lambda: b"# coding: utf-8\nx = '\xff\xfe'\n",
    "an unknown encoding": lambda: b"# coding: nonsense\nx = 1\n",
    "an encoding of no text": lambda: b"# coding: zlib\nx = 1\n",
    "an encoding of escapes": lambda: b"# coding: unicode_escape\nx = '\\x00'\n",
    "UTF-7": lambda: b"# coding: utf-7\n+AGEAYg- = 1\n",
    "UTF-16": lambda: "x = 1\n".encode("utf-16"),
    "two marks": lambda: b"\xef\xbb\xbf\xef\xbb\xbfx = 1\n",
    "a huge number": lambda: b"x = " + b"9" * MANY,
    "a huge hexadecimal number": lambda: b"x = 0x" + b"f" * MANY,
    "a huge number in a call": lambda: FORWARD
    + b"n = 0x" + b"f" * MANY + b"\n  return x.view(n, -n, n + 1, [n][n], f'{n}', str(n)).relu()",
    "a huge shift": lambda: FORWARD + b"return x[1 << (1 << 60), 3 << 40000000000]",
    "a huge format": lambda: FORWARD + b"return x['%999999999d' % 3, f'{3:999999999}']",
    "huge texts": lambda: FORWARD
    + b"return x['a'.ljust(10**10), '{:>9999999999}'.format(1), '{:{}}'.format(1, 10**10), "
    + b"'ab'.join(['c'] * 10**10), b'%9999999999d' % 1, '%*d' % (10**10, 1), "
    + b"'a'.zfill(10**10), 'a' * 9**20]",
    "a huge power": lambda: FORWARD + b"n = 9 ** 9 ** 9 ** 9\n  return x[n << n]",
    "a huge string": lambda: b"x = '" + b"a" * 1_000_000 + b"'",
    "a huge repetition": lambda: FORWARD + b"return x.view(*[1] * 10 ** 12, 'a' * 10 ** 12)",
    "brackets": lambda: b"x = " + b"(" * MANY + b")" * MANY,
    "open brackets": lambda: b"[" * MANY,
    "lists": lambda: b"x = " + b"[" * 150 + b"]" * 150,
    "signs": lambda: b"x = " + b"-" * MANY + b"1",
    "not": lambda: b"x = " + b"not " * MANY + b"1",
    "a sum": lambda: b"x = 1" + b" + 1" * MANY,
    "attributes": lambda: b"x = a" + b".a" * MANY,
    "calls": lambda: b"x = a" + b"()" * MANY,
    "subscripts": lambda: b"x = a" + b"[0]" * MANY,
    "lambdas": lambda: b"x = " + b"lambda: " * MANY + b"0",
    "conditions": lambda: b"x = " + b"1 if 1 else " * MANY + b"0",
    "comparisons": lambda: b"x = 1" + b" < 1" * MANY,
    "elif": lambda: b"if x: pass\n" + b"elif x: pass\n" * FEW,
    "blocks": lambda: b"".join(b" " * k + b"if x:\n" for k in range(99)) + b" " * 99 + b"pass",
    "functions": lambda: b"".join(b" " * k + b"def f():\n" for k in range(99)) + b" " * 99 + b"x",
    "decorators": lambda: b"@f\n" * FEW + b"def f(): pass",
    "strings side by side": lambda: b"x = " + b"'a' " * MANY,
    "f-strings": lambda: b"x = " + b"f'{x}' " * FEW,
    "names": lambda: b"\n".join(b"a%d = a%d" % (k, k + 1) for k in range(FEW)),
    "a circle of names": lambda: b"a = b\nb = c\nc = a\nclass ModelNew(a):\n forward = a\n",
    "a class of itself": lambda: b"class ModelNew(ModelNew): pass",
    "twice over": lambda: b"class ModelNew:\n def forward(self, x):\n  y = (x, x)\n"
    + b"  y = (y, y)\n" * 300 + b"  return y",
    "functions that call each other twice": lambda: b"".join(
        b"def f%d(x): return f%d(f%d(x))\n" % (k, k + 1, k + 1) for k in range(200)
    ) + b"class ModelNew:\n def forward(self, x): return f0(x)",
    "arguments": lambda: b"def f(" + b",".join(b"a%d" % k for k in range(MANY)) + b"): pass",
    "targets": lambda: b"a = " * MANY + b"1",
    "semicolons": lambda: b"x;" * FEW,
    "odd line ends": lambda: b"x = 1\rclass A:\r\n def forward(self, x):\x0c\n  return x\x1c\n",
    "imports of everything": lambda: b"from torch import *\n" * FEW,
    "match": lambda: b"match x:\n" + b" case [1, *_, {'a': b}]: pass\n" * FEW,
}  # fmt: skip


@pytest.mark.parametrize("name", NASTY)
def test_sources_that_are_made_to_break_readers(name: str, tmp_path: Path) -> None:
    source = NASTY[name]()
    checked(source)
    data = source if isinstance(source, bytes) else source.encode("utf-8", "surrogatepass")
    path = tmp_path / "odd_torch.py"
    path.write_bytes(data)
    assert choosing.choose(choosing.AUTO, path, path) in ("off", "cuda", "npu")
    task_faults.line_of(path, "Model")
    discovery.class_line(path, "ModelNew")
