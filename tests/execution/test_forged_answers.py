"""An implementation that speaks for its worker: the judge believes nothing that is no answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.execution import worker_handle
from pytest_tritonverify.execution.worker_handle import WorkerHung
from tests.support.living import open_descriptors
from tests.support.workers import attack

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.results.records import CaseRecord
    from tests.support.workers import Bench

# How user code gets hold of the connection to the judge, and writes frames of its own.
TOP = """
import json
import struct
from pytest_tritonverify.execution import tensors, wire

def channel():
    return next(o for o in gc.get_objects() if isinstance(o, wire.Channel))

def frame(message):
    body = json.dumps(message).encode()
    return struct.pack(">I", len(body)) + body

def answer(fd=None, **content):
    message = {"event": "answer", "n": 1, **content}
    if fd is None:
        channel().sock.sendall(frame(message))
    else:
        socket.send_fds(channel().sock, [frame({**message, "has_fd": True})], [fd])

def flood():
    memory = wire.new_memory("x")
    while True:
        socket.send_fds(channel().sock, [b"x"], [memory])

def result(tensor):
    return tensors.pack({"outputs": tensor, "changed": {}}, keep_layout=False)

def unsealed():
    unsealed.fd = wire.new_memory("x")
    os.write(unsealed.fd, b"x" * 32)
    return unsealed.fd

def sealed_empty():
    memory = wire.new_memory("x")
    wire.seal(memory)
    return memory

def blind(fd):
    return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
"""
_TENSOR = {
    "k": "tensor", "s": 0, "dtype": "float32", "off": 0, "shape": [2, 4], "stride": [4, 1],
    "conj": False, "neg": False, "grad": False,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for the end of a process that has closed its connection and lives on."""
    monkeypatch.setattr(worker_handle, "_EXIT_GRACE", 0.5)


def _judged(bench: Bench, folder: Path, forward: str, timeout: float = 60.0) -> CaseRecord:
    """Judge a case, see that its record can be kept, and that another pair is judged rightly."""
    (record,) = bench.verdict(attack(folder, forward, TOP), timeout)
    json.dumps(record.to_json(), ensure_ascii=False).encode("utf-8")
    (other,) = bench.verdict(attack(folder / "other", "pass"))
    assert other.status == "passed"
    return record


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("channel().sock.close()\ntime.sleep(1000)", "closed its connection"),
        ("os.close(channel().fileno())", "ended while"),
        ("os.closerange(0, 1000)", "ended while"),
        ("channel().sock.shutdown(socket.SHUT_RDWR)", "ended while"),
        ("channel().sock.sendall(b'\\xff' * 1000)", "a frame announces 4294967295 bytes"),
        ("channel().sock.sendall(struct.pack('>I', 4) + b'junk')", "a frame holds no JSON"),
        ("channel().sock.sendall(struct.pack('>I', 2) + b'[]')", "JSON that is no object"),
        ("channel().sock.sendall(frame({'event': 'verdict'}))", "neither the answer nor a phase"),
        ("channel().sock.sendall(frame({'event': 'phase', 'phase': 5}))", "neither the answer"),
        # Else the descriptor of the real answer could be taken for the one announced.
        (
            "channel().sock.sendall(frame({'has_fd': True}))\ntime.sleep(1000)",
            "descriptor that did not come",
        ),
        (
            "channel().sock.sendall(struct.pack('>I', 1 << 20))\nflood()",
            "more descriptors than frames announce",
        ),
    ],
)
def test_broken_protocol_is_a_crash_of_the_implementation(
    bench: Bench, tmp_path: Path, forward: str, words: str
) -> None:
    record = _judged(bench, tmp_path, forward)
    assert (record.status, record.side) == ("failed", "implementation")
    assert record.error_type == "WorkerCrash"
    assert record.error_msg is not None
    assert words in record.error_msg


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"result": None},
        {"result": 5},
        {"result": {}},
        {"result": {"tree": {"k": "none"}}},
        {"result": {"tree": {"k": "none"}, "segments": []}},
        {"result": {"tree": {"k": "dict", "v": []}, "segments": []}},
        {"result": {"tree": _TENSOR, "segments": [[0, 32]]}},
        {"result": "x" * 1_000_000},
    ],
    ids=lambda content: str(content)[:60],
)
def test_forged_result_without_substance_fails(
    bench: Bench, tmp_path: Path, content: dict[str, Any]
) -> None:
    record = _judged(bench, tmp_path, f"answer(**{content!r})\ntime.sleep(1000)")
    assert (record.status, record.error_type) == ("failed", "WorkerCrash")
    assert record.error_msg is not None
    assert "sent no proper result" in record.error_msg
    assert len(record.error_msg) < 5000


