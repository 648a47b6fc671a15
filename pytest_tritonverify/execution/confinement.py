"""What a worker gives up before it runs an implementation: files, memory, and files' sizes.

Whoever starts the worker says what is to be kept from it; see `pytest_tritonverify.isolation`.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import resource
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.execution import landlock, seccomp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Results, reports and journals of this and other pairs of a folder.
_RESULT = re.compile(r".*(verify|perf)_result.*\.jsonl?")
# A workflow keeps the original of a task this many folders above, at most.
_LEVELS_ABOVE = 4
# Of the system's choice whom to end where memory is short, the highest.
_MOST_EXPENDABLE = 1000
# What runs the judge, and would run the next one: Python's library, packages, and this one.
_INSTALLATION = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(n) for n in ("stdlib", "platstdlib", "purelib", "platlib", "scripts")),
)
# Through which other processes can be made the first to go, frozen or ended.
_SYSTEM = ("/proc", "/sys")
# Where compilers and runtimes keep what they make, below the user's home.
_CACHES = (".triton", ".cache", ".nv", "ascend")
_CACHE_VARIABLES = ("TRITON_CACHE_DIR", "TRITON_HOME", "CUDA_CACHE_PATH", "XDG_CACHE_HOME")


@dataclass(frozen=True)
class Confinement:
    """What is kept from a worker.

    Attributes:
        files: whether files are; the kernel must have Landlock.
        task: the task's file.
        unreadable: other files that it may not read.
        unwritable: folders in which it may change nothing.
        memory: bytes of private memory that each of its processes may have; 0 for no limit.
        processes: processes and threads that it may start, where the system counts them by user;
            0 for no limit.
        file_size: bytes that a file may grow to; 0 for no limit.
    """

    files: bool
    task: str
    unreadable: tuple[str, ...]
    unwritable: tuple[str, ...]
    memory: int
    processes: int
    file_size: int

    @classmethod
    def of(cls, message: dict[str, Any]) -> Confinement:
        """Read what a start request holds."""
        lists = {name: tuple(message[name]) for name in ("unreadable", "unwritable")}
        return cls(**{**message, **lists})

    def enter(self) -> None:
        """Give everything up, for this process and all that it will start.

        Raises:
            OSError: the kernel refuses.
        """
        _volunteer()
        # Files that it makes for a while go where they are removed with it.
        os.environ["TMPDIR"] = tempfile.tempdir = str(Path.cwd())
        limits = [
            # Not the size of the address space: device drivers reserve many times what they use.
            (resource.RLIMIT_DATA, self.memory),
            (resource.RLIMIT_FSIZE, self.file_size),
            (resource.RLIMIT_NPROC, self.processes and _tasks_of_user() + self.processes),
        ]
        for kind, limit in limits:
            if limit:
                _, hard = resource.getrlimit(kind)
                lowest = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
                resource.setrlimit(kind, (lowest, lowest))
        if self.files:
            landlock.restrict(self.grants())
            seccomp.forbid_limits_of_others()

    def grants(self) -> dict[str, int]:
        """Return what is left of the file system, as rights by path."""
        unreadable = {*_forms_of(Path(self.task)), *self.unreadable}
        unwritable = {*self.unwritable, *_INSTALLATION, *_SYSTEM, str(Path(self.task).parent)}
        granted = dict.fromkeys(_outside(unreadable), landlock.READ)
        folders = [path for path, is_folder in _walk_outside(unwritable) if is_folder]
        for path in folders:
            granted[path] = granted.get(path, 0) | landlock.WRITE
        for path in (str(Path.cwd()), f"/proc/{os.getpid()}", *_caches()):
            granted[path] = landlock.READ | landlock.WRITE
        return granted


def _volunteer() -> None:
    """Be the one whom the kernel ends first where the machine's memory is used up."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(str(_MOST_EXPENDABLE), encoding="ascii")


def _tasks_of_user() -> int:
    """Return how many processes and threads the user of this process has now.

    For root the kernel doesn't count them; whoever starts workers does.
    """
    found = 0
    if os.getuid() == 0:
        return found
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                if process.stat().st_uid == os.getuid():
                    found += sum(1 for _ in (process / "task").iterdir())
    return found


def _forms_of(task: Path) -> Iterator[str]:
    """Yield a task's file, its compiled forms and copies, and the results beside it."""
    yield str(task)
    compiled = re.compile(re.escape(task.stem) + r"(\..*)?\.pyc")
    cached = Path(importlib.util.cache_from_source(str(task))).parent
    for folder in (task.parent, task.parent / "__pycache__", cached):
        for name in _names_in(folder):
            if compiled.fullmatch(name) or (folder == task.parent and _RESULT.fullmatch(name)):
                yield str(folder / name)
    content = _content(task)
    for folder in (task.parent, *list(task.parent.parents)[:_LEVELS_ABOVE]):
        for name in (task.name, f"{task.stem.removesuffix('_torch')}.py"):
            copy = folder / name
            if copy != task and content and _content(copy) == content:
                yield str(copy)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _names_in(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _caches() -> Iterator[str]:
    """Yield where compiled code may be kept, though it lie in a folder that is closed otherwise."""
    # Of a user without a home this makes a folder that isn't there, rather than an error.
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - as said
    named = [Path(os.environ[name]) for name in _CACHE_VARIABLES if os.environ.get(name)]
    if not named and os.environ.get("TRITON_INTERPRET") != "1":
        named.append(home / ".triton")
    for folder in named:
        # What isn't there yet could not be granted, nor made later on.
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
    for folder in (*named, *(home / name for name in _CACHES)):
        yield os.path.realpath(folder)


def _outside(closed: Iterable[str]) -> list[str]:
    return [path for path, _ in _walk_outside(closed)]


def _walk_outside(closed: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield what together makes up everything but some files and folders, as few paths as can be.

    Args:
        closed: the files and folders; links in their paths are followed.

    Yields:
        Paths, and whether they are anything but plain files. Links are left out: their targets
        have places of their own.
    """
    shut = {real for path in closed for real in (os.path.realpath(path), _unlinked(path))}
    above = {str(parent) for path in shut for parent in Path(path).parents}
    pending = [] if os.sep in shut else [os.sep]
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_symlink() or entry.path in shut:
                    continue
                if entry.path in above:
                    pending.append(entry.path)
                else:
                    yield entry.path, not entry.is_file(follow_symlinks=False)


def _unlinked(path: str) -> str:
    """Return the real path of a file's name: where it is a link, of the link itself."""
    folder, name = os.path.split(os.path.abspath(path))  # noqa: PTH100 - resolve() follows links
    return os.path.normpath(f"{os.path.realpath(folder)}/{name}")
