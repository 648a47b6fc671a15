"""The environment fingerprint: its sections, what survives a broken set-up, and its digests."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.environment import CacheFacts, collect, sources

SECTIONS = ["timestamp", "triton", "cache", "cann", "torch", "device", "cmdline"]
TOOLKIT_INFO = (
    "package_name=Ascend-cann-toolkit\n"
    "version=8.3.RC2\n"
    "innerversion=V100R001C23SPC002B210\n"
    "compatible_version=[V100R001C15],[V100R001C23]\n"
    "arch=x86_64\n"
    "os=linux\n"
)
VARIABLES = (
    "ASCEND_HOME_PATH",
    "ASCEND_RT_VISIBLE_DEVICES",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_CACHE_DIR",
    "TRITON_CACHE_MANAGER",
    "TRITON_HOME",
    "TRITON_REMOTE_CACHE_BACKEND",
)

InstallTriton = Callable[..., None]

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="triton isn't installed"
)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def install_triton(monkeypatch: pytest.MonkeyPatch) -> InstallTriton:
    """Replace triton by stand-in modules, or (with no module at all) by nothing."""

    def install(**modules: object) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "triton"]:
            monkeypatch.delitem(sys.modules, name)
        if not modules:
            monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "triton", None)
            return
        top = ModuleType("triton")
        top.__file__ = "/opt/python/site-packages/triton/__init__.py"
        monkeypatch.setitem(sys.modules, "triton", top)
        for name, attributes in modules.items():
            target = top if name == "top" else ModuleType(f"triton.{name.replace('__', '.')}")
            target.__dict__.update(cast("dict[str, object]", attributes))
            monkeypatch.setitem(sys.modules, target.__name__, target)

    return install


@pytest.fixture
def install_torch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def install(**attributes: object) -> None:
        torch = ModuleType("torch")
        torch.__dict__.update({"__version__": "2.1.0"} | attributes)
        monkeypatch.setitem(sys.modules, "torch", torch)

    return install


@pytest.fixture
def cann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an x86 toolkit's info files, with no file in it yet."""
    folder = tmp_path / "ascend-toolkit" / "latest" / "x86_64-linux"
    folder.mkdir(parents=True)
    monkeypatch.setenv("ASCEND_HOME_PATH", str(folder.parent))
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    return folder


def section(name: str, *, device: str = "cpu", fresh: bool = False) -> dict[str, Any]:
    return cast(
        "dict[str, Any]", collect(device=device, cmdline={}, cache=CacheFacts(fresh=fresh))[name]
    )


def test_every_section_in_the_documented_order() -> None:
    found = collect(
        device="cpu",
        cmdline={"triton_impl_name": "triton_ascend_impl", "non_compute": False},
        cache=CacheFacts(),
    )
    assert list(found) == SECTIONS
    assert list(cast("dict[str, object]", found["device"])) == [
        "ASCEND_RT_VISIBLE_DEVICES",
        "current_device",
        "npu_name",
        "backend",
        "name",
    ]
    assert list(cast("dict[str, object]", found["cache"])) == [
        "dir",
        "fresh",
        "fresh_effective",
        "always_compile",
    ]
    assert list(cast("dict[str, object]", found["torch"])) == ["version", "torch_npu_version"]
    assert list(cast("dict[str, object]", found["cmdline"])) == ["triton_impl_name", "non_compute"]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_timestamp_is_now_with_the_local_offset_and_no_fraction() -> None:
    text = str(collect(device="cpu", cmdline={}, cache=CacheFacts())["timestamp"])
    moment = datetime.fromisoformat(text)
    now = datetime.now().astimezone()
    assert moment.utcoffset() == now.utcoffset()
    assert moment.microsecond == 0
    assert timedelta(0) <= now - moment < timedelta(minutes=10)


