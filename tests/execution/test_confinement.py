"""What is kept from an implementation's process, and what an honest one may still do."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution import confinement, landlock
from tests.support.living import is_alive
from tests.support.workers import PATIENCE, attack, expect_gone

if TYPE_CHECKING:
    from tests.support.workers import Bench

isolated = pytest.mark.skipif(not landlock.version(), reason="this kernel has no Landlock")

TOP = """
import inspect, multiprocessing, pathlib, resource, subprocess, tempfile
HERE = pathlib.Path(__file__).parent
TASK = HERE / "op_torch.py"
OPEN = ctypes.CDLL(None, use_errno=True).open

def native(path, flags=os.O_RDONLY):
    handle = OPEN(os.fsencode(path), flags)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "native")
    return os.read(handle, 10)

def program(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE)
"""
DENIED = [
    "native(TASK)",
    "native(HERE / 'linked.py')",
    "native(HERE / 'verify_result.json')",
    "native(HERE / 'verify_result_fast.json')",
    "native(HERE / 'op_perf_result.json')",
    "native(HERE / 'op.py')",
    "native(HERE.parent / 'op.py')",
    "program('cat', TASK)",
    "program('sh', '-c', f'cat < {TASK}')",
    "program(sys.executable, '-Sc', f'open({str(TASK)!r})')",
    "open(HERE / 'verify_result.json', 'w')",
    "open(HERE / 'new', 'w')",
    "open(HERE.parent / 'new', 'w')",
    "open(__file__, 'r+')",
    "(HERE / 'op.json').unlink()",
    "(HERE / 'helpers' / 'inner.py').write_text('')",
    "os.truncate(HERE / 'op.json', 0)",
    "TASK.rename(HERE / 'x')",
    "HERE.rename(HERE.parent / 'x')",
    "os.link(TASK, 'x')",
    "os.mkdir(HERE / 'x')",
    "program('rm', HERE / 'op.json')",
    "open(torch.__file__, 'a')",
    "open(f'/proc/{os.getppid()}/mem', 'rb')",
    "os.readlink(f'/proc/{os.getppid()}/fd/0')",
    "open(f'/proc/{os.getppid()}/oom_score_adj', 'w')",
    "open('/proc/sys/kernel/core_pattern', 'a')",
    "resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (9, 9))",
    "resource.prlimit(os.getpid(), resource.RLIMIT_CORE, (0, 0))",
    "program('prlimit', f'--pid={os.getppid()}', '--nofile=9:9')",
]
ALLOWED = [
    "assert native(HERE / 'op.json') == b'[]'",
    "assert (HERE / 'helpers' / 'inner.py').read_text()",
    "assert native(HERE.parent / 'shared.txt') == b'shared'",
    "import helper",
    "from helpers import inner",
    "assert 'ModelNew' in inspect.getsource(ModelNew)",
    "assert 'op_torch.py' in os.listdir(HERE)",
    "open('note', 'w').write('x'); os.replace('note', 'other'); os.unlink('other')",
    "os.makedirs('a/b'); os.rename('a/b', 'c'); os.symlink('c', 'd')",
    "tempfile.NamedTemporaryFile(delete=False).write(b'x')",
    "open(os.devnull, 'w').write('x')",
    "open('/proc/self/oom_score_adj').read()",
    "torch.ones(4).share_memory_()",
    "program(sys.executable, '-Sc', 'pass')",
    "multiprocessing.get_context('fork').Process(target=len, args=('',)).start()",
    "os.kill(os.getpid(), 0)",
    "open('/proc/self/oom_score_adj', 'w').write('1000')",
    "os.close(os.open(f'/proc/self/fd/{os.memfd_create(\"x\")}', os.O_RDWR))",
    "resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE))",
    "assert resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE)[1] > 9",
    "torch.save(x.cpu(), 'x.pt'); torch.load('x.pt')",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a pair, with all that may lie in it and above."""
    folder = tmp_path / "work" / "op"
    (folder / "helpers").mkdir(parents=True)
    for name in ("helper.py", "helpers/__init__.py", "helpers/inner.py"):
        (folder / name).write_text("x = 1\n")
    for name in ("verify_result.json", "verify_result_fast.json", "op_perf_result.json"):
        (folder / name).write_text("{}")
    (folder / "op.json").write_text("[]")
    (folder.parent / "shared.txt").write_text("shared")
    return folder


@isolated
def test_what_is_closed_is_closed_by_every_road(bench: Bench, folder: Path) -> None:
    # One pair and one process for all of them: each is tried, and what was let through is told.
    attempts = "\n".join(
        f"try:\n    {road}\nexcept (OSError, subprocess.CalledProcessError): pass\n"
        f"else: through.append({road!r})"
        for road in DENIED
    )
    pair = attack(folder, f"through = []\n{attempts}\nassert not through, through", TOP)
    (folder / "linked.py").symlink_to(pair.task)
    for place in (folder, folder.parent):
        shutil.copy(pair.task, place / "op.py")
    (record,) = bench.verdict(pair)
    assert record.passed, record.error_msg
    assert (folder / "op.json").read_text() == "[]"


