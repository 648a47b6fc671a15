"""The drop-in commands. They take the scripts' own option names and run pytest underneath."""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import discovery
from pytest_tritonverify.degeneration import command
from pytest_tritonverify.execution import processes
from pytest_tritonverify.results import names

if TYPE_CHECKING:
    from collections.abc import Sequence

# `python -m pytest` would find a `pytest.py` or `torch.py` of the folder that it is started in.
_PYTEST = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; sys.argv[0] = 'pytest'; "
    "import pytest; sys.exit(pytest.main())"
)


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The documented lines are Chinese, and not every terminal can show that.
            stream.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(
        prog="python -m pytest_tritonverify",
        description="Judge Triton kernels against their PyTorch references.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    verify = commands.add_parser(
        "verify",
        help="judge one pair and write its verify_result.json",
        description="Judge one pair. Exit status 0: every case passed; 1: anything else.",
    )
    _add_verify_options(verify)
    check = commands.add_parser(
        "validate",
        help="check by its source that an implementation's kernels do the work",
        description="Check one file without running it. Exit status 0: it passes; 1: anything "
        "else, a file that can't be read included.",
    )
    check.add_argument("file", metavar="FILE", help="the implementation")
    check.add_argument("--json", action="store_true", help="print the documented JSON")
    check.add_argument("--non-compute", action="store_true", help="the task only moves data")
    options = parser.parse_args(arguments)
    if options.command == "validate":
        return command.validate(options.file, as_json=options.json, non_compute=options.non_compute)
    return _verify(options)


def _add_verify_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--op_name", required=True, help="the operator: the task is <op_name>_torch.py"
    )
    parser.add_argument("--verify_dir", default=".", help="the pair's folder (default: here)")
    parser.add_argument(
        "--triton_impl_name",
        default=f"triton_{discovery.DEFAULT_VARIANT}",
        help="implementation without the operator's name (default: %(default)s)",
    )
    parser.add_argument("--timeout", type=float, default=900, help="seconds (default: %(default)s)")
    parser.add_argument(
        "--output", help="result file (default: verify_result[_<x>].json in the folder)"
    )
    parser.add_argument("--non-compute", action="store_true", help="outputs must agree bit for bit")
    parser.add_argument(
        "--exact-int",
        action="store_true",
        help="32- and 64-bit integers of float inputs must be exact, not within 1",
    )
    parser.add_argument("--fresh-cache", action="store_true", help="use an empty Triton cache")
    parser.add_argument("--keep-cache", action="store_true", help="with --fresh-cache: keep it")
    parser.add_argument("--device", default=None, help="auto, npu, cuda or cpu (default: auto)")


def _verify(options: argparse.Namespace) -> int:
    folder = Path(options.verify_dir).resolve()
    variant = options.triton_impl_name.removeprefix("triton_")
    pair = discovery.Pair(
        options.op_name,
        variant,
        folder / f"{options.op_name}{discovery.TASK_SUFFIX}.py",
        folder / f"{options.op_name}_{options.triton_impl_name}.py",
    )
    complaint = _missing(folder, pair)
    if complaint is not None:
        print(f"verify: {complaint}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    output = names.verify_result(pair, shared_folder=names.is_shared(folder))
    if options.output:
        given = Path(options.output)
        # The file itself may be a link; it is replaced, not followed.
        output = given.parent.resolve() / given.name
    try:
        # A run that comes to nothing must not leave an earlier verdict to be read.
        output.unlink(missing_ok=True)
    except OSError as error:
        print(f"verify: the old {output} can't be removed: {error.strerror}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    status = _run_pytest(_pytest_options(options, folder, output), folder)
    return 0 if _say_outcome(output, status) else 1


def _missing(folder: Path, pair: discovery.Pair) -> str | None:
    """Say in one sentence which of a pair's files is not there, and what is."""
    if not folder.is_dir():
        return f"there is no folder {folder} (--verify_dir)"
    if not pair.task.is_file():
        tasks = sorted(path for path in folder.glob(f"*{discovery.TASK_SUFFIX}.py"))
        there = ", ".join(path.stem.removesuffix(discovery.TASK_SUFFIX) for path in tasks)
        return f"there is no {pair.task} (--op_name; there are tasks for: {there or 'none'})"
    if not pair.implementation.is_file():
        there = ", ".join(p.impl_name for p in discovery.implementations_of(pair.task))
        return (
            f"there is no {pair.implementation} (--triton_impl_name; there are: {there or 'none'})"
        )
    return None


def _run_pytest(options: Sequence[str], folder: Path) -> int:
    """Run pytest in a process of its own, one that ends with this one; return its exit status."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PYTEST, *options],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        # A terminal's Ctrl-C comes here alone and is handed on once: a second one would keep
        # pytest from writing down what did not run.
        start_new_session=True,
        preexec_fn=functools.partial(processes.die_with_parent, os.getpid()),  # noqa: PLW1509 - no threads here
    )
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)


def _pytest_options(options: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    chosen = [
        f"--verify-dir={folder}",
        "-p",
        "tritonverify",
        # The folder belongs to a candidate: nothing in it, or above it, configures this run.
        f"--rootdir={folder}",
        f"--confcutdir={folder}",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        # Copies of the pair in folders below are no concern of this run.
        "--override-ini=norecursedirs=*",
        f"--verify-op={_literal(options.op_name)}",
        f"--verify-impl={_literal(options.triton_impl_name)}",
        f"--verify-timeout={options.timeout}",
        f"--verify-output={output}",
        "--log-cli-level=INFO",
        "--log-cli-format=%(message)s",
        "--show-capture=no",
    ]
    if options.device:
        chosen.append(f"--verify-device={options.device}")
    switches = ("non_compute", "exact_int", "fresh_cache", "keep_cache")
    chosen += [f"--verify-{n.replace('_', '-')}" for n in switches if getattr(options, n)]
    return chosen


def _literal(name: str) -> str:
    """Return a pattern that matches a name and nothing else."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _say_outcome(output: Path, status: int) -> bool:
    """Print the documented last line; return whether every case has passed."""
    try:
        result: dict[str, Any] = json.loads(output.read_text("utf-8"))
        total, passed, failed = (result[f"{name}_cases"] for name in ("total", "passed", "failed"))
    except (OSError, ValueError, KeyError, TypeError):
        line = f"验证失败：没有写出结果文件（pytest 退出码 {status}）"
    else:
        if status == 0 and passed == total > 0:
            print(f"验证成功：共 {total} 组测试用例全部通过")  # noqa: T201 - a command
            return True
        line = f"验证失败：{passed}/{total} 组通过，{failed} 组失败（详见 {output}）"
        if passed == total > 0:
            line = f"验证失败：运行没有正常结束（pytest 退出码 {status}）"
    print(line)  # noqa: T201 - a command
    return False
