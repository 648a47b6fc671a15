"""Cases are listed without computing inputs, and listed anew when what they rest on changes."""

from __future__ import annotations

import os
import textwrap
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.catalogue import Catalogue
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.engine import Engine
from pytest_tritonverify.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.workers import Bench

_HEAD = """
import json
import os
import numpy as np
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x
"""


def _pair(folder: Path, inputs: str) -> Pair:
    pair = Pair("op", "ascend_impl", folder / "op_torch.py", folder / "op_triton_ascend_impl.py")
    pair.task.write_text(_HEAD + textwrap.dedent(inputs))
    return pair


@pytest.fixture
def engine(bench: Bench) -> Iterator[Engine]:
    """An engine on the shared fork server."""
    engine = Engine(Settings(device="cpu"), None, frozenset())
    engine.host = bench.host
    yield engine
    for process in engine._references.values():
        process.close()


def _peak(pid: int) -> int:
    """Return a process's greatest memory so far, in MiB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) >> 10


def test_inputs_of_any_size_are_listed_without_their_memory(bench: Bench, tmp_path: Path) -> None:
    inputs = """
    def get_input_groups():
        big = torch.randn(100_000, 100_000)
        return [
            [big],
            [big.to(torch.float16).t().contiguous()],
            [torch.cat([big, big]).cumsum(0)],
            [torch.randint(0, 9, (1 << 20, 1 << 12)).bool(), torch.full((1 << 16,) * 2, 1.0)],
        ]
    """
    worker = bench.ready("describe", _pair(tmp_path, inputs))
    started, before = time.monotonic(), _peak(worker.pid)
    listing = bench.ask(worker, {"op": "describe", "fake": True}).message
    assert [case["name"] for case in listing["cases"]] == [
        "case1-float32-100000x100000",
        "case2-float16-100000x100000",
        "case3-float32-200000x100000",
        "case4-bool-1048576x4096",
    ]
    assert time.monotonic() - started < 60
    assert _peak(worker.pid) - before < 500


@pytest.mark.parametrize(
    ("inputs", "names"),
    [
        ("[torch.randn(3)[: int(torch.tensor(2).item())]]", ["case1-float32-2"]),
        ("[torch.tensor([1, 0, 2]).nonzero()]", ["case1-int64-2x1"]),
        ("[torch.arange(4)[torch.arange(4) > 1]]", ["case1-int64-2"]),
        ("[torch.ones(int(np.sum([1, 2])))]", ["case1-float32-3"]),
        ("[torch.from_numpy(np.ones((2, 3), np.float32))]", ["case1-float32-2x3"]),
        ("[torch.randn(3).tolist(), torch.ones(2, dtype=torch.int8)]", ["case1-int8-2"]),
        ("[torch.randn(2).numpy(), 1]", ["case1-no_tensor"]),
        ("[torch.tensor(1.0)]", ["case1-float32-scalar"]),
        ("{'n': 3, 'x': [{'deep': torch.ones(2, 2)}]}", ["case1-float32-2x2"]),
    ],
)
def test_listing_holds_also_where_values_decide(
    engine: Engine, tmp_path: Path, inputs: str, names: list[str]
) -> None:
    pair = _pair(tmp_path, f"def get_inputs():\n    return {inputs}\n")
    listing = engine.catalogue.list(pair)
    assert listing.error is None
    assert [case.name for case in listing.cases] == names


def test_failure_of_the_real_run_is_what_is_told(engine: Engine, tmp_path: Path) -> None:
    inputs = """
    def get_inputs():
        total = float(torch.ones(3).sum())
        raise ValueError(f"seen {total}")
    """
    listing = engine.catalogue.list(_pair(tmp_path, inputs))
    assert listing.error is not None
    assert listing.error["type"] == "ValueError"
    assert "seen 3.0" in listing.error["message"]


def test_values_that_descriptions_hold(engine: Engine, tmp_path: Path) -> None:
    inputs = """
    class Odd:
        def __repr__(self):
            raise RuntimeError("no")

    def get_input_groups():
        return [
            [10**5000, 1 << 300, -7, True, None, "x" * 1000, "\\ud800", float("nan"), 2.5],
            [{3: 1, None: 2, "a": torch.ones(1), 10**5000: 0}, Odd(), list(range(1000)), {1, 2}],
        ]
    """
    first, second = (
        case.input_desc for case in engine.catalogue.list(_pair(tmp_path, inputs)).cases
    )
    assert first[2:5] == [-7, True, None]
    assert first[8] == 2.5
    assert first[7] == {"type": "float", "value": "nan"}
    assert first[1] == {"type": "int", "value": str(1 << 300)}
    assert first[0]["value"].startswith("0x")
    assert len(first[5]) < 300
    assert str(first).encode()
    assert second[0]["items"]["3"] == 1
    assert second[0]["items"]["None"] == 2
    assert second[1]["value"] == "<repr raised RuntimeError>"
    assert second[2]["items"][-1] == "... 744 more"


# What the cache of listings rests on.


class Counter:
    """Catalogues of ever new sessions on one cache folder, and how often they had to ask."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.asked = 0
        self._engine = engine
        self._folder = folder

    def _ask(self, pair: Pair) -> dict[str, Any]:
        self.asked += 1
        return self._engine._ask_for_cases(pair)

    def sizes(self, pair: Pair) -> list[int]:
        """List a pair's cases in a new session; return the first size of each."""
        listing = Catalogue(self._ask, self._folder, "cpu").list(pair)
        assert listing.error is None, listing.error
        return [case.input_desc[0]["shape"][0] for case in listing.cases]


