"""The content of `verify_result.json`, and how it gets to disk."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import plain_files
from pytest_tritonverify.execution import errors, loading
from pytest_tritonverify.results.records import (
    FAILED,
    NOT_OBSERVED,
    NOT_RUN,
    SOURCE_CHANGED,
    CheckRecord,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pytest_tritonverify.discovery import Pair
    from pytest_tritonverify.results.records import CaseRecord

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("verify_result.schema.json")

HIDDEN_STATE = "hidden_state"
# Checks of the code: where one fails, no case counts as passed.
CODE_CHECKS = ("degeneration", "execution")
# Whether what was judged is what stands there: no item, and no section of the result.
SOURCES = "sources"
# All items beside cases, in their order.
COMPILE = "compile"
CHECKS = ("degeneration", HIDDEN_STATE, "execution", COMPILE)

# The documented limit of `error_msg`.
ERROR_MSG_LIMIT = 2000


def document(  # noqa: PLR0913 - one for each part of the file
    op_name: str,
    records: Sequence[CaseRecord],
    environment: Mapping[str, Any],
    sources: Mapping[str, str | None],
    *,
    load_failure: Mapping[str, Any] | None = None,
    checks: Mapping[str, CheckRecord] | None = None,
    policies: Mapping[str, str] | None = None,
    in_process: bool = False,
    cache_ab: Mapping[str, Any] | None = None,
    strictness: Mapping[str, float] | None = None,
    isolation: str = "none",
) -> dict[str, Any]:
    """Compose a result: the five documented keys, the environment, then the tail sections.

    Args:
        op_name: the operator.
        records: one for each case, in order.
        environment: the environment's sections.
        sources: sha256 by role (task, data, implementation).
        load_failure: entry for `failures` of a pair whose cases are unknown. It counts as one
            failed case.
        checks: the outcomes of checks of the code, by name. Where one has failed no case counts
            as passed, and what the comparators said stands in `cases` alone.
        policies: what becomes of failing checks, by name.
        in_process: the implementation ran in the judge's own process.
        cache_ab: what a second run on an empty Triton cache has shown; None where none was made.
        strictness: thresholds of what was asked for beyond the standard; None where nothing was.
        isolation: how files were kept from the implementation's processes.
    """
    checks, policies = checks or {}, policies or {}
    objection = objection_among(checks, records)
    failures = [
        _failure(record) if objection is None else _objected(record, objection)
        for record in records
        if objection is not None or not record.passed
    ]
    total = len(records)
    passed = total - len(failures)
    if load_failure is not None:
        failures.append(dict(load_failure))
        total += 1
    content = {
        "op_name": op_name,
        "total_cases": total,
        "passed_cases": passed,
        "failed_cases": total - passed,
        "failures": failures,
        "environment": dict(environment),
        "schema_version": SCHEMA_VERSION,
        "in_process": in_process,
        "degeneration": {name: _check(name, checks, policies) for name in CODE_CHECKS},
        "hidden_state": _probe(checks.get(HIDDEN_STATE)),
        "cases": [_case(record) for record in records],
        "sources": dict(sources),
        "cache_ab": None if cache_ab is None else dict(cache_ab),
        "strictness": None if strictness is None else {"limits": dict(strictness)},
        "compile": _compiled(checks.get(COMPILE)),
        "isolation": isolation,
    }
    strict: dict[str, Any] = finite(content)
    return strict


def objection_among(
    checks: Mapping[str, CheckRecord], records: Iterable[CaseRecord]
) -> CheckRecord | None:
    """Return the first failed check that keeps all cases from passing, whatever their outputs.

    One that could not be made matters only where the pair would be green without it: a failure
    that is known needs no second one on top, and what has passed stays on record.
    """
    if SOURCES in checks:
        return checks[SOURCES]
    failed = [c for c in checks.values() if c.name in CODE_CHECKS and not c.passed]
    if not all(record.passed for record in records):
        failed = [check for check in failed if check.error_type not in (NOT_RUN, NOT_OBSERVED)]
    return failed[0] if failed else None


def failure_entry(
    case_idx: int, input_desc: list[Any], error_type: str, error_msg: str
) -> dict[str, Any]:
    """Return an entry of `failures`."""
    return {
        "case_idx": case_idx,
        "input_desc": input_desc,
        "error_type": error_type,
        "error_msg": _clipped(error_msg),
    }


def _failure(record: CaseRecord) -> dict[str, Any]:
    if record.flaky:
        text = (
            "FlakyCase: it failed, and passed when it was run again; a kernel whose result "
            f"changes is not correct. First failure: {record.error_msg}"
        )
        return failure_entry(record.case_idx, record.input_desc, "FlakyCase", text)
    entry = failure_entry(
        record.case_idx, record.input_desc, record.error_type or "Error", record.error_msg or ""
    )
    if record.metrics is not None and record.error_type == "AccuracyError":
        entry["metrics"] = record.metrics
    return entry


def _objected(record: CaseRecord, check: CheckRecord) -> dict[str, Any]:
    return failure_entry(
        record.case_idx, record.input_desc, check.error_type or "Error", check.message or ""
    )


def _check(
    name: str, checks: Mapping[str, CheckRecord], policies: Mapping[str, str]
) -> dict[str, Any]:
    """Return the section of a check of the code; `status` is null where it was not made."""
    check = checks.get(name)
    return {
        "policy": policies.get(name),
        "status": check.status if check else None,
        "message": _clipped(check.message) if check and check.message else None,
        "report": check.report if check else None,
    }


def _probe(check: CheckRecord | None) -> dict[str, Any] | None:
    """Return the section of the hidden-state probe; None where it was not made."""
    if check is None:
        return None
    section: dict[str, Any] = {"status": check.status, **(check.report or {})}
    section["message"] = _clipped(check.message) if check.message else None
    return section


def _compiled(check: CheckRecord | None) -> dict[str, Any] | None:
    """Return the section of the check that compiles kernels; None where it was not made."""
    if check is None:
        return None
    return {
        "status": check.status,
        "error_type": check.error_type,
        "message": _clipped(check.message) if check.message else None,
        "seconds": check.seconds,
        **(check.report or {"targets": {}, "kernels": [], "unknown_cases": {}, "left_out": 0}),
    }


def _case(record: CaseRecord) -> dict[str, Any]:
    case = record.to_json()
    if record.error_msg is not None:
        case["error_msg"] = _clipped(record.error_msg)
    case["output"] = _clipped(record.output)
    # Contents only: workflows copy results to places where these paths mean nothing.
    case["file"] = None if record.file is None else Path(record.file).name
    return case


def _clipped(text: str) -> str:
    # In this order: what stands for bytes that are no UTF-8 is longer than they are.
    return errors.clip(errors.printable(text), ERROR_MSG_LIMIT)


def finite(value: Any) -> Any:
    """Return JSON-able data with every non-finite number replaced by null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {errors.printable(str(key)): finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, str):
        return errors.printable(value)
    return value


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, where they are not there.

    Raises:
        OSError: it can't be made.
    """
    # Asked first: a file of that name is then told as what it is by whoever opens one below it.
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)


def write_atomically(path: Path, content: Mapping[str, Any]) -> str:
    """Write strict JSON so that a reader finds the old file or the whole new one.

    Returns:
        The sha256 of what was written.

    Raises:
        OSError: the folder can't be written.
    """
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    data = text.encode("utf-8")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return hashlib.sha256(data).hexdigest()


def sources_of(pair: Pair) -> dict[str, str | None]:
    """Return the sha256 of a pair's files by role: task, data, implementation."""
    return {
        "task": plain_files.digest(pair.task),
        "data": plain_files.digest(loading.data_file(pair.task, pair.op)),
        "implementation": plain_files.digest(pair.implementation),
    }


def sources_changed(pair: Pair, before: Mapping[str, str | None]) -> CheckRecord | None:
    """Return the objection to a verdict on files that are not what they were; None where they are.

    Args:
        pair: the pair.
        before: what `sources_of` returned before anything ran.
    """
    now = sources_of(pair)
    files = {"task": pair.task, "implementation": pair.implementation}
    changed = [
        files[role].name if role in files else f"the data of {pair.task.name}"
        for role in now
        if now[role] != before[role]
    ]
    if not changed:
        return None
    text = (
        f"{SOURCE_CHANGED}: {' and '.join(changed)} changed while the run lasted, so nobody knows "
        "what was judged; run it again"
    )
    return CheckRecord(name=SOURCES, status=FAILED, error_type=SOURCE_CHANGED, message=text)
