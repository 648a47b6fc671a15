"""Frames on a socket: what is sent arrives, and what is no frame is refused and nothing else."""

from __future__ import annotations

import array
import os
import resource
import socket
import struct
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution import wire
from pytest_tritonverify.execution.wire import Channel, WireError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SETTINGS = settings(deadline=None, max_examples=100)

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
# The frame's own key is no part of a message.
_messages = st.dictionaries(st.text().filter(lambda key: key != "has_fd"), _values, max_size=3)
_small_messages = st.fixed_dictionaries({"k": st.integers(0, 9)})


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, Channel]]:
    """A bare socket, and the channel that reads what it sends."""
    raw, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(raw), closing(Channel(other)) as channel:
        yield raw, channel


def _encoded(messages: Sequence[dict[str, Any]]) -> bytes:
    """Return the bytes that a channel sends for some messages."""
    raw, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(raw), closing(Channel(other)) as channel:
        data = bytearray()
        for message in messages:
            channel.queue(message)
            while channel.unsent:
                channel.flush()
                data += raw.recv(1 << 20)
    return bytes(data)


def _frame(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def _read(channel: Channel, count: int) -> list[wire.Frame]:
    """Take in what has come, and return the frames in it."""
    frames = []
    channel.read_available()
    for _ in range(count + 1):
        frame = channel.next_frame()
        if frame is None:
            break
        frames.append(frame)
    return frames


def _memory(content: bytes) -> int:
    fd = wire.new_memory("test")
    os.write(fd, content)
    return fd


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@_SETTINGS
@given(st.lists(_messages, min_size=1, max_size=4), st.data())
def test_any_message_survives_any_split_of_the_stream(
    messages: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = _encoded(messages)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=6).map(sorted))
    raw, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    found: list[wire.Frame] = []
    with closing(raw), closing(Channel(other)) as channel:
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            if start < end:
                raw.sendall(stream[start:end])
                found += _read(channel, len(messages))
    assert [frame.message for frame in found] == messages
    assert [frame.fd for frame in found] == [None] * len(messages)


@_SETTINGS
@given(st.lists(st.tuples(_small_messages, st.booleans()), min_size=1, max_size=8))
def test_descriptors_arrive_with_their_own_frame(
    parcels: list[tuple[dict[str, Any], bool]],
) -> None:
    before = _open_descriptors()
    here, there = wire.channel_pair()
    with closing(here), closing(there):
        for number, (message, with_memory) in enumerate(parcels):
            fd = _memory(b"%d" % number) if with_memory else None
            here.send(message, fd)
            if fd is not None:
                os.close(fd)
        for number, (message, with_memory) in enumerate(parcels):
            frame = there.receive()
            assert frame is not None
            assert frame.message == message
            assert (frame.fd is not None) is with_memory
            if frame.fd is not None:
                assert os.pread(frame.fd, 10, 0) == b"%d" % number
                os.close(frame.fd)
    assert _open_descriptors() == before


@_SETTINGS
@given(st.binary(max_size=400), st.booleans())
def test_garbage_is_refused_and_nothing_else(garbage: bytes, framed: bool) -> None:
    raw, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(Channel(other)) as channel:
        raw.sendall(_frame(garbage) if framed else garbage)
        raw.close()
        try:
            while (frame := channel.receive()) is not None:
                assert isinstance(frame.message, dict)
        except WireError:
            pass


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (b"", "no JSON"),
        (b"{", "no JSON"),
        (b"\xff\xfe", "no JSON"),
        (b"[1, 2]", "no object"),
        (b"null", "no object"),
        (b"[" * 200_000, "no JSON"),
        (b'{"a": ' + b"9" * 10_000 + b"}", "no JSON"),
        (b'{"has_fd": true}', "did not come"),
    ],
    ids=["empty", "cut", "no_utf8", "list", "null", "deep", "long_number", "no_descriptor"],
)
def test_wrong_frame_is_described(
    ends: tuple[socket.socket, Channel], body: bytes, complaint: str
) -> None:
    raw, channel = ends
    # From a thread: some are longer than a socket holds.
    sender = threading.Thread(target=raw.sendall, args=(_frame(body),))
    sender.start()
    with pytest.raises(WireError, match=complaint):
        channel.receive()
    sender.join()


