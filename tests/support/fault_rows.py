"""The fault matrix: ways in which one side of a pair goes wrong, and the verdict that each gets.

Every row is a pair of two cases. The fault is in the first one, unless the row says otherwise; a
pair whose process can be replaced passes the second.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# What a row's code finds in its module.
_HEAD = """
import atexit, ctypes, gc, json, os, resource, signal, socket, struct, subprocess, sys, threading
import time, unittest
import torch
HERE = os.path.dirname(os.path.abspath(__file__))
TASK = os.path.join(HERE, "op_torch.py")
"""
_SIDE = """
class {name}(torch.nn.Module):
    def forward(self, x):
        if x.shape[0] == {case}:
{fault}
        return x * 2

def get_input_groups():
    return [[torch.randn(k, 8)] for k in (1, 2)]
"""
_CHANNEL = """
from pytest_tritonverify.execution import wire
def channel():
    return next(o for o in gc.get_objects() if isinstance(o, wire.Channel))
def frame(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body
"""
_ODD = """
class Odd(Exception):
    def __str__(self):
        raise RuntimeError("no")
class Slow:
    def __del__(self):
        time.sleep(1000)
"""
_ESCAPE = """
def escape():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            while True:
                time.sleep(1000)
        os._exit(0)
"""

CRASH, TIMEOUT = "WorkerCrash", "VerifyTimeout"
RIGHT = None
"""The error type of a case that passes."""
_REFERENCE = "the reference"


@dataclass(frozen=True)
class Row:
    """One fault.

    Attributes:
        name: its name, which is the folder's.
        fault: statements at the start of the implementation's `forward`.
        error: the case's error type; several words where it depends on versions.
        top: statements of the implementation's module.
        group: what it belongs to.
        of_reference: the fault is the reference's instead.
        second: the error type of the second case.
        case: the case with the fault.
        words: what the failure must say.
        hangs: it takes the whole time limit.
        needs: "landlock" or "signals" where the verdict depends on the system.
        side: whose failure it is, where it is not that of the faulty side.
    """

    name: str
    fault: str
    error: str | None
    group: str = ""
    top: str = ""
    of_reference: bool = False
    second: str | None = RIGHT
    case: int = 1
    words: str = ""
    hangs: bool = False
    needs: str = ""
    side: str = ""

    def write(self, root: Path) -> Path:
        """Write the pair below a folder, and return its own."""
        folder = root / self.name
        folder.mkdir(parents=True)
        for name, of_reference in (("Model", True), ("ModelNew", False)):
            faulty = of_reference == self.of_reference
            fault = textwrap.indent((self.fault if faulty else "") or "pass", " " * 12)
            source = _HEAD + _CHANNEL + _ODD + _ESCAPE + (self.top if faulty else "")
            source += _SIDE.format(name=name, case=self.case, fault=fault)
            file = "op_torch.py" if of_reference else "op_triton_ascend_impl.py"
            (folder / file).write_text(source, encoding="utf-8")
        return folder

    def expected(self) -> list[str | None]:
        """Return the error types of both cases."""
        return [self.error, self.second] if self.case == 1 else [self.second, self.error]


def _in(group: str, *rows: Row) -> list[Row]:
    of_reference = group == _REFERENCE
    return [replace(row, group=group, of_reference=of_reference) for row in rows]


def _hang(name: str, fault: str, error: str = TIMEOUT, **facts: str) -> Row:
    """Return a row whose second case never ends."""
    return Row(name, fault, error, case=2, hangs=True, **facts)  # type: ignore[arg-type] # texts all


ROWS: list[Row] = [
    *_in(
        "exceptions and values",
        Row("right", "pass", RIGHT),
        Row("raises", "raise ValueError('no such luck')", "ValueError"),
        Row("str_raises", "raise Odd", "Odd"),
        Row("huge_message", "raise ValueError('x' * 30_000_000)", "ValueError"),
        Row(
            "bad_bytes",
            "os.write(1, bytes(range(256)))\nraise ValueError(os.fsdecode(bytes([255, 254])))",
            "ValueError",
        ),
        Row("returns_nothing", "return None", "AssertionError"),
        Row("returns_a_function", "return len", "UnsupportedValueError"),
        Row("returns_a_number", "return 5", "AssertionError"),
        Row("wrong_shape", "return (x * 2)[:, :7]", "AssertionError"),
        Row("wrong_values", "return x * 3", "AccuracyError"),
        Row("syntax_error", "", "SyntaxError", top="def (:\n", second="SyntaxError"),
        Row(
            "returns_what_holds_itself",
            "held = [x * 2]\nheld.append(held)\nreturn held",
            "UnsupportedValueError",
            words="output[1][1][1]",
        ),
        Row("returns_a_million_values", "return list(range(10**6))", "UnsupportedValueError"),
        Row("returns_a_huge_number", "return {1 << 20000: x * 2}", "UnsupportedValueError"),
        Row(
            "returns_memory_given_back",
            "y = x * 2\ny.untyped_storage().resize_(0)\nreturn y",
            "UnsupportedValueError",
            words="given back",
        ),
        Row("odd_names", "return type('T', (tuple,), {'_fields': (object(),)})((x * 2,))", RIGHT),
        Row("default_device", "torch.set_default_device('meta')\nreturn x.mul(2)", RIGHT),
        Row(
            "commands_the_terminal",
            "raise type('E\\nPASSED', (Exception,), {})('\\x1b[2J\\x1b[Hpassed')",
            "E\\nPASSED",
            words="\\x1b[2J\\x1b[Hpassed",
        ),
    ),
    *_in(
        "leaving",
        Row("sys_exit", "sys.exit(0)", "SystemExit"),
        Row("os_exit", "os._exit(0)", CRASH, words="exit status 0"),
        Row("os_exit_at_import", "", CRASH, top="os._exit(0)\n", second=CRASH),
        Row("pytest_exit", "import pytest; pytest.exit('x', returncode=0)", "Exit"),
        Row("pytest_skip", "import pytest; pytest.skip('x')", "Skipped"),
        Row("pytest_xfail", "import pytest; pytest.xfail('x')", "XFailed"),
        Row("unittest_skip", "raise unittest.SkipTest('x')", "SkipTest"),
        Row("keyboard_interrupt", "raise KeyboardInterrupt", "KeyboardInterrupt"),
        Row(
            "exit_in_a_thread",
            "threading.Thread(target=os._exit, args=(0,)).start()\ntime.sleep(99)",
            CRASH,
        ),
        Row(
            "exits_when_flushed",
            "sys.stdout = type('S', (), {'flush': lambda s: sys.exit(0)})()",
            RIGHT,
        ),
        Row(
            "breaks_python",
            "import builtins\nbuiltins.type = builtins.str = None\nraise ValueError",
            CRASH,
            words="has changed Python",
        ),
    ),
    *_in(
        "signals",
        Row("segfault", "ctypes.string_at(1)", CRASH, words="SIGSEGV"),
        Row("abort", "os.abort()", CRASH, words="SIGABRT"),
        Row("kill", "os.kill(os.getpid(), signal.SIGKILL)", CRASH, words="SIGKILL"),
        Row("term", "os.kill(os.getpid(), signal.SIGTERM)", CRASH, words="SIGTERM"),
        _hang("stop", "os.kill(os.getpid(), signal.SIGSTOP)"),
        Row(
            "lets_itself_be_traced",
            "if os.fork() == 0:\n"
            "    time.sleep(0.5)\n"
            "    os.kill(os.getppid(), signal.SIGKILL)\n"
            "    os._exit(0)\n"
            "ctypes.CDLL(None).ptrace(0, 0, 0, 0)\n"
            "os.kill(os.getpid(), signal.SIGTRAP)",
            CRASH,
            words="SIGKILL",
        ),
        Row(
            "kills_its_starter",
            "os.kill(os.getppid(), signal.SIGKILL)",
            "PermissionError",
            needs="signals",
        ),
    ),
    *_in(
        "memory, processes and disk",
        Row("memory_beyond_the_machine", "torch.empty(1 << 46)", "RuntimeError", words="memory"),
        Row(
            "memory_piece_by_piece",
            "held = []\nwhile True:\n    held.append(bytearray(1 << 28))",
            "MemoryError",
        ),
        Row(
            "memory_below_its_own_limit",
            "resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28))\ntorch.empty(1 << 30)",
            "RuntimeError",
            # What it has given up for good is missing afterwards, too.
            second="WireError -",
            words="memory",
        ),
        Row(
            "fork_bomb",
            "while True:\n    os.fork()",
            CRASH,
            words="--verify-process-limit",
        ),
        _hang(
            "fork_bomb_of_orphans",
            "while True:\n    escape()",
            "VerifyTimeout WorkerCrash BlockingIOError",
        ),
        # Which of the two answers first is chance; both know the right answer.
        Row("forks_into_the_worker", "os.fork()", "WorkerCrash -", second="WorkerCrash -"),
        Row(
            "endless_file",
            "with open('f', 'wb') as f:\n    while True:\n        f.write(bytes(1 << 24))",
            "OSError",
            words="--verify-file-limit",
        ),
        # The row that is judged next must not notice.
        Row(
            "folders_without_end",
            "for _ in range(3000):\n    os.mkdir('d')\n    os.chdir('d')",
            RIGHT,
        ),
    ),
    *_in(
        "hangs",
        _hang("hang_in_python", "while True: pass"),
        _hang("hang_in_c", "ctypes.PyDLL(None).sleep(1000)"),
        _hang("hang_in_a_child", "subprocess.run(['sleep', '1000'])"),
        _hang(
            "hang_deaf", "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nescape()\ntime.sleep(1000)"
        ),
        Row("hang_at_import", "", TIMEOUT, top="time.sleep(1000)\n", second="NotRun", hangs=True),
        _hang("hang_in_del", "slow = Slow()\ndel slow"),
        Row(
            "hang_at_exit",
            "atexit.register(time.sleep, 1000)\n"
            "threading.Thread(target=time.sleep, args=(1000,)).start()\nescape()",
            RIGHT,
        ),
    ),
    *_in(
        "output",
        Row(
            "flood_of_output",
            "os.write(1, b'x' * 50_000_000)\nprint('y' * 9_000_000, file=sys.stderr)",
            RIGHT,
        ),
        _hang("endless_output", "while True: os.write(2, b'y' * 65536)"),
        Row("output_closed", "os.close(1); os.close(2); sys.stdout = None", RIGHT),
    ),
    *_in(
        "the connection to the judge",
        Row("connection_closed", "channel().sock.close()", CRASH),
        Row("connection_closed_hanging", "os.close(channel().fileno())\ntime.sleep(1000)", CRASH),
        Row("connection_flooded", "while True: channel().sock.sendall(bytes(65536))", CRASH),
        Row(
            "frame_announced_too_long", "channel().sock.sendall(struct.pack('>I', 1 << 31))", CRASH
        ),
        Row(
            "frame_cut_short",
            "channel().sock.sendall(frame({'event': 'answer'})[:-3])\nos._exit(0)",
            CRASH,
        ),
        Row(
            "frame_without_json",
            "channel().sock.sendall(struct.pack('>I', 4) + b'\\xff' * 4)",
            CRASH,
        ),
        Row(
            "answer_forged",
            "channel().sock.sendall(frame({'event': 'answer', 'n': 1, 'result': {}}))\n"
            "time.sleep(1000)",
            CRASH,
        ),
        Row(
            "memory_with_holes",
            "real, node = tensors.pack, 'segments'\n"
            "def forged(tree, keep_layout):\n"
            "    packed = real(tree, keep_layout=keep_layout)\n"
            "    fd = wire.new_memory('holes')\n"
            "    os.ftruncate(fd, 1 << 25)\n"
            "    wire.seal(fd)\n"
            "    tensors.pack = real\n"
            "    return tensors.Packed(packed.spec, fd)\n"
            "tensors.pack = forged",
            CRASH,
            top="from pytest_tritonverify.execution import tensors\n",
            words="holes",
        ),
    ),
    *_in(
        "files",
        Row("reads_the_task", "open(TASK)", "PermissionError", words="may not read op_torch.py"),
        Row(
            "imports_the_task",
            "",
            "PermissionError",
            top="import op_torch\n",
            second="PermissionError",
            words="must compute the result itself",
        ),
        Row(
            "reads_the_task_by_a_program",
            "subprocess.run(['cat', TASK], check=True, stdout=-3)",
            "CalledProcessError",
            needs="landlock",
        ),
        Row(
            "reads_the_task_by_native_code",
            "assert ctypes.CDLL(None).open(TASK.encode(), 0) >= 0",
            "AssertionError",
            needs="landlock",
        ),
        Row("writes_the_task", "open(TASK, 'a')", "PermissionError"),
        Row(
            "writes_itself",
            "open(__file__, 'a')",
            "PermissionError",
            words="--verify-isolation=off",
            needs="landlock",
        ),
        Row(
            "writes_a_result",
            "open(os.path.join(HERE, 'verify_result.json'), 'w')",
            "PermissionError",
            needs="landlock",
        ),
        Row(
            "removes_the_journal",
            "os.unlink(os.path.join(HERE, 'verify_result.journal.jsonl'))",
            "PermissionError",
            needs="landlock",
        ),
        Row(
            "writes_the_package",
            "open(os.path.dirname(wire.__file__) + '/wire.py', 'a')",
            "PermissionError",
            needs="landlock",
        ),
        Row(
            "limits_the_judge",
            "def above(pid):\n"
            "    words = open(f'/proc/{pid}/stat').read().rpartition(')')[2].split()\n"
            "    return int(words[1])\n"
            "judge = above(above(os.getppid()))\n"
            "resource.prlimit(judge, resource.RLIMIT_NOFILE, (9, 9))",
            "PermissionError",
            needs="landlock",
        ),
        Row(
            "looks_into_the_judge",
            "open(f'/proc/{os.getppid()}/mem', 'rb')",
            "PermissionError",
            needs="landlock",
        ),
    ),
    *_in(
        _REFERENCE,
        Row("reference_raises", "raise ValueError('no such luck')", "ValueError"),
        Row("reference_leaves", "sys.exit(0)", "SystemExit"),
        Row("reference_exits", "os._exit(0)", CRASH),
        Row("reference_segfault", "ctypes.string_at(1)", CRASH),
        Row("reference_killed", "os.kill(os.getpid(), signal.SIGKILL)", CRASH),
        Row("reference_memory", "torch.empty(1 << 46)", "RuntimeError"),
        Row("reference_flood", "os.write(1, b'x' * 50_000_000)", RIGHT),
        Row("reference_returns_a_function", "return len", "UnsupportedValueError"),
        Row("reference_connection_closed", "channel().sock.close()", CRASH),
        _hang("reference_hangs", "while True: pass"),
        _hang("reference_stops", "os.kill(os.getpid(), signal.SIGSTOP)"),
        Row("reference_escapes", "escape()", RIGHT),
        # Of the whole run, or rather of what starts its processes.
        Row(
            "reference_kills_the_server",
            "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(1000)",
            CRASH,
            side="verifier",
        ),
        Row(
            "touches_results",
            "import glob\n"
            "for name in glob.glob(os.path.join(HERE, '..', '*raises', 'verify_result.json')):\n"
            "    os.unlink(name)\n"
            "for name in glob.glob(os.path.join(HERE, '..', '*right', 'verify_result.json')):\n"
            "    open(name, 'w').write('{}')\n"
            # Whoever opened a pipe would wait for ever.
            "for name in glob.glob(os.path.join(HERE, '..', 'abort', 'verify_result.json')):\n"
            "    os.unlink(name)\n"
            "    os.mkfifo(name)",
            RIGHT,
        ),
        Row(
            "journal_becomes_a_pipe",
            "name = os.path.join(HERE, 'verify_result.journal.jsonl')\n"
            "os.unlink(name)\n"
            "os.mkfifo(name)",
            RIGHT,
        ),
        Row(
            "code_becomes_a_pipe",
            "name = os.path.join(HERE, 'op_triton_ascend_impl.py')\n"
            "os.unlink(name)\n"
            "os.mkfifo(name)",
            "SourceChanged",
            second="SourceChanged",
        ),
        Row("task_changes", "open(TASK, 'a').write('#')", "SourceChanged", second="SourceChanged"),
    ),
]
