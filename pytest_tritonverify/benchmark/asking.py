"""What a user asks of benchmarks: the values of the options, checked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from pytest_tritonverify.benchmark import options
from pytest_tritonverify.benchmark.measurement import MAX_SAMPLES, FailAction, PerfSettings

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.given import Given

_DEFAULTS = PerfSettings()


@dataclass(frozen=True, kw_only=True)
class BenchmarkWishes:
    """How a run is to measure.

    Attributes:
        perf: how each case is measured.
        output: where the report of the only pair goes, instead of beside it.
        save: keep the reports; a name for them, or an empty text.
        compare: compare with what was kept: an id, a path, or an empty text for the last one.
    """

    perf: PerfSettings = field(default_factory=PerfSettings)
    output: Path | None = None
    save: str | None = None
    compare: str | None = None

    @classmethod
    def load(cls, given: Given) -> BenchmarkWishes:
        """Read the wishes.

        Raises:
            ValueError: a value is impossible; the text is for the user.
        """
        return cls(
            perf=_perf(given),
            output=given.file("perf_output"),
            save=given.option("verify_save"),
            compare=given.option("verify_compare"),
        )


def _perf(given: Given) -> PerfSettings:
    action = given("lock-frequency-fail-action") or _DEFAULTS.lock_frequency_fail_action
    if action not in options.FAIL_ACTIONS:
        raise ValueError(f"verify_lock_frequency_fail_action: {action!r} is neither warn nor error")
    latency = _number(given, "framework-latency-ms", None, least=0.0)
    skip = bool(given("skip-framework"))
    if latency is not None and not skip:
        raise ValueError("--verify-framework-latency-ms takes effect with --verify-skip-framework")
    interval = _number(given, "freq-check-interval", _DEFAULTS.freq_check_interval, least=0.0)
    if not interval:
        raise ValueError("--verify-freq-check-interval: 0 is no time between two readings")
    lock = given("lock-frequency")
    return PerfSettings(
        warmup=_count(given, "bench-warmup", _DEFAULTS.warmup, least=0),
        repeats=_count(given, "bench-repeats", _DEFAULTS.repeats, least=1),
        skip_framework=skip,
        framework_latency_ms=latency,
        lock_frequency=_DEFAULTS.lock_frequency if lock in (None, "") else bool(lock),
        lock_frequency_fail_action=cast("FailAction", action),
        freq_check_interval=interval,
        not_required=bool(given("not-required")),
    )


def _count(given: Given, name: str, default: int, *, least: int) -> int:
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


def _number(given: Given, name: str, default: float | None, *, least: float) -> float | None:
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