def test_every_section_fails_on_its_own(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    install_triton()
    monkeypatch.setitem(cast("dict[str, Any]", sys.modules), "torch", None)
    found = collect(device="npu", cmdline={"non_compute": True}, cache=CacheFacts())
    assert list(found) == SECTIONS
    for name in ("triton", "cann", "torch", "device"):
        assert "Error: " in cast("dict[str, str]", found[name])["error"], name
    assert found["cmdline"] == {"non_compute": True}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


# --- triton


@needs_triton
def test_the_installed_triton_is_told_by_the_digest_of_its_key() -> None:
    found = section("triton")
    location = importlib.util.find_spec("triton")
    assert location is not None
    assert location.origin is not None
    assert list(found) == ["version", "path", "key_sha256"]
    assert found["path"] == str(Path(location.origin).parent)
    homes = [
        importlib.import_module(name)
        for name in ("triton.compiler.compiler", "triton.runtime.cache")
    ]
    keys = {home.triton_key() for home in homes if hasattr(home, "triton_key")}
    assert found["key_sha256"] in {hashlib.sha256(key.encode()).hexdigest() for key in keys}


@pytest.mark.parametrize("home", ["compiler__compiler", "runtime__cache"])
def test_triton_key_is_found_in_old_and_new_tritons(
    install_triton: InstallTriton, home: str
) -> None:
    modules: dict[str, object] = {home: {"triton_key": lambda: "3.2.0-aa-bb"}}
    install_triton(top={"__version__": "3.2.0"}, **modules)
    assert section("triton") == {
        "version": "3.2.0",
        "path": "/opt/python/site-packages/triton",
        "key_sha256": hashlib.sha256(b"3.2.0-aa-bb").hexdigest(),
    }


def test_version_and_path_survive_a_missing_key(install_triton: InstallTriton) -> None:
    install_triton(top={"__version__": "4.0.0"}, runtime__cache={})
    found = section("triton")
    assert found["version"] == "4.0.0"
    assert found["path"] == "/opt/python/site-packages/triton"
    assert found["key_sha256"] is None
    assert found["error"].startswith("AttributeError: ")
    assert "triton.runtime.cache" in found["error"]


def test_version_and_path_survive_a_key_that_cannot_be_made(install_triton: InstallTriton) -> None:
    def triton_key() -> str:
        raise FileNotFoundError(2, "No such file", "libtriton.so")

    install_triton(top={"__version__": "3.2.0"}, compiler__compiler={"triton_key": triton_key})
    found = section("triton")
    assert (found["version"], found["key_sha256"]) == ("3.2.0", None)
    assert found["error"] == "FileNotFoundError: [Errno 2] No such file: 'libtriton.so'"


def test_an_absent_triton_is_named(install_triton: InstallTriton) -> None:
    install_triton()
    found = section("triton")
    assert list(found) == ["error"]
    assert found["error"].startswith("ModuleNotFoundError: ")


def test_an_error_whose_text_raises_is_survived(install_triton: InstallTriton) -> None:
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def triton_key() -> str:
        raise BrokenError

    install_triton(top={"__version__": "3.2.0"}, runtime__cache={"triton_key": triton_key})
    assert section("triton")["error"] == "BrokenError: <no text: __str__ failed>"


# --- compile cache


@needs_triton
@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"TRITON_HOME": "/scratch/home"},
        {"TRITON_CACHE_DIR": "/scratch/cache"},
        {"TRITON_CACHE_DIR": "/scratch/cache", "TRITON_HOME": "/scratch/home"},
    ],
)
def test_the_cache_folder_is_the_one_that_triton_would_use(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(os, "makedirs", lambda *args, **kwargs: None)
    manager = importlib.import_module("triton.runtime.cache").FileCacheManager("key")
    found = section("cache")
    assert found["dir"] == str(Path(manager.cache_dir).parent)
    assert "error" not in found


def test_the_cache_folder_is_absolute(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, install_triton: InstallTriton
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRITON_CACHE_DIR", "cache")
    install_triton(top={"__version__": "3.2.0"})
    assert section("cache")["dir"] == str(tmp_path / "cache")


def test_an_older_triton_is_asked_for_its_default(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    install_triton(
        top={"__version__": "3.2.0"},
        runtime__cache={"default_cache_dir": lambda: "/home/user/.triton/cache"},
    )
    assert section("cache")["dir"] == "/home/user/.triton/cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", " ")
    assert section("cache")["dir"] == "/home/user/.triton/cache"


def test_the_cache_section_stands_without_triton(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    install_triton()
    monkeypatch.setenv("TRITON_HOME", "/scratch")
    assert section("cache") == {
        "dir": "/scratch/.triton/cache",
        "fresh": False,
        "fresh_effective": False,
        "always_compile": False,
    }


def test_an_empty_cache_variable_that_triton_cannot_use_is_said(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    knobs = {
        "cache": SimpleNamespace(dir=""),
        "compilation": SimpleNamespace(always_compile=True),
    }
    install_triton(top={"__version__": "3.5.0"}, knobs=knobs)
    monkeypatch.setenv("TRITON_CACHE_DIR", "")
    found = section("cache", fresh=True)
    assert found["dir"] is None
    assert found["error"].startswith("ValueError: TRITON_CACHE_DIR is set but empty")
    assert (found["fresh"], found["always_compile"]) == (True, True)


@pytest.mark.parametrize(
    "redirection", [None, "TRITON_CACHE_MANAGER", "TRITON_REMOTE_CACHE_BACKEND"]
)
@pytest.mark.parametrize("own_folder", [True, False])
def test_a_fresh_cache_is_effective_only_where_the_folder_decides(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    redirection: str | None,
    own_folder: bool,
) -> None:
    if own_folder:
        monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    if redirection:
        monkeypatch.setenv(redirection, "company.caches:SharedManager")
    found = section("cache", fresh=True)
    assert found["fresh"] is True
    assert found["fresh_effective"] is (own_folder and redirection is None)


@needs_triton
@pytest.mark.parametrize("value", [None, "", "0", "1", "true", "on", "2"])
def test_always_compile_is_what_triton_makes_of_it(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    if value is not None:
        monkeypatch.setenv("TRITON_ALWAYS_COMPILE", value)
    spec = importlib.util.find_spec("triton.knobs")
    expected = (
        importlib.import_module("triton.knobs").compilation.always_compile if spec else value == "1"
    )
    assert section("cache")["always_compile"] is expected


def test_an_older_triton_takes_only_1_for_always_compile(
    monkeypatch: pytest.MonkeyPatch, install_triton: InstallTriton
) -> None:
    install_triton(top={"__version__": "3.2.0"})
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "true")
    assert section("cache")["always_compile"] is False
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    assert section("cache")["always_compile"] is True


# --- CANN


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


# --- torch and the device


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


# --- command line and sources


def test_options_are_copied_as_json_values() -> None:
    given_options: dict[str, object] = {
        "triton_impl_name": "triton_x",
        "timeout": 900,
        "limit": float("inf"),
        "ratio": 0.5,
        "dirs": (Path("a"), None),
        "nested": {1: True},
    }
    assert collect(device="cpu", cmdline=given_options, cache=CacheFacts())["cmdline"] == {
        "triton_impl_name": "triton_x",
        "timeout": 900,
        "limit": None,
        "ratio": 0.5,
        "dirs": ["a", None],
        "nested": {"1": True},
    }


@settings(deadline=None, max_examples=20)
@given(content=st.binary(max_size=200))
def test_sources_are_told_by_their_contents(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("sources")
    file = folder / "op_torch.py"
    file.write_bytes(content)
    found = sources({"task": file, "data": folder / "op.json", "implementation": folder})
    assert list(found) == ["task", "data", "implementation"]
    assert found == {
        "task": hashlib.sha256(content).hexdigest(),
        "data": None,
        "implementation": None,
    }


def test_importing_the_module_imports_no_heavy_package() -> None:
    code = (
        "import sys, pytest_tritonverify.environment\n"
        "print([n for n in ('torch', 'triton', 'numpy') if n in sys.modules])"
    )
    root = Path(__file__).resolve().parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    assert result.stdout.strip() == "[]"
