"""What the environment fingerprint says of CANN, PyTorch and the device."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import platform
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.support.environments import TOOLKIT_INFO, section

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("value", [None, ""])
@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_a_shell_without_set_env_is_told_what_to_source(
    monkeypatch: pytest.MonkeyPatch, value: str | None, device: str
) -> None:
    if value is not None:
        monkeypatch.setenv("ASCEND_HOME_PATH", value)
    found = section("cann", device=device)
    assert list(found) == ["error"]
    assert found["error"].startswith("EnvironmentError: ASCEND_HOME_PATH is not set")
    assert "set_env.sh" in found["error"]


def test_cann_is_told_by_the_digest_of_the_toolkits_info_file(cann: Path) -> None:
    file = cann / "ascend_toolkit_install.info"
    file.write_text(TOOLKIT_INFO)
    (cann / "ascend_all_cann_install.info").write_text("version=7.0\n")
    found = section("cann")
    assert list(found) == ["ascend_home_path", "info_file", "info_sha256", "version"]
    assert found == {
        "ascend_home_path": str(cann.parent),
        "info_file": str(file),
        "info_sha256": hashlib.sha256(TOOLKIT_INFO.encode()).hexdigest(),
        "version": "8.3.RC2",
    }


def test_the_all_in_one_package_has_an_info_file_of_its_own(cann: Path) -> None:
    file = cann / "ascend_all_cann_install.info"
    file.write_bytes(b"package=\xff\nversion = 9.0.0 \n")
    found = section("cann")
    assert found["info_file"] == str(file)
    assert found["info_sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert found["version"] == "9.0.0"


@pytest.mark.parametrize(
    ("machine", "folder"), [("aarch64", "aarch64"), ("arm64", "aarch64"), ("AMD64", "x86_64")]
)
def test_the_machine_decides_which_folder_is_read(
    cann: Path, monkeypatch: pytest.MonkeyPatch, machine: str, folder: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    (cann.parent / f"{folder}-linux").mkdir(exist_ok=True)
    file = cann.parent / f"{folder}-linux" / "ascend_toolkit_install.info"
    file.write_text("version=8.0.0\n")
    assert section("cann")["info_file"] == str(file)


def test_a_file_without_a_version_still_has_a_digest(cann: Path) -> None:
    (cann / "ascend_toolkit_install.info").write_text("innerversion=V100\n")
    found = section("cann")
    assert found["version"] is None
    assert found["info_sha256"] == hashlib.sha256(b"innerversion=V100\n").hexdigest()


def test_an_incomplete_toolkit_is_named(cann: Path) -> None:
    found = section("cann")
    assert list(found) == ["error"]
    assert found["error"].startswith("FileNotFoundError: ")
    assert str(cann) in found["error"]
    assert "ascend_toolkit_install.info" in found["error"]


def test_the_installed_torch_is_named() -> None:
    torch = importlib.import_module("torch")
    found = section("torch")
    assert found["version"] == str(torch.__version__)
    assert type(found["version"]) is str


def test_torch_npu_is_imported_only_where_it_is_judged_on(
    monkeypatch: pytest.MonkeyPatch, install_torch: Callable[..., None]
) -> None:
    install_torch()
    torch_npu = ModuleType("torch_npu")
    torch_npu.__dict__["__version__"] = "2.1.0.post10+git1234"
    monkeypatch.setitem(sys.modules, "torch_npu", torch_npu)
    monkeypatch.setattr(importlib.metadata, "version", lambda name: f"{name} by metadata")
    assert section("torch", device="npu") == {
        "version": "2.1.0",
        "torch_npu_version": "2.1.0.post10+git1234",
    }
    assert section("torch", device="cuda")["torch_npu_version"] == "torch_npu by metadata"


@pytest.mark.parametrize("device", ["cpu", "npu"])
def test_an_absent_torch_npu_has_no_version(
    monkeypatch: pytest.MonkeyPatch, install_torch: Callable[..., None], device: str
) -> None:
    def absent(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    install_torch()
    monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "torch_npu", None)
    monkeypatch.setattr(importlib.metadata, "version", absent)
    assert section("torch", device=device) == {"version": "2.1.0", "torch_npu_version": None}


def test_an_npu_is_named_as_documented(
    monkeypatch: pytest.MonkeyPatch, install_torch: Callable[..., None]
) -> None:
    npu = SimpleNamespace(current_device=lambda: 0, get_device_name=lambda: "Ascend910B4")
    install_torch(npu=npu)
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "3")
    assert section("device", device="npu") == {
        "ASCEND_RT_VISIBLE_DEVICES": "3",
        "current_device": 0,
        "npu_name": "Ascend910B4",
    }


def test_the_visible_cards_survive_a_card_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, install_torch: Callable[..., None]
) -> None:
    def current_device() -> int:
        raise RuntimeError("aclrtSetDevice failed, error code is 507033")

    install_torch(npu=SimpleNamespace(current_device=current_device))
    monkeypatch.setitem(sys.modules, "torch_npu", ModuleType("torch_npu"))
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "3")
    assert section("device", device="npu") == {
        "ASCEND_RT_VISIBLE_DEVICES": "3",
        "current_device": None,
        "npu_name": None,
        "error": "RuntimeError: aclrtSetDevice failed, error code is 507033",
    }


def test_a_gpu_is_named(install_torch: Callable[..., None]) -> None:
    cuda = SimpleNamespace(current_device=lambda: 1, get_device_name=lambda: "NVIDIA H200")
    install_torch(cuda=cuda)
    assert section("device", device="cuda") == {
        "ASCEND_RT_VISIBLE_DEVICES": None,
        "current_device": 1,
        "npu_name": None,
        "backend": "cuda",
        "name": "NVIDIA H200",
    }


def test_judging_on_the_cpu_starts_no_accelerator(install_torch: Callable[..., None]) -> None:
    class Untouchable:
        def __getattr__(self, name: str) -> object:
            pytest.fail(f"an accelerator was asked for {name}")

    install_torch(cuda=Untouchable(), npu=Untouchable(), accelerator=Untouchable())
    found = section("device", device="cpu")
    assert found["current_device"] is None
    assert found["backend"] == "cpu"
    assert found["name"].endswith(" (Triton interpreter)")


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC 9654 \nprocessor\t: 1\n", "AMD EPYC 9654"),
        ("processor\t: 0\nCPU part\t: 0xd01\n", "riscv64"),
        (None, "riscv64"),
    ],
)
def test_a_cpu_is_named_by_its_model_or_else_its_architecture(
    monkeypatch: pytest.MonkeyPatch, cpuinfo: str | None, name: str
) -> None:
    read_text = Path.read_text

    def patched(self: Path, *args: Any, **kwargs: Any) -> str:
        if str(self) != "/proc/cpuinfo":
            return read_text(self, *args, **kwargs)
        if cpuinfo is None:
            raise FileNotFoundError(str(self))
        return cpuinfo

    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(Path, "read_text", patched)
    assert section("device")["name"] == f"{name} (Triton interpreter)"


def test_an_unknown_device_is_said() -> None:
    found = section("device", device="xpu")
    assert found["backend"] == "xpu"
    assert found["error"] == "ValueError: unknown device 'xpu'; expected npu, cuda or cpu"
