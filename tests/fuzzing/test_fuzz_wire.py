"""What an implementation's process sends is read, refused by name, or left out; nothing else."""

from __future__ import annotations

import contextlib
import json
import struct
from collections import namedtuple
from typing import Any

import torch
from hypothesis import given
from hypothesis import strategies as st

from pytest_tritonverify import outcomes, supervision
from pytest_tritonverify.accuracy import Rules
from pytest_tritonverify.benchmark import answers
from pytest_tritonverify.benchmark.measurement import MeasurementError
from pytest_tritonverify.comparison import Parcel, compare
from pytest_tritonverify.evidence import observations
from pytest_tritonverify.execution import tensors, unpacking, wire
from pytest_tritonverify.probe.inventory import Inventory
from pytest_tritonverify.reported import RunFacts
from tests.support.fuzzing import damaged, damaged_bytes, fuzzed, values
from tests.support.observed import OBSERVED

Point = namedtuple("Point", "x y")  # noqa: PYI024 - what user code may return

PACKED = tensors.pack(
    {
        "outputs": [
            torch.arange(6.0).reshape(2, 3),
            (torch.ones(3, dtype=torch.int64), 1.5, "text", None, True),
            {"a": Point(torch.zeros(2, dtype=torch.bfloat16), 3 + 4j), 7: b"bytes"},
            slice(1, 9, 2),
            range(4),
            {1, 2},
            torch.zeros(0),
        ],
        "changed": {"input[0]": torch.ones(4)},
    },
    keep_layout=False,
)
INPUTS = tensors.pack({"args": [torch.ones(4)], "kwargs": {}}, keep_layout=False)
SMALL = st.integers(-2, 7) | st.sampled_from([2**20, 2**40, 2**62, 2**63, 10**30])
TENSOR = st.fixed_dictionaries(
    {
        "k": st.just("tensor"),
        "s": SMALL,
        "dtype": st.sampled_from([*sorted(unpacking._DTYPES), "float32", "bool", "qint8", "x"]),
        "off": SMALL,
        "shape": st.lists(SMALL, max_size=3),
        "stride": st.lists(SMALL, max_size=3),
        "conj": st.booleans(),
        "neg": st.booleans(),
        "grad": st.booleans(),
    }
)


def digest(spec: Any) -> None:
    """Do with a description what the judge does before it has a golden, and after."""
    with contextlib.suppress(wire.WireError):
        outcomes.digests(spec, PACKED.fd)
    golden = Parcel(PACKED.spec, PACKED.fd)
    with contextlib.suppress(wire.WireError):
        compare(
            Parcel(INPUTS.spec, INPUTS.fd), golden, Parcel(spec, PACKED.fd), Rules(), lambda _: None
        )


@fuzzed
@given(damaged(PACKED.spec))
def test_descriptions_of_values(spec: Any) -> None:
    digest(spec)


@fuzzed
@given(TENSOR, st.lists(st.lists(SMALL, min_size=1, max_size=3), max_size=3) | st.none())
def test_descriptions_of_tensors(node: dict[str, Any], segments: Any) -> None:
    outputs = {"k": "list", "v": [node]}
    tree = {
        "k": "dict",
        "v": [
            [{"k": "str", "v": "outputs"}, outputs],
            [{"k": "str", "v": "changed"}, {"k": "dict", "v": []}],
        ],
    }
    digest({"tree": tree, "segments": PACKED.spec["segments"] if segments is None else segments})


def test_an_output_of_a_few_bytes_that_claims_to_be_huge() -> None:
    node = {
        "k": "tensor",
        "s": 0,
        "dtype": "float32",
        "off": 0,
        "shape": [2**40, 2**20],
        "stride": [0, 0],
        "conj": False,
        "neg": False,
        "grad": False,
    }
    tree = {
        "k": "dict",
        "v": [
            [{"k": "str", "v": "outputs"}, node],
            [{"k": "str", "v": "changed"}, {"k": "dict", "v": []}],
        ],
    }
    digest({"tree": tree, "segments": PACKED.spec["segments"]})


