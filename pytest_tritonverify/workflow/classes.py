"""The documented classes of errors: A, the code's; B, the environment's; C, one that comes again.

A class is reached from evidence in the result alone: names of errors, whose process failed and
where, and a few words that drivers, compilers and operating systems use. Where nothing speaks for
the environment the code is to blame.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pytest_tritonverify import figures
from pytest_tritonverify.results.records import CRASH, FALLBACK, NOT_RUN, TIMEOUT
from pytest_tritonverify.supervision import IMPLEMENTATION, REFERENCE, VERIFIER
from pytest_tritonverify.workflow import grouping

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pytest_tritonverify.workflow.verification import FailedCase, Verification

Letter = Literal["A", "B", "C"]

REPEATS = 3
"""Rounds in a row with the same subtype of class A that make class C."""

_FALLBACK = re.compile(rf"A-{FALLBACK}-Type([1-4]): ")
_MISSING_MODULE = re.compile(r"No module named ['\"]([\w.]+)['\"]")
# What every implementation needs; a module of another name is the code's own mistake.
_FRAMEWORK = frozenset({"torch", "torch_npu", "triton", "numpy", "acl", "te", "tbe"})
_OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemory|alloc_failed|\bENOMEM\b", re.IGNORECASE)
_DEVICE = re.compile(
    r"no (?:npu|cuda|gpu|ascend)\w* (?:device|gpu)s?\b|device not found|npu is unavailable"
    r"|(?:npu|cuda) (?:is )?not available|no cuda gpus are available|no cuda-capable device"
    r"|invalid device id|driver version is insufficient|aclrtSetDevice|drvGetDev"
    r"|ASCEND_HOME_PATH|set_env\.sh|device (?:is )?(?:busy|lost)",
    re.IGNORECASE,
)
_NO_SPACE = re.compile(r"No space left on device|Read-only file system|Too many open files")
_KILLED = re.compile(r"\bSIGKILL\b|\bsignal 9\b|\bkilled by the kernel\b", re.IGNORECASE)
_ENVIRONMENT_TYPES = frozenset(
    {
        "FileNotFoundError",
        "NpuPreflightError",
        "WorkerStartError",
        "OutOfMemoryError",
        "MemoryError",
    }
)
_OWN_PHASES = ("import", "build", "forward", "transfer")


@dataclass(frozen=True)
class Class:
    """What kind of failure a round has ended with.

    Attributes:
        letter: A, B or C.
        subtype: a name within the class, `A-PyTorchFallback-Type3` for instance.
        evidence: sentences.
    """

    letter: Letter
    subtype: str
    evidence: tuple[str, ...] = field(default=())

    @property
    def ends_the_task(self) -> bool:
        """Whether the workflow is over: only class A is tried again."""
        return self.letter != "A"


def of_timeout(seconds: str) -> Class:
    """Return the class of a verification that was ended from outside: nothing more is known."""
    text = f"the verification did not end within {seconds} s, and no result says in which case"
    return Class("B", f"B-{TIMEOUT}", (text,))


def of_degeneration(report: Mapping[str, Any]) -> Class:
    """Return the class of what the static check found."""
    number = report.get("regression_type")
    if number not in (1, 2, 3, 4):
        text = f"the file could not be checked: {report.get('error') or 'no reason was given'}"
        return Class("B", "B-FileNotFoundError", (text,))
    return Class("A", f"A-{FALLBACK}-Type{number}", (f"regression_type is {number}",))


def of_verification(result: Verification) -> Class:
    """Return the class of a result with failures."""
    overall = _overall(result)
    if overall is not None:
        return overall
    found = [of_failure(failure) for failure in result.failures]
    if not found:
        if result.total == 0:
            return Class("B", "B-NoCases", ("total_cases is 0: the task has no case to run",))
        return Class("A", "A-Unknown", ("cases have failed, and `failures` names none",))
    code = [one for one in found if one.letter == "A"]
    chosen = code or found
    subtype, _ = Counter(one.subtype for one in chosen).most_common(1)[0]
    evidence = _evidence(result.failures, found)
    if code and len(code) < len(found):
        evidence.append(
            f"{len(found) - len(code)} of {len(found)} failures are the environment's; the others "
            "can be repaired"
        )
    return Class("A" if code else "B", subtype, tuple(evidence))


def repeated(classes: Sequence[Class | None]) -> Class | None:
    """Return class C where the last rounds end with the same subtype of class A, else None.

    Args:
        classes: one for each round, the oldest first; None for a round that has passed.
    """
    last = classes[-REPEATS:]
    subtypes = {one.subtype if one and one.letter == "A" else None for one in last}
    if len(last) < REPEATS or len(subtypes) != 1 or None in subtypes:
        return None
    (subtype,) = subtypes
    count = 0
    for one in reversed(classes):
        if one is None or one.subtype != subtype:
            break
        count += 1
    newest = classes[-1]
    assert newest is not None  # noqa: S101 - asked above
    text = f"{subtype} in {count} rounds in a row (class C from {REPEATS} on)"
    return Class("C", newest.subtype, (text, *newest.evidence))


def _overall(result: Verification) -> Class | None:
    """Return the class of a result whose environment is known to be broken as a whole."""
    if result.content.get("failure_class") == "B":
        return Class("B", "B-Preflight", ("the result itself says `failure_class` B",))
    device, cann = (result.section("environment").get(name) or {} for name in ("device", "cann"))
    if not isinstance(device, dict) or not isinstance(cann, dict):
        return None
    on_npu = device.get("backend") == "npu" or bool(device.get("npu_name"))
    if on_npu and cann.get("error"):
        text = (
            f"`environment.cann.error` is {cann['error']!s:.200}: set up CANN before anything else"
        )
        return Class("B", "B-CANN", (text,))
    return None


def of_failure(failure: FailedCase) -> Class:
    """Return the class of one failed case."""
    name, message = failure.error_type, failure.error_msg
    match = _FALLBACK.match(message)
    if name == FALLBACK or match:
        number = match[1] if match else "1"
        return Class("A", f"A-{FALLBACK}-Type{number}", (f"`error_msg` names type {number}",))
    reason = _environment(failure)
    if reason is not None:
        return Class("B", f"B-{name}", (reason,))
    side = f" of the {failure.side}" if failure.side else ""
    phase = f" in phase '{failure.phase}'" if failure.phase else ""
    place = f" at {failure.place}" if failure.place else ""
    return Class("A", f"A-{name}", (f"{name}{side}{phase}{place}",))


def _environment(failure: FailedCase) -> str | None:  # noqa: PLR0911 - one sign after the other
    """Say what speaks for the environment, None where the code is to blame."""
    name, message, side = failure.error_type, failure.error_msg, failure.side
    if side in (REFERENCE, VERIFIER):
        return f"{name} is a failure of the {side}, which no other kernel repairs"
    if name == TIMEOUT:
        if side == IMPLEMENTATION and failure.phase in _OWN_PHASES:
            return None
        return "the time was up, and nothing says that it was the implementation's"
    if name == NOT_RUN:
        return "the case did not run"
    if name == CRASH:
        return "the process was killed from outside" if _KILLED.search(message) else None
    missing = _MISSING_MODULE.search(message) if "No module named" in message else None
    if missing:
        package = missing[1].partition(".")[0]
        text = f"the module `{missing[1]}` is not installed"
        return text if package in _FRAMEWORK else None
    for pattern in (_OUT_OF_MEMORY, _DEVICE, _NO_SPACE):
        match = pattern.search(f"{name}: {message}")
        # The accuracy rules quote no driver.
        if match and name not in ("AccuracyError", "AssertionError", "HiddenStateMismatch"):
            return f"the message says {match[0]!r}"
    return f"{name} is no error of the kernel's" if name in _ENVIRONMENT_TYPES else None


def _evidence(failures: Sequence[FailedCase], found: Sequence[Class]) -> list[str]:
    """Return one sentence for each thing that was seen, with the cases where it was."""
    seen: dict[tuple[str, str], list[int]] = {}
    for failure, one in zip(failures, found, strict=True):
        cases = seen.setdefault((one.subtype, one.evidence[0]), [])
        if failure.case_idx is not None:
            cases.append(failure.case_idx)
    sentences = []
    for (subtype, text), cases in seen.items():
        where = f" (case {figures.numbers_text(cases)})" if cases else ""
        sentences.append(f"{subtype}: {text}{where}")
    most = grouping.LIMIT // 400
    if len(sentences) > most:
        sentences[most:] = [f"and {len(sentences) - most} more"]
    return sentences
