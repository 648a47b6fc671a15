"""What is known about one case of a pair, as plain data that any process can carry."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
Status = Literal["passed", "failed"]
CheckStatus = Literal["passed", "failed", "warned", "skipped"]

PASSED: Literal["passed"] = "passed"
FAILED: Literal["failed"] = "failed"
# The policy lets it pass in spite of what was found.
WARNED: Literal["warned"] = "warned"
SKIPPED: Literal["skipped"] = "skipped"

# Names of failures that are no exceptions of user code.
NOT_RUN = "NotRun"
TIMEOUT = "VerifyTimeout"
CRASH = "WorkerCrash"
NOT_OBSERVED = "NotObserved"
FLAKY = "FlakyCase"
NONDETERMINISM = "NonDeterminism"
SOURCE_CHANGED = "SourceChanged"
FALLBACK = "PyTorchFallback"


def fallback_message(regression_type: int | None, text: str) -> str:
    """Return the documented message of a kernel that is not what it seems.

    Args:
        regression_type: 1 to 4 as documented; None where the code can't be read at all.
        text: what was found; the first line says it all.
    """
    return text if regression_type is None else f"A-{FALLBACK}-Type{regression_type}: {text}"


@dataclass(frozen=True, kw_only=True)
class CaseRecord:
    """The outcome of one case.

    Attributes:
        case_idx: number of the case, from 1.
        name: the item's name, `case<k>-<dtype>-<shape>`.
        status: "passed" or "failed".
        input_desc: descriptions of the inputs.
        seconds: wall time of the whole case.
        golden_device: where the golden was computed; None when it was not.
        side: whose failure it is: "implementation", "reference" or "verifier".
        phase: what the failing process was doing.
        error_type: name of the failure.
        error_msg: the failure for people; its first line says it all.
        metrics: figures of the first failing output, or of the first output.
        outputs: one entry for each judged output.
        warnings: `{"code", "message"}` entries.
        file, line: where in the user's code it failed.
        output: the end of what the implementation's process printed.
        configurations: what ran of autotuned kernels.
        standin: the `kind` of device that was stood in for, and what was `used` of it.
        flaky: it failed before it passed.
        golden_precision: what the golden was computed in: "own" is the reference's own precision.
        stress: how often and how much repeated runs failed and differed; None without any.
        trials: how often the case failed on inputs from other seeds; None without any.
    """

    case_idx: int
    name: str
    status: Status
    input_desc: list[Json] = field(default_factory=list)
    seconds: float = 0.0
    golden_device: str | None = None
    side: str | None = None
    phase: str | None = None
    error_type: str | None = None
    error_msg: str | None = None
    metrics: dict[str, Json] | None = None
    outputs: list[Json] = field(default_factory=list)
    warnings: list[dict[str, str]] = field(default_factory=list)
    file: str | None = None
    line: int | None = None
    output: str = ""
    configurations: list[Json] = field(default_factory=list)
    standin: dict[str, Json] | None = None
    flaky: bool = False
    golden_precision: str | None = None
    stress: dict[str, Json] | None = None
    trials: dict[str, Json] | None = None

    @property
    def passed(self) -> bool:
        """Whether the case counts as passed: a pass after a failure does not."""
        return self.status == PASSED and not self.flaky

    def to_json(self) -> dict[str, Json]:
        """Return the record as builtins."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Json]) -> CaseRecord:
        """Rebuild a record that travelled as builtins."""
        return cls(**data)

    @classmethod
    def not_run(cls, case_idx: int, name: str, input_desc: list[Json], reason: str) -> CaseRecord:
        """Return the record of a case that was kept from running."""
        return cls(
            case_idx=case_idx,
            name=name,
            status=FAILED,
            input_desc=input_desc,
            side="verifier",
            error_type=NOT_RUN,
            error_msg=f"{NOT_RUN}: {reason}",
        )

    @classmethod
    def refused(
        cls, case_idx: int, name: str, input_desc: list[Json], check: CheckRecord
    ) -> CaseRecord:
        """Return the record of a case that a check of the code keeps from running."""
        return cls(
            case_idx=case_idx,
            name=name,
            status=FAILED,
            input_desc=input_desc,
            side="implementation",
            phase=check.name,
            error_type=check.error_type,
            error_msg=check.message,
            file=check.file,
            line=check.line,
        )


@dataclass(frozen=True, kw_only=True)
class CheckRecord:
    """The outcome of a check that concerns a pair as a whole.

    Attributes:
        name: the item's name.
        status: "failed" only where the policy makes it so; "warned" otherwise.
        seconds: wall time.
        regression_type: the documented type of degeneration, 1 to 4.
        error_type: name of the failure.
        message: the failure for people; its first line says it all.
        file, line: where in the user's code.
        report: everything that was found, for the result file.
    """

    name: str
    status: CheckStatus
    seconds: float = 0.0
    regression_type: int | None = None
    error_type: str | None = None
    message: str | None = None
    file: str | None = None
    line: int | None = None
    report: Json = None

    @property
    def passed(self) -> bool:
        """Whether the pair may pass."""
        return self.status != FAILED

    @classmethod
    def passed_over(cls, name: str, refusal: CheckRecord) -> CheckRecord:
        """Return the record of a check that another one has made needless."""
        first = (refusal.message or "").partition("\n")[0]
        text = f"not run, since the check `{refusal.name}` refuses the implementation: {first}"
        return cls(name=name, status=SKIPPED, message=text)

    @classmethod
    def not_run(cls, name: str, reason: str) -> CheckRecord:
        """Return the record of a check that was kept from running: without it nothing passes."""
        text = f"{NOT_RUN}: the check `{name}` did not run: {reason}"
        return cls(name=name, status=FAILED, error_type=NOT_RUN, message=text)

    def to_json(self) -> dict[str, Json]:
        """Return the record as builtins."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Json]) -> CheckRecord:
        """Rebuild a record that travelled as builtins."""
        return cls(**data)
