"""Conclusions from who wrote what: launches, outcomes, and bytes that nothing explains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify.evidence.report import NOTE, VIOLATION, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.evidence.case import Evidence
    from pytest_tritonverify.evidence.observations import Content

_INTEGERS = ("int", "uint", "bool")


def conclude(evidence: Evidence) -> Iterator[Finding]:
    """Yield what the launches, the outcomes and the bytes of a case show."""
    yield from _launching(evidence)
    yield from _odd_arguments(evidence)
    yield from _odd_elsewhere(evidence)
    if evidence.programs:
        yield from _outcomes(evidence)
    yield from _runs(evidence)


def _launching(evidence: Evidence) -> Iterator[Finding]:
    told = set()
    for launch in evidence.observation.launches:
        if not launch.completed:
            yield Finding.at(
                "launch_failed",
                NOTE,
                f"a launch of {launch.kernel} raised an exception, and the forward went on",
                evidence.case_idx,
                launch.site,
            )
        elif not evidence.owns(launch) and launch.kernel not in told:
            told.add(launch.kernel)
            beside = launch.defined.file is not None and evidence.sources.owns(launch.defined.file)
            where = f"at {launch.defined.file}:{launch.defined.line}"
            reason = (
                f"its code claims to stand {where}, where the file defines no such function"
                if beside
                else f"it is defined {where}, outside of the implementation's folder"
            )
            yield Finding.at(
                "foreign_kernel",
                VIOLATION,
                f"the kernel {launch.kernel} is not the implementation's: {reason}; define it in "
                "the implementation's file",
                evidence.case_idx,
                launch.site,
            )
    if any(not launch.own_thread for launch in evidence.observation.launches):
        yield Finding(
            "launch_in_thread", NOTE, "kernels are launched from another thread", evidence.case_idx
        )
    if not evidence.programs:
        evidence.asked.add("golden")
        facts = evidence.golden
        # A result that is wrong anyway shows no other source: the grid may just be empty.
        if not facts or any(not f.empty and f.resembled for f in facts.values()):
            yield Finding("no_launch", VIOLATION, _no_launch(evidence), evidence.case_idx)


def _no_launch(evidence: Evidence) -> str:
    observation = evidence.observation
    if any(launch.completed and not launch.programs for launch in observation.launches):
        return "kernels are launched, but on an empty grid: no program of them runs"
    if observation.launches:
        return "no launch of a kernel of the implementation's ends without an exception"
    return (
        "no kernel is launched: the result comes from somewhere else; where the forward chooses "
        "by the device (`if not x.is_cuda`), let it launch its kernel on every device"
    )


def _odd_arguments(evidence: Evidence) -> Iterator[Finding]:
    """Arguments of launches whose bytes no observed operator or launch made."""
    replay = evidence.replay
    for key, content in evidence.observation.contents.items():
        other = None if replay is None else replay.contents.get(key)
        integers = content.tensor.startswith(_INTEGERS)
        if other is not None:
            follows = other.digest != content.digest
            # Numbers made of whole numbers by the host are lengths, offsets, tables of blocks.
            follows &= not (integers and not evidence.inputs.floating)
        else:
            follows = content.kind == "write" and not integers
        yield _odd_argument(evidence, content, follows=follows)


def _odd_argument(evidence: Evidence, content: Content, *, follows: bool) -> Finding:
    _, _, kernel = content.kernel, content.kind, content.kernel
    if content.kind == "write":
        text = (
            f"the bytes of {content.tensor}, an argument of {kernel}, were changed by something "
            "that is neither an operator of torch nor a launch"
        )
        code = "unexplained_write"
    else:
        text = (
            f"{content.tensor}, an argument of {kernel}, was made by something that is neither an "
            "operator of torch nor a launch"
        )
        code = "host_compute"
    if not follows:
        return Finding.at(
            "host_constant",
            NOTE,
            f"{text}; its values do not follow the inputs",
            evidence.case_idx,
            content.site,
        )
    return Finding.at(
        code,
        VIOLATION,
        f"{text}, and its values follow the inputs: numpy, another thread or native code "
        "computes; do this in a Triton kernel",
        evidence.case_idx,
        content.site,
    )


def _odd_elsewhere(evidence: Evidence) -> Iterator[Finding]:
    for event in evidence.observation.events:
        if event.kind != "write" or event.where.startswith("argument "):
            continue
        if event.tensor.startswith(_INTEGERS) and not event.where.startswith("output"):
            continue
        yield Finding.at(
            "unexplained_write",
            VIOLATION,
            f"the bytes of {event.tensor}, met by {event.where}, were changed by something that "
            "is neither an operator of torch nor a launch: numpy, another thread or native code; "
            "do this in a Triton kernel",
            evidence.case_idx,
            event.place,
        )


def _outcomes(evidence: Evidence) -> Iterator[Finding]:
    unwritten, unneeded, stale = evidence.unwritten(), evidence.unneeded(), evidence.stale()
    if not (unwritten or unneeded or stale or evidence.replayed is not None):
        return
    evidence.asked.add("golden")
    if evidence.golden is None:
        return
    yield from _made_for_these_values(evidence)
    kept = set()
    for path in stale:
        fact = evidence.golden.get(path)
        if fact is not None and fact.depends and fact.resembled and not fact.empty:
            kept.add(path)
            yield Finding(
                "replayed_result",
                VIOLATION,
                f"{path} stays the same when the same tensors hold other values: a result is "
                "kept from an earlier call; compute it anew in every call",
                evidence.case_idx,
            )
    for path in unwritten:
        if _asked(evidence, path):
            yield Finding(
                "output_not_written",
                VIOLATION,
                f"{path} was not written by a launch: its kernels' results are not what is "
                "returned; let a kernel write it",
                evidence.case_idx,
            )
    for path in unneeded:
        # A result that was kept needs no launch; that it was kept is the cause.
        if _asked(evidence, path) and path not in kept:
            yield Finding(
                "launch_not_needed",
                VIOLATION,
                f"{path} is the same when no launch has any effect: what computes it is not the "
                "kernels",
                evidence.case_idx,
            )


def _made_for_these_values(evidence: Evidence) -> Iterator[Finding]:
    for path, fact in (evidence.golden or {}).items():
        if fact.followed is False and fact.depends and fact.resembled and not fact.empty:
            yield Finding(
                "wrong_on_other_values",
                VIOLATION,
                f"{path} is right for the values of the case and far off for others of the same "
                "kind: it is made for these values; compute it from the inputs",
                evidence.case_idx,
            )


def _asked(evidence: Evidence, path: str) -> bool:
    """Whether an outcome must be a kernel's work."""
    fact = None if evidence.golden is None else evidence.golden.get(path)
    return fact is not None and fact.trivial is None


