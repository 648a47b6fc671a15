"""Result files: their names, their content, and how they get to disk."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify import plain_files
from pytest_tritonverify.discovery import Pair
from pytest_tritonverify.results import names, result_file
from pytest_tritonverify.results.journal import Journal
from pytest_tritonverify.results.records import FAILED, PASSED, CaseRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

# Neither a deadline nor a verdict on speed: other work may load the machine.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

SCHEMA = json.loads(result_file.SCHEMA_PATH.read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SOURCES = {"task": "0" * 64, "data": None, "implementation": "f" * 64}
ENVIRONMENT = {"cmdline": {"triton_impl_name": "triton_x", "non_compute": False}}


def record(case_idx: int = 1, status: str = PASSED, **facts: Any) -> CaseRecord:
    return CaseRecord.from_json(
        {"case_idx": case_idx, "name": f"case{case_idx}-float32-2", "status": status, **facts}
    )


def document(*records: CaseRecord, **facts: Any) -> dict[str, Any]:
    content = result_file.document("op", records, ENVIRONMENT, SOURCES, **facts)
    VALIDATOR.validate(content)
    return content


def strictly(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


# Names


def pair(folder: Path, op: str, variant: str) -> Pair:
    return Pair(op, variant, folder / f"{op}_torch.py", folder / f"{op}_triton_{variant}.py")


@pytest.mark.parametrize(
    ("variant", "shared", "verify", "perf"),
    [
        ("ascend_impl", False, "verify_result.json", "perf_result.json"),
        ("baseline", False, "verify_result_baseline.json", "perf_result_baseline.json"),
        ("optimized", False, "verify_result_optimized.json", "perf_result_optimized.json"),
        ("v2.1", False, "verify_result_v2.1.json", "perf_result_v2.1.json"),
        ("ascend_impl", True, "gelu_verify_result.json", "gelu_perf_result.json"),
        ("v2", True, "gelu_verify_result_v2.json", "gelu_perf_result_v2.json"),
    ],
)
def test_names_as_downstream_programs_derive_them(
    tmp_path: Path, variant: str, shared: bool, verify: str, perf: str
) -> None:
    one = pair(tmp_path, "gelu", variant)
    assert names.verify_result(one, shared_folder=shared) == tmp_path / verify
    assert names.perf_result(one, shared_folder=shared) == tmp_path / perf


@pytest.mark.parametrize(
    ("result", "journal"),
    [
        ("verify_result.json", "verify_result.journal.jsonl"),
        ("verify_result_v2.1.json", "verify_result_v2.1.journal.jsonl"),
        ("out", "out.journal.jsonl"),
    ],
)
def test_the_journal_lies_beside_the_result(tmp_path: Path, result: str, journal: str) -> None:
    assert names.journal(tmp_path / result) == tmp_path / journal


@pytest.mark.parametrize(
    ("files", "shared"),
    [
        ([], False),
        (["a_torch.py", "a_triton_x.py", "a_triton_y.py"], False),
        (["a_torch.py", "a_triton_x.py", "b_torch.py"], False),
        (["a_torch.py", "a_triton_x.py", "_torch.py", "_triton_x.py"], False),
        (["a_torch.py", "a_triton_x.py", "sub/b_torch.py", "sub/b_triton_x.py"], False),
        (["a_torch.py", "a_triton_x.py", "b_torch.py", "b_triton_x.py"], True),
        (["a_torch.py", "a_triton_x.py", "a_triton_torch.py", "a_triton_triton_x.py"], True),
    ],
)
def test_a_folder_with_pairs_of_several_operators_is_shared(
    tmp_path: Path, files: list[str], shared: bool
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names.is_shared(tmp_path) is shared


# Content


def test_the_documented_keys_stand_first_in_their_order() -> None:
    content = document(record(), record(2, FAILED, error_type="ValueError", error_msg="no"))
    assert list(content)[:6] == [
        "op_name",
        "total_cases",
        "passed_cases",
        "failed_cases",
        "failures",
        "environment",
    ]
    assert [content[f"{name}_cases"] for name in ("total", "passed", "failed")] == [2, 1, 1]
    assert content["failures"] == [
        {"case_idx": 2, "input_desc": [], "error_type": "ValueError", "error_msg": "no"}
    ]


def test_metrics_are_those_of_accuracy_failures_only() -> None:
    metrics = {"category": "eco_open_source", "matched_ratio": 0.5}
    content = document(
        record(1, PASSED, metrics=metrics),
        record(2, FAILED, error_type="AccuracyError", metrics=metrics),
        record(3, FAILED, error_type="AssertionError", metrics=metrics),
        record(4, FAILED, error_type="AccuracyError"),
    )
    assert [entry.get("metrics") for entry in content["failures"]] == [metrics, None, None]
    assert [case["metrics"] for case in content["cases"]] == [metrics, metrics, metrics, None]


def test_a_pass_after_a_failure_is_no_pass() -> None:
    content = document(record(1, PASSED, flaky=True, error_type="ValueError", error_msg="no luck"))
    assert (content["passed_cases"], content["failed_cases"]) == (0, 1)
    entry = content["failures"][0]
    assert entry["error_type"] == "FlakyCase"
    assert entry["error_msg"].startswith("FlakyCase: ")
    assert entry["error_msg"].endswith("no luck")


def test_a_pair_that_cannot_be_loaded_has_one_failed_case() -> None:
    entry = result_file.failure_entry(1, [], "SyntaxError", "invalid syntax")
    content = document(load_failure=entry)
    assert [content[f"{name}_cases"] for name in ("total", "passed", "failed")] == [1, 0, 1]
    assert content["failures"] == [entry]
    assert content["cases"] == []


def test_no_case_is_no_pass() -> None:
    content = document()
    assert (content["total_cases"], content["passed_cases"], content["failures"]) == (0, 0, [])


def test_a_case_that_did_not_run_says_why() -> None:
    missing = CaseRecord.not_run(3, "case3-float32-2", [{"type": "tensor"}], "the run ended")
    assert not missing.passed
    entry = document(missing)["failures"][0]
    assert entry["error_type"] == "NotRun"
    assert entry["error_msg"] == "NotRun: the run ended"
    assert entry["input_desc"] == [{"type": "tensor"}]


@pytest.mark.parametrize("filler", ["x", "\udcff", "算"])
@pytest.mark.parametrize("flaky", [True, False])
def test_long_messages_keep_both_ends_within_the_limit(filler: str, flaky: bool) -> None:
    text = f"begin {filler * 5000} end"
    status = PASSED if flaky else FAILED
    content = document(record(1, status, flaky=flaky, error_msg=text, output=text))
    for found in (
        content["failures"][0]["error_msg"],
        content["cases"][0]["error_msg"],
        content["cases"][0]["output"],
    ):
        assert len(found) == result_file.ERROR_MSG_LIMIT == 2000
        assert "begin" in found
        assert found.endswith(" end")


def test_no_path_of_the_machine_gets_in() -> None:
    content = document(record(1, FAILED, file="/home/somebody/op_triton_x.py", line=3))
    assert content["cases"][0]["file"] == "op_triton_x.py"
    assert "somebody" not in json.dumps(content)


def test_records_survive_the_way_between_processes() -> None:
    one = record(2, FAILED, error_type="X", warnings=[{"code": "a", "message": "b"}], line=3)
    assert CaseRecord.from_json(json.loads(json.dumps(one.to_json()))) == one


TEXT = st.text(st.characters(), max_size=30)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
JSONABLE = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
METRICS = st.none() | st.dictionaries(TEXT, JSONABLE, max_size=4)


@CALM
@given(
    inputs=st.lists(JSONABLE, max_size=3),
    metrics=METRICS,
    error_type=st.none() | TEXT,
    error_msg=st.none() | TEXT,
    output=TEXT,
    status=st.sampled_from([PASSED, FAILED]),
    environment=st.dictionaries(st.sampled_from(["triton", "cann"]), st.just({"x": float("nan")})),
)
def test_results_are_strict_json_in_utf8(
    inputs: list[Any],
    metrics: dict[str, Any] | None,
    error_type: str | None,
    error_msg: str | None,
    output: str,
    status: str,
    environment: Mapping[str, Any],
) -> None:
    one = record(
        1,
        status,
        input_desc=inputs,
        metrics=metrics,
        error_type=error_type,
        error_msg=error_msg,
        output=output,
        warnings=[{"code": "x", "message": output}],
    )
    content = result_file.document("op", [one], {**ENVIRONMENT, **environment}, SOURCES)
    text = json.dumps(content, ensure_ascii=False, allow_nan=False)
    read = strictly(text.encode().decode())
    assert read == content
    VALIDATOR.validate(read)


def test_numbers_that_json_lacks_become_null() -> None:
    nan, inf = float("nan"), float("inf")
    given_value = {"a": [nan, (inf, 1.5)], 3: {-inf: True}, "\udc80": "\udc80"}
    assert result_file.finite(given_value) == {
        "a": [None, [None, 1.5]],
        "3": {"-inf": True},
        "\\udc80": "\\udc80",
    }


# To disk


def test_a_result_is_written_for_people_too(tmp_path: Path) -> None:
    path = tmp_path / "verify_result.json"
    result_file.write_atomically(path, {"a": "算子", "b": [1]})
    assert path.read_bytes() == '{\n  "a": "算子",\n  "b": [\n    1\n  ]\n}\n'.encode()
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", [{"a": float("nan")}, {"a": object()}, {"a": "\udc80"}])
def test_a_failed_write_leaves_the_old_file(tmp_path: Path, content: dict[str, Any]) -> None:
    path = tmp_path / "r.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises((ValueError, TypeError)):
        result_file.write_atomically(path, content)
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "r.json"
    path.write_text("old", encoding="utf-8")

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        result_file.write_atomically(path, {"a": 1})
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_a_result_has_the_mode_of_any_new_file(tmp_path: Path, mask: int, mode: int) -> None:
    before = os.umask(mask)
    try:
        result_file.write_atomically(tmp_path / "r.json", {})
        assert stat.S_IMODE((tmp_path / "r.json").stat().st_mode) == mode
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_a_link_is_replaced_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "r.json"
    target.write_text("precious", encoding="utf-8")
    link.symlink_to(target)
    result_file.write_atomically(link, {})
    assert target.read_text(encoding="utf-8") == "precious"
    assert not link.is_symlink()


def test_digests(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert plain_files.digest(tmp_path / "x") == known
    assert plain_files.digest(tmp_path / "gone") is None
    assert plain_files.digest(tmp_path) is None
    assert plain_files.digest(None) is None


def test_what_never_ends_has_no_digest(tmp_path: Path) -> None:
    pipe, holes = tmp_path / "pipe", tmp_path / "holes"
    os.mkfifo(pipe)
    holes.touch()
    os.truncate(holes, plain_files.MOST_BYTES + 1)
    for path in (pipe, holes, Path(os.devnull), Path("/dev/zero")):
        assert plain_files.digest(path) is None
        with pytest.raises(OSError, match=r"no plain file|File too large"):
            plain_files.read(path)
    (tmp_path / "link").symlink_to(holes)
    os.truncate(holes, 3)
    assert plain_files.read(tmp_path / "link") == bytes(3)


def test_a_journal_leaves_alone_what_lies_in_its_place(tmp_path: Path) -> None:
    place, kept = tmp_path / "journal", tmp_path / "kept"
    kept.write_text("as it was")
    place.symlink_to(kept)
    journal = Journal(place, "op", "triton_impl", 1)
    assert len(place.read_text().splitlines()) == 1
    # While the run lasts, too: a link, and a pipe that nobody reads.
    for kind in ("link", "pipe"):
        place.unlink()
        if kind == "link":
            place.symlink_to(kept)
        else:
            os.mkfifo(place)
        journal.problem = None
        journal.started(1, "case")
        assert journal.problem is not None
    assert kept.read_text() == "as it was"
