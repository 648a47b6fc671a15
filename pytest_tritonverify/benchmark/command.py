"""The end of the drop-in command: its last line, and its exit status."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_tritonverify import figures
from pytest_tritonverify.benchmark import perf_file

if TYPE_CHECKING:
    from pathlib import Path

# Of pytest: everything passed; something failed, as a case may.
_ENDED = (0, 1)


def conclude(output: Path, status: int) -> int:
    """Print what came of a benchmark and return the command's exit status.

    Args:
        output: the report.
        status: pytest's exit status.

    Returns:
        0 where cases were measured, whether or not all of them worked; 1 where something broke,
        clocks that had to be locked and weren't included.
    """
    try:
        report = perf_file.read(output)
    except perf_file.PerfFileError:
        print(f"性能测试失败：没有写出结果文件（pytest 退出码 {status}）")
        return 1
    if status not in _ENDED:
        print(f"性能测试失败：运行没有正常结束（pytest 退出码 {status}）")
        return 1
    counts = f"{report['passed_cases']}/{report['total_cases']} 组通过"
    speedup = report["speedup_vs_torch"]
    shown = "null" if speedup is None else figures.shown(speedup)
    print(f"性能测试完成：{counts}，speedup_vs_torch = {shown}（详见 {output}）")
    frequency = report.get("frequency") or {}
    return 1 if frequency.get("failed") else 0
