"""Families of processes: all members are found and killed, however they were started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from pytest_tritonverify.execution import processes
from pytest_tritonverify.execution.worker_handle import describe_status
from tests.support.living import is_alive
from tests.support.workers import PATIENCE, expect_gone, wait_for_text

# Every script runs in a process of its own, which adopts and reaps on its own account.
_HEAD = """
import json, os, signal, sys, threading, time
from pytest_tritonverify.execution import processes

def child(action):
    pid = os.fork()
    if pid == 0:
        try:
            action()
        finally:
            os._exit(0)
    return pid

def sleep():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1000)

def alive(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

def settle(count):
    # Until so many live, and those that only start others are gone.
    while len(found := [p for p in processes.descendants(os.getpid()) if alive(p)]) != count:
        time.sleep(0.01)
    return found

processes.become_subreaper()
"""


def _run(script: str, *args: str) -> Any:
    """Run a script and return what it prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", _HEAD + script, *args],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE,
    )
    return json.loads(done.stdout)


def test_all_kinds_of_descendants_are_killed() -> None:
    script = """
def session():
    os.setsid()
    child(sleep)
    sleep()

def orphan():
    child(lambda: (os.setsid(), child(sleep), os._exit(0)))

def stopped():
    os.kill(os.getpid(), signal.SIGSTOP)

def from_thread():
    thread = threading.Thread(target=lambda: child(sleep))
    thread.start()
    thread.join()
    threading.Thread(target=lambda: (child(sleep), time.sleep(1000))).start()
    sleep()

def deep(levels=12):
    if levels:
        child(lambda: deep(levels - 1))
    sleep()

for action in (session, orphan, stopped, from_thread, deep):
    child(action)
found = settle(20)
done = processes.kill_all_descendants()
print(json.dumps([found, done, processes.children(os.getpid())]))
"""
    found, done, left = _run(script)
    # 2 of the session, 1 orphan, 1 stopped, 3 of threads and 13 in a row.
    assert len(found) == 20
    assert done is True
    assert left == []
    assert not any(is_alive(pid) for pid in found)


def test_spared_families_live_on() -> None:
    script = """
def family():
    child(sleep)
    sleep()

first, second = child(family), child(family)
found = settle(4)
done = processes.kill_all_descendants(spare=frozenset({second}))
left = processes.descendants(os.getpid())
processes.kill_all_descendants()
print(json.dumps([len(found), done, len(left), left[0] == second]))
"""
    assert _run(script) == [4, True, 2, True]


def test_process_that_hops_from_child_to_child_is_caught() -> None:
    script = """
def hop():
    while True:
        if os.fork():
            os._exit(0)
        os.setsid()

child(hop)
time.sleep(0.3)
print(json.dumps([processes.kill_all_descendants(timeout=100.0)]))
"""
    assert _run(script) == [True]


def test_killing_one_family_leaves_the_others() -> None:
    script = """
def family():
    child(lambda: (os.setsid(), child(sleep), sleep()))
    sleep()

first, second = child(family), child(family)
settle(6)
doomed, others = ([pid, *processes.descendants(pid)] for pid in (first, second))
processes.kill_family(first)
left = settle(3)
processes.kill_all_descendants()
print(json.dumps([len(doomed), sorted(left) == sorted(others)]))
"""
    assert _run(script) == [3, True]


def test_a_process_that_waits_for_its_turn_has_stopped_when_it_is_settled() -> None:
    # Both on one core, and one of them hardly ever gets it.
    spin = f"import os; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}})\nwhile 1: pass"
    command = [sys.executable, "-S", "-c"]
    hog = subprocess.Popen([*command, spin])
    patient = subprocess.Popen([*command, f"import os; os.nice(19)\n{spin}"])
    try:
        for _ in range(5):
            stopped = processes.stop_family(patient.pid)
            processes.settle(stopped)
            state = Path(f"/proc/{patient.pid}/stat").read_text().rpartition(")")[2].split()[0]
            assert state == "T"
            patient.send_signal(signal.SIGCONT)
    finally:
        for process in (hog, patient):
            process.kill()
            process.wait()


def test_child_dies_with_its_parent(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = """
def bound(parent=os.getpid()):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    processes.die_with_parent(parent)
    with open(sys.argv[1], "w") as file:
        file.write(f"{os.getpid()}\\n")
    time.sleep(1000)

child(bound)
while not (os.path.exists(sys.argv[1]) and open(sys.argv[1]).read()):
    time.sleep(0.01)
print("null", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    with pytest.raises(subprocess.CalledProcessError):
        _run(script, str(mark))
    expect_gone(int(wait_for_text(mark)))


def test_child_of_a_parent_that_is_gone_already_exits() -> None:
    script = """
pid = child(lambda: processes.die_with_parent(os.getpid() + 1))
print(json.dumps(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
"""
    assert _run(script) == 1


def test_children_of_threads_and_of_processes_that_are_gone() -> None:
    started: list[subprocess.Popen[bytes]] = []
    command = [sys.executable, "-S", "-c", "import time; time.sleep(1000)"]
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(command)))
    thread.start()
    thread.join()
    (process,) = started
    assert process.pid in processes.children(os.getpid())
    assert processes.send_signal(process.pid, 0)
    process.kill()
    process.wait()
    assert process.pid not in processes.children(os.getpid())
    assert processes.children(process.pid) == []
    assert processes.descendants(process.pid) == []
    assert not processes.send_signal(process.pid, signal.SIGTERM)
    processes.kill_family(process.pid)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "it left by itself with exit status 0"),
        (3 << 8, "it left by itself with exit status 3"),
        (255 << 8, "it left by itself with exit status 255"),
        (11, "killed by signal 11 (SIGSEGV): an access outside of its memory"),
        (11 | 128, "killed by signal 11 (SIGSEGV)"),  # and dumped its core
        (7, "killed by signal 7 (SIGBUS): an access outside of its memory"),
        (6, "killed by signal 6 (SIGABRT): an abort"),
        (8, "killed by signal 8 (SIGFPE): an integer division by zero"),
        (9, "killed by signal 9 (SIGKILL): killed from outside"),
        (15, "killed by signal 15 (SIGTERM)"),
        (34, "killed by signal 34 (SIGRTMIN)"),
        (40, "killed by signal 40 (unknown)"),
    ],
)
def test_exit_status_in_words(status: int, words: str) -> None:
    assert describe_status(status).startswith(words)
