"""What implementations do to look fast, on the CPU: none of it gains a speed-up."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.benchmark import plausible
from tests.support.measuring import FEW, MeasuringBench
from tests.support.workers import TWICE, attack, write_pair

if TYPE_CHECKING:
    from pathlib import Path

REMEMBER = """
if {key} not in results:
    results[{key}] = x * 2
return results[{key}]
"""
LATE = """
out = torch.empty_like(x)
def late():
    time.sleep(0.002)
    torch.mul(x, 2, out=out)
{start}
return out
"""
# As a matmul in HF32: within 2^-9 of the golden, and beyond 2^-10.
COARSE = "return x * 2 * (1 + 1.5 * 2**-10)"
POOL = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)"


@pytest.mark.parametrize(
    "key",
    [
        "x.data_ptr()",
        "tuple(x.shape)",
        "id(x)",
        "(x.data_ptr(), x._version, x.shape, x.dtype)",
    ],
)
def test_remembered_results_are_wrong_ones(
    measuring: MeasuringBench, tmp_path: Path, key: str
) -> None:
    found = measuring.measure(attack(tmp_path, REMEMBER.format(key=key), "results = {}"))
    assert (found.status, found.error_type) == ("fail", "AccuracyError")
    assert "although the case passes by itself" in (found.error_msg or "")
    assert found.implementation is None


@pytest.mark.parametrize("hf32", [True, False])
def test_timed_outputs_are_judged_by_the_rules_that_were_asked_for(
    measuring: MeasuringBench, tmp_path: Path, *, hf32: bool
) -> None:
    measuring.settings = dataclasses.replace(measuring.settings, hf32=hf32)
    found = measuring.measure(attack(tmp_path, COARSE))
    assert found.passed == hf32, found.error_msg


@pytest.mark.parametrize(
    ("top", "start"),
    [("", "threading.Thread(target=late).start()"), (POOL, "pool.submit(late)")],
)
def test_work_left_to_a_thread_is_missing_from_the_outputs(
    measuring: MeasuringBench, tmp_path: Path, top: str, start: str
) -> None:
    found = measuring.measure(attack(tmp_path, LATE.format(start=start), top))
    assert (found.status, found.error_type) == ("fail", "AccuracyError")


def test_threads_that_a_forward_starts_are_part_of_its_time(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    lingers = "threading.Thread(target=time.sleep, args=(0.02,)).start()"
    found = measuring.measure(attack(tmp_path, lingers))
    assert found.passed
    assert found.implementation is not None
    # While outputs are kept no time is taken.
    assert max(found.implementation.samples_ms) >= 19


def test_outputs_that_are_computed_when_somebody_looks_are_refused(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    top = """
    class Lazy(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function, types, args=(), kwargs=None):
            with torch._C.DisableTorchFunctionSubclass():
                return function(*args, **(kwargs or {})) * 2
    """
    found = measuring.measure(attack(tmp_path, "return x.as_subclass(Lazy)", top))
    assert found.status == "fail"
    assert "tensor subclass" in (found.error_msg or "")


LAZY_ITEMS = """
class Lazy(dict):
    def items(self):
        time.sleep(0.02)
        return [(key, x * 2) for key, x in super().items()]
"""


def test_outputs_that_are_computed_when_somebody_looks_into_them_are_in_the_time(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    task = TWICE.replace("return x * 2", 'return {"y": x * 2}')
    found = measuring.measure(attack(tmp_path, "return Lazy(y=x)", LAZY_ITEMS, task))
    assert found.passed, found.error_msg
    assert found.implementation is not None
    assert min(found.implementation.samples_ms) >= 19


def test_a_forward_that_computes_most_of_the_time_is_found_out(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    # Three forwards alone, the first of which is always one of them, would most often miss it.
    perf = dataclasses.replace(FEW, repeats=32)
    lazy = "calls.append(0)\nif len(calls) > 10 and len(calls) % 8 == 0: return x"
    found = measuring.measure(attack(tmp_path, lazy, "calls = []"), perf)
    assert (found.status, found.error_type) == ("fail", "AccuracyError")


REMEMBERS_ALL = """
key = str(x)
if key not in results:
    time.sleep(0.01)
    results[key] = x * 2
return results[key]
"""


def test_another_attempt_finds_nothing_that_the_first_one_remembered(
    measuring: MeasuringBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = iter(["it was too fast", None])
    monkeypatch.setattr(plausible, "objection", lambda *_: next(said))
    found = measuring.measure(attack(tmp_path, REMEMBERS_ALL, "results = {}"))
    assert found.passed, found.error_msg
    assert found.implementation is not None
    # The first one is of inputs that the model was built with.
    assert min(found.implementation.samples_ms[1:]) >= 9


WATCHING = """
import pathlib, torch

class Model(torch.nn.Module):
    calls = 0

    def forward(self, x):
        self.calls += 1
        mark = pathlib.Path("MARK")
        # Goldens come from models that are called once.
        for number in mark.read_text().split() if self.calls > 1 and mark.exists() else ():
            state = pathlib.Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
            assert state == "T", f"{number} is in state {state}"
        return x * 2

def get_input_groups():
    return [[torch.randn(2, 4)], [torch.randn(2, 4)]]
"""
LEAVES_A_PROCESS = """
if not (child := os.fork()):
    while True:
        time.sleep(10)
with open("MARK", "w") as file:
    file.write(f"{os.getpid()} {child}")