def _runs(evidence: Evidence) -> Iterator[Finding]:
    """The plain and the observed run must give the same bits, where any two runs do."""
    paths = evidence.disagreeing()
    if not paths:
        return
    evidence.asked.add("repeats")
    repeats = evidence.repeats
    if repeats is None:
        return
    plain = [evidence.plain or {}, *repeats.plain]
    observed = [evidence.observed, *repeats.observed]
    # A repeat that failed says nothing; without one nothing is known.
    known = len(plain) > 1 and len(observed) > 1
    steady = known and all(
        len({run.get(path) for run in runs}) == 1 for path in paths for runs in (plain, observed)
    )
    beside = repeats.beside
    tuned = any(launch.tuned for launch in evidence.observation.launches)
    # Tuners of two processes may choose different configurations.
    chosen = (
        tuned
        and not evidence.interpreted
        and beside is not None
        and all(beside.get(path) == evidence.observed.get(path) for path in paths)
    )
    shown = ", ".join(paths[:6])
    if steady and not chosen:
        yield Finding(
            "runs_disagree",
            VIOLATION,
            f"{shown} differs between a run without instruments and the observed run, and each of "
            "them repeats itself bit by bit: the implementation does something else when it is "
            "observed",
            evidence.case_idx,
        )
    else:
        reason = "processes tune it differently" if chosen else "runs differ by themselves"
        yield Finding(
            "not_deterministic", NOTE, f"{shown} differs between runs: {reason}", evidence.case_idx
        )
