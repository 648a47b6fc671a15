"""The drop-in commands. They take the scripts' own option names and run pytest underneath."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import discovery
from pytest_tritonverify.results import names

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run a command and return its exit status."""
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
    options = parser.parse_args(arguments)
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
    parser.add_argument("--fresh-cache", action="store_true", help="use an empty Triton cache")
    parser.add_argument("--keep-cache", action="store_true", help="with --fresh-cache: keep it")
    parser.add_argument("--device", default=None, help="auto, npu, cuda or cpu (default: auto)")


def _verify(options: argparse.Namespace) -> int:
    folder = Path(options.verify_dir).resolve()
    implementation = folder / f"{options.op_name}_{options.triton_impl_name}.py"
    task = folder / f"{options.op_name}{discovery.TASK_SUFFIX}.py"
    for path in (folder, task, implementation):
        if not path.exists():
            print(f"verify: there is no {path}", file=sys.stderr)  # noqa: T201 - a command
            return 1
    pair = discovery.Pair(
        options.op_name, options.triton_impl_name.removeprefix("triton_"), task, implementation
    )
    shared = names.is_shared(folder)
    output = (
        Path(options.output).absolute()
        if options.output
        else names.verify_result(pair, shared_folder=shared)
    )
    command = [sys.executable, "-m", "pytest", *_pytest_options(options, folder, output)]
    # A process of its own: pytest.main() in this one would see this command's modules and path.
    status = subprocess.run(command, check=False, cwd=folder).returncode
    _say_outcome(output)
    return 0 if status == 0 else 1


def _pytest_options(options: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    chosen = [
        f"--verify-dir={folder}",
        f"--rootdir={folder}",
        # The folder belongs to a candidate: nothing in it, or above it, configures this run.
        "--override-ini=addopts=",
        "-c",
        os.devnull,
        "-p",
        "no:cacheprovider",
        f"--verify-op={_literal(options.op_name)}",
        f"--verify-impl={_literal(options.triton_impl_name)}",
        f"--verify-timeout={options.timeout:g}",
        f"--verify-output={output}",
        "--log-cli-level=INFO",
        "--log-cli-format=%(message)s",
        "--show-capture=no",
    ]
    if options.device:
        chosen.append(f"--verify-device={options.device}")
    switches = ("non_compute", "fresh_cache", "keep_cache")
    chosen += [f"--verify-{n.replace('_', '-')}" for n in switches if getattr(options, n)]
    return chosen


def _literal(name: str) -> str:
    """Return a pattern that matches a name and nothing else."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def _say_outcome(output: Path) -> None:
    """Print the documented last line."""
    try:
        result: dict[str, Any] = json.loads(output.read_text("utf-8"))
        total, passed, failed = (result[f"{name}_cases"] for name in ("total", "passed", "failed"))
    except (OSError, ValueError, KeyError, TypeError):
        print("验证失败：没有写出结果文件")  # noqa: T201 - a command
        return
    if passed == total > 0:
        print(f"验证成功：共 {total} 组测试用例全部通过")  # noqa: T201 - a command
    else:
        print(f"验证失败：{passed}/{total} 组通过，{failed} 组失败（详见 {output}）")  # noqa: T201 - a command
