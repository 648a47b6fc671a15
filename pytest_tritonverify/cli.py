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
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_tritonverify import discovery
from pytest_tritonverify.benchmark import command as benchmark_command
from pytest_tritonverify.benchmark import compare_command
from pytest_tritonverify.benchmark import items as benchmark_items
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
    measure = commands.add_parser(
        "benchmark",
        help="measure one pair that is verified, and write its perf_result.json",
        description="Measure one pair. Exit status 0: it was measured, whether or not every case "
        "worked; 1: something broke; 2: refused, since the pair is not verified.",
    )
    _add_benchmark_options(measure)
    check = commands.add_parser(
        "validate",
        help="check by its source that an implementation's kernels do the work",
        description="Check one file without running it. Exit status 0: it passes; 1: anything "
        "else, a file that can't be read included.",
    )
    check.add_argument("file", metavar="FILE", help="the implementation")
    check.add_argument("--json", action="store_true", help="print the documented JSON")
    check.add_argument("--non-compute", action="store_true", help="the task only moves data")
    compare = commands.add_parser(
        "compare",
        help="compare two benchmark reports or saved runs",
        description="Compare benchmark reports of the same cases. Exit status 0: they could be "
        "compared, whatever came out; 1: anything else.",
    )
    compare_command.add_options(compare)
    options = parser.parse_args(arguments)
    if options.command == "compare":
        return compare_command.run(options)
    if options.command == "validate":
        return command.validate(options.file, as_json=options.json, non_compute=options.non_compute)
    if options.command == "benchmark":
        return _benchmark(options)
    return _verify(options)


def _add_pair_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--op_name", required=True, help="the operator: the task is <op_name>_torch.py"
    )
    parser.add_argument("--verify_dir", default=".", help="the pair's folder (default: here)")
    parser.add_argument(
        "--triton_impl_name",
        default=f"triton_{discovery.DEFAULT_VARIANT}",
        help="implementation without the operator's name (default: %(default)s)",
    )
    parser.add_argument("--device", default=None, help="auto, npu, cuda or cpu (default: auto)")


def _add_verify_options(parser: argparse.ArgumentParser) -> None:
    _add_pair_options(parser)
    parser.add_argument("--timeout", type=float, default=900, help="seconds (default: %(default)s)")
    parser.add_argument(
        "--output", help="result file (default: verify_result[_<x>].json in the folder)"
    )
    parser.add_argument("--non-compute", action="store_true", help="outputs must agree bit for bit")
    parser.add_argument("--fresh-cache", action="store_true", help="use an empty Triton cache")
    parser.add_argument("--keep-cache", action="store_true", help="with --fresh-cache: keep it")


def _add_benchmark_options(parser: argparse.ArgumentParser) -> None:
    _add_pair_options(parser)
    parser.add_argument("--warmup", type=int, default=5, help="forwards before the timed ones")
    parser.add_argument("--repeats", type=int, default=50, help="timed forwards of each side")
    parser.add_argument("--output", help="report (default: perf_result[_<x>].json in the folder)")
    parser.add_argument(
        "--skip_framework", action="store_true", help="don't run the reference for its time"
    )
    parser.add_argument(
        "--framework_latency_ms",
        type=float,
        default=0.0,
        help="with --skip_framework: the reference's latency (default: %(default)s)",
    )
    parser.add_argument(
        "--verify_not_required", action="store_true", help="don't ask for a verification"
    )
    parser.add_argument(
        "--lock-frequency",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="lock the clocks of the visible devices and watch them",
    )
    parser.add_argument(
        "--lock-frequency-fail-action",
        choices=("warn", "error"),
        default="warn",
        help="what clocks are that can't be locked, or drift (default: %(default)s)",
    )
    parser.add_argument(
        "--freq-check-interval",
        type=float,
        default=1.0,
        help="seconds between two readings of the clocks (default: %(default)s)",
    )


class _Broken(Exception):  # noqa: N818 - it ends a command with a sentence
    """A command can't be carried out; the text says why."""


