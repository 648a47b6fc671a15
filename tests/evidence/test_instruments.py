"""What the instruments note of implementations at work in real workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.examining import TWICE, implementation
from tests.support.workers import Bench, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host
    from pytest_tritonverify.execution.worker_handle import Worker

MARKS = ["special_i0e", "special_i1e"]


@pytest.fixture
def bench(host: Host) -> Iterator[Bench]:
    bench = Bench(host)
    yield bench
    bench.close()


class Observed:
    """An implementation whose first case has been observed."""

    def __init__(self, bench: Bench, folder: Path, source: str, task: str = TWICE) -> None:
        pair = write_pair(folder, task, source)
        inputs = bench.inputs(bench.ready("reference", pair))
        self._bench = bench
        self._case, self._fd = inputs.message["case"], inputs.fd
        self._worker: Worker = bench.ready("observer", pair)
        self.facts: dict[str, Any] = self.ask("observe", marks=MARKS, nonce=1)["observed"]

    def ask(self, op: str, **request: Any) -> dict[str, Any]:
        message = {"op": op, "case": self._case, **request}
        answer = self._bench.ask(self._worker, message, self._fd).message
        assert "error" not in answer, answer
        return answer

    def operators(self) -> dict[str, list[str]]:
        """Return what the operators of user code read, by name."""
        return {
            one["name"].split(".")[1]: one["on"]
            for one in self.facts["operators"]
            if one["file"] is not None
        }


def test_every_way_of_launching_is_seen(bench: Bench, tmp_path: Path) -> None:
    body = """
    n = x.numel()
    o = torch.empty_like(x)
    scale[(2,)](x, o, n, 1, B=64)
    scale[lambda meta: (triton.cdiv(n, meta["B"]),)](x, o, n, 1, B=32)
    scale.run(x, o, n, 1, grid=(1, 2, 3), warmup=False, B=64)
    scale.run(x, o, n, 1, grid=(9,), warmup=True, B=64)
    kept = scale[(5,)]
    kept(x, o, n, 2, B=64)
    kept(x, o, n, 2, B=64)
    tuned[(2,)](x, o, n)
    scale[(0,)](x, o, n, 7, B=64)
    return o
    """
    top = """
    @triton.autotune([triton.Config({"B": 64})], key=["n"])
    @triton.heuristics({"F": lambda args: 2})
    @triton.jit
    def tuned(x, o, n, B: tl.constexpr, F: tl.constexpr):
        i = tl.program_id(0) * B + tl.arange(0, B)
        tl.store(o + i, tl.load(x + i, mask=i < n) * F, mask=i < n)
    """
    launches = Observed(bench, tmp_path, implementation(body, top)).facts["launches"]
    told = [(one["kernel"], one["programs"], one["tuned"], one["wrote"]) for one in launches]
    assert told == [
        ("scale", 2, False, ["o"]),
        ("scale", 4, False, []),
        ("scale", 6, False, []),
        ("scale", 5, False, ["o"]),
        ("scale", 5, False, []),
        ("tuned", 2, True, []),
        ("scale", 0, False, []),
    ]
    assert all(one["completed"] and one["own_thread"] for one in launches)
    lines = (tmp_path / "op_triton_ascend_impl.py").read_text().splitlines()
    sites = [lines[one["site_line"] - 1].strip() for one in launches]
    assert sites[0].startswith("scale[(2,)]")
    assert sites[-1].startswith("scale[(0,)]")


def test_operators_are_told_with_what_they_read(bench: Bench, tmp_path: Path) -> None:
    body = """
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(5, 24))
        self.held = {"deep": [torch.ones(5, 24)]}
    def forward(self, x):
        torch.zeros(3).exp()
        self.w.detach().sin()
        self.held["deep"][0].cos()
        (x + self.w).tan()
        torch.tensor([1.0, 2.0]).sinh()
        y = twice(x)
        return y.t().contiguous().t().tanh().atanh()
    """
    observed = Observed(bench, tmp_path, implementation(body))
    told = observed.operators()
    del told["detach"]  # torch.tensor issues it, too
    assert told == {
        "zeros": [],
        "exp": [],
        "sin": ["parameter"],
        "cos": ["parameter"],
        "add": ["input", "parameter"],
        "tan": ["input", "parameter"],
        "lift_fresh": ["host"],
        "sinh": ["host"],
        "empty_like": [],
        "t": ["launch"],
        "clone": ["launch"],
        "tanh": ["launch"],
        "atanh": ["launch"],
    }
    reordering = {one["name"] for one in observed.facts["operators"] if one["reorders"]}
    assert reordering == {"aten.clone.default"}


def test_the_interpreter_itself_is_no_operator_of_the_forward(bench: Bench, tmp_path: Path) -> None:
    observed = Observed(bench, tmp_path, implementation("return twice(x)"))
    assert observed.operators() == {"empty_like": []}
    assert observed.facts["events"] == []
    assert {one["path"]: one["marks"] for one in observed.facts["outputs"]} == {
        "output": ["launch"],
        "input[0]": ["input", "passed"],
    }


def test_every_run_but_the_last_calls_is_poisoned(bench: Bench, tmp_path: Path) -> None:
    body = """
    word = "poisoned" if torch.empty(4).isnan().all() else "fresh"
    print(word, torch.are_deterministic_algorithms_enabled())
    return twice(x)
    """
    pair = write_pair(tmp_path, TWICE, implementation(body))
    inputs = bench.inputs(bench.ready("reference", pair))
    worker = bench.ready("observer", pair)
    seen = []
    for op in ("observe", "replay", "run", "knock_out", "endure"):
        message = {"op": op, "case": inputs.message["case"], "marks": MARKS, "nonce": 1}
        if op == "endure":
            message |= {"calls": 1, "launching": True}
        bench.ask(worker, message, inputs.fd)
        seen.append(worker.take_output().split())
    assert seen[:4] == [["poisoned", "True"]] * 4
    assert seen[4][1] == "False"


def test_suppressed_launches_are_counted_and_end_at_last(bench: Bench, tmp_path: Path) -> None:
    body = """
    o = torch.zeros_like(x)
    while o.view(-1)[0].item() == 0:
        twice(x, o)
    return o
    """
    observed = Observed(bench, tmp_path, implementation(body))
    told = observed.ask("knock_out")["knocked_out"]
    assert told["broke_off"] == "LaunchesSuppressedError"
    assert told["launches"] > observed.facts["launch_count"]


def test_garbage_takes_neither_all_memory_nor_all_time(bench: Bench, tmp_path: Path) -> None:
    body = """
    n = torch.full((1,), 1, dtype=torch.int64)
    scale[(1,)](n, n, 1, 3, B=1)
    big = torch.empty(1 << 34, dtype=torch.uint8) if n.item() == 1 else None
    return twice(x)
    """
    observed = Observed(bench, tmp_path / "memory", implementation(body))
    assert observed.ask("knock_out")["knocked_out"]["broke_off"] in ("RuntimeError", "MemoryError")
    body = body.replace("big = torch.empty(1 << 34, dtype=torch.uint8)", "while True: pass")
    body = body.replace(" if n.item() == 1 else None", "").replace(
        "while", "while n.item() == 1 and"
    )
    observed = Observed(bench, tmp_path / "time", implementation(body))
    assert observed.ask("knock_out")["knocked_out"]["broke_off"] == "LaunchesSuppressedError"


def test_the_profiler_sees_other_threads_and_no_parts(bench: Bench, tmp_path: Path) -> None:
    body = """
    import threading
    thread = threading.Thread(target=lambda: torch.nn.functional.linear(x, x).softmax(0))
    thread.start()
    thread.join()
    torch.hann_window(4)
    return twice(x)
    """
    observed = Observed(bench, tmp_path, implementation(body))
    native = observed.ask("replay", marks=MARKS, nonce=1)["replayed"]["native"]
    names = {one["name"].removeprefix("aten::") for one in native}
    assert {"mm", "_softmax", "hann_window", MARKS[0]} <= names
    assert not names & {"linear", "mul_", "cos"}