def test_announced_size_is_refused_before_it_comes(ends: tuple[socket.socket, Channel]) -> None:
    raw, channel = ends
    raw.sendall(struct.pack(">I", wire.MAX_FRAME_BYTES + 1))
    with pytest.raises(WireError, match=str(wire.MAX_FRAME_BYTES + 1)):
        channel.receive()


def test_message_that_is_too_long_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MAX_FRAME_BYTES", 1000)
    here, there = wire.channel_pair()
    with closing(here), closing(there):
        with pytest.raises(WireError, match="handed over as tensors"):
            here.send({"a": "x" * 1000})
        here.send({"a": "y"})
        assert there.receive() == wire.Frame({"a": "y"})


def test_closed_socket_ends_the_stream() -> None:
    here, there = wire.channel_pair()
    with closing(there):
        here.send({"last": 1})
        here.close()
        assert there.receive() == wire.Frame({"last": 1})
        assert there.receive() is None
        assert there.closed_by_peer


def test_frame_that_breaks_off_is_no_frame(ends: tuple[socket.socket, Channel]) -> None:
    raw, channel = ends
    raw.sendall(_frame(b'{"a": 1}')[:-1])
    raw.shutdown(socket.SHUT_WR)
    assert channel.receive() is None


def test_flood_of_descriptors_is_refused_and_none_is_kept(
    ends: tuple[socket.socket, Channel],
) -> None:
    raw, channel = ends
    fd = _memory(b"x")
    before = _open_descriptors()

    def flood() -> None:
        for _ in range(100):
            socket.send_fds(raw, [b" "], [fd])
            channel.read_available()

    with pytest.raises(WireError, match="more descriptors"):
        flood()
    assert _open_descriptors() - before <= 20
    channel.close()
    assert _open_descriptors() < before
    os.close(fd)


@pytest.mark.parametrize("count", [2, 3, 250])
def test_superfluous_descriptors_of_a_frame_are_not_kept(
    ends: tuple[socket.socket, Channel], count: int
) -> None:
    raw, channel = ends
    fd = _memory(b"x")
    before = _open_descriptors()
    body = _frame(b'{"has_fd": true}')
    raw.sendmsg([body], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd] * count))])
    frame = channel.receive()
    assert frame is not None
    assert frame.fd is not None
    assert os.pread(frame.fd, 1, 0) == b"x"
    os.close(frame.fd)
    channel.close()
    assert _open_descriptors() < before
    os.close(fd)


def test_peer_that_reads_nothing_blocks_nobody() -> None:
    here, there = wire.channel_pair()
    fd = _memory(b"x")
    before = _open_descriptors()
    with closing(there):
        for number in range(3):
            here.queue({"number": number, "text": "x" * (1 << 20)}, fd)
            here.flush()
        assert here.unsent
        assert wire.wait_ready([], 0, [here]) == (set(), set())
        frames: list[wire.Frame] = []
        while len(frames) < 3:
            here.flush()
            there.read_available()
            frames += [frame] if (frame := there.next_frame()) is not None else []
        assert not here.unsent
        assert [frame.message["number"] for frame in frames] == [0, 1, 2]
        for frame in frames:
            assert frame.fd is not None
            os.close(frame.fd)
        here.queue({"text": "x" * (1 << 22)}, fd)
        here.queue({"text": "y"}, fd)
        here.close()
    os.close(fd)
    assert _open_descriptors() == before - 3


def test_descriptors_of_any_number_can_be_waited_for() -> None:
    high = 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard <= high:
        pytest.skip("descriptors of such numbers are not allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, high + 1), hard))
    low, other = os.pipe()
    os.dup2(low, high)
    try:
        assert wire.wait_ready([high], 0) == (set(), set())
        os.write(other, b"x")
        assert wire.wait_ready([high], 10) == ({high}, set())
    finally:
        for fd in (low, high, other):
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_lost_peer_is_news_for_readers_and_writers() -> None:
    here, there = wire.channel_pair()
    with closing(here):
        there.close()
        fd = here.fileno()
        assert wire.wait_ready([here], 10, [here]) == ({fd}, {fd})
