"""Whatever an implementation does to its process, the judge goes on and says what happened."""

from __future__ import annotations

import json
import resource
import time
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.worker_handle import WorkerBroken, WorkerDied, WorkerHung
from tests.support.living import open_descriptors
from tests.support.workers import ESCAPE, attack, expect_gone, wait_for_text

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.workers import Bench

# A function that tells through a file that an attack begins, and one to hang in.
TELL = """
def tell(mark):
    with open(mark, "w") as file:
        file.write("there\\n")
"""
DEEP = """
def deep():
    time.sleep(1000)
"""


def test_right_implementation_is_right(bench: Bench, tmp_path: Path) -> None:
    sides = bench.both(attack(tmp_path, "pass"), [1, 2, 3])
    assert all(side.agree for side in sides)
    assert [record.status for record in bench.verdict(attack(tmp_path, "pass"), cases=3)] == [
        "passed"
    ] * 3


@pytest.mark.parametrize(
    ("forward", "frame"),
    [
        ("while True: time.sleep(0.01)", "in forward"),
        ("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", "in forward"),
        ("while True: ctypes.PyDLL(None).sleep(1000)", "in forward"),
        ("sum(iter(int, 1))", "in forward"),
        ("threading.Thread(target=deep).start()\ntime.sleep(1000)", "in deep"),
    ],
    ids=["sleeps", "ignores_sigterm", "holds_gil_in_c", "loops_in_c", "has_threads"],
)
def test_hang_ends_with_the_line_it_hung_in(
    bench: Bench, tmp_path: Path, forward: str, frame: str
) -> None:
    mark = tmp_path / "there"
    pair = attack(tmp_path, f"tell({str(mark)!r})\n{forward}", f"{TELL}\n{DEEP}")
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    worker.post(**case)
    wait_for_text(mark)
    with pytest.raises(WorkerHung) as caught:
        worker.result(time.monotonic() + 0.2)
    assert caught.value.phase == "forward"
    assert f'File "{pair.implementation}", line ' in caught.value.output
    assert frame in caught.value.output
    expect_gone(worker.pid)


def test_stopped_process_is_killed(bench: Bench, tmp_path: Path) -> None:
    pair = attack(tmp_path, "os.kill(os.getpid(), signal.SIGSTOP)")
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    with pytest.raises(WorkerHung):
        bench.ask(worker, **case, seconds=2)
    expect_gone(worker.pid)


