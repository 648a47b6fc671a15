"""The drop-in commands. They take the scripts' own option names and run pytest underneath."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import discovery
from pytest_tritonverify.benchmark import command as benchmark_command
from pytest_tritonverify.benchmark import compare_command
from pytest_tritonverify.benchmark import items as benchmark_items
from pytest_tritonverify.cli_options import add_benchmark_options, add_verify_options
from pytest_tritonverify.cli_pytest import measuring_options, run_pytest, verifying_options
from pytest_tritonverify.degeneration import command
from pytest_tritonverify.html_report import command as html_command
from pytest_tritonverify.results import names
from pytest_tritonverify.workflow import command as workflow_command

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
    add_verify_options(verify)
    measure = commands.add_parser(
        "benchmark",
        help="measure one pair that is verified, and write its perf_result.json",
        description="Measure one pair. Exit status 0: it was measured, whether or not every case "
        "worked; 1: something broke; 2: refused, since the pair is not verified.",
    )
    add_benchmark_options(measure)
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
    workflow_command.register(commands)
    html_command.register(commands)
    options = parser.parse_args(arguments)
    if hasattr(options, "run"):
        return workflow_command.run(options)
    if options.command == "compare":
        return compare_command.run(options)
    if options.command == "validate":
        return command.validate(options.file, as_json=options.json, non_compute=options.non_compute)
    try:
        return _benchmark(options) if options.command == "benchmark" else _verify(options)
    except _Broken as complaint:
        print(f"{options.command}: {complaint}", file=sys.stderr)
        return 1


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


def _places(options: argparse.Namespace, default: Callable[..., Path]) -> tuple[Path, Path]:
    """Return the pair's folder, and where the file about it goes.

    Raises:
        _Broken: the pair is not there, or an old file can't be removed.
    """
    pair = _pair_of(options)
    folder = pair.implementation.parent
    output = default(pair, shared_folder=names.is_shared(folder))
    return folder, _cleared(options.output, output)


def _verify(options: argparse.Namespace) -> int:
    folder, output = _places(options, names.verify_result)
    ended = run_pytest(verifying_options(options, folder, output), folder)
    return 0 if _say_outcome(output, ended.status) else 1


def _benchmark(options: argparse.Namespace) -> int:
    folder, output = _places(options, names.perf_result)
    ended = run_pytest(measuring_options(options, folder, output), folder)
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


def _say_outcome(output: Path, status: int) -> bool:
    """Print the documented last line; return whether every case has passed."""
    try:
        result: dict[str, Any] = json.loads(output.read_text("utf-8"))
        total, passed, failed = (result[f"{name}_cases"] for name in ("total", "passed", "failed"))
    except (OSError, ValueError, KeyError, TypeError):
        line = f"验证失败：没有写出结果文件（pytest 退出码 {status}）"
    else:
        if status == 0 and passed == total > 0:
            print(f"验证成功：共 {total} 组测试用例全部通过")
            return True
        line = f"验证失败：{passed}/{total} 组通过，{failed} 组失败（详见 {output}）"
        if passed == total > 0:
            line = f"验证失败：运行没有正常结束（pytest 退出码 {status}）"
    print(line)
    return False
