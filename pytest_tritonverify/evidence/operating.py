"""Conclusions from the operators that were seen: who computes."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from pytest_tritonverify.evidence import operators
from pytest_tritonverify.evidence.report import NOTE, VIOLATION, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_tritonverify.evidence.case import Evidence
    from pytest_tritonverify.evidence.observations import Operator, Place

_OF_THE_CALL = frozenset({"input", "launch"})


def conclude(evidence: Evidence) -> Iterator[Finding]:
    """Yield what the operators of a case show."""
    yield from _silenced(evidence)
    yield from _computing(evidence)
    yield from _moving(evidence)
    yield from _hidden(evidence)
    yield from _later(evidence)
    yield from _on_device(evidence)


def later_names(evidence: Evidence) -> list[str]:
    """Return operators that only the calls after the replay issued."""
    if evidence.endurance is None:
        return []
    return _unseen(evidence, evidence.endurance.native, evidence.marks[3])


def _silenced(evidence: Evidence) -> Iterator[Finding]:
    """The recorders must have seen the operators that were issued for them to see."""
    seen = {operators.plain_name(operator.name) for operator in evidence.observation.operators}
    missing = [mark for mark in evidence.marks[:2] if mark not in seen]
    replay, endurance = evidence.replay, evidence.endurance
    if (
        replay is not None
        and replay.problem is None
        and f"aten::{evidence.marks[2]}" not in replay.native
    ):
        missing.append(evidence.marks[2])
    if (
        endurance is not None
        and endurance.problem is None
        and f"aten::{evidence.marks[3]}" not in endurance.native
    ):
        missing.append(evidence.marks[3])
    if missing:
        yield Finding(
            "recorder_silenced",
            VIOLATION,
            "the recorder of operators did not see operators that the examination issued itself "
            "beside the forward: something in the implementation has switched it off; let it "
            "leave the process that runs it alone",
            evidence.case_idx,
        )


def _computing(evidence: Evidence) -> Iterator[Finding]:
    lines: dict[Place, list[Operator]] = defaultdict(list)
    weights: dict[Place, list[Operator]] = defaultdict(list)
    constants: dict[Place, list[Operator]] = defaultdict(list)
    for operator in evidence.observation.operators:
        if operators.plain_name(operator.name) in evidence.marks and operator.place.file is None:
            continue
        kind = operators.kind(operator.name)
        if kind == operators.RANDOM:
            yield _noted(
                evidence,
                "random_in_torch",
                operator,
                "torch draws random numbers; a reference that draws them too gets the same ones",
            )
        if kind != operators.COMPUTING:
            continue
        if operator.on & _OF_THE_CALL:
            lines[operator.place].append(operator)
        elif "parameter" in operator.on:
            weights[operator.place].append(operator)
        else:
            constants[operator.place].append(operator)
    for place, found in lines.items():
        yield Finding.at(
            "torch_compute",
            VIOLATION,
            f"torch computes with tensors that depend on the inputs: {_names(found)}; do this in "
            "a Triton kernel",
            evidence.case_idx,
            place,
        )
    for place, found in weights.items():
        yield _on_weights(evidence, place, found)
    for place, found in constants.items():
        yield Finding.at(
            "constants_in_torch",
            NOTE,
            f"torch computes with constants: {_names(found)}",
            evidence.case_idx,
            place,
        )


def _on_weights(evidence: Evidence, place: Place, found: list[Operator]) -> Finding:
    native = {} if evidence.replay is None else evidence.replay.native
    again = [one for one in found if f"aten::{operators.plain_name(one.name)}" in native]
    if again:
        return Finding.at(
            "torch_compute",
            VIOLATION,
            f"torch computes with parameters in every call: {_names(again)}; do this in a Triton "
            "kernel, or once in __init__",
            evidence.case_idx,
            place,
        )
    return Finding.at(
        "prepared_weights",
        NOTE,
        f"torch computes with parameters in the first call alone: {_names(found)}",
        evidence.case_idx,
        place,
    )


def _moving(evidence: Evidence) -> Iterator[Finding]:
    only_moves = evidence.reference_only_moves
    for operator in evidence.moved():
        if only_moves:
            yield Finding.at(
                "moving_in_torch",
                VIOLATION,
                f"torch moves values ({operators.plain_name(operator.name)}), which is all that "
                "the reference does: that is the work of the kernel",
                evidence.case_idx,
                operator.place,
            )
        elif operators.kind(operator.name) == operators.MOVING:
            yield _noted(
                evidence,
                "moving_in_torch",
                operator,
                "torch moves values, which is allowed beside a kernel",
            )


def _noted(evidence: Evidence, code: str, operator: Operator, text: str) -> Finding:
    name = operators.plain_name(operator.name)
    return Finding.at(code, NOTE, f"{text}: {name}", evidence.case_idx, operator.place)


def _hidden(evidence: Evidence) -> Iterator[Finding]:
    """What torch's profiler saw, and the recorder in Python did not."""
    if evidence.replay is None:
        return
    names = _unseen(evidence, evidence.replay.native, evidence.marks[2])
    if names:
        yield Finding(
            "hidden_operator",
            VIOLATION,
            f"torch's profiler saw operators that the recorder did not see: {', '.join(names)}; "
            "they run in another thread, with dispatch modes switched off, or only where no mode "
            "is active; do this in a Triton kernel",
            evidence.case_idx,
        )