def _pair_of(options: argparse.Namespace) -> discovery.Pair:
    """Return the pair that the options name.

    Raises:
        _Broken: it is not there.
    """
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
        raise _Broken(complaint)
    return pair


def _cleared(given: str | None, default: Path) -> Path:
    """Return where a file goes, with nothing there any more.

    A run that comes to nothing must not leave an earlier outcome to be read.

    Raises:
        _Broken: the old file can't be removed.
    """
    # The file itself may be a link; it is replaced, not followed.
    output = Path(given).parent.resolve() / Path(given).name if given else default
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise _Broken(f"the old {output} can't be removed: {error.strerror}") from None
    return output


def _verify(options: argparse.Namespace) -> int:
    try:
        pair = _pair_of(options)
        folder = pair.implementation.parent
        shared = names.is_shared(folder)
        output = _cleared(options.output, names.verify_result(pair, shared_folder=shared))
    except _Broken as complaint:
        print(f"verify: {complaint}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    ended = _run_pytest(_pytest_options(options, folder, output), folder)
    return 0 if _say_outcome(output, ended.status) else 1


def _benchmark(options: argparse.Namespace) -> int:
    try:
        pair = _pair_of(options)
        folder = pair.implementation.parent
        shared = names.is_shared(folder)
        output = _cleared(options.output, names.perf_result(pair, shared_folder=shared))
    except _Broken as complaint:
        print(f"benchmark: {complaint}", file=sys.stderr)  # noqa: T201 - a command
        return 1
    chosen = [*_common_options(options, folder), *_measuring_options(options, output)]
    ended = _run_pytest(chosen, folder)
    if ended.status == benchmark_items.REFUSED and not ended.interrupted:
        return ended.status
    return benchmark_command.conclude(output, ended.status)


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


class _Ended(NamedTuple):
    """How a run of pytest ended: its exit status, and whether Ctrl-C made it end."""

    status: int
    interrupted: bool


def _run_pytest(options: Sequence[str], folder: Path) -> _Ended:
    """Run pytest in a process of its own, one that ends with this one."""
    process = subprocess.Popen(
        [sys.executable, "-c", _PYTEST, *options],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        # A terminal's Ctrl-C comes here alone and is handed on once: a second one would keep
        # pytest from writing down what did not run.
        start_new_session=True,
        preexec_fn=functools.partial(processes.die_with_parent, os.getpid()),  # noqa: PLW1509 - no threads here
    )
    interrupted = False
    while True:
        try:
            return _Ended(process.wait(), interrupted)
        except KeyboardInterrupt:
            interrupted = True
            process.send_signal(signal.SIGINT)


def _common_options(options: argparse.Namespace, folder: Path) -> list[str]:
    """Return pytest's options for a run about the pair in a folder, and nothing else."""
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
        "--log-cli-level=INFO",
        "--log-cli-format=%(message)s",
        "--show-capture=no",
    ]
    if options.device:
        chosen.append(f"--verify-device={options.device}")
    return chosen


def _pytest_options(options: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    chosen = [
        *_common_options(options, folder),
        f"--verify-timeout={options.timeout}",
        f"--verify-output={output}",
    ]
    switches = ("non_compute", "fresh_cache", "keep_cache")
    chosen += [f"--verify-{n.replace('_', '-')}" for n in switches if getattr(options, n)]
    return chosen


def _measuring_options(options: argparse.Namespace, output: Path) -> list[str]:
    lock = "lock" if options.lock_frequency else "no-lock"
    chosen = [
        "--verify-benchmark",
        "-m",
        "verify_benchmark",
        f"--verify-perf-output={output}",
        f"--verify-bench-warmup={options.warmup}",
        f"--verify-bench-repeats={options.repeats}",
        f"--verify-{lock}-frequency",
        f"--verify-lock-frequency-fail-action={options.lock_frequency_fail_action}",
        f"--verify-freq-check-interval={options.freq_check_interval}",
    ]
    if options.skip_framework:
        chosen += [
            "--verify-skip-framework",
            f"--verify-framework-latency-ms={options.framework_latency_ms}",
        ]
    if options.verify_not_required:
        chosen.append("--verify-not-required")
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
