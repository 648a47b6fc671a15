"""What becomes of a launch and its helpers when something goes wrong."""

import atexit
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

import kernels
import torch

from pytest_tritonverify.interpreter import parallel

LONG = 60.0


class Watched:
    """A forked process that launches kernels, as a worker does, and a folder to tell of it."""

    def __init__(self, folder, case):
        self.folder = folder
        self.pid = os.fork()
        if self.pid == 0:
            atexit._clear()
            status = 1
            try:
                parallel.spread(2, parallel.Limits(launch=0.0, program=0.0))
                case(self)
                status = 0
                atexit._run_exitfuncs()
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(status)

    def tell(self, name, text=""):
        (self.folder / f"{name}.part").write_text(text)
        (self.folder / f"{name}.part").rename(self.folder / name)

    def told(self, name):
        """Wait until something was told, and return it."""
        until(lambda: (self.folder / name).exists())
        return (self.folder / name).read_text()

    def hang(self, name):
        self.tell(name, str(os.getpid()))
        while True:
            time.sleep(0.01)

    def is_owner(self):
        return os.getpid() == self.owner

    def launch(self, visited=None):
        self.owner = os.getpid()
        if visited is not None:
            kernels.visited = visited
        x = torch.zeros(96)
        kernels.visiting_kernel[(6,)](x, BLOCK=16)
        return x

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        return self.status()

    def status(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def until(condition):
    deadline = time.monotonic() + LONG
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.005)


def runs(pid):
    """Whether a process does more than wait for being reaped."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def children(pid):
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def crash(folder):
    """A program that crashes in a helper crashes the launch."""

    def case(watched):
        def visited(place):
            if int(place) == 5:
                os.kill(os.getpid(), signal.SIGSEGV)

        watched.launch(visited)

    return {"status": Watched(folder, case).status()}


def hang(folder):
    """A program that hangs in a helper hangs the launch, without the helper."""

    def case(watched):
        def visited(place):
            if int(place) == 5:
                watched.hang("owner" if watched.is_owner() else "helper")

        watched.launch(visited)

    watched = Watched(folder, case)
    helper, owner = watched.told("helper"), watched.told("owner")
    return {
        "others": helper != owner,
        "helper runs": runs(helper),
        "children": children(owner),
        "status": watched.end(),
    }


def orphan(folder):
    """A helper dies with the launch."""

    def case(watched):
        def visited(_):
            if not watched.is_owner():
                watched.hang("helper")
            if (watched.folder / "first").exists():
                watched.told("helper")
                watched.hang("owner")
            watched.tell("first")

        watched.launch(visited)

    watched = Watched(folder, case)
    helper = watched.told("helper")
    watched.told("owner")
    status = watched.end()
    until(lambda: not runs(helper))
    return {"status": status}


def recovery(folder):
    """Helpers that hang, for whatever reason, leave their work to the owner."""

    def case(watched):
        def visited(_):
            if not watched.is_owner():
                watched.hang("helper")
            if (watched.folder / "first").exists():
                watched.told("helper")
            watched.tell("first")

        assert torch.equal(watched.launch(visited), torch.ones(96))
        watched.tell("reason", str(parallel.outcome().reason))

    return {"status": Watched(folder, case).status(), "reason": (folder / "reason").read_text()}


def closed(folder):
    """Helpers need no standard streams, and run nobody's exit handlers."""

    def case(watched):
        os.closerange(0, 3)
        sys.stdout = sys.stderr = None
        atexit.register(lambda: watched.tell(f"exit {os.getpid()}"))
        for _ in range(3):
            assert torch.equal(watched.launch(), torch.ones(96))
        watched.tell("helpers", str(parallel.outcome().helpers))

    watched = Watched(folder, case)
    return {
        "status": watched.status(),
        "helpers": (folder / "helpers").read_text(),
        "exits": len(list(folder.glob("exit *"))),
    }


def quiet(folder):
    """Whatever helpers hold of the owner's descriptors, they close at once."""
    reading, writing = os.pipe()

    def case(watched):
        os.close(reading)

        def visited(_):
            if not watched.is_owner():
                watched.tell("open", str(os.path.exists(f"/proc/self/fd/{writing}")))
            elif (watched.folder / "first").exists():
                watched.told("open")
            else:
                watched.tell("first")

        watched.launch(visited)

    watched = Watched(folder, case)
    os.close(writing)
    status = watched.status()
    os.close(reading)
    return {"status": status, "open": (folder / "open").read_text()}


def run():
    results = {}
    for case in (crash, hang, orphan, recovery, closed, quiet):
        with tempfile.TemporaryDirectory() as folder:
            results[case.__name__] = case(Path(folder))
    return results
