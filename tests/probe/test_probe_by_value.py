"""P0 and P2: whether there is state at all, and tensors that have no namesake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.probe import conclusions
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


# P0


def test_model_without_state_is_skipped_by_the_reference_alone(probe: Prober) -> None:
    record = probe(model("self.n, self.eps = 3, 1e-5"), ECHO)
    assert record.status == "skipped"
    assert probe.started == ["reference"]
    assert record.report["fw_state"] == 0
    assert record.report["im_state"] is None
    assert "nothing to compare" in (record.message or "")


@pytest.mark.parametrize(
    "forward",
    ["self.last = x\nreturn x", "self.last = x * 2 + 1\nreturn x", "self.seen = [x]\nreturn x"],
)
def test_what_follows_from_the_inputs_is_no_state(probe: Prober, forward: str) -> None:
    record = probe(model("", forward), ECHO)
    assert record.status == "skipped"
    assert probe.started == ["reference"]


def test_state_that_the_forward_makes_is_found_though_it_raises_later(probe: Prober) -> None:
    forward = "torch.manual_seed(5)\nself._w = torch.randn(4)\nraise RuntimeError('no')"
    record = probe(model("", forward), ECHO)
    assert record.report["fw_state"] == 1
    assert codes(record) == [conclusions.UNEXPOSED]


# P2


def test_other_name_is_found_by_value(probe: Prober) -> None:
    init = "torch.manual_seed(3)\nself.register_buffer('gain', torch.randn(4))"
    record = probe(model(ADD), new(init))
    assert record.status == "passed", record
    assert record.report["matched"] == 1


def test_transposed_weight_of_another_name_is_found(probe: Prober) -> None:
    init = "fc = nn.Linear(4, 5)\nself.wt, self.b = fc.weight.t().contiguous(), fc.bias"
    record = probe(model(LINEAR), new(init))
    assert (record.status, record.report["matched"]) == ("passed", 2)


def test_one_same_name_does_not_silence_the_others(probe: Prober) -> None:
    init = "self.fc = nn.Linear(4, 5)"
    record = probe(model("self.fc = nn.Linear(4, 5)\nself.extra = nn.Linear(4, 2)"), new(init))
    assert (record.status, codes(record)) == ("warned", [conclusions.VALUE_MISMATCH])
    assert [entry["name"] for entry in record.report["missing"]] == ["extra.weight", "extra.bias"]
    assert "`extra.weight` float32[2, 4]" in (record.message or "")


def test_implementation_that_shows_nothing_is_warned_of(probe: Prober) -> None:
    record = probe(model(LINEAR), ECHO)
    assert (record.status, codes(record)) == ("warned", [conclusions.UNEXPOSED])


@pytest.mark.parametrize(
    "top",
    [
        "torch.manual_seed(3)\nW = torch.randn(4)",
        "torch.manual_seed(3)\n_CACHE = {'w': torch.randn(4)}",
        "torch.manual_seed(3)\nclass Keeper:\n    w = torch.randn(4)",
        "torch.manual_seed(0)\nLAYER = nn.Linear(4, 5)",
    ],
    ids=["tensor", "cache", "class", "layer"],
)
def test_top_of_the_implementations_file_is_searched(probe: Prober, top: str) -> None:
    kept = LINEAR if "LAYER" in top else ADD
    assert probe(model(kept), new("", top=top)).status == "passed"


def test_cache_at_the_top_of_the_reference_is_state(probe: Prober) -> None:
    top = "_CACHE = {}\ndef weight():\n    torch.manual_seed(8)\n"
    top += "    return _CACHE.setdefault('w', torch.randn(4))\n"
    use = "return x * weight()"
    assert probe(model("", use, top=top), new("", use, top=top)).status == "passed"
    other = top.replace("manual_seed(8)", "manual_seed(9)")
    expect_mismatch(probe(model("", use, top=top), new("", use, top=other)), "<module>._CACHE.w")