@fuzzed
@given(st.data())
def test_frames(data: st.DataObject) -> None:
    body = json.dumps({"event": "answer", "n": 3, "result": PACKED.spec}).encode()
    whole = struct.pack(">I", len(body)) + body
    stream = data.draw(damaged_bytes(whole * 2, (b"[" * 3000, b"\xff\xff\xff\xff", b"9" * 5000)))
    here, there = wire.channel_pair()
    try:
        there.sock.sendall(stream[: 1 << 16])
        there.sock.close()
        with contextlib.suppress(wire.WireError):
            while here.receive() is not None:
                pass
    finally:
        here.close()


FACTS: dict[str, Any] = {
    "launches": [
        {"kernel": "k", "file": "f.py", "line": 3, "grid": [1, 2], "constexprs": {"B": 64}}
    ],
    "masked_loads": [{"file": "f.py", "line": 3, "lanes": 2}],
    "strays": [
        {
            "file": "f.py",
            "line": 3,
            "kind": "store",
            "tensor": "x",
            "side": "after",
            "lanes": 1,
            "reach": 4,
        }
    ],
    "breaches": [
        {"tensor": "x", "side": "before", "count": 1, "reach": 4, "file": "f.py", "line": 3}
    ],
    "configurations": [{"kernel": "k", "count": 2, "index": 1, "name": "B=64"}],
    "standin": {"kind": "cuda", "used": ["stream"]},
    "error": {
        "type": "ValueError",
        "message": "no",
        "phase": "forward",
        "traceback": "",
        "file": "f.py",
        "line": 3,
        "code": "x",
    },
}


@fuzzed
@given(damaged(FACTS))
def test_facts_of_a_run(told: dict[str, Any]) -> None:
    facts = RunFacts.of(told)
    for one in (*facts.strays, *facts.breaches, *(facts.undefined_loads or ())):
        str(one).encode()
    error = supervision._checked(told.get("error"))
    assert all(isinstance(error[key], str) for key in ("type", "message", "phase", "traceback"))


READERS = (
    observations.Observation.of,
    observations.Replay.of,
    observations.Endurance.of,
    observations.broke_off,
)


@fuzzed
@given(damaged(OBSERVED) | values)
def test_observations(told: Any) -> None:
    for read in (*READERS, observations.operators_of):
        with contextlib.suppress(observations.ObservationError, LookupError):
            read(told)


TIMED: dict[str, Any] = {
    "timing": {
        "method": "cpu_wall_clock",
        "samples_ms": [1.0, 3.0],
        "latency_ms": 2.0,
        "reason": None,
        "operators": {"aten::add": 1.0},
        "launches_per_forward": 1,
        "cross_check_ms": 2.1,
        "loop_ms": 5.0,
        "forwards_ms": 4.0,
        "notes": ["a note"],
    },
    "peak_memory_mb": 1.5,
    "kept": [0, 3],
}


@fuzzed
@given(damaged(TIMED))
def test_measurements(told: dict[str, Any]) -> None:
    with contextlib.suppress(MeasurementError):
        answers.read(told, 2, 0.006)


INVENTORY: dict[str, Any] = {
    "tensors": [
        [
            "fc.weight",
            {
                "dtype": "float32",
                "shape": [2, 3],
                "digest": "a" * 64,
                "transposed": "b" * 64,
                "registered": True,
                "drawn": False,
                "volatile": "input",
            },
        ]
    ],
    "sequences": [["layers", 3], ["names", None]],
    "truncated": False,
}


@fuzzed
@given(damaged(INVENTORY) | values)
def test_what_a_model_is_said_to_hold(told: Any) -> None:
    with contextlib.suppress(wire.WireError):
        Inventory.of(told)


def test_the_corpus_is_right_before_it_is_damaged() -> None:
    assert len(outcomes.digests(PACKED.spec, PACKED.fd)) > 3
    assert RunFacts.of(FACTS).breaches
    assert RunFacts.of(FACTS).strays
    for read in READERS:
        read(OBSERVED)
    assert observations.operators_of(OBSERVED["operators"])
    assert Inventory.of(INVENTORY).tensors
    assert answers.read(TIMED, 2, 0.006).kept == (0, 3)