"""


def test_nothing_of_an_implementation_runs_while_the_reference_is_timed(
    measuring: MeasuringBench, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    # Beside itself an implementation may not write.
    mark = tmp_path_factory.mktemp("marks") / "mark"
    top, task = (text.replace("MARK", str(mark)) for text in (LEAVES_A_PROCESS, WATCHING))
    pair = attack(tmp_path, "", top, task)
    first, second = measuring.measure_cases(pair, 2)
    assert first.passed, first.error_msg
    assert mark.exists()
    assert second.passed, second.error_msg


def test_clocks_replaced_by_name_change_nothing(measuring: MeasuringBench, tmp_path: Path) -> None:
    top = """
    for name in ("perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns", "time", "time_ns"):
        setattr(time, name, lambda: 0)
    import pytest_tritonverify.execution.timing.clock as clock
    clock.nanoseconds = lambda: 0
    threading.enumerate = list
    """
    found = measuring.measure(attack(tmp_path, "time.sleep(0.01)", top))
    assert found.passed
    assert found.implementation is not None
    assert min(found.implementation.samples_ms) >= 9


SLOW_CLOCK = """
real = time.perf_counter_ns
for thing in gc.get_objects():
    if type(thing).__name__ == "CpuTimer":
        thing._now = lambda: real() // 1000
"""
STOPPED_CLOCK = """
real, seed, stopped = time.perf_counter_ns, torch.manual_seed, [0]
def manual_seed(number):
    stopped[0] = 0
    return seed(number)
torch.manual_seed = manual_seed
for thing in gc.get_objects():
    if type(thing).__name__ == "CpuTimer":
        thing._now = lambda: stopped[0] or real()
"""


@pytest.mark.parametrize(
    ("top", "forward"),
    [
        (SLOW_CLOCK, "time.sleep(0.1)"),
        # It moves the time of a forward to the preparation of the next one.
        (STOPPED_CLOCK, "stopped[0] = real()\ntime.sleep(0.1)"),
    ],
)
def test_a_clock_that_is_found_and_bent_contradicts_the_judges(
    measuring: MeasuringBench, tmp_path: Path, top: str, forward: str
) -> None:
    found = measuring.measure(attack(tmp_path, forward, top))
    assert (found.status, found.error_type) == ("fail", "ImplausibleTime")
    assert "It was measured 3 times" in (found.error_msg or "")
    assert found.implementation is None


def test_a_crash_while_it_is_measured_fails_the_case_alone(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    found = measuring.measure(
        attack(tmp_path, "if calls.append(0) or len(calls) > 5: os.abort()", "calls = []")
    )
    assert (found.status, found.error_type) == ("fail", "WorkerCrash")


COUNTER = """
import torch

class {name}(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * self.calls

def get_input_groups():
    return [[torch.arange(8.0).reshape(2, 4) + k] for k in range(3)]
"""


def test_models_that_count_their_calls_are_compared_call_by_call(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    pair = write_pair(tmp_path, COUNTER.format(name="Model"), COUNTER.format(name="ModelNew"))
    found = measuring.measure(pair)
    assert found.passed, found.error_msg


def test_inputs_that_a_forward_changes_are_fresh_in_every_forward(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    in_place = COUNTER.replace("x * self.calls", "x.mul_(2).t_()")
    pair = write_pair(tmp_path, in_place.format(name="Model"), in_place.format(name="ModelNew"))
    assert measuring.measure(pair).passed


def test_one_set_of_inputs_is_told(measuring: MeasuringBench, tmp_path: Path) -> None:
    source = COUNTER.replace("x * self.calls", "torch.ones(3) * x")
    source = source.replace("torch.arange(8.0).reshape(2, 4) + k", "2.0 + k")
    pair = write_pair(tmp_path, source.format(name="Model"), source.format(name="ModelNew"))
    found = measuring.measure(pair)
    assert found.passed
    assert [warning["code"] for warning in found.warnings] == ["inputs_not_rotated"]


def test_both_sides_are_described(measuring: MeasuringBench, tmp_path: Path) -> None:
    found = measuring.measure(attack(tmp_path, "time.sleep(0.005)"))
    assert found.passed
    for side in (found.framework, found.implementation):
        assert side is not None
        assert side.method == "cpu_wall_clock"
        assert len(side.samples_ms) == FEW.repeats
        assert side.peak_memory_mb is not None
        assert side.notes
    assert found.framework is not None
    assert found.implementation is not None
    assert (found.framework.latency_ms or 0) < (found.implementation.latency_ms or 0)


def test_memory_of_a_forward_is_that_of_its_own_side(
    measuring: MeasuringBench, tmp_path: Path
) -> None:
    found = measuring.measure(attack(tmp_path, "y = torch.ones(1 << 24)"))
    assert found.framework is not None
    assert found.implementation is not None
    assert (found.implementation.peak_memory_mb or 0) >= 60
    assert (found.framework.peak_memory_mb or 0) < 30


def test_a_reference_that_is_given_is_not_run(measuring: MeasuringBench, tmp_path: Path) -> None:
    perf = dataclasses.replace(FEW, skip_framework=True, framework_latency_ms=3.0)
    found = measuring.measure(attack(tmp_path, "pass"), perf)
    assert found.passed
    assert found.framework is not None
    assert (found.framework.method, found.framework.latency_ms) == ("given", 3.0)
