"""The page about a run: what it says, where it has it from, and that nobody can write into it."""

from __future__ import annotations

import base64
import copy
import dataclasses
import hashlib
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.html_report import page, text
from pytest_tritonverify.html_report.subjects import Subject
from pytest_tritonverify.results.records import CaseRecord, CheckRecord
from pytest_tritonverify.workflow import performance, verification
from tests.support import pages, workdirs

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)" x="',
    "' autofocus onfocus='alert(1)",
    "</title></style><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<!--",
    "]]>",
    "&lt;b&gt; &amp;",
    "\x1b[31mred\x1b[0m \x00\x08\ud800 \u202egnp.exe\u2066",
    "x" * 100_000,
    "<" * 20_000,
)
VOID = {"meta", "img", "input", "br"}


class Reader(HTMLParser):
    """Reads a page: its elements with their attributes, and its text."""

    def __init__(self, source: str, *, whole: bool = True) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.raw: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == [] or not whole

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("style", "script"):
            self.raw[self._open[-1]] = data
        else:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]

    def pairs(self) -> dict[str, dict[str, str | None]]:
        """The attributes of the pairs, by name."""
        return {str(a["data-name"]): a for a in self.all("li") if "data-name" in a}


def judged(
    *records: CaseRecord, op: str = "softmax", impl: str = "triton_x", **facts: Any
) -> Subject:
    content = workdirs.verify_result(records, op=op, **facts)
    return Subject(op=op, impl=impl, verification=verification.of(content, Path("r.json")))


def measured(subject: Subject, *speedups: float | None) -> Subject:
    content = workdirs.perf_result(speedups, op=subject.op)
    found = performance.of(content, Path("p.json"))
    return dataclasses.replace(subject, performance=found)


def saying(words: str) -> Subject:
    """A pair that says some words wherever a pair can say something."""
    message = f"{words}\n{words}"
    choose = random.Random(0)
    output = pages.output(choose, [4, 4], passed=False)
    output |= {"path": words, "category": words, "dtype": words}
    output["diagnosis"] |= {"cause": words, "evidence": [words], "region": {"text": words}}
    record = workdirs.record(
        1,
        words,
        message,
        warnings=[{"code": words, "message": words}],
        outputs=[output],
        output=words,
        file=words,
        line=3,
        configurations=[{"kernel": words, "count": 2, "index": 0, "name": words}],
        standin={"kind": words, "used": []},
    )
    record = dataclasses.replace(record, phase=words, side=words, golden_device=words)
    checks = {
        "degeneration": CheckRecord(name="degeneration", status="warned", message=words),
        "hidden_state": CheckRecord(name="hidden_state", status="failed", message=words),
        "compile": pages.compiled(words),
    }
    environment = {**workdirs.ENVIRONMENT, "device": {"name": words}, "timestamp": words}
    found = judged(
        record, workdirs.record(2), op=words, impl=words, checks=checks, environment=environment
    )
    return dataclasses.replace(measured(found, 1.5, 2.5), place=words, notes=(words,))


TAME = Reader(page.html([saying("tame")]))


@settings(max_examples=12, deadline=None)
@given(st.text(min_size=1, max_size=300).map(lambda words: f"a{words}b"))
@example("".join(HOSTILE[:-2]))
def test_no_text_of_a_pair_becomes_markup(words: str) -> None:
    found = Reader(page.html([saying(words)]))
    assert [tag for tag, _ in found.elements] == [tag for tag, _ in TAME.elements]
    assert [list(a) for _, a in found.elements] == [list(a) for _, a in TAME.elements]
    assert found.raw == TAME.raw
    assert text.name(words) in found.text


def test_hostile_texts_are_shown_and_do_nothing() -> None:
    for words in HOSTILE:
        source = page.html([saying(words)])
        found = Reader(source)
        assert [tag for tag, _ in found.elements] == [tag for tag, _ in TAME.elements]
        assert text.name(words) in found.text
        # However long they are, a pair stays a page.
        assert len(source) < 400_000
        source.encode("utf-8")


