"""Frames between the judge and a worker: JSON over a private socket, tensors as sealed memory.

A frame is a 4-byte big-endian length and that many bytes of UTF-8 JSON, an object. A frame may
carry one descriptor of a sealed memory file. The judge reads frames that untrusted code may
have written, so a reader bounds what it accepts and never runs anything it reads.
"""

from __future__ import annotations

import array
import contextlib
import fcntl
import json
import os
import select
import socket
import struct
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_FRAME_BYTES = 64 << 20
_LENGTH = struct.Struct(">I")
_CHUNK = 1 << 16
_MAX_PENDING_FDS = 16
# The unit in which a file's memory is counted.
_BLOCK = 512
# A poll's limit is a 32-bit number of milliseconds; whoever waits longer asks again.
_LONGEST_POLL = 3600.0

_F_ADD_SEALS = 1033
_F_GET_SEALS = 1034
# F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE: contents and size can't change again.
_IMMUTABLE = 0x1 | 0x2 | 0x4 | 0x8

Message = dict[str, Any]


class WireError(Exception):
    """The other side sent something that is no frame of this protocol."""


@dataclass(frozen=True)
class Frame:
    """A message and, where it carries tensors, the descriptor of their memory file."""

    message: Message
    fd: int | None = None


def new_memory(name: str) -> int:
    """Return the descriptor of an empty anonymous memory file that can be sealed."""
    return os.memfd_create(name, os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)


def seal(fd: int) -> None:
    """Make a memory file immutable for every process that holds it."""
    fcntl.fcntl(fd, _F_ADD_SEALS, _IMMUTABLE)


def require_sealed(fd: int) -> None:
    """Check that a received descriptor is a memory file that can't change any more.

    Without that a worker could shrink the file while the judge reads it, which would kill the
    judge with SIGBUS, or change values after they were compared.

    Raises:
        WireError: the descriptor is no fully sealed memory file, or one with holes in it, which
            would take up memory only when the judge reads them.
    """
    try:
        seals = fcntl.fcntl(fd, _F_GET_SEALS)
    except OSError:
        raise WireError("received a descriptor that is no sealable memory file") from None
    if seals & _IMMUTABLE != _IMMUTABLE:
        raise WireError("received a memory file that is not sealed")
    status = os.fstat(fd)
    if status.st_blocks * _BLOCK < status.st_size:
        raise WireError("received a memory file with holes")


