"""An accelerator is told by its device files alone."""

from __future__ import annotations

import fnmatch
import glob

import pytest

from pytest_tritonverify import detection


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The device files of a machine that has none of the variables set that hide some."""
    files: list[str] = []
    monkeypatch.setattr(
        glob, "glob", lambda pattern: [f for f in files if fnmatch.fnmatch(f, pattern)]
    )
    for name in ("ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return files


NPU = ["/dev/davinci1", "/dev/davinci0", "/dev/davinci_manager"]
CUDA = ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"]


@pytest.mark.parametrize(
    ("files", "npu", "cuda"),
    [
        ([], [], []),
        (["/dev/null", "/dev/davinci", "/dev/nvidia"], [], []),
        (NPU, ["/dev/davinci0", "/dev/davinci1", "/dev/davinci_manager"], []),
        (CUDA, [], ["/dev/nvidia0", "/dev/nvidiactl"]),
        (["/dev/dxg"], [], ["/dev/dxg"]),
        (["/dev/kfd"], [], ["/dev/kfd"]),
        (["/dev/davinci_manager"], ["/dev/davinci_manager"], []),
    ],
)
def test_signs(dev: list[str], files: list[str], npu: list[str], cuda: list[str]) -> None:
    dev += files
    assert detection.signs_of("npu") == npu
    assert detection.signs_of("cuda") == cuda


@pytest.mark.parametrize(
    ("files", "preferred", "likely"),
    [
        ([], ("npu", "cuda"), []),
        (NPU, ("npu", "cuda"), ["npu"]),
        (CUDA, ("npu", "cuda"), ["cuda"]),
        ([*CUDA, *NPU], ("npu", "cuda"), ["npu", "cuda"]),
        ([*CUDA, *NPU], ("cuda", "npu"), ["cuda", "npu"]),
        (NPU, ("cuda",), []),
        (NPU, (), []),
    ],
)
def test_likely(
    dev: list[str], files: list[str], preferred: tuple[str, ...], likely: list[str]
) -> None:
    dev += files
    assert detection.likely(preferred) == likely


@pytest.mark.parametrize(
    ("value", "hidden"), [("", True), ("-1", True), ("0", False), ("0,1", False)]
)
def test_devices_can_be_hidden(
    dev: list[str], monkeypatch: pytest.MonkeyPatch, value: str, hidden: bool
) -> None:
    dev += [*CUDA, *NPU]
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", value)
    assert detection.hidden("npu") is hidden
    assert not detection.hidden("cuda")
    assert detection.likely(("npu", "cuda")) == (["cuda"] if hidden else ["npu", "cuda"])


def test_messages_name_the_places() -> None:
    assert "/dev/davinci_manager" in detection.what_was_looked_for("npu")
    assert "/dev/nvidia[0-9]*" in detection.what_was_looked_for("cuda")


def test_missing_packages() -> None:
    wanted = ("json", "no_such_package_of_anybody", "torch")
    assert detection.missing_packages(wanted) == ["no_such_package_of_anybody"]
