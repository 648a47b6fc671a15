"""What the environment fingerprint says of Triton and its compile cache."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.environments import InstallTriton, needs_triton, section


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
