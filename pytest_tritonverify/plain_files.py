"""Reading files that somebody may have replaced by something that never ends."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

MOST_BYTES = 1 << 30
"""Of a file of source, cases or results: what is larger is none, and may be all holes."""


def read(path: Path) -> bytes:
    """Return the content of a plain file.

    Opening a pipe would wait for whoever writes to it, and a device has no end.

    Args:
        path: the file; links are followed.

    Raises:
        OSError: it can't be read, is no plain file, or is larger than `MOST_BYTES`.
    """
    with _opened(path) as stream:
        return stream.read()


def digest(path: Path | None) -> str | None:
    """Return the sha256 of a plain file's content, or None where there is none to read."""
    try:
        if path is None:
            return None
        found = hashlib.sha256()
        with _opened(path) as stream:
            while chunk := stream.read(1 << 20):
                found.update(chunk)
    except OSError:
        return None
    return found.hexdigest()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as stream:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        if status.st_size > MOST_BYTES:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
        yield stream
