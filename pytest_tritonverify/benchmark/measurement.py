"""What was measured, as plain data that any process can carry.

Workers measure, the judge draws conclusions. What a worker says may come from a process that runs
untrusted code, so the `from_json` methods believe nothing: a value of the wrong type raises
`MeasurementError`. Numbers may be non-finite or negative: that is for the classification to judge.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = Any
Method = Literal["npu_profiler", "cuda_profiler", "cuda_events", "cpu_wall_clock", "given", "none"]
PROFILED: tuple[Method, ...] = ("npu_profiler", "cuda_profiler")
"""Methods that run the timed forwards a second time, under a profiler."""

Status = Literal["pass", "fail"]
FailAction = Literal["warn", "error"]

PASSED: Literal["pass"] = "pass"
FAILED: Literal["fail"] = "fail"

MAX_SAMPLES = 1_000_000
"""Samples of one side that are taken in; a worker that sends more is not believed."""

MAX_OPERATORS = 10_000
"""Kernel names of one side that are taken in."""


class MeasurementError(ValueError):
    """Data that describes no measurement; the text says which field, and what it holds."""


@dataclass(frozen=True, kw_only=True)
class SideMeasurement:
    """One side (reference or implementation) of one case.

    Attributes:
        latency_ms: milliseconds of one forward, the arithmetic mean over all timed forwards: the
            documented `avg_latency_ms`. None: not measured, and `reason` says why. 0.0: measured,
            and below the clock's resolution.
        method: how the time was taken. `npu_profiler` and `cuda_profiler`: the device time of all
            kernels of a forward, summed. `cuda_events`: events around a forward, where the
            profiler sees no kernels. `cpu_wall_clock`: the host's clock around it. `given`:
            the user named it. `none`: not at all.
        reason: why there is no latency; None where there is one.
        samples_ms: milliseconds of each timed forward, in the order in which they ran; empty where
            only the mean is known.
        operators: milliseconds per forward by kernel name; the sum is about `latency_ms`.
        launches_per_forward: kernels that ran on the device for one forward, on average.
        peak_memory_mb: most memory that was allocated on the device during a forward, in MiB
            (2**20 bytes), inputs and weights included, in the side's own process.
        cross_check_ms: milliseconds of one forward by an independent clock: events around it, or
            the judge's clock as an upper bound. None: there was none.
        notes: what a reader ought to know, in sentences.
    """

    latency_ms: float | None = None
    method: Method = "none"
    reason: str | None = None
    samples_ms: tuple[float, ...] = ()
    operators: Mapping[str, float] = field(default_factory=dict)
    launches_per_forward: float | None = None
    peak_memory_mb: float | None = None
    cross_check_ms: float | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def missing(cls, reason: str) -> SideMeasurement:
        """Return a side that was not measured."""
        return cls(reason=reason)

    @classmethod
    def given(cls, latency_ms: float) -> SideMeasurement:
        """Return a side whose latency the user named, in milliseconds."""
        return cls(latency_ms=latency_ms, method="given")

    def to_json(self) -> dict[str, Json]:
        """Return the measurement as builtins."""
        return {
            "latency_ms": self.latency_ms,
            "method": self.method,
            "reason": self.reason,
            "samples_ms": list(self.samples_ms),
            "operators": dict(self.operators),
            "launches_per_forward": self.launches_per_forward,
            "peak_memory_mb": self.peak_memory_mb,
            "cross_check_ms": self.cross_check_ms,
            "notes": list(self.notes),
        }

    @classmethod
    def from_json(cls, data: Json) -> SideMeasurement:
        """Rebuild a measurement that travelled as builtins.

        Raises:
            MeasurementError: it is none.
        """
        read = _Reader(data, "measurement of a side", cls)
        method = read.text("method")
        if method not in get_args(Method):
            raise MeasurementError(f"`method` is none of {', '.join(get_args(Method))}: {method!r}")
        return cls(
            latency_ms=read.number_or_none("latency_ms"),
            method=cast("Method", method),
            reason=read.text_or_none("reason"),
            samples_ms=read.numbers("samples_ms"),
            operators=read.numbers_by_name("operators"),
            launches_per_forward=read.number_or_none("launches_per_forward"),
            peak_memory_mb=read.number_or_none("peak_memory_mb"),
            cross_check_ms=read.number_or_none("cross_check_ms"),
            notes=read.texts("notes"),
        )


@dataclass(frozen=True, kw_only=True)
class CaseMeasurement:
    """Both sides of one case.

    Attributes:
        case_idx: number of the case, from 1.
        input_desc: descriptions of its inputs, as in the verification's result.
        framework: the reference's side; None where it never got that far.
        implementation: the implementation's side; None where it never got that far.
        status: `pass`: it ran, and its outputs were still right after the timed loop, whether or
            not a time came out of it. `fail`: anything else.
        error_type: name of the failure.
        error_msg: the failure for people; its first line says it all.
        warnings: `{"code", "message"}` entries.
        name: the item's name, `benchmark<k>-<dtype>-<shape>`.
        seconds: wall time of the whole measurement.
    """

    case_idx: int
    input_desc: list[Json] = field(default_factory=list)
    framework: SideMeasurement | None = None
    implementation: SideMeasurement | None = None
    status: Status = PASSED
    error_type: str | None = None
    error_msg: str | None = None
    warnings: tuple[Mapping[str, str], ...] = ()
    name: str = ""
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether the case counts as passed."""
        return self.status == PASSED

    def to_json(self) -> dict[str, Json]:
        """Return the measurement as builtins."""
        return {
            "case_idx": self.case_idx,
            "input_desc": self.input_desc,
            "framework": self.framework.to_json() if self.framework else None,
            "implementation": self.implementation.to_json() if self.implementation else None,
            "status": self.status,
            "error_type": self.error_type,
            "error_msg": self.error_msg,
            "warnings": [dict(warning) for warning in self.warnings],
            "name": self.name,
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Json) -> CaseMeasurement:
        """Rebuild a measurement that travelled as builtins.

        Raises:
            MeasurementError: it is none.
        """
        read = _Reader(data, "measurement of a case", cls)
        status, case_idx = read.text("status"), read.value("case_idx")
        if status not in get_args(Status):
            raise MeasurementError(f"`status` is neither pass nor fail: {status!r}")
        if type(case_idx) is not int or case_idx < 1:
            raise MeasurementError(f"`case_idx` is no number from 1: {case_idx!r}")
        framework, implementation = read.value("framework"), read.value("implementation")
        return cls(
            case_idx=case_idx,
            input_desc=list(read.items("input_desc", MAX_OPERATORS)),
            framework=None if framework is None else SideMeasurement.from_json(framework),
            implementation=(
                None if implementation is None else SideMeasurement.from_json(implementation)
            ),
            status=cast("Status", status),
            error_type=read.text_or_none("error_type"),
            error_msg=read.text_or_none("error_msg"),
            warnings=read.warnings("warnings"),
            name=read.text("name"),
            seconds=read.number("seconds"),
        )