@pytest.mark.parametrize(
    "error",
    [
        None,
        5,
        [],
        {},
        {"type": 5, "message": [], "phase": {}, "traceback": 1, "file": 2, "line": "x", "code": 3},
        {"type": "\ud800", "message": "\ud800" * 10, "phase": "\udfff", "traceback": "\ud800"},
        {"type": "T" * 10_000, "message": "m" * 5_000_000, "file": "f" * 10_000, "line": 10**300},
        {"type": "", "message": "", "line": -1},
    ],
    ids=lambda error: str(error).encode("ascii", "backslashreplace").decode()[:40],
)
def test_forged_error_is_recorded_in_bounds(bench: Bench, tmp_path: Path, error: Any) -> None:
    record = _judged(bench, tmp_path, f"answer(error={error!r})\ntime.sleep(1000)")
    assert (record.status, record.side) == ("failed", "implementation")
    assert record.error_type
    assert len(record.error_type) <= 200
    assert record.error_msg is not None
    assert len(record.error_msg) < 100_000
    assert record.line is None or record.line > 0
    assert record.file is None or len(record.file) < 5000


@pytest.mark.parametrize(
    "forge",
    [
        # Unsealed, so that it can shrink or change while the judge reads.
        "answer(unsealed(), result=result(x * 2).spec)\nos.ftruncate(unsealed.fd, 0)",
        # Sealed only after it was made too small.
        "answer(sealed_empty(), result=result(x * 2).spec)",
        # No memory at all.
        "answer(os.open('/dev/zero', os.O_RDWR), result=result(x * 2).spec)",
        "answer(result=result(x * 2).spec)",
        # Memory that can't be read.
        "packed = result(x * 2)\nanswer(blind(packed.fd), result=packed.spec)",
    ],
    ids=["unsealed", "short", "device", "missing", "write_only"],
)
def test_memory_that_cannot_be_trusted_is_refused(bench: Bench, tmp_path: Path, forge: str) -> None:
    record = _judged(bench, tmp_path, f"{forge}\ntime.sleep(1000)")
    assert (record.status, record.error_type) == ("failed", "WorkerCrash")
    assert record.error_msg is not None
    assert "sent no proper result" in record.error_msg


def test_phases_without_end_end_at_the_deadline(bench: Bench, tmp_path: Path) -> None:
    flood = "data = frame({'event': 'phase', 'phase': '\\ud800' * 500}) * 100\n"
    record = _judged(bench, tmp_path, f"{flood}while True: channel().sock.sendall(data)", 3.0)
    assert record.error_type == "VerifyTimeout"
    assert record.phase is not None
    assert len(record.phase) <= 40


def test_frame_that_never_ends_ends_at_the_deadline(bench: Bench, tmp_path: Path) -> None:
    forward = "channel().sock.sendall(struct.pack('>I', 1 << 20) + b'{')\ntime.sleep(1000)"
    assert _judged(bench, tmp_path, forward, 3.0).error_type == "VerifyTimeout"


def test_descriptors_of_phases_do_not_pile_up(bench: Bench, tmp_path: Path) -> None:
    forward = (
        "memory = wire.new_memory('x')\n"
        "data = frame({'event': 'phase', 'phase': 'x', 'has_fd': True})\n"
        "for _ in range(3000): socket.send_fds(channel().sock, [data], [memory])"
    )
    before = open_descriptors()
    record = _judged(bench, tmp_path, forward)
    assert record.status == "passed"
    bench.close()
    assert open_descriptors() <= before


def test_answers_in_advance_are_refused(bench: Bench, tmp_path: Path) -> None:
    # Two answers to the first request: the second must not count for the second case.
    forward = "packed = result(x * 2)\nanswer(packed.fd, result=packed.spec)"
    first, second = bench.verdict(attack(tmp_path, forward, TOP), cases=2)
    assert first.status == "passed"
    assert (second.status, second.error_type) == ("failed", "WorkerCrash")


def test_answer_to_the_next_request_is_refused(bench: Bench, tmp_path: Path) -> None:
    forward = "packed = result(x * 2)\nanswer(packed.fd, n=2, result=packed.spec)"
    (record,) = bench.verdict(attack(tmp_path, forward, TOP))
    assert (record.status, record.error_type) == ("failed", "WorkerCrash")


def test_peer_that_reads_nothing_does_not_block_the_judge(bench: Bench, tmp_path: Path) -> None:
    # The second request is far longer than the socket holds, and nobody is there to read it.
    task = """
    import torch

    class Model(torch.nn.Module):
        def forward(self, x, numbers):
            return x * 2

    def get_input_groups():
        return [[torch.ones(2), []], [torch.ones(2), list(range(300_000))]]
    """
    forward = "packed = result(x * 2)\nanswer(packed.fd, result=packed.spec)\ntime.sleep(1000)"
    pair = attack(tmp_path, forward, TOP, task)
    text = pair.implementation.read_text().replace("forward(self, x)", "forward(self, x, numbers)")
    pair.implementation.write_text(text)
    reference, candidate = bench.ready("reference", pair), bench.ready("candidate", pair)
    cases = [bench.inputs(reference, case_idx) for case_idx in (1, 2)]
    requests = [{"op": "run", "case": inputs.message["case"]} for inputs in cases]
    assert "error" not in bench.ask(candidate, requests[0], cases[0].fd).message
    with pytest.raises(WorkerHung):
        bench.ask(candidate, requests[1], cases[1].fd, seconds=1)
