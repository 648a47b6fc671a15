"""Runs of pytest underneath the drop-in commands: their options, and their processes."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from pytest_tritonverify.execution import processes

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence
    from pathlib import Path

# `python -m pytest` would find a `pytest.py` or `torch.py` of the folder that it is started in.
_PYTEST = (
    "import sys; sys.path[:] = [entry for entry in sys.path if entry]; sys.argv[0] = 'pytest'; "
    "import pytest; sys.exit(pytest.main())"
)


class Ended(NamedTuple):
    """How a run of pytest ended: its exit status, and whether Ctrl-C made it end."""

    status: int
    interrupted: bool


def run_pytest(options: Sequence[str], folder: Path) -> Ended:
    """Run pytest in a process of its own, one that ends with this one."""
    process: subprocess.Popen[bytes] | None = None

    def hand_on(number: int, _frame: object) -> None:
        # Dying at once would take pytest along before it has written anything down.
        if process is None:
            raise SystemExit(128 + number)
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, hand_on)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", _PYTEST, *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            # A terminal's Ctrl-C comes here alone and is handed on once: a second one would keep
            # pytest from writing down what did not run.
            start_new_session=True,
            preexec_fn=functools.partial(processes.die_with_parent, os.getpid()),  # noqa: PLW1509 - no threads here
        )
        return _waited_for(process)
    finally:
        signal.signal(signal.SIGTERM, before)


def _waited_for(process: subprocess.Popen[bytes]) -> Ended:
    interrupted = False
    while True:
        try:
            return Ended(process.wait(), interrupted)
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


def verifying_options(options: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    """Return pytest's options for `verify`.

    Args:
        options: the command's.
        folder: the pair's folder.
        output: where the result goes.
    """
    chosen = [
        *_common_options(options, folder),
        f"--verify-timeout={options.timeout}",
        f"--verify-output={output}",
    ]
    switches = ("non_compute", "exact_int", "fresh_cache", "keep_cache")
    chosen += [f"--verify-{n.replace('_', '-')}" for n in switches if getattr(options, n)]
    return chosen


def measuring_options(options: argparse.Namespace, folder: Path, output: Path) -> list[str]:
    """Return pytest's options for `benchmark`; the arguments are those of `verifying_options`."""
    lock = "lock" if options.lock_frequency else "no-lock"
    chosen = [
        *_common_options(options, folder),
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
