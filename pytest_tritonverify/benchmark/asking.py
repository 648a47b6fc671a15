"""What a user asks of benchmarks: the options, and their values checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from pytest_tritonverify.benchmark.measurement import MAX_SAMPLES, FailAction, PerfSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SPELLING, OPTION = "--benchmark", "--verify-benchmark"
FAIL_ACTIONS = ("warn", "error")
_DEFAULTS = PerfSettings()

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
    ("bench-warmup", f"Forwards before the timed ones (default {_DEFAULTS.warmup})", "N"),
    ("bench-repeats", f"Timed forwards of each side (default {_DEFAULTS.repeats})", "N"),
    ("perf-output", "Where the benchmark report of a single pair goes", "PATH"),
    (
        "framework-latency-ms",
        "With --verify-skip-framework: the reference's latency in every case",
        "MS",
    ),
    (
        "freq-check-interval",
        f"Seconds between two readings of the clocks (default {_DEFAULTS.freq_check_interval:g})",
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
            f"--verify-{name}", dest=_dest(name), action="store_const", const=True, help=text
        )
        parser.addini(_dest(name), text, type="bool", default=False)
    for name, text, metavar in VALUES:
        group.addoption(f"--verify-{name}", dest=_dest(name), metavar=metavar, help=text)
        parser.addini(_dest(name), f"As --verify-{name}", default="")
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
    parser.addini(lock, text, type="bool", default=_DEFAULTS.lock_frequency)
    action = "lock-frequency-fail-action"
    group.addoption(
        f"--verify-{action}",
        dest=_dest(action),
        choices=FAIL_ACTIONS,
        help="Benchmark: what clocks are that can't be locked, or drift: warn (default) or error",
    )
    parser.addini(_dest(action), f"As --verify-{action}", default="")
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


def _dest(name: str) -> str:
    return f"verify_{name.replace('-', '_')}"


def translated(arguments: list[str]) -> list[str]:
    """Return a command line with the short spelling written out."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return [OPTION if word == SPELLING and i < end else word for i, word in enumerate(arguments)]


@dataclass(frozen=True, kw_only=True)
class BenchmarkWishes:
    """What a run is to do about benchmarks.

    Attributes:
        wanted: whether cases are measured at all.
        perf: how.
        output: where the report of the only pair goes, instead of beside it.
        save: keep the reports; a name for them, or an empty text.
        compare: compare with what was kept: an id, a path, or an empty text for the last one.
    """

    wanted: bool = False
    perf: PerfSettings = field(default_factory=PerfSettings)
    output: Path | None = None
    save: str | None = None
    compare: str | None = None

    @classmethod
    def load(
        cls,
        option: Callable[[str], Any],
        ini: Callable[[str], Any],
        cwd: Path,
        ini_folder: Path,
    ) -> BenchmarkWishes:
        """Read the wishes; the arguments are those of `Settings.load`.

        Raises:
            ValueError: a value is impossible; the text is for the user.
        """

        def given(name: str) -> Any:
            value = option(_dest(name))
            return ini(_dest(name)) if value is None else value

        output = option("verify_perf_output")
        if not output and ini("verify_perf_output"):
            output = ini_folder / ini("verify_perf_output")
        return cls(
            wanted=bool(given("benchmark")),
            perf=_perf(given),
            output=(cwd / output).absolute() if output else None,
            save=option("verify_save"),
            compare=option("verify_compare"),
        )


def _perf(given: Callable[[str], Any]) -> PerfSettings:
    action = given("lock-frequency-fail-action") or _DEFAULTS.lock_frequency_fail_action
    if action not in FAIL_ACTIONS:
        raise ValueError(f"verify_lock_frequency_fail_action: {action!r} is neither warn nor error")
    latency = _number(given, "framework-latency-ms", None, least=0.0)
    skip = bool(given("skip-framework"))
    if latency is not None and not skip:
        raise ValueError("--verify-framework-latency-ms takes effect with --verify-skip-framework")
    interval = _number(given, "freq-check-interval", _DEFAULTS.freq_check_interval, least=0.0)
    if not interval:
        raise ValueError("--verify-freq-check-interval: 0 is no time between two readings")
    return PerfSettings(
        warmup=_count(given, "bench-warmup", _DEFAULTS.warmup, least=0),
        repeats=_count(given, "bench-repeats", _DEFAULTS.repeats, least=1),
        skip_framework=skip,
        framework_latency_ms=latency,
        lock_frequency=bool(given("lock-frequency")),
        lock_frequency_fail_action=cast("FailAction", action),
        freq_check_interval=interval,
        not_required=bool(given("not-required")),
    )


def _count(given: Callable[[str], Any], name: str, default: int, *, least: int) -> int:
    value = given(name)
    if value in (None, ""):
        return default
    try:
        count = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"--verify-{name}: {value!r} is no whole number") from None
    if not least <= count <= MAX_SAMPLES:
        raise ValueError(f"--verify-{name}: {value!r} is not between {least} and {MAX_SAMPLES}")
    return count


def _number(
    given: Callable[[str], Any], name: str, default: float | None, *, least: float
) -> float | None:
    value = given(name)
    if value in (None, ""):
        return default
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"--verify-{name}: {value!r} is no number") from None
    # Endless latencies are refused, too: every speed-up would be infinite.
    if not least <= number < math.inf:
        raise ValueError(f"--verify-{name}: {value!r} is no number from {least:g} on")
    return number
