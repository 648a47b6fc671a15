"""What is known about one case of a pair, as plain data that any process can carry."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Literal

Json = Any
Status = Literal["passed", "failed"]

PASSED: Status = "passed"
FAILED: Status = "failed"

# Names of failures that are no exceptions of user code.
NOT_RUN = "NotRun"
TIMEOUT = "VerifyTimeout"
CRASH = "WorkerCrash"


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
        flaky: it failed before it passed.
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
    flaky: bool = False

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