def _later(evidence: Evidence) -> Iterator[Finding]:
    names = later_names(evidence)
    if evidence.confirmed is None or not names:
        return
    names = [name for name in names if f"aten::{name}" in evidence.confirmed.native]
    if names:
        yield Finding(
            "later_operator",
            VIOLATION,
            f"in further calls of the same model torch computes: {', '.join(names)}; the first "
            "calls did not, so that what was judged is not what would run (it may count its "
            "calls, or look whether fresh memory is filled); do this in a Triton kernel",
            evidence.case_idx,
        )


def _unseen(evidence: Evidence, native: Mapping[str, int], mark: str) -> list[str]:
    """Return computing operators that ran more often than the recorder of operators tells."""
    counted: dict[str, int] = defaultdict(int)
    judged = set()
    for operator in evidence.observation.operators:
        name = operators.plain_name(operator.name)
        counted[name] += operator.count
        if operator.on & (_OF_THE_CALL | {"parameter"}):
            judged.add(name)
    before = {} if evidence.replay is None else evidence.replay.native
    found = []
    for full, count in native.items():
        name = operators.plain_name(full)
        if name == mark or name in judged or operators.kind(full) != operators.COMPUTING:
            continue
        if native is not before and full in before:
            continue
        if native is not before or count > counted[name]:
            found.append(name)
    return sorted(found)


def _on_device(evidence: Evidence) -> Iterator[Finding]:
    if evidence.replay is None:
        return
    if not evidence.replay.device_kernels:
        if evidence.interpreted or not evidence.replay.launches:
            return
        yield Finding(
            "device_not_profiled",
            NOTE,
            "kernels were launched, and PyTorch's profiler saw none of them on the device, so what "
            "else ran there is unknown; profiling may need rights that this machine does not give",
            evidence.case_idx,
        )
        return
    launched = {launch.kernel for launch in evidence.replay.launches if evidence.owns(launch)}
    kinds = {
        name: operators.device_kernel_kind(name)
        for name in sorted(evidence.replay.device_kernels)
        if not _is_launch(name, launched)
    }
    foreign = [name for name, kind in kinds.items() if kind == operators.COMPUTING]
    foreign = _without_constants(evidence, foreign)
    if foreign:
        yield Finding(
            "device_kernel",
            VIOLATION,
            f"the device ran kernels that the implementation does not define: {_shown(foreign)}; "
            "do this in a Triton kernel",
            evidence.case_idx,
        )
    unknown = [name for name, kind in kinds.items() if kind is None]
    if unknown:
        yield Finding(
            "device_kernel",
            NOTE,
            "the device ran kernels that the implementation does not define, and of which nothing "
            f"is known: {_shown(unknown)}",
            evidence.case_idx,
        )


def _without_constants(evidence: Evidence, foreign: list[str]) -> list[str]:
    """Leave out kernels by which the device computes with constants, as a counter of calls.

    Such an operator has been recorded, and each of them runs one kernel that is called after it. A
    kernel more, or of another name, is somebody else's.
    """
    assert evidence.replay is not None  # noqa: S101 - its kernels are what this is about
    judged = _OF_THE_CALL | {"parameter"}
    allowed: dict[str, int] = defaultdict(int)
    for operator in evidence.observation.operators:
        computing = operators.kind(operator.name) == operators.COMPUTING
        if computing and operator.on_device and not operator.on & judged:
            name = operators.plain_name(operator.name).rstrip("_")
            allowed[name.replace("_", "").lower()] += operator.count
    left = list(foreign)
    for name, count in allowed.items():
        called = [kernel for kernel in left if name in kernel.lower()]
        if sum(evidence.replay.device_kernels[kernel] for kernel in called) <= count:
            left = [kernel for kernel in left if kernel not in called]
    return left


def _shown(kernels: list[str]) -> str:
    return ", ".join(name[:120] for name in kernels[:6])


def _is_launch(name: str, launched: set[str]) -> bool:
    """Whether a device's kernel is a launched one; old versions append how it was specialised."""
    return any(name == kernel or name.startswith(f"{kernel}_") for kernel in launched)


def _names(found: list[Operator]) -> str:
    return ", ".join(
        name if count == 1 else f"{name} ({count} times)" for name, count in _totals(found).items()
    )


def _totals(found: list[Operator]) -> dict[str, int]:
    totals: dict[str, int] = defaultdict(int)
    for operator in found:
        totals[operators.plain_name(operator.name)] += operator.count
    return dict(totals)