def test_what_honest_code_does_is_open(bench: Bench, folder: Path) -> None:
    (record,) = bench.verdict(attack(folder, "\n".join(ALLOWED), TOP))
    assert record.passed, record.error_msg


@isolated
def test_a_linked_folder_is_closed_too(bench: Bench, folder: Path) -> None:
    real = attack(folder, "native(TASK)", TOP)
    link = folder.parent / "link"
    link.symlink_to(folder)
    elsewhere = folder.parent / "original.py"
    real.task.rename(elsewhere)
    real.task.symlink_to(elsewhere)
    for road in ("TASK", "HERE.parent / 'original.py'", "HERE.resolve() / TASK.name"):
        attack(folder, f"native({road})", TOP, elsewhere.read_text())
        pair = type(real)(
            "op", real.variant, link / real.task.name, link / real.implementation.name
        )
        (record,) = bench.verdict(pair)
        assert record.error_type == "PermissionError", record.error_msg


@isolated
def test_a_denial_says_what_is_denied(bench: Bench, folder: Path) -> None:
    pair = attack(folder, "open(HERE / 'new', 'w')", TOP)
    (record,) = bench.verdict(pair)
    assert record.error_type == "PermissionError"
    assert record.file == str(pair.implementation)
    assert "Its current folder and tempfile are free" in (record.error_msg or "")
    assert "--verify-isolation=off" in (record.error_msg or "")


def test_isolation_can_be_switched_off(bench: Bench, folder: Path) -> None:
    pair = attack(folder, "open(HERE / 'new', 'w').write('x')", TOP)
    limits = bench.limits(files="off")
    (record,) = bench.verdict(pair, limits=limits)
    assert record.passed, record.error_msg
    assert (folder / "new").read_text() == "x"


@pytest.mark.skipif(landlock.version() < landlock.HAS_SCOPES, reason="signals are not scoped")
def test_other_processes_of_the_run_cannot_be_signalled(bench: Bench, folder: Path) -> None:
    other = bench.ready("reference", attack(folder / "other", "pass"))
    (record,) = bench.verdict(attack(folder, f"os.kill({other.pid}, signal.SIGKILL)", TOP))
    assert record.error_type == "PermissionError"
    assert is_alive(other.pid)


@pytest.mark.parametrize(
    ("forward", "limits", "error", "words"),
    [
        ("bytearray(1 << 33)", {"memory": 1 << 31}, "MemoryError", ""),
        (
            "torch.zeros(1 << 32, dtype=torch.uint8)",
            {"memory": 1 << 31},
            "RuntimeError",
            "--verify-memory-limit",
        ),
        (
            "open('f', 'wb').write(bytes(1 << 21))",
            {"file_size": 1 << 20},
            "OSError",
            "--verify-file-limit",
        ),
    ],
    ids=["python", "torch", "file"],
)
def test_limits_are_told(
    bench: Bench, folder: Path, forward: str, limits: dict[str, int], error: str, words: str
) -> None:
    pair = attack(folder, f"if x[0, 0] == 0:\n    {forward}")
    first, second = bench.verdict(pair, cases=2, limits=bench.limits(**limits))
    assert (first.error_type, second.passed) == (error, True), first.error_msg
    assert words in (first.error_msg or "")


def test_a_crowd_of_processes_is_dispersed(bench: Bench, folder: Path) -> None:
    bomb = "if x[0, 0] == 0:\n    while True: os.fork()"
    first, second = bench.verdict(attack(folder, bomb), cases=2)
    assert first.error_type == "WorkerCrash"
    assert "more than 64 processes and was ended (--verify-process-limit)" in (
        first.error_msg or ""
    )
    assert second.passed, second.error_msg


def test_what_a_process_leaves_goes_with_it(bench: Bench, folder: Path) -> None:
    place = folder / "place"
    told = f"open('note', 'w').write('x'); open({str(place)!r}, 'w').write(os.getcwd())"
    worker = bench.ready("candidate", attack(folder, told))
    bench.ask(worker, **bench.case(attack(folder, told)))
    scratch = Path(place.read_text())
    assert [path.name for path in scratch.iterdir()] == ["note"]
    worker.kill()
    expect_gone(worker.pid)
    deadline = time.monotonic() + PATIENCE / 2
    while scratch.exists():
        assert time.monotonic() < deadline, f"still there: {scratch}"
        time.sleep(0.01)


def test_everything_but_what_is_closed_is_found(tmp_path: Path) -> None:
    files = ["a/b/one", "a/b/two", "a/three", "c/four", "five", "a b/six", "c/d/seven"]
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a/link").symlink_to(tmp_path / "five")
    closed = [str(tmp_path / name) for name in ("a/b/one", "c", "a/link")]
    found = dict(confinement._walk_outside(closed))

    def is_open(name: str) -> bool:
        path = tmp_path / name
        return any(str(place) in found for place in (path, *path.parents))

    assert {name for name in files if is_open(name)} == {"a/b/two", "a/three", "a b/six"}
    assert found[str(tmp_path / "a b")]
    assert not found[str(tmp_path / "a/b/two")]
    assert sys.executable not in found
    assert list(confinement._walk_outside(["/"])) == []
