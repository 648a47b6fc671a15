"""P1: tensors of one name, on pairs that real workers are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.probe import conclusions
from tests.support.probing import codes, expect_mismatch, model, new

if TYPE_CHECKING:
    from tests.support.probing import Prober

LINEAR = "self.fc = nn.Linear(4, 5)"
ADD = "torch.manual_seed(3)\nself.w = nn.Parameter(torch.randn(4))"


# P1


@pytest.mark.parametrize(
    "init",
    [LINEAR, ADD, "self.norm = nn.BatchNorm1d(4)", "self.layers = [nn.Linear(4, 4)]"],
    ids=["linear", "seeded", "statistics", "list"],
)
def test_same_construction_passes_without_running_the_implementation(
    probe: Prober, init: str
) -> None:
    use = "return self.norm(x)" if "norm" in init else "return x"
    record = probe(model(init, use), new(init, "os._exit(3)"))
    assert record.status == "passed", record
    assert record.message is None
    assert record.report["compared"] == record.report["fw_state"] > 0


def test_other_values_fail_and_are_shown(probe: Prober) -> None:
    text = expect_mismatch(probe(model(ADD), new("self.w = nn.Parameter(torch.zeros(4))")), "w")
    assert "float32[4]" in text
    assert "4 of 4 elements differ" in text
    assert "first: [0] expected " in text
    assert "likely cause: the implementation's is filled with 0" in text
    assert "build ModelNew from the same layers in the same order" in text


@pytest.mark.parametrize(
    "init",
    [
        "self.w = nn.Parameter(torch.ones(2, 2))",
        "self.w = nn.Parameter(torch.ones(4, dtype=torch.float64))",
        "self.register_buffer('w', torch.ones(4).int())",
    ],
    ids=["shape", "dtype", "kind"],
)
def test_other_shape_or_dtype_fails(probe: Prober, init: str) -> None:
    text = expect_mismatch(probe(model("self.w = nn.Parameter(torch.ones(4))"), new(init)), "w")
    assert "expected float32[4], got " in text


@pytest.mark.parametrize(
    ("ours", "theirs", "passes"),
    [
        ("[float('nan'), 1.0]", "[float('nan'), 1.0]", True),
        ("[0.0, 1.0]", "[-0.0, 1.0]", False),
        ("[float('nan'), 1.0]", "[-float('nan'), 1.0]", False),
        ("[2 ** 24, 1]", "[2 ** 24 + 1, 1]", False),
        ("[1 + 2j]", "[1 + 3j]", False),
    ],
    ids=["nan", "sign_of_zero", "nan_payload", "large_integers", "imaginary"],
)
def test_bits_decide(probe: Prober, ours: str, theirs: str, passes: bool) -> None:
    record = probe(
        model(f"self.register_buffer('b', torch.tensor({ours}))"),
        new(f"self.register_buffer('b', torch.tensor({theirs}))"),
    )
    if passes:
        assert record.status == "passed"
    else:
        expect_mismatch(record, "b")


def test_transposed_weight_of_the_same_name_is_the_same(probe: Prober) -> None:
    turned = (
        "self.fc = nn.Linear(4, 5)\nself.fc.weight = nn.Parameter(self.fc.weight.t().contiguous())"
    )
    assert probe(model(LINEAR), new(turned)).status == "passed"


def test_untied_copy_of_a_tied_weight_fails(probe: Prober) -> None:
    tied = "self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)\nself.b.weight = self.a.weight"
    free = "self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)"
    expect_mismatch(probe(model(tied), new(free)), "b.weight")


DEEP = {
    "dict": "self._parts = {'a': nn.Linear(4, 4)}",
    "list": "self._parts = [nn.Linear(4, 4)]",
    "tuple": "self._parts = (nn.Linear(4, 4),)",
    "attribute": "object.__setattr__(self, '_part', nn.Linear(4, 4))",
    "submodule": "self.a = nn.ReLU()\nself.a.w = torch.randn(4)",
    "private": "self._w = torch.randn(4)",
}


@pytest.mark.parametrize("init", DEEP.values(), ids=DEEP)
def test_deep_state_is_compared(probe: Prober, init: str) -> None:
    assert probe(model(init), new(init)).status == "passed"
    drawn_before = f"torch.rand(1)\n{init}"
    assert probe(model(init), new(drawn_before)).status == "failed"


LAZY = """if '_w' not in self.__dict__:
    torch.manual_seed(hash('key') % 1000)
    self.__dict__['_w'] = torch.randn(4)
