"""What the probe concludes, in words for people and as data for the result file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.results.records import FAILED, PASSED, SKIPPED, WARNED, CheckRecord

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.probe.differences import Difference
    from pytest_tritonverify.probe.inventory import Facts
    from pytest_tritonverify.probe.matching import Matching, Mismatch, Missing, Told

CHECK = "hidden_state"
MISMATCH = "HiddenStateMismatch"

# Codes of warnings.
VALUE_MISMATCH = "hidden_state_value_mismatch"
UNEXPOSED = "hidden_state_unexposed"
NOT_COMPARED = "hidden_state_not_compared"
INCOMPLETE = "hidden_state_incomplete"
NONDETERMINISTIC = "nondeterministic"
NOT_CHECKED = "determinism_not_checked"

# Of each kind, in a message; the report has all of them.
MOST_SHOWN = 3
_MOST_LISTED = 64
_ADVICE = (
    "No kernel can be right with other weights, so that this must be put right first: build "
    "ModelNew from the same layers in the same order as Model, under the same names, with the "
    "same initialisers and nothing else that draws random numbers in between. Both are built "
    "after torch.manual_seed(0)."
)


@dataclass
class ProbeRecord:
    """What is known of a pair's hidden state; it becomes a `CheckRecord`.

    Attributes:
        fw_state: number of the reference's tensors that its inputs don't determine.
        im_state: number of the implementation's tensors; None where nobody looked.
        reason: why there is nothing to compare.
        matching: what became of the reference's tensors.
        warnings: `{"code", "message"}` entries.
        message: the failure.
        seconds: wall time.
    """

    fw_state: int = 0
    im_state: int | None = None
    reason: str | None = None
    matching: Matching | None = None
    warnings: list[dict[str, str]] = field(default_factory=list)
    message: str | None = None
    seconds: float = 0.0

    @property
    def status(self) -> Any:
        """`failed`, `warned`, `passed`, or `skipped` where the reference has no such state."""
        if self.message is not None:
            return FAILED
        if self.warnings:
            return WARNED
        return SKIPPED if self.matching is None else PASSED

    def warn(self, code: str, message: str) -> None:
        """Add a warning."""
        self.warnings.append({"code": code, "message": message})

    def to_json(self) -> dict[str, Any]:
        """Return the section of the result file, as builtins."""
        found = self.matching
        return {
            "status": self.status,
            "reason": self.reason,
            "fw_state": self.fw_state,
            "im_state": self.im_state,
            "compared": len(found.compared) if found else 0,
            "matched": len(found.matched) if found else 0,
            "mismatches": [_told(m, m.implementation) for m in found.mismatches[:_MOST_LISTED]]
            if found
            else [],
            "missing": [_told(m, m.namesake) for m in found.missing[:_MOST_LISTED]]
            if found
            else [],
            "passed_over": dict(list(found.passed_over.items())[:_MOST_LISTED]) if found else {},
            "skipped_positional": list(found.not_positional[:_MOST_LISTED]) if found else [],
            "warnings": list(self.warnings),
        }

    def check(self, file: str) -> CheckRecord:
        """Return the record of the item.

        Args:
            file: the implementation, which a failure is shown in.
        """
        text = self.message
        if text is None and self.warnings:
            text = "\n".join(f"{entry['code']}: {entry['message']}" for entry in self.warnings)
        failed = self.message is not None
        return CheckRecord(
            name=CHECK,
            status=self.status,
            seconds=self.seconds,
            error_type=MISMATCH if failed else None,
            message=text or self.reason,
            file=file if failed else None,
            report=self.to_json(),
        )


def failure(matching: Matching, differences: Mapping[str, Difference]) -> str:
    """Return the message of a mismatch.

    Args:
        matching: what was found.
        differences: how the values of single tensors differ, by name.
    """
    found = matching.mismatches
    first = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    expected, got = first.reference.kind, first.implementation.kind
    what = f"other values, {got}" if got == expected else f"expected {expected}, got {got}"
    head = (
        f"{MISMATCH}: `{first.name}`{more} of ModelNew is not what Model holds under that name "
        f"({what})"
    )
    lines = [head]
    for mismatch in found[:MOST_SHOWN]:
        lines += _paragraph(mismatch, differences.get(mismatch.name))
    if len(found) > MOST_SHOWN:
        names = ", ".join(m.name for m in found[MOST_SHOWN:_MOST_LISTED])
        lines.append(f"  also: {names}")
    lines.append(_ADVICE)
    if any(not m.reference.registered or m.reference.kind != m.implementation.kind for m in found):
        lines.append("What is meant to be another tensor in ModelNew needs another name.")
    return "\n".join(lines)


def _paragraph(mismatch: Mismatch, difference: Difference | None) -> list[str]:
    late = {
        (True, True): ", made by the first forward on both sides",
        (True, False): ", made by the first forward of Model",
        (False, True): ", made by the first forward of ModelNew",
    }.get((mismatch.late_reference, mismatch.late_implementation), "")
    ours, theirs = mismatch.reference.kind, mismatch.implementation.kind
    lines = [f"  {mismatch.name}: expected {ours}, got {theirs}{late}"]
    if difference is not None:
        lines += [f"    {line}" for line in difference.lines]
    cause = _cause(mismatch, difference)
    if cause:
        lines.append(f"    likely cause: {cause}")
    return lines


def _cause(mismatch: Mismatch, difference: Difference | None) -> str | None:
    if mismatch.holds is not None:
        return (
            f"it holds what Model holds as `{mismatch.holds}`: the order of random draws differs, "
            "or the two were swapped"
        )
    if mismatch.held_as is not None:
        return (
            f"ModelNew holds this tensor as `{mismatch.held_as}`: the order of random draws "
            "differs, or the two were swapped"
        )
    if mismatch.reference.dtype != mismatch.implementation.dtype:
        return (difference and difference.cause) or "another dtype"
    if difference is not None and difference.cause is not None:
        return difference.cause
    if mismatch.reference.shape != mismatch.implementation.shape:
        return "another shape"
    return None


def missing(found: Sequence[Missing], implementation: Told) -> tuple[str, str]:
    """Return code and message of the warning that tensors have no equal."""
    if not implementation.names:
        names = _listed([f"`{m.name}` {m.reference.kind}" for m in found])
        return UNEXPOSED, (
            f"Model holds {names}, but no tensor could be found in ModelNew or at the top of its "
            "file. If it makes its weights elsewhere, they can't be compared: a wrong result may "
            "then be theirs. Keep them as parameters or buffers under the reference's names"
        )
    names = _listed([_missed(m) for m in found])
    text = (
        f"nothing in ModelNew equals {names} of Model bit by bit. If the result is wrong, look "
        "here first: register the same tensors under the same names"
    )
    if implementation.raised:
        text += f". ModelNew's first forward raised {implementation.raised}"
    return VALUE_MISMATCH, text


def _missed(entry: Missing) -> str:
    text = f"`{entry.name}` {entry.reference.kind}"
    if entry.reshaped is not None:
        return f"{text} (the same numbers are in `{entry.reshaped}`, in another shape)"
    if entry.namesake is not None:
        return f"{text} (ModelNew's is another, {entry.namesake.kind})"
    return text


def _listed(entries: Sequence[str]) -> str:
    shown = list(entries[: 2 * MOST_SHOWN])
    if len(entries) > len(shown):
        shown.append(f"{len(entries) - len(shown)} more")
    return ", ".join(shown)


def _told(entry: Mismatch | Missing, theirs: Facts | None) -> dict[str, Any]:
    return {
        "name": entry.name,
        "reference": {"dtype": entry.reference.dtype, "shape": list(entry.reference.shape)},
        "implementation": None
        if theirs is None
        else {"dtype": theirs.dtype, "shape": list(theirs.shape)},
    }
