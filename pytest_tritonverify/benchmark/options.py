"""The options of benchmarks. Every pytest run imports this module, so it imports nothing."""

from __future__ import annotations

from typing import Any

SPELLING, OPTION = "--benchmark", "--verify-benchmark"
FAIL_ACTIONS = ("warn", "error")

# name, help; each is a switch, and has an ini value `verify_<name>`.
SWITCHES = (
    (
        "benchmark",
        (
            "Measure the cases of pairs that pass, against their references; --benchmark is short "
            "for it in runs that concern this plugin"
        ),
    ),
    ("skip-framework", "Benchmark: don't run the reference for its time"),
    ("not-required", "Benchmark: measure without asking for a verification that passed"),
)
# name, help, metavar; each has an ini value that is the same text.
VALUES = (
    ("bench-warmup", "Forwards before the timed ones (default 5)", "N"),
    ("bench-repeats", "Timed forwards of each side (default 50)", "N"),
    ("perf-output", "Where the benchmark report of a single pair goes", "PATH"),
    (
        "framework-latency-ms",
        "With --verify-skip-framework: the reference's latency in every case",
        "MS",
    ),
    (
        "freq-check-interval",
        "Seconds between two readings of the clocks (default 1)",
        "SECONDS",
    ),
)


def add_options(group: Any, parser: Any) -> None:
    """Define the options and ini values of benchmarks.

    Args:
        group: pytest's group of options.
        parser: pytest's parser.
    """
    for name, text in SWITCHES:
        group.addoption(
            f"--verify-{name}", dest=dest_of(name), action="store_const", const=True, help=text
        )
        parser.addini(dest_of(name), text, type="bool", default=False)
    for name, text, metavar in VALUES:
        group.addoption(f"--verify-{name}", dest=dest_of(name), metavar=metavar, help=text)
        parser.addini(dest_of(name), f"As --verify-{name}", default="")
    lock = "verify_lock_frequency"
    text = "Benchmark: lock the clocks of the visible devices and watch them (default)"
    group.addoption(
        "--verify-lock-frequency", dest=lock, action="store_const", const=True, help=text
    )
    group.addoption(
        "--verify-no-lock-frequency",
        dest=lock,
        action="store_const",
        const=False,
        help="Benchmark: leave the clocks alone",
    )
    parser.addini(lock, text, type="bool", default=True)
    action = "lock-frequency-fail-action"
    group.addoption(
        f"--verify-{action}",
        dest=dest_of(action),
        choices=FAIL_ACTIONS,
        help="Benchmark: what clocks are that can't be locked, or drift: warn (default) or error",
    )
    parser.addini(dest_of(action), f"As --verify-{action}", default="")
    _add_history_options(group)


def _add_history_options(group: Any) -> None:
    group.addoption(
        "--verify-save",
        dest="verify_save",
        nargs="?",
        const="",
        metavar="NAME",
        help="Benchmark: keep the reports for later comparison, under a name if one is given",
    )
    group.addoption(
        "--verify-compare",
        dest="verify_compare",
        nargs="?",
        const="",
        metavar="ID|PATH",
        help="Benchmark: compare with a report that was kept, by default the last one",
    )


def dest_of(name: str) -> str:
    """Return the name under which an option's value is kept; also that of its ini value."""
    return f"verify_{name.replace('-', '_')}"


def translated(arguments: list[str]) -> list[str]:
    """Return a command line with the short spelling written out."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [OPTION if word == SPELLING and i < end else word for i, word in enumerate(arguments)]
