"""The option names of the drop-in commands: those of the scripts."""

from __future__ import annotations

import argparse

from pytest_tritonverify import discovery


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


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    """Define the options of `verify`."""
    _add_pair_options(parser)
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


def add_benchmark_options(parser: argparse.ArgumentParser) -> None:
    """Define the options of `benchmark`."""
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
