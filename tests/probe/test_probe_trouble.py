"""What goes wrong in a probe, P3, and what stands in the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.judge import PairJudge
from pytest_tritonverify.pair_processes import PairProcesses
from pytest_tritonverify.probe import conclusions, probing
from pytest_tritonverify.settings import Settings
from tests.support.probing import codes, expect_mismatch, model, new

if TYPE_CHECKING:
    from tests.support.probing import Prober

ECHO = """
class ModelNew(nn.Module):
    def forward(self, x):
        return x
"""


LINEAR = "self.fc = nn.Linear(4, 5)"
ADD = "torch.manual_seed(3)\nself.w = nn.Parameter(torch.randn(4))"


# What goes wrong


def test_reference_that_cannot_be_built_leaves_nothing_to_compare(probe: Prober) -> None:
    record = probe(model("raise RuntimeError('no such size')"), new(LINEAR))
    assert record.status == "skipped"
    assert "RuntimeError: no such size" in (record.message or "")
    assert probe.started == ["reference"]


def test_reference_that_needs_its_inputs_made_is_probed(probe: Prober) -> None:
    ours = model("self.w = nn.Parameter(SIZES['w'] * torch.ones(4))", top="SIZES = {}")
    inputs = "def get_inputs():\n    SIZES['w'] = 2.0\n    return [torch.randn(3, 4)]\n"
    theirs = new("self.w = nn.Parameter(2 * torch.ones(4))")
    assert probe(ours, theirs, inputs).status == "passed"


@pytest.mark.parametrize(
    ("theirs", "word"),
    [
        (new("raise RuntimeError('no such size')"), "no such size"),
        ("raise ImportError('no such module')", "no such module"),
        (new("os._exit(0)"), "exit status 0"),
        (new("sys.exit(0)"), "SystemExit"),
        ("class Other: pass", "no class `ModelNew`"),
    ],
    ids=["raises", "import", "exit", "sys_exit", "absent"],
)
def test_implementation_that_cannot_be_built_is_not_compared(
    probe: Prober, theirs: str, word: str
) -> None:
    record = probe(model(LINEAR), theirs)
    assert (record.status, codes(record)) == ("warned", [conclusions.NOT_COMPARED])
    assert word in (record.message or "")


@pytest.mark.parametrize(
    "forward",
    ["raise RuntimeError('does not compile')", "os.abort()", "time.sleep(600)"],
    ids=["raises", "dies", "hangs"],
)
def test_mismatch_is_told_whatever_the_forward_does(
    probe: Prober, forward: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in forward:
        monkeypatch.setattr(probing, "_FORWARD_SHARE", 0.02)
    theirs = new("self.w = nn.Parameter(torch.zeros(4))", forward)
    pair = probe.write(model(ADD), theirs)
    text = expect_mismatch(probe.pair(pair), "w")
    assert "4 of 4 elements differ" in text


def test_what_the_forward_raised_is_named_where_something_is_missing(probe: Prober) -> None:
    theirs = new("self.fc = nn.Linear(4, 5)", "raise ValueError('bad block')")
    record = probe(model("self.fc = nn.Linear(4, 5)\nself.v = nn.Linear(2, 2)"), theirs)
    assert record.status == "warned"
    assert "raised ValueError: bad block" in (record.message or "")


def test_reference_that_the_cpu_cannot_run_is_probed_where_it_runs(probe: Prober) -> None:
    if probe.device == "cpu":
        pytest.skip("the CPU runs everything here")
    use = "assert x.is_cuda\nself._w = torch.rand(4, device=x.device)\nreturn x"
    record = probe(model("", use), new("", use))
    assert (record.status, record.report["fw_state"]) == ("passed", 1)


def test_forward_that_differentiates_is_run(probe: Prober) -> None:
    forward = (
        "y = x.detach().requires_grad_()\n"
        "torch.autograd.grad((y ** 2).sum(), y)\n"
        "torch.manual_seed(4)\nself._w = torch.randn(4)\nreturn x"
    )
    record = probe(model("", forward), new("", forward))
    assert (record.status, record.report["fw_state"]) == ("passed", 1)


def test_truncated_scan_is_told(probe: Prober) -> None:
    init = "a = self.w = torch.ones(1)\nfor _ in range(60): a = [a]\nself.a = a"
    record = probe(model(init), new(init))
    assert record.status == "warned"
    assert codes(record) == [conclusions.INCOMPLETE]


def test_large_tensors_are_compared_though_not_shown(probe: Prober) -> None:
    ours = "self.register_buffer('w', torch.ones(34_000_000))"
    text = expect_mismatch(probe(model(ours), new(ours.replace("ones", "zeros"))), "w")
    assert "elements differ" not in text


def test_tensors_without_values_decide_nothing(probe: Prober) -> None:
    init = "self.w = torch.ones(3, device='meta')"
    record = probe(model(init), new(init))
    assert record.status == "passed"
    assert record.report["passed_over"] == {"w": "opaque"}


def test_pair_is_probed_once(probe: Prober) -> None:
    pair = probe.write(model(ADD), new("self.w = nn.Parameter(torch.zeros(4))"))
    judge = PairJudge(PairProcesses(pair, Settings(), probe.device, probe.spawn))
    try:
        record = judge.probe(None)
        assert record.status == "failed"
        assert judge.probe(None) is record
        assert probe.started == ["reference", "reference", "candidate"]
    finally:
        judge.reference.close()


def test_no_time_left_is_no_verdict(probe: Prober) -> None:
    pair = probe.write(model(ADD), new("self.w = nn.Parameter(torch.zeros(4))"))
    record = probe.pair(pair, timeout=1e-3)
    assert record.status == "skipped"
    assert "VerifyTimeout" in (record.message or "")


# P3

DRIFTS = "COUNT = [0]\n"
DRIFT = "COUNT[0] += 1\nreturn x * COUNT[0]"


def test_determinism_is_checked_only_when_asked_for(probe: Prober) -> None:
    record = probe(model(""), new("", DRIFT, top=DRIFTS))
    assert record.status == "skipped"


@pytest.mark.parametrize("side", ["Model", "ModelNew"])
def test_runs_that_differ_are_warned_of(probe: Prober, side: str) -> None:
    steady = ("", "return x + torch.randn(4).to(x.device)", "")
    drifting = ("", DRIFT, DRIFTS)
    ours = drifting if side == "Model" else steady
    theirs = drifting if side == "ModelNew" else steady
    record = probe(model(*ours[:2], top=ours[2]), new(*theirs[:2], top=theirs[2]), determinism=True)
    assert (record.status, codes(record)) == ("warned", [conclusions.NONDETERMINISTIC])
    assert f"two runs of {side} on the same inputs" in (record.message or "")


def test_side_that_cannot_run_twice_is_told(probe: Prober) -> None:
    record = probe(model(""), new("", "raise ValueError('bad block')"), determinism=True)
    assert codes(record) == [conclusions.NOT_CHECKED]
    assert "ValueError: bad block" in (record.message or "")


# What it says in the log


def test_log_lines(probe: Prober, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pytest_tritonverify")
    probe(model(""), ECHO)
    probe(model(LINEAR), ECHO)
    probe(model(ADD), new("self.w = nn.Parameter(torch.zeros(4))"))
    lines = [(r.levelname, r.getMessage()) for r in caplog.records if "探针" in r.getMessage()]
    assert lines[0][0] == "INFO"
    assert lines[0][1].startswith("[隐藏状态探针] SKIP: ")
    levels = [level for level, text in lines if "WARN hidden_state_unexposed" in text]
    assert levels == ["WARNING"]
    assert ("ERROR", "[隐藏状态探针] HiddenStateMismatch: `w`") in [
        (level, text[: len("[隐藏状态探针] HiddenStateMismatch: `w`")]) for level, text in lines
    ]