return x * self._w"""


def test_weights_of_the_first_forward_are_compared(probe: Prober) -> None:
    assert probe(model("", LAZY), new("", LAZY)).status == "passed"
    other = LAZY.replace("'key'", "'other'")
    text = expect_mismatch(probe(model("", LAZY), new("", other)), "_w")
    assert "made by the first forward on both sides" in text
    assert "4 of 4 elements differ" in text


def test_lazy_layers_are_compared(probe: Prober) -> None:
    if probe.device != "cpu":
        pytest.skip("each device draws other numbers")
    init, use = "self.a = nn.LazyLinear(3)", "return self.a(x)"
    assert probe(model(init, use), new(init, use)).status == "passed"
    other = f"torch.manual_seed(9)\n{use}"
    record = probe(model(init, use), new(init, other))
    assert record.status == "failed"


def test_weights_made_first_and_filled_in_later_are_the_same(probe: Prober) -> None:
    forward = "with torch.no_grad(): self.w.copy_(torch.ones(4))\nreturn x"
    empty = "self.w = nn.Parameter(torch.zeros(4))"
    ones = "self.w = nn.Parameter(torch.ones(4))"
    assert probe(model(ones), new(empty, forward)).status == "passed"


def test_statistics_that_only_the_warm_up_changed_fail_nobody(probe: Prober) -> None:
    init = "self.norm = nn.BatchNorm1d(4)"
    record = probe(model(init, "return self.norm(x)"), new(init))
    assert record.status == "passed", record


def test_memory_that_nobody_wrote_fails_nobody(probe: Prober) -> None:
    ours = "self.register_buffer('scratch', torch.empty(64))\nself.fc = nn.Linear(4, 4)"
    theirs = "self.register_buffer('scratch', torch.zeros(64))\nself.fc = nn.Linear(4, 4)"
    assert probe(model(ours), new(ours)).status == "passed"
    record = probe(model(ours), new(theirs))
    assert record.status == "passed", record
    assert record.report["passed_over"] == {"scratch": "fresh"}


def test_constants_of_one_name_only_warn_unless_they_are_registered(probe: Prober) -> None:
    ours, theirs = "self.scale = torch.tensor(0.5)", "self.scale = torch.tensor(0.72)"
    record = probe(model(ours), new(theirs))
    assert (record.status, codes(record)) == ("warned", [conclusions.VALUE_MISMATCH])
    assert "`scale` float32[] (ModelNew's is another, float32[])" in (record.message or "")
    buffers = [f"self.register_buffer('scale', torch.tensor({v}))" for v in (0.5, 0.72)]
    expect_mismatch(probe(model(buffers[0]), new(buffers[1])), "scale")


def test_sequences_of_different_length_are_not_compared_by_position(probe: Prober) -> None:
    ours = "self.net = nn.Sequential(nn.ReLU(), nn.Linear(4, 5), nn.Linear(5, 2))"
    theirs = "self.net = nn.Sequential(nn.Linear(4, 5), nn.Linear(5, 2))"
    record = probe(model(ours), new(theirs))
    assert record.status == "passed", record
    assert record.report["skipped_positional"] == ["net.1.weight", "net.1.bias"]
    expect_mismatch(
        probe(
            model("self.net = [torch.randn(4), torch.randn(4)]"),
            new("a, b = torch.randn(4), torch.randn(4)\nself.net = [b, a]"),
        ),
        "net.0",
        "net.1",
    )
