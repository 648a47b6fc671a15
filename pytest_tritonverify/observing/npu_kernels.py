"""Which kernels an NPU ran, by torch_npu's profiler and the table that it writes.

The table is `<host>_<pid>_<time>_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv`, with one
row a kernel. Triton's launcher gives its kernels their own name as `Name` and as `Type`; kernels of
CANN's libraries have a `Type` such as `MatMulV2` and a longer `Name`.
"""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tritonverify.evidence.operators import OF_CANN

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = "*_ascend_pt/ASCEND_PROFILER_OUTPUT/kernel_details.csv"


class NpuKernels:
    """Notes the kernels that run on the NPU in its context.

    Attributes:
        names: of each kernel that ran, in order; those of CANN begin with `cann::`.
    """

    def __init__(self) -> None:
        self.names: list[str] = []

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Profile for a while. A profiler that fails, or isn't there, notes nothing."""
        with tempfile.TemporaryDirectory(prefix="tritonverify-") as folder:
            profile: Any = None
            with _unheard():
                profile = _profile(folder)
                profile.start()
            try:
                yield
            finally:
                with _unheard():
                    profile.stop()
                    for table in sorted(Path(folder).glob(TABLE)):
                        self.names += read(table)


def _profile(folder: str) -> Any:
    from torch_npu import profiler

    return profiler.profile(
        activities=[profiler.ProfilerActivity.NPU],
        on_trace_ready=profiler.tensorboard_trace_handler(folder),
    )


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Let nobody hear of what the profiler says and raises: user code has the same streams."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception):
        yield


def read(table: Path) -> list[str]:
    """Return the names of the kernels in a table."""
    with table.open(newline="", encoding="utf-8-sig") as file:
        rows = [(row.get("Name") or "", row.get("Type") or "") for row in csv.DictReader(file)]
    return [name if name == kind else f"{OF_CANN}{kind}" for name, kind in rows]