@pytest.fixture
def counter(engine: Engine, tmp_path: Path) -> Counter:
    return Counter(engine, tmp_path / "cache")


_READS = """
def get_input_groups():
    with open(os.path.join(os.path.dirname(__file__), "sizes.json")) as file:
        return [[torch.ones(n)] for n in json.load(file)]
"""
_MAY_READ = """
def get_input_groups():
    try:
        with open(os.path.join(os.path.dirname(__file__), "sizes.json")) as file:
            return [[torch.ones(n)] for n in json.load(file)]
    except FileNotFoundError:
        return [[torch.ones(1)]]
"""
_LOOKS = """
def get_input_groups():
    path = os.path.join(os.path.dirname(__file__), "op.json")
    sizes = json.load(open(path)) if os.path.exists(path) else [1]
    return [[torch.ones(n)] for n in sizes]
"""
_IMPORTS = """
import helper_of_sizes

def get_input_groups():
    return [[torch.ones(n)] for n in helper_of_sizes.SIZES]
"""


def _compile(path: Path) -> None:
    """Leave compiled code beside a module, so that its source is not opened any more."""
    import py_compile

    py_compile.compile(str(path), doraise=True)


def _helper(folder: Path, sizes: str) -> None:
    (folder / "helper_of_sizes.py").write_text(f"SIZES = {sizes}\n")
    _compile(folder / "helper_of_sizes.py")


@pytest.mark.parametrize(
    ("inputs", "before", "after", "expected"),
    [
        (_READS, ("sizes.json", "[2]"), ("sizes.json", "[3, 4]"), ([2], [3, 4])),
        (_MAY_READ, None, ("sizes.json", "[3]"), ([1], [3])),
        (_MAY_READ, ("sizes.json", "[3]"), ("sizes.json", None), ([3], [1])),
        (_LOOKS, None, ("op.json", "[5]"), ([1], [5])),
        (_IMPORTS, ("helper_of_sizes.py", "[2]"), ("helper_of_sizes.py", "[6]"), ([2], [6])),
    ],
    ids=["changed", "appeared", "vanished", "looked_for", "imported"],
)
def test_listing_is_made_anew_when_a_file_changes(
    counter: Counter,
    tmp_path: Path,
    inputs: str,
    before: tuple[str, str] | None,
    after: tuple[str, str | None],
    expected: tuple[list[int], list[int]],
) -> None:
    def put(name: str, text: str | None) -> None:
        if text is None:
            (tmp_path / name).unlink()
        elif name.endswith(".py"):
            _helper(tmp_path, text)
        else:
            (tmp_path / name).write_text(text)

    if before is not None:
        put(*before)
    pair = _pair(tmp_path, inputs)
    assert counter.sizes(pair) == counter.sizes(pair) == expected[0]
    assert counter.asked == 1
    put(*after)
    assert counter.sizes(pair) == counter.sizes(pair) == expected[1]
    assert counter.asked == 2


def test_listing_is_made_anew_when_the_task_changes(counter: Counter, tmp_path: Path) -> None:
    pair = _pair(tmp_path, "def get_inputs():\n    return [torch.ones(2)]\n")
    assert counter.sizes(pair) == counter.sizes(pair) == [2]
    _pair(tmp_path, "def get_inputs():\n    return [torch.ones(3)]\n")
    assert counter.sizes(pair) == [3]
    assert counter.asked == 2


def test_unrelated_changes_start_no_worker(counter: Counter, tmp_path: Path) -> None:
    (tmp_path / "sizes.json").write_text("[2]")
    pair = _pair(tmp_path, _READS)
    assert counter.sizes(pair) == [2]
    (tmp_path / "other.json").write_text("[]")
    pair.implementation.write_text("")
    os.utime(pair.task, (1, 1))
    os.utime(tmp_path / "sizes.json", (1, 1))
    assert counter.sizes(pair) == [2]
    assert counter.asked == 1


def test_failed_listing_is_not_kept(engine: Engine, tmp_path: Path) -> None:
    pair = _pair(tmp_path, _READS)
    ask: Callable[[Pair], dict[str, Any]] = engine._ask_for_cases
    assert Catalogue(ask, tmp_path / "cache", "cpu").list(pair).error is not None
    (tmp_path / "sizes.json").write_text("[2]")
    assert Catalogue(ask, tmp_path / "cache", "cpu").list(pair).error is None
