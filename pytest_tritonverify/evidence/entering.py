"""Conclusions from what a call of the model runs: is it the code that was read?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_tritonverify.evidence.report import NOTE, VIOLATION, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.evidence.case import Evidence
    from pytest_tritonverify.evidence.observations import Entry, EntryFacts

# Decorators and hooks of libraries that no implementation writes itself.
_LIBRARIES = re.compile(r"/(torch|torch_npu|triton)/|/contextlib\.py$|/functools\.py$")
_WHAT_TO_DO = "; let `class ModelNew` define its forward in the file, and leave it as it is"


def conclude(evidence: Evidence) -> Iterator[Finding]:
    """Yield what is wrong with the entry point, and which functions were replaced."""
    seen = set()
    for facts in (evidence.observation.before, evidence.observation.after):
        for code, severity, text in _entry(evidence, facts):
            if text not in seen:
                seen.add(text)
                yield Finding(code, severity, text, evidence.case_idx)
    yield from _functions(evidence)
    before, after = evidence.observation.before, evidence.observation.after
    if after.threads > before.threads:
        yield Finding(
            "thread_left",
            VIOLATION,
            f"{after.threads - before.threads} of the threads that the forward started still run "
            "when it has returned: its work must be done by then",
            evidence.case_idx,
        )


def _entry(evidence: Evidence, facts: EntryFacts) -> Iterator[tuple[str, str, str]]:
    code = "entry_replaced"
    if not facts.own_class:
        text = "the model that is called is no instance of the class ModelNew of the file"
        yield code, VIOLATION, text + _WHAT_TO_DO
    for name in facts.bound_on_instance:
        yield code, VIOLATION, f"the model has a `{name}` of its own on the instance" + _WHAT_TO_DO
    if facts.call_is_torchs or not facts.is_module:
        entry, name = facts.forward, "forward"
        if not facts.is_module and facts.forward is None:
            entry, name = facts.call, "__call__"
    else:
        entry, name = facts.call, "__call__"
    yield from _read(evidence, entry, name)
    for file in facts.hooks:
        if _LIBRARIES.search(file):
            text = f"modules have hooks of {'/'.join(file.rsplit('/', 2)[-2:])}"
            yield "hooks", NOTE, text
        else:
            yield (
                code,
                VIOLATION,
                "modules have hooks, which run beside their forward" + _WHAT_TO_DO,
            )


def _read(evidence: Evidence, entry: Entry | None, name: str) -> Iterator[tuple[str, str, str]]:
    """Compare the code of an entry point with the file's text."""
    code = "entry_replaced"
    if entry is None or entry.place.file is None:
        yield (
            code,
            VIOLATION,
            f"the model's `{name}` is no function that the file defines" + _WHAT_TO_DO,
        )
        return
    sources = evidence.sources
    outside = [
        file for file in entry.wrappers if not sources.owns(file) and not _LIBRARIES.search(file)
    ]
    if not sources.owns(entry.place.file) or outside:
        where = outside[0] if outside else entry.place.file
        yield code, VIOLATION, f"the model's `{name}` comes from {where}" + _WHAT_TO_DO
    elif not sources.compiles_to(entry.place.file, entry.name, entry.digest):
        yield (
            code,
            VIOLATION,
            f"the code of the model's `{name}` is not what the file's text compiles to: it was "
            "replaced, or a compiled file beside it is not this file's" + _WHAT_TO_DO,
        )
    elif not sources.is_entry(entry.place.file, name, entry.name, entry.place.line):
        yield (
            code,
            VIOLATION,
            f"what is called is not the `{name}` of class ModelNew but `{entry.name}` in line "
            f"{entry.place.line}" + _WHAT_TO_DO,
        )
    elif not sources.is_implementation(entry.place.file):
        yield "entry_beside", NOTE, f"the model's `{name}` is defined in a module beside the file"


def _functions(evidence: Evidence) -> Iterator[Finding]:
    told = set()
    words = {"import": "while it was imported", "build": "while the model was built"}
    for stage, changed in evidence.observation.changed.items():
        for name, _, file in (text.partition(" by ") for text in changed):
            if name in told:
                continue
            told.add(name)
            library = bool(_LIBRARIES.search(file)) and not evidence.sources.owns(file)
            text = f"{name} was replaced {words.get(stage, 'by the forward')}"
            if library:
                text += f", by {'/'.join(file.rsplit('/', 2)[-2:])} itself"
            else:
                text += (
                    ": others rely on it; leave functions of torch, Triton and Python as they are"
                )
            severity = NOTE if library else VIOLATION
            yield Finding("function_replaced", severity, text, evidence.case_idx)
    if not evidence.observation.launcher_intact:
        yield Finding(
            "function_replaced",
            VIOLATION,
            "the forward replaced what launches kernels; leave Triton as it is",
            evidence.case_idx,
        )