def test_nothing_is_fetched_and_only_our_own_script_may_run() -> None:
    found = Reader(page.html([saying("a")]))
    policy = next(str(a["content"]) for a in found.all("meta") if a.get("http-equiv"))
    for name in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(found.raw[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; img-src data:; ")
    assert "unsafe" not in policy
    for _, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href"):
            assert str(attributes.get(name, "#")).startswith(("#", "data:image/png;base64,"))
    assert not re.search(r"url\(|@import|https?:|fetch\(|XMLHttp", "".join(found.raw.values()))


def test_verdicts_are_those_of_the_results_and_nothing_else() -> None:
    good = judged(workdirs.record(1), workdirs.record(2), op="good")
    bad = judged(workdirs.record(1), workdirs.record(2, "AccuracyError"), op="bad")
    none = judged(op="none")
    troubled = dataclasses.replace(judged(workdirs.record(1), op="troubled"), failed=True)
    found = Reader(page.html([good, measured(bad, 3.0, 3.0), none, troubled]))
    assert {name.split()[0]: a["data-status"] for name, a in found.pairs().items()} == {
        "good": "passed",
        "bad": "failed",
        "none": "failed",
        "troubled": "failed",
    }
    # A benchmark report that says that all cases have passed changes nothing.
    assert "1/2 cases passed" in found.text
    assert "1 of 4 passed" in found.text
    assert "4 of 5 passed" in found.text
    # What has failed comes first.
    assert [name.split()[0] for name in found.pairs()] == ["bad", "none", "troubled", "good"]


def test_a_check_that_refuses_an_implementation_fails_all_its_cases() -> None:
    words = "A-PyTorchFallback-Type1: no kernel is launched"
    fake = CheckRecord(
        name="degeneration", status="failed", error_type="PyTorchFallback", message=words
    )
    found = Reader(page.html([judged(workdirs.record(1), checks={"degeneration": fake})]))
    assert "0/1 cases passed" in found.text
    assert found.text.count(words) >= 2
    assert [a["data-status"] for a in found.pairs().values()] == ["failed"]


def test_a_pair_that_fails_by_a_check_alone_says_by_which() -> None:
    checks = {"compile": pages.compiled("ub overflow", error_type="CompilationError")}
    broken = [
        dataclasses.replace(judged(workdirs.record(1), op=op, checks=checks), failed=True)
        for op in ("a", "b")
    ]
    other = judged(workdirs.record(1, "AccuracyError"), op="c")
    found = Reader(page.html([*broken, other]))
    assert [a["data-status"] for a in found.pairs().values()] == ["failed"] * 3
    # All of its cases have passed, and it is found by its failure.
    assert "1/1 cases passed" in found.text
    words = [str(a["data-words"]) for name, a in found.pairs().items() if name.startswith("a")]
    assert "compilationerror" in words[0]
    assert "CompilationError 2 pairs AccuracyError 1 case, 1 pair" in found.text


def test_no_kind_of_failure_is_left_out_of_the_summary() -> None:
    kinds = [f"Kind{number}Error" for number in range(9)]
    records = [workdirs.record(number, kind) for number, kind in enumerate(kinds, 1)]
    found = Reader(page.html([judged(*records)])).text
    assert "and 3 other kinds: Kind6Error , Kind7Error , Kind8Error" in found


def test_what_compilers_tell_of_kernels_is_shown() -> None:
    checks = {"compile": pages.compiled("ub overflow", error_type="CompilationError")}
    found = Reader(page.html([judged(workdirs.record(1), checks=checks)]))
    assert (
        "Kernels for other devices: cuda:90: 1 of 1 compile (triton 3.9.0); "
        "Ascend910B4: 0 of 1 compile (triton-ascend 3.2.0)" in found.text
    )
    # What fails comes first.
    assert found.text.index("ub_overflow: ub overflow") < found.text.index("32 registers, 0 bytes")
    assert "64 bytes spilled" in found.text
    assert "x.py:7" in found.text
    alone = Reader(page.html([judged(workdirs.record(1))]))
    assert "Kernels for other devices" not in alone.text


def test_what_a_case_was_put_through_is_shown() -> None:
    stress = {"runs": 50, "failed": 0, "differing": 0}
    trials = {"sets": 3, "failed": 0}
    case = dataclasses.replace(
        workdirs.record(1), stress=stress, trials=trials, golden_precision="float64"
    )
    found = Reader(page.html([judged(case, workdirs.record(2))]))
    assert "under stress: 50 runs, 0 failed, 0 other bits" in found.text
    assert "inputs of 3 seeds: 0 failed" in found.text
    assert "golden computed in: float64" in found.text
    assert found.text.count("under stress") == 1


def test_words_are_looked_for_as_the_script_does() -> None:
    (found,) = Reader(page.html([judged(workdirs.record(1), op="Straße")])).pairs().values()
    # A browser's toLowerCase() leaves this letter alone.
    assert "straße" in str(found["data-words"])


def test_speedups_are_those_of_the_reports() -> None:
    one = measured(judged(workdirs.record(1), workdirs.record(2), op="one"), 2.0, 8.0)
    two = measured(judged(workdirs.record(1), op="two"), 0.5)
    three = judged(workdirs.record(1), op="three")
    found = Reader(page.html([one, two, three]))
    factors = {name.split()[0]: a["data-speedup"] for name, a in found.pairs().items()}
    assert float(str(factors["one"])) == 4.0
    assert float(str(factors["two"])) == 0.5
    assert factors["three"] == ""
    assert "1 of 2 measured pairs faster than the reference" in found.text
    assert "speed-up: 8×" in found.text
    assert "4 ms → 0.5 ms" in found.text
    bars = [a for a in found.all("rect") if "data-pair" in a]
    assert [a["class"] for a in bars] == ["faster", "slower"]


def test_warnings_about_measurements_are_said_once_for_all_cases() -> None:
    content = workdirs.perf_result([2.0, 3.0, 4.0])
    content["warnings"] = [{"code": "gate", "message": "not asked"}]
    for shape in content["per_shape_results"]:
        text_ = f"varies by {shape['case_idx']}0 %"
        shape["warnings"] = [{"code": "noisy", "message": text_}] * 2
    report = performance.of(content, Path("p.json"))
    found = Reader(page.html([Subject(op="a", impl="b", performance=report)]))
    assert "noisy benchmark of case 1-3: varies by 10 %" in found.text
    assert "gate benchmark: not asked" in found.text
    assert [a["data-warnings"] for a in found.pairs().values()] == ["2"]


def test_warnings_of_equal_number_keep_the_order_of_the_pairs() -> None:
    # In no order of their own, and so many that this one does not come about by chance.
    first, other = ["w7", "w2", "w9", "w4", "w1", "w8", "w3"], ["w6", "w0", "w5"]
    listed = [
        judged(
            workdirs.record(1, warnings=[{"code": code, "message": "!"} for code in codes]), op=op
        )
        for op, codes in (("a", [*first, "most"]), ("b", ["most", *other]))
    ]
    rows = re.findall(r"(\w+) (\d+) pairs?, for instance", Reader(page.html(listed)).text)
    assert rows == [("most", "2"), *((code, "1") for code in (*first, *other))]


def test_what_was_only_measured_is_not_said_to_have_passed() -> None:
    content = workdirs.perf_result([2.0, None])
    report = performance.of(content, Path("p.json"))
    found = Reader(page.html([Subject(op="a", impl="b", performance=report)]))
    assert [a["data-status"] for a in found.pairs().values()] == ["unjudged"]
    assert "1 not judged" in found.text
    assert "0 of 0 passed" in found.text
    assert "no speed-up" in found.text


def test_pairs_of_one_name_are_told_apart_by_their_places() -> None:
    places = ("/ops/op/iter_0/verify_result.json", "/ops/op/iter_1/verify_result.json")
    found = [dataclasses.replace(judged(workdirs.record(1)), place=place) for place in places]
    other = dataclasses.replace(judged(workdirs.record(1), op="other"), place="/ops/op/x.json")
    shown = Reader(page.html([*found, other]))
    apart = [a for a in shown.all("bdi") if a.get("class") == "apart"]
    assert len(apart) == 2
    assert "triton_x iter_0/verify_result.json" in shown.text
    # A relative one among them is no trouble.
    Reader(page.html([*found, judged(workdirs.record(1))]))


def test_a_page_about_nothing_says_so() -> None:
    assert "No pair was judged" in Reader(page.html([])).text


def test_files_of_other_programs_with_the_documented_keys_alone_are_shown() -> None:
    content = {
        "op_name": "a",
        "total_cases": 2,
        "passed_cases": 1,
        "failed_cases": 1,
        "failures": [{"case_idx": 2, "input_desc": [], "error_type": "E", "error_msg": "E: why"}],
    }
    subject = Subject(op="a", impl="x", verification=verification.of(content, Path("r.json")))
    found = Reader(page.html([measured(subject, 2.0, 3.0)]))
    assert "1/2 cases passed" in found.text
    assert "why" in found.text


def test_odd_values_in_a_file_cost_their_place_and_nothing_more() -> None:
    _, _, whole, _ = pages.pair(3, cases=1)
    assert whole["cases"][0]["outputs"][0]["errors"]["histogram"]
    checks = {"compile": pages.compiled("words")}
    whole["compile"] = workdirs.verify_result([], checks=checks)["compile"]
    places = [
        *([key] for key in ("degeneration", "hidden_state", "environment", "sources", "cases")),
        *(["compile", key] for key in whole["compile"]),
        *(["compile", "kernels", 0, key] for key in whole["compile"]["kernels"][0]),
        *(["cases", 0, key] for key in whole["cases"][0] if key not in ("case_idx", "status")),
        *(["cases", 0, "outputs", 0, key] for key in whole["cases"][0]["outputs"][0]),
        *(
            ["cases", 0, "outputs", 0, "errors", key]
            for key in whole["cases"][0]["outputs"][0]["errors"]
        ),
    ]
    subjects = []
    mad: Any = (3, "odd", [1, None], {"status": [None], "a": {"b": []}}, True, 10**400, [{}])
    for odd in mad:
        for *way, last in places:
            content = copy.deepcopy(whole)
            holder: Any = content
            for step in way:
                holder = holder[step]
            holder[last] = odd
            result = verification.of(content, Path("r.json"))
            subjects.append(Subject(op="a", impl="x", verification=result))
    found = Reader(page.html(subjects))
    assert [a["data-order"] for a in found.all("li") if "data-order" in a] == [
        str(number) for number in range(1, len(subjects) + 1)
    ]
