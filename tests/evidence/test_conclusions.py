"""Conclusions from plain data: what is a violation, what a note, and what is asked at all."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pytest_tritonverify.evidence import codes, conclusions
from pytest_tritonverify.evidence.case import Evidence, GoldenFact, Inputs, Repeats
from pytest_tritonverify.evidence.observations import (
    Content,
    Endurance,
    Entry,
    EntryFacts,
    Event,
    Launch,
    Observation,
    Operator,
    Origin,
    Place,
    Replay,
)
from pytest_tritonverify.evidence.report import ExecutionReport, Finding, merged
from pytest_tritonverify.evidence.sources import Sources

SOURCE = """
def kernel(x, o):
    return x

class ModelNew:
    def forward(self, x):
        return x
"""
MARKS = ("special_i0e", "special_i1e", "special_entr", "special_airy_ai")
SEEN = tuple(Operator(f"aten.{name}.default", Place()) for name in MARKS[:2])
AFTER_REPLAY = {f"aten::{MARKS[2]}": 1}
AFTER_CALLS = {f"aten::{MARKS[3]}": 1}


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "op_triton_impl.py"
    path.write_text(SOURCE)
    return str(path)


def entry(file: str) -> EntryFacts:
    """Return the facts of an honest model."""
    scope: dict[str, Any] = {}
    exec(compile(SOURCE, file, "exec", dont_inherit=True), scope)  # noqa: S102 - the text above
    code = scope["ModelNew"].forward.__code__
    forward = Entry(Place(file, code.co_firstlineno), "forward", codes.digest(code), ())
    return EntryFacts(
        own_class=True,
        bound_on_instance=(),
        forward=forward,
        call=None,
        is_module=True,
        call_is_torchs=True,
        hooks=(),
        threads=1,
    )


def launch(file: str, **changes: Any) -> Launch:
    """Return an honest launch."""
    honest = Launch(
        kernel="kernel",
        defined=Place(file, 2),
        site=Place(file, 7),
        programs=4,
        completed=True,
        wrote=("o",),
        tuned=False,
        own_thread=True,
    )
    return dataclasses.replace(honest, **changes)


def evidence(file: str, **changes: Any) -> Evidence:
    """Return the evidence of an honest case, with some of it changed."""
    facts = entry(file)
    observation = Observation(
        launches=(launch(file),),
        launch_count=1,
        operators=SEEN,
        contents={},
        events=(),
        origins=(Origin("output", frozenset({"launch"}), None),),
        before=facts,
        after=facts,
        changed={},
        launcher_intact=True,
        seconds=0.1,
    )
    seen = {key: changes.pop(key) for key in list(changes) if hasattr(observation, key)}
    honest: dict[str, Any] = {
        "case_idx": 1,
        "sources": Sources(Path(file)),
        "inputs": Inputs(2, floating=True, altered=True),
        "observation": dataclasses.replace(observation, **seen),
        "observed": {"output": "a"},
        "marks": MARKS,
        "plain": {"output": "a"},
        "replay": Replay(native=AFTER_REPLAY),
        "replayed": {"output": "b"},
        "endurance": Endurance(20, AFTER_CALLS),
        "knocked_out": {"output": "c"},
    }
    return Evidence(**{**honest, **changes})


def violated(case: Evidence) -> set[str]:
    return {f.code for f in conclusions.conclude(case) if f.severity == "violation"}


def noted(case: Evidence) -> set[str]:
    return {f.code for f in conclusions.conclude(case) if f.severity == "note"}


def operator(name: str, *on: str, **facts: Any) -> Operator:
    return Operator(f"aten.{name}.default", Place("f.py", 3), frozenset(on), **facts)


def test_an_honest_case_needs_the_golden_for_other_values_alone(file: str) -> None:
    case = evidence(file)
    assert conclusions.conclude(case) == []
    assert conclusions.needs(case) == {conclusions.GOLDEN}


@pytest.mark.parametrize(
    ("on", "code"),
    [
        (("input",), "torch_compute"),
        (("launch",), "torch_compute"),
        (("input", "parameter"), "torch_compute"),
        (("parameter",), "prepared_weights"),
        (("host",), "constants_in_torch"),
        ((), "constants_in_torch"),
    ],
)
def test_whether_computing_matters_depends_on_what_it_reads(
    file: str, on: tuple[str, ...], code: str
) -> None:
    case = evidence(file, operators=(*SEEN, operator("mm", *on)))
    assert violated(case) | noted(case) == {code}
    assert (code == "torch_compute") == bool(violated(case))


def test_weights_may_be_prepared_once_and_not_in_every_call(file: str) -> None:
    again = Replay(native={**AFTER_REPLAY, "aten::mm": 1})
    case = evidence(file, operators=(*SEEN, operator("mm", "parameter")), replay=again)
    assert violated(case) == {"torch_compute"}


@pytest.mark.parametrize("name", ["a_name_of_next_year", "index", "my_library.op"])
def test_what_no_list_knows_computes(file: str, name: str) -> None:
    for full in (name, f"aten.{name}.default"):
        unknown = dataclasses.replace(operator("x", "input"), name=full)
        assert violated(evidence(file, operators=(*SEEN, unknown))) == {"torch_compute"}


@pytest.mark.parametrize("name", ["empty_like", "copy_", "_to_copy", "view", "fill_", "clone"])
def test_memory_views_and_copies_are_free(file: str, name: str) -> None:
    case = evidence(file, operators=(*SEEN, operator(name, "input")))
    assert conclusions.conclude(case) == []


def test_moving_counts_where_the_reference_does_nothing_else(file: str) -> None:
    seen = (*SEEN, operator("cat", "input"))
    case = evidence(file, operators=seen)
    assert conclusions.needs(case) == {conclusions.REFERENCE, conclusions.GOLDEN}
    assert (violated(case), noted(case)) == (set(), {"moving_in_torch"})
    case.reference = (operator("permute", "input"), operator("clone", "input"))
    assert violated(case) == {"moving_in_torch"}
    case.reference = (operator("cat", "input"), operator("mul", "input"))
    assert violated(case) == set()
    case.reference = (operator("detach", "input"),)
    assert violated(case) == set()


def test_a_silenced_recorder(file: str) -> None:
    assert violated(evidence(file, operators=SEEN[:1])) == {"recorder_silenced"}
    assert violated(evidence(file, replay=Replay())) == {"recorder_silenced"}
    assert violated(evidence(file, endurance=Endurance(20))) == {"recorder_silenced"}
    # Where torch's profiler can't be had it saw nothing, and that is no sign.
    assert violated(evidence(file, replay=Replay(problem="none here"))) == set()


def test_operators_that_only_the_profiler_saw(file: str) -> None:
    native = Replay(native={**AFTER_REPLAY, "aten::mm": 1, "aten::matmul": 1, "aten::copy_": 9})
    assert violated(evidence(file, replay=native)) == {"hidden_operator"}
    once = (*SEEN, operator("mm"))
    assert violated(evidence(file, replay=native, operators=once)) == set()
    twice = Replay(native={**AFTER_REPLAY, "aten::mm": 2})
    assert violated(evidence(file, replay=twice, operators=once)) == {"hidden_operator"}


def test_operators_of_later_calls_are_confirmed_with_proper_values(file: str) -> None:
    later = Endurance(20, {**AFTER_CALLS, "aten::mm": 15})
    case = evidence(file, endurance=later)
    assert violated(case) == set()
    assert conclusions.needs(case) == {conclusions.CONFIRMATION, conclusions.GOLDEN}
    case.confirmed = Endurance(20, AFTER_CALLS)
    assert violated(case) == set()
    case.confirmed = later
    assert violated(case) == {"later_operator"}


def test_kernels_of_the_device(file: str) -> None:
    kernels = {
        "kernel": 1,
        "Memcpy DtoD (Device -> Device)": 1,
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>": 1,
        "void at::native::elementwise_kernel<128, at::native::direct_copy_kernel_cuda>": 1,
    }
    replay = Replay((launch(file),), {}, AFTER_REPLAY, kernels)
    assert violated(evidence(file, replay=replay)) == set()
    gemm = {**kernels, "ampere_sgemm_32x32_sliced1x4_nn": 1}
    replay = dataclasses.replace(replay, device_kernels=gemm)
    assert violated(evidence(file, replay=replay)) == {"device_kernel"}


@pytest.mark.parametrize(
    ("kernels", "on", "on_device", "passes"),
    [
        ({"cann::Add": 1}, (), True, True),
        ({"vectorized_elementwise_kernel<4, CUDAFunctorOnSelf_add<long>>": 1}, (), True, True),
        ({"cann::Add": 2}, (), True, False),
        ({"cann::Add": 1, "cann::Adds": 1}, (), True, False),
        ({"cann::Mul": 1}, (), True, False),
        ({"cann::Add": 1}, (), False, False),
        ({"cann::Add": 1}, ("input",), True, False),
        ({"cann::Add": 1}, ("parameter",), True, False),
    ],
)
def test_a_counter_on_the_device_is_no_work(
    file: str, kernels: dict[str, int], on: tuple[str, ...], on_device: bool, passes: bool
) -> None:
    counting = dataclasses.replace(operator("add_", *on), on_device=on_device)
    native = {**AFTER_REPLAY, "aten::add_": 1}
    replay = Replay((launch(file),), {}, native, {"kernel": 1, **kernels})
    case = evidence(file, replay=replay, operators=(*SEEN, counting))
    assert ("device_kernel" not in violated(case)) is passes


def test_nothing_launched_is_right_for_empty_outputs_alone(file: str) -> None:
    case = evidence(file, launches=())
    assert violated(case) == {"no_launch"}
    assert conclusions.needs(case) == {conclusions.GOLDEN}
    case.golden = {"output": GoldenFact(empty=True), "other": GoldenFact()}
    assert violated(case) == {"no_launch"}
    case.golden = {"output": GoldenFact(empty=True)}
    assert violated(case) == set()


@pytest.mark.parametrize(
    "changes", [{"programs": 0}, {"completed": False}, {"defined": Place("/elsewhere/k.py", 2)}]
)
def test_a_launch_that_is_none(file: str, changes: dict[str, Any]) -> None:
    assert "no_launch" in violated(evidence(file, launches=(launch(file, **changes),)))


def test_a_kernel_must_stand_where_it_claims_to(file: str) -> None:
    case = evidence(file, launches=(launch(file), launch(file, defined=Place(file, 5))))
    assert violated(case) == {"foreign_kernel"}


TRIVIAL = [
    GoldenFact(empty=True),
    GoldenFact(constant=True),
    GoldenFact(same_as_input=True),
    GoldenFact(depends=False),
    GoldenFact(resembled=False),
]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"knocked_out": {"output": "a"}}, "launch_not_needed"),
        ({"origins": (Origin("output", frozenset({"input"}), None),)}, "output_not_written"),
        ({"replayed": {"output": "a"}}, "replayed_result"),
    ],
)
def test_outcomes_are_asked_where_the_golden_tells_something(
    file: str, changes: dict[str, Any], code: str
) -> None:
    case = evidence(file, **changes)
    assert violated(case) == set()
    assert conclusions.needs(case) == {conclusions.GOLDEN}
    case.golden = {"output": GoldenFact()}
    assert violated(case) == {code}
    for fact in TRIVIAL:
        case.golden = {"output": fact}
        # A replay is asked wherever the golden follows the inputs and the outcome is right.
        follows = fact.depends and fact.resembled and not fact.empty
        expected = {code} if code == "replayed_result" and follows else set()
        assert violated(case) == expected, fact
    case.golden = {}
    assert violated(case) == set()


def test_no_other_inputs_leave_the_replay_unasked(file: str) -> None:
    case = evidence(file, replayed={"output": "a"})
    case.golden = {"output": GoldenFact(depends=None)}
    assert violated(case) == set()
    case = evidence(file, knocked_out={"output": "a"})
    case.golden = {"output": GoldenFact(depends=None)}
    assert violated(case) == {"launch_not_needed"}


def test_a_buffer_that_held_the_right_bytes_before_is_no_cheat(file: str) -> None:
    kept = (Origin("output", frozenset({"parameter", "passed"}), None),)
    case = evidence(file, origins=kept)
    case.golden = {"output": GoldenFact()}
    assert violated(case) == set()
    case = evidence(file, origins=kept, knocked_out={"output": "a"})
    case.golden = {"output": GoldenFact()}
    assert violated(case) == {"launch_not_needed", "output_not_written"}


def content(digest: str = "d", kind: str = "host", tensor: str = "float32[4]") -> Content:
    return Content(kind, digest, tensor, "kernel", Place("f.py", 9))


@pytest.mark.parametrize(
    ("before", "after", "floating", "code"),
    [
        (content(), content(), True, "host_constant"),
        (content(), content("e"), True, "host_compute"),
        (content(kind="write"), content(), True, "host_constant"),
        (content(kind="write"), content("e"), True, "unexplained_write"),
        (content(tensor="int32[4]"), content("e"), False, "host_constant"),
        (content(tensor="int32[4]"), content("e"), True, "host_compute"),
        (content(), None, True, "host_constant"),
        (content(kind="write"), None, True, "unexplained_write"),
        (content(kind="write", tensor="int64[2]"), None, True, "host_constant"),
    ],
)
def test_bytes_from_the_host_matter_where_they_follow_the_inputs(
    file: str, before: Content, after: Content | None, *, floating: bool, code: str
) -> None:
    replay = Replay(native=AFTER_REPLAY, contents={"0:x": after} if after else {})
    inputs = Inputs(1, floating=floating, altered=True)
    case = evidence(file, contents={"0:x": before}, replay=replay, inputs=inputs)
    assert violated(case) | noted(case) == {code}


@pytest.mark.parametrize(
    ("event", "caught"),
    [
        (Event("write", "float32[4]", "the operator aten.clone.default", Place()), True),
        (Event("write", "int32[4]", "the operator aten.clone.default", Place()), False),
        (Event("write", "int32[4]", "output[0]", Place()), True),
        (Event("host", "float32[4]", "the operator aten.clone.default", Place()), False),
    ],
)
def test_writes_that_others_meet(file: str, event: Event, *, caught: bool) -> None:
    assert violated(evidence(file, events=(event,))) == ({"unexplained_write"} if caught else set())


def test_runs_must_agree_where_they_repeat_themselves(file: str) -> None:
    case = evidence(file, plain={"output": "p"})
    assert conclusions.needs(case) == {conclusions.REPEATS, conclusions.GOLDEN}
    case.repeats = Repeats(({"output": "p"}, {"output": "p"}), ({"output": "a"},))
    assert violated(case) == {"runs_disagree"}
    for repeats in (
        Repeats(({"output": "p"}, {"output": "q"}), ({"output": "a"},)),
        Repeats(({"output": "p"}, {"output": "p"}), ({"output": "b"},)),
        Repeats((), ()),
    ):
        case.repeats = repeats
        assert (violated(case), noted(case)) == (set(), {"not_deterministic"})


def test_tuners_of_two_processes_may_choose_differently(file: str) -> None:
    repeats = Repeats(({"output": "p"},), ({"output": "a"},), {"output": "a"})
    tuned = (launch(file, tuned=True),)
    case = evidence(file, plain={"output": "p"}, launches=tuned, repeats=repeats)
    assert violated(case) == {"runs_disagree"}
    case.interpreted = False
    assert (violated(case), noted(case)) == (set(), {"not_deterministic"})


def test_the_entry_point(file: str) -> None:
    honest = entry(file)
    assert honest.forward is not None
    other = dataclasses.replace(honest.forward, digest="0" * 64)
    elsewhere = dataclasses.replace(honest.forward, place=Place("/elsewhere/m.py", 1))
    for changes in (
        {"own_class": False},
        {"bound_on_instance": ("forward",)},
        {"forward": None},
        {"forward": other},
        {"forward": elsewhere},
        {"forward": dataclasses.replace(honest.forward, name="kernel")},
        {"forward": dataclasses.replace(honest.forward, wrappers=("/elsewhere/m.py",))},
        {"hooks": ("/elsewhere/m.py",)},
    ):
        facts = dataclasses.replace(honest, **changes)
        assert violated(evidence(file, after=facts)) == {"entry_replaced"}, changes
    library = "/lib/torch/utils/_contextlib.py"
    wrapped = dataclasses.replace(honest.forward, wrappers=(library,))
    facts = dataclasses.replace(
        honest, forward=wrapped, hooks=("/lib/torch/nn/utils/parametrize.py",)
    )
    assert violated(evidence(file, after=facts)) == set()


def test_functions_and_threads(file: str) -> None:
    assert violated(evidence(file, changed={"import": ("torch.equal by /p/op.py",)})) == {
        "function_replaced"
    }
    library = evidence(file, changed={"forward": ("torch.equal by /lib/torch/_dynamo/x.py",)})
    assert (violated(library), noted(library)) == (set(), {"function_replaced"})
    assert violated(evidence(file, launcher_intact=False)) == {"function_replaced"}
    more = dataclasses.replace(entry(file), threads=2)
    assert violated(evidence(file, after=more)) == {"thread_left"}


def test_a_report_tells_each_finding_once_and_the_gravest_first() -> None:
    findings = [
        Finding("b", "note", "n", 1),
        Finding("a", "violation", "m", 1, "/x/op.py", 3),
        Finding("a", "violation", "m", 2, "/x/op.py", 3),
    ]
    report = ExecutionReport(merged(findings))
    assert [(f.code, f.cases) for f in report.findings] == [("a", (1, 2)), ("b", (1,))]
    assert report.message() == "op.py:3: a: m (cases 1, 2)"
    assert not report.passed
    assert report.to_json()["findings"][0] == {
        "code": "a",
        "severity": "violation",
        "message": "m",
        "case_idx": 1,
        "cases": [1, 2],
        "file": "op.py",
        "line": 3,
    }
    assert ExecutionReport(merged(findings[:1])).passed