class Pollable(Protocol):
    """Anything with a descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""


def wait_ready(
    readers: Iterable[Pollable | int], timeout: float, writers: Iterable[Pollable | int] = ()
) -> tuple[set[int], set[int]]:
    """Wait until one of some descriptors can be read or written, or has lost its peer.

    Unlike `select` this takes descriptors of any number.

    Args:
        readers: what to read from.
        timeout: seconds; an hour at most is waited.
        writers: what to write to.

    Returns:
        The descriptors that can be read and those that can be written; none after the timeout.
    """
    poll = select.poll()
    wanted: dict[int, int] = {}
    for group, mask in ((readers, select.POLLIN), (writers, select.POLLOUT)):
        for one in group:
            fd = one if isinstance(one, int) else one.fileno()
            wanted[fd] = wanted.get(fd, 0) | mask
    for fd, mask in wanted.items():
        poll.register(fd, mask)
    ready = poll.poll(max(0.0, min(timeout, _LONGEST_POLL)) * 1000)
    # An error or a lost peer is news for both.
    return (
        {fd for fd, mask in ready if mask & ~select.POLLOUT},
        {fd for fd, mask in ready if mask & ~select.POLLIN},
    )


@dataclass
class Channel:
    """One end of a worker's socket. Closing it closes descriptors that nobody collected."""

    sock: socket.socket
    closed_by_peer: bool = False
    _buffer: bytearray = field(default_factory=bytearray)
    _fds: list[int] = field(default_factory=list)
    _outgoing: deque[tuple[memoryview, int | None]] = field(default_factory=deque)

    def fileno(self) -> int:
        """Return the descriptor to poll."""
        return self.sock.fileno()

    def send(self, message: Message, fd: int | None = None) -> None:
        """Send one frame, blocking until it is handed over.

        Raises:
            OSError: the peer is gone.
            WireError: the message is larger than a frame may be.
        """
        self.queue(message, fd)
        self._hand_over(0)

    def queue(self, message: Message, fd: int | None = None) -> None:
        """Keep one frame for `flush`: for a peer that may never read.

        Args:
            message: a JSON object; the key `has_fd` is the frame's own.
            fd: a descriptor to send along; it is duplicated, and stays the caller's.

        Raises:
            WireError: the message is larger than a frame may be.
        """
        body = json.dumps({**message, "has_fd": fd is not None}).encode()
        if len(body) > MAX_FRAME_BYTES:
            raise WireError(
                f"a message takes {len(body)} bytes of text, more than {MAX_FRAME_BYTES}; long "
                "lists of numbers must be handed over as tensors"
            )
        data = memoryview(_LENGTH.pack(len(body)) + body)
        self._outgoing.append((data, None if fd is None else os.dup(fd)))

    def flush(self) -> None:
        """Hand over as much of the queue as the peer takes without blocking.

        Raises:
            OSError: the peer is gone.
        """
        with contextlib.suppress(BlockingIOError):
            self._hand_over(socket.MSG_DONTWAIT)

    @property
    def unsent(self) -> bool:
        """Whether frames are waiting for `flush`."""
        return bool(self._outgoing)

    def _hand_over(self, flags: int) -> None:
        while self._outgoing:
            data, fd = self._outgoing[0]
            ancillary = []
            if fd is not None:
                ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))]
            sent = self.sock.sendmsg([data], ancillary, flags)
            if fd is not None:
                os.close(fd)
            if sent == len(data):
                self._outgoing.popleft()
            else:
                self._outgoing[0] = (data[sent:], None)

    def read_available(self) -> None:
        """Take in what can be read now without blocking beyond the first bytes.

        Raises:
            OSError: the connection was reset.
            WireError: the peer floods the socket with descriptors.
        """
        data, ancillary, _, _ = self.sock.recvmsg(
            _CHUNK, socket.CMSG_SPACE(4), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                received = array.array("i")
                received.frombytes(payload[: len(payload) - len(payload) % received.itemsize])
                self._fds.extend(received)
                if len(self._fds) > _MAX_PENDING_FDS:
                    raise WireError("received more descriptors than frames announce")
        if data:
            self._buffer += data
        else:
            self.closed_by_peer = True

    def next_frame(self) -> Frame | None:
        """Return the next complete frame that has been read, or None.

        Raises:
            WireError: what was read is no frame of this protocol.
        """
        if len(self._buffer) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise WireError(f"a frame announces {length} bytes")
        end = _LENGTH.size + length
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_LENGTH.size : end])
        del self._buffer[:end]
        try:
            message = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise WireError(f"a frame holds no JSON: {error}") from None
        if not isinstance(message, dict):
            raise WireError("a frame holds JSON that is no object")
        fd = None
        if message.pop("has_fd", False):
            if not self._fds:
                raise WireError("a frame announces a descriptor that did not come")
            fd = self._fds.pop(0)
        return Frame(message, fd)

    def receive(self) -> Frame | None:
        """Block until a frame has come; None when the peer closed the socket.

        Raises:
            OSError: the connection was reset.
            WireError: what was read is no frame of this protocol.
        """
        while True:
            frame = self.next_frame()
            if frame is not None:
                return frame
            if self.closed_by_peer:
                return None
            self.read_available()

    def close(self) -> None:
        """Close the socket and every descriptor that was not handed on, in either direction."""
        unsent = [fd for _, fd in self._outgoing if fd is not None]
        self._outgoing.clear()
        for fd in (*self._fds, *unsent):
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()
        self.sock.close()


def channel_pair() -> tuple[Channel, Channel]:
    """Return two connected ends."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return Channel(here), Channel(there)