def test_stacks_are_shown_though_the_output_pipe_is_full(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "there"
    full = f"os.write(1, b'y' * 65536)\ntell({str(mark)!r})\nos.write(1, b'y' * 4096)"
    pair = attack(tmp_path, full, TELL)
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    worker.post(**case)
    # Nobody reads its output meanwhile: it blocks in the middle of a write.
    wait_for_text(mark)
    with pytest.raises(WorkerHung) as caught:
        worker.result(time.monotonic() - 1)
    assert "in forward" in caught.value.output


@pytest.mark.parametrize(
    ("forward", "top", "phase", "words"),
    [
        ("os._exit(0)", "", "forward", "left by itself with exit status 0"),
        ("os._exit(3)", "", "forward", "left by itself with exit status 3"),
        ("pass", "os._exit(5)", "import", "left by itself with exit status 5"),
        (
            "threading.Thread(target=os._exit, args=(7,)).start()\ntime.sleep(1000)",
            "",
            "forward",
            "left by itself with exit status 7",
        ),
        ("os.abort()", "", "forward", "signal 6 (SIGABRT): an abort"),
        ("ctypes.string_at(1)", "", "forward", "signal 11 (SIGSEGV): an access outside"),
        ("os.kill(os.getpid(), 9)", "", "forward", "signal 9 (SIGKILL): killed from outside"),
        ("os.kill(os.getpid(), signal.SIGRTMIN + 1)", "", "forward", "killed by signal 35"),
    ],
    ids=["exit_0", "exit_3", "import", "thread", "abort", "segv", "kill", "realtime"],
)
def test_death_is_told_with_its_cause_and_phase(
    bench: Bench, tmp_path: Path, forward: str, top: str, phase: str, words: str
) -> None:
    pair = attack(tmp_path, forward, top)
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    with pytest.raises(WorkerDied) as caught:
        bench.ask(worker, **case)
    assert words in str(caught.value)
    assert caught.value.phase == phase


def test_crash_leaves_a_python_stack(bench: Bench, tmp_path: Path) -> None:
    pair = attack(tmp_path, "print('last words')\nctypes.string_at(1)")
    case = bench.case(pair)
    with pytest.raises(WorkerDied) as caught:
        bench.ask(bench.ready("candidate", pair), **case)
    assert "last words" in caught.value.output
    assert "Segmentation fault" in caught.value.output
    assert "in forward" in caught.value.output


@pytest.mark.parametrize(
    "forward",
    ["sys.exit(0)", "raise SystemExit", "raise KeyboardInterrupt", "raise GeneratorExit"],
)
def test_exceptions_that_end_programs_are_answers(
    bench: Bench, tmp_path: Path, forward: str
) -> None:
    pair = attack(tmp_path, f"if x[0, 0] == 0: {forward}")
    first, second = bench.both(pair, [1, 2])
    error = first.actual.message["error"]
    assert error["type"] in ("SystemExit", "KeyboardInterrupt", "GeneratorExit")
    assert (error["phase"], error["file"]) == ("forward", str(pair.implementation))
    assert second.agree


ODD = """
import builtins

class NoText(Exception):
    def __str__(self):
        raise RuntimeError("no")
    __repr__ = __str__

class Never(Exception):
    def __eq__(self, other):
        raise RuntimeError("no")
    __hash__ = None

class Meta(type):
    @property
    def __name__(cls):
        raise RuntimeError("no")
    @property
    def __module__(cls):
        raise RuntimeError("no")

class Nameless(Exception, metaclass=Meta):
    pass

class Causes(Exception):
    @property
    def __cause__(self):
        raise RuntimeError("no")

class Text(str):
    def __len__(self):
        raise RuntimeError("no")
    def encode(self, *args):
        raise RuntimeError("no")
    __format__ = __str__ = __getitem__ = __len__

class OddText(Exception):
    def __str__(self):
        return Text("odd")

def syntax(**changes):
    error = SyntaxError("odd", ("file.py", 1, 1, "text"))
    vars(error).update(changes)
    for name, value in changes.items():
        setattr(error, name, value)
    return error

def circle():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    return first

def chain(error):
    for number in range(2000):
        outer = ValueError(f"link {number}")
        outer.__cause__ = error
        error = outer
    return error
"""


@pytest.mark.parametrize(
    "error",
    [
        "NoText()",
        "Never('odd')",
        "Nameless('odd')",
        "Causes('odd')",
        "OddText()",
        "syntax(filename=5)",
        "syntax(lineno='x')",
        "syntax(lineno=torch.ones(1))",
        "syntax(text=object())",
        "ValueError('\\ud800' * 10)",
        "ValueError('x' * 30_000_000)",
        "ValueError(10 ** 6000)",
        "circle()",
        "chain(NoText())",
        "getattr(builtins, 'BaseExceptionGroup', ValueError)('odd', [NoText(), circle()])",
    ],
)
def test_exceptions_that_resist_description_are_answers(
    bench: Bench, tmp_path: Path, error: str
) -> None:
    pair = attack(tmp_path, f"if x[0, 0] == 0: raise {error}", ODD)
    first, second = bench.both(pair, [1, 2])
    described = first.actual.message["error"]
    assert described["phase"] == "forward"
    assert len(json.dumps(described, ensure_ascii=False).encode()) < 100_000
    assert second.agree


def test_flood_of_output_neither_blocks_nor_grows_the_judge(bench: Bench, tmp_path: Path) -> None:
    pair = attack(
        tmp_path,
        "line = b'x' * (1 << 20)\nfor _ in range(1500): os.write(1, line)\nprint('the end')",
    )
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    answer = bench.ask(worker, **case)
    assert "error" not in answer.message
    output = worker.take_output()
    assert len(output) <= 1 << 16
    assert output.endswith("xthe end\n")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


def test_endless_output_ends_at_the_deadline(bench: Bench, tmp_path: Path) -> None:
    pair = attack(tmp_path, "line = b'x' * 65536\nwhile True: os.write(2, line)")
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    started = time.monotonic()
    with pytest.raises(WorkerHung) as caught:
        bench.ask(worker, **case, seconds=2)
    assert time.monotonic() - started < 60
    assert len(caught.value.output) <= 1 << 16


def test_output_that_is_no_text_is_shown_somehow(bench: Bench, tmp_path: Path) -> None:
    pair = attack(
        tmp_path,
        "os.write(1, b'\\xff\\xfe\\x00')\nprint('\\ud800 ok')\nos.write(2, b'\\xe9')",
    )
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    bench.ask(worker, **case)
    output = worker.take_output()
    assert output.startswith("\\xff\\xfe\\x00")
    assert "\\ud800 ok" in output
    output.encode("utf-8")


@pytest.mark.parametrize(
    "forward",
    [
        "sys.stdout = None",
        "sys.stdout.close()",
        "sys.stdout = sys.stderr = object()",
        "os.close(1)",
        "os.close(1); os.close(2)",
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1)",
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
        "os.chdir('/')",
        "os.environ.clear()",
        "sys.path.clear()",
        "torch.manual_seed(77)",
        "torch.set_default_dtype(torch.float64)",
    ],
)
def test_odd_but_harmless_habits_are_no_failure(bench: Bench, tmp_path: Path, forward: str) -> None:
    sides = bench.both(attack(tmp_path, f"if x[0, 0] == 0: {forward}"), [1, 2])
    assert all(side.agree for side in sides)


def test_descendants_go_with_a_worker_that_hangs(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "escaped"
    pair = attack(tmp_path, f"escape({str(mark)!r})\ntime.sleep(1000)", ESCAPE)
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    worker.post(**case)
    escaped = int(wait_for_text(mark))
    with pytest.raises(WorkerHung):
        worker.result(time.monotonic() + 1)
    expect_gone(worker.pid, escaped)


def test_channel_held_open_by_a_descendant_hides_no_death(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "escaped"
    pair = attack(tmp_path, f"escape({str(mark)!r})\nos._exit(9)", ESCAPE)
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    with pytest.raises(WorkerDied, match="exit status 9"):
        bench.ask(worker, **case)
    expect_gone(worker.pid, int(wait_for_text(mark)))


def test_fork_that_returns_into_the_worker_is_no_second_answer(
    bench: Bench, tmp_path: Path
) -> None:
    # The child goes on as the worker does, and answers too.
    pair = attack(tmp_path, "if x[0, 0] == 0: os.fork()")
    case = bench.case(pair)
    worker = bench.ready("candidate", pair)
    for _ in range(2):
        try:
            bench.ask(worker, **case)
        except (WorkerBroken, WorkerDied):
            break
    worker.kill()
    expect_gone(worker.pid)


def test_killed_worker_leaves_no_descriptor_in_the_judge(bench: Bench, tmp_path: Path) -> None:
    pair = attack(tmp_path, "os._exit(0)")
    case = bench.case(pair)

    def attempt() -> None:
        with pytest.raises(WorkerDied):
            bench.ask(bench.ready("candidate", pair), **case)

    attempt()
    before = open_descriptors()
    for _ in range(5):
        attempt()
    assert open_descriptors() == before