@dataclass(frozen=True, kw_only=True)
class PerfSettings:
    """How a benchmark is to be made.

    Attributes:
        warmup: forwards before the timed ones, of each side and case.
        repeats: timed forwards of each side and case.
        skip_framework: don't run the reference for its time.
        framework_latency_ms: the reference's latency in milliseconds, for every case, where it is
            not run for it. None: not known, so there is no speed-up.
        lock_frequency: lock the clocks of the visible devices and watch them.
        lock_frequency_fail_action: what a failing lock or a drifting clock is: `warn` or `error`.
        freq_check_interval: seconds between two readings of the clocks.
        not_required: measure without asking for a verification that passed.
    """

    warmup: int = 5
    repeats: int = 50
    skip_framework: bool = False
    framework_latency_ms: float | None = None
    lock_frequency: bool = True
    lock_frequency_fail_action: FailAction = "warn"
    freq_check_interval: float = 1.0
    not_required: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the settings as builtins."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Json]) -> PerfSettings:
        """Rebuild settings that travelled as builtins, from a process of ours."""
        return cls(**data)


class _Reader:
    """Fields of a JSON object, each checked as it is taken."""

    def __init__(self, data: Json, what: str, of: type[SideMeasurement | CaseMeasurement]) -> None:
        if not isinstance(data, dict):
            raise MeasurementError(f"a {what} is an object, not {type(data).__name__}")
        known = {each.name for each in dataclasses.fields(of)}
        unknown = sorted(str(name) for name in data if name not in known)
        if unknown:
            raise MeasurementError(f"a {what} has no field {', '.join(unknown)[:200]}")
        self._data, self._what = data, what

    def value(self, name: str) -> Json:
        try:
            return self._data[name]
        except KeyError:
            raise MeasurementError(f"a {self._what} needs the field `{name}`") from None

    def text(self, name: str) -> str:
        return self._text(name, self.value(name))

    def text_or_none(self, name: str) -> str | None:
        value = self.value(name)
        return None if value is None else self._text(name, value)

    def number(self, name: str) -> float:
        return self._number(name, self.value(name))

    def number_or_none(self, name: str) -> float | None:
        value = self.value(name)
        return None if value is None else self._number(name, value)

    def items(self, name: str, limit: int) -> list[Json] | tuple[Json, ...]:
        value = self.value(name)
        if not isinstance(value, (list, tuple)):
            raise MeasurementError(f"`{name}` is a list, not {type(value).__name__}")
        if len(value) > limit:
            raise MeasurementError(f"`{name}` has {len(value)} entries; at most {limit} are read")
        return value

    def numbers(self, name: str) -> tuple[float, ...]:
        return tuple(self._number(name, value) for value in self.items(name, MAX_SAMPLES))

    def texts(self, name: str) -> tuple[str, ...]:
        return tuple(self._text(name, value) for value in self.items(name, MAX_OPERATORS))

    def numbers_by_name(self, name: str) -> dict[str, float]:
        value = self.value(name)
        if not isinstance(value, dict):
            raise MeasurementError(f"`{name}` is an object, not {type(value).__name__}")
        if len(value) > MAX_OPERATORS:
            raise MeasurementError(
                f"`{name}` has {len(value)} entries; at most {MAX_OPERATORS} are read"
            )
        return {self._text(name, key): self._number(name, item) for key, item in value.items()}

    def warnings(self, name: str) -> tuple[dict[str, str], ...]:
        return tuple(self._warning(name, entry) for entry in self.items(name, MAX_OPERATORS))

    def _warning(self, name: str, entry: Json) -> dict[str, str]:
        if not isinstance(entry, dict) or set(entry) != {"code", "message"}:
            raise MeasurementError(f"an entry of `{name}` has a code and a message, and no more")
        return {key: self._text(name, entry[key]) for key in ("code", "message")}

    @staticmethod
    def _text(name: str, value: Json) -> str:
        if not isinstance(value, str):
            raise MeasurementError(f"`{name}` is a text, not {type(value).__name__}")
        return value

    @staticmethod
    def _number(name: str, value: Json) -> float:
        # True is an int to Python, and no time.
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise MeasurementError(f"`{name}` is a number, not {type(value).__name__}")
        try:
            return float(value)
        except OverflowError:
            raise MeasurementError(f"`{name}` is too large a number") from None
