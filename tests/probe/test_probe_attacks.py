"""Whatever an implementation tells of its tensors, the worst that comes of it is its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.supervision import Process

if TYPE_CHECKING:
    from tests.support.probing import Prober

MODEL = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)

    def forward(self, x):
        return self.fc(x)
"""
WRONG = """
class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5, bias=True)
        with torch.no_grad():
            self._modules["fc"].weight.zero_()
{more}
    def forward(self, x):
        return x
"""

DISGUISES = {
    "named_parameters": """
    def named_parameters(self, *args, **kwargs):
        torch.manual_seed(0)
        return nn.Linear(4, 5).named_parameters(*args, **kwargs)
""",
    "state_dict": """
    def state_dict(self, *args, **kwargs):
        return {}
""",
    "getattr": """
    def __getattr__(self, name):
        if name.startswith("_"):
            return super().__getattr__(name)
        torch.manual_seed(0)
        return nn.Linear(4, 5)
""",
    "property": """
    @property
    def weight(self):
        raise RuntimeError("nothing to see")
""",
}


@pytest.mark.parametrize("more", DISGUISES.values(), ids=DISGUISES)
def test_methods_do_not_hide_wrong_weights(probe: Prober, more: str) -> None:
    record = probe(MODEL, WRONG.format(more=more))
    assert record.status == "failed", record
    assert [entry["name"] for entry in record.report["mismatches"]] == ["fc.weight"]


def test_subclass_does_not_hide_wrong_weights(probe: Prober) -> None:
    new = """
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError("nothing is said")

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 5)
        object.__setattr__(self.fc, "_parameters", dict(self.fc._parameters))
        self.fc._parameters["weight"] = torch.zeros(5, 4).as_subclass(Liar)

    def to(self, *args):
        return self

    def forward(self, x):
        return x
"""
    record = probe(MODEL, new)
    assert record.status == "failed", record
    assert [entry["name"] for entry in record.report["mismatches"]] == ["fc.weight"]


FORGERIES = {
    "no_answer": "{}",
    "no_lists": "{'built': {'tensors': 3}, 'ran': None}",
    "long": "{'built': {'tensors': [['w', {}]] * 100_000, 'sequences': []}}",
    "odd_digest": (
        "{'built': {'tensors': [['fc.weight', {'dtype': 'float32', 'shape': [5, 4], "
        "'digest': 'x', 'transposed': None}]], 'sequences': []}}"
    ),
    "deep": "{'built': " + "[" * 500 + "]" * 500 + "}",
    "huge_numbers": "{'built': {'tensors': [['w', {'dtype': 'a', 'shape': [10 ** 400]}]]}}",
}


@pytest.mark.parametrize("answer", FORGERIES.values(), ids=FORGERIES)
def test_forged_answers_are_not_compared(probe: Prober, answer: str) -> None:
    new = f"""
from pytest_tritonverify.execution import probing
probing.ImplementationProbe.survey = lambda self, request, fd: {answer}
{WRONG.format(more="")}
"""
    record = probe(MODEL, new)
    assert record.status == "warned", record
    assert [entry["code"] for entry in record.report["warnings"]] == ["hidden_state_not_compared"]
    json.dumps(record.to_json(), allow_nan=False)


VALUES = {
    "raises": "raise RuntimeError('no')",
    "dies": "os._exit(0)",
    "no_descriptor": "return {'tensors': {}}, None",
    "not_sealed": "return {'tensors': {}}, os.memfd_create('x')",
    "other_shape": (
        "from pytest_tritonverify.execution import tensors; "
        "p = tensors.pack({n: torch.zeros(3) for n in request['names']}, keep_layout=False); "
        "return {'tensors': p.spec}, p.fd"
    ),
    "no_tensors": (
        "from pytest_tritonverify.execution import tensors; "
        "p = tensors.pack({n: 'text' for n in request['names']}, keep_layout=False); "
        "return {'tensors': p.spec}, p.fd"
    ),
}


@pytest.mark.parametrize("body", VALUES.values(), ids=VALUES)
def test_forged_values_spoil_only_the_description(probe: Prober, body: str) -> None:
    new = f"""
from pytest_tritonverify.execution import probing

def fetch(self, request, fd):
    {body}

probing.ImplementationProbe.fetch = fetch
{WRONG.format(more="")}
"""
    record = probe(MODEL, new)
    assert record.status == "failed", record
    assert "expected float32[5, 4], got float32[5, 4]" in (record.message or "")


def test_names_are_text(probe: Prober) -> None:
    new = WRONG.format(more='        self.__dict__["\\ud800\\n" + "x" * 9999] = torch.ones(1)\n')
    record = probe(MODEL, new)
    assert record.status == "failed"
    json.dumps(record.to_json()).encode()


def test_nothing_of_the_reference_is_told_to_the_implementation(
    probe: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, dict[str, object]]] = []
    asked = Process.post

    def post(self: Process, message: dict[str, object], fd: int | None = None) -> None:
        sent.append((self._side, message))
        asked(self, message, fd)

    monkeypatch.setattr(Process, "post", post)
    assert probe(MODEL, WRONG.format(more="")).status == "failed"
    told = [message for side, message in sent if side == "implementation"]
    assert {str(message["op"]) for message in told} == {"probe", "tensors"}
    assert all(set(message) <= {"op", "case", "run", "names"} for message in told)
    cases = [message["case"] for message in told]
    assert all(set(case) == {"call", "init"} for case in cases if isinstance(case, dict))
    # The values of the reference are fetched when nobody can look for them any more.
    order = [(side, message["op"]) for side, message in sent]
    assert order.index(("implementation", "tensors")) < order.index(("reference", "tensors"))


def test_case_processes_are_none_of_the_probes(probe: Prober) -> None:
    probe(MODEL, WRONG.format(more=""))
    assert probe.started == ["reference", "candidate"]
