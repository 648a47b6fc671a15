"""Settings come from the command line, else from an ini file, else they have their default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.settings import DEFAULT_TIMEOUT, Settings, SettingsError

if TYPE_CHECKING:
    from pathlib import Path

# As pytest answers for an option that is not given and an ini value that is not set.
UNSET_OPTIONS: dict[str, Any] = {"verify_allow_conftest": False}
UNSET_INI: dict[str, Any] = {
    "verify_dirs": [],
    "verify_op": [],
    "verify_impl": [],
    "verify_device": "",
    "verify_timeout": "",
    "verify_output": "",
    "verify_start": "",
    "verify_degeneration": "",
    "verify_execution": "",
    "verify_hidden_state": "",
    "verify_standin": "",
    "verify_autotune": "",
    "verify_determinism": False,
    "verify_masked_lanes": "",
    "verify_interpreter_jobs": "",
    "verify_non_compute": False,
    "verify_exact_int": False,
    "verify_in_process": False,
    "verify_fresh_cache": False,
    "verify_keep_cache": False,
    "verify_cache_ab": False,
    "verify_hf32": False,
    "verify_github_summary": "",
    "verify_golden": "",
    "verify_stress": "",
    "verify_trials": "",
    "verify_guard_bands": "",
}


@pytest.fixture(autouse=True)
def _no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def load(
    cwd: Path, options: dict[str, Any] | None = None, ini: dict[str, Any] | None = None
) -> Settings:
    given = {**UNSET_OPTIONS, **(options or {})}
    standing = {**UNSET_INI, **(ini or {})}
    return Settings.load(given.get, standing.get, cwd, cwd / "project")


def test_defaults(tmp_path: Path) -> None:
    assert load(tmp_path) == Settings()
    assert Settings().timeout == DEFAULT_TIMEOUT == 900


@pytest.mark.parametrize(
    ("name", "attribute", "line", "ini", "from_line", "from_ini"),
    [
        ("device", "device", "cuda", "cpu", "cuda", "cpu"),
        ("start", "start", "spawn", "fork", "spawn", "fork"),
        ("degeneration", "degeneration", "warn", "off", "warn", "off"),
        ("execution", "execution", "warn", "off", "warn", "off"),
        ("hidden_state", "hidden_state", "fail", "off", "fail", "off"),
        ("standin", "standin", "npu", "cuda", "npu", "cuda"),
        ("autotune", "autotune", "all", "first", "all", "first"),
        ("determinism", "determinism", True, False, True, False),
        ("masked_lanes", "masked_lanes", "zero", "poison", "zero", "poison"),
        ("interpreter_jobs", "interpreter_jobs", "3", "2", 3, 2),
        ("timeout", "timeout", "1.5", "20", 1.5, 20.0),
        ("non_compute", "non_compute", True, True, True, True),
        ("exact_int", "exact_int", True, False, True, False),
        ("in_process", "in_process", None, True, True, True),
        ("fresh_cache", "fresh_cache", True, True, True, True),
        ("keep_cache", "keep_cache", True, False, True, False),
        ("cache_ab", "cache_ab", True, False, True, False),
        ("hf32", "hf32", True, False, True, False),
    ],
)
def test_the_command_line_goes_before_the_ini_file(
    tmp_path: Path,
    name: str,
    attribute: str,
    line: object,
    ini: object,
    from_line: object,
    from_ini: object,
) -> None:
    option, standing = {f"verify_{name}": line}, {f"verify_{name}": ini}
    assert getattr(load(tmp_path, option, standing), attribute) == from_line
    assert getattr(load(tmp_path, {}, standing), attribute) == from_ini


def test_patterns_of_the_command_line_replace_those_of_the_ini_file(tmp_path: Path) -> None:
    ini = {"verify_op": ["soft*", "gelu"], "verify_impl": ["triton_v1"]}

    selection = load(tmp_path, {"verify_op": ["swiglu"]}, ini).selection

    assert selection.ops == ("swiglu",)
    assert selection.impls == ("triton_v1",)
    assert load(tmp_path, {}, ini).selection.ops == ("soft*", "gelu")


def test_folders_are_absolute_and_those_of_the_command_line_go_first(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("c")
    ini = {"verify_dirs": [tmp_path / "a"]}

    both = load(tmp_path, {"verify_dir": ["b", "./a/../link", str(tmp_path)]}, ini)

    assert both.dirs == (tmp_path / "b", tmp_path / "link", tmp_path)
    assert load(tmp_path, {}, ini).dirs == (tmp_path / "a",)


def test_the_output_is_relative_to_where_pytest_was_started(tmp_path: Path) -> None:
    assert load(tmp_path, {"verify_output": "x/r.json"}).output == tmp_path / "x" / "r.json"
    assert load(tmp_path, {"verify_output": "/x/r.json"}).output is not None
    assert str(load(tmp_path, {"verify_output": "/x/r.json"}).output) == "/x/r.json"


def test_an_ini_file_cannot_allow_itself(tmp_path: Path) -> None:
    assert not load(tmp_path, {}, {"verify_allow_conftest": True}).allow_conftest
    assert load(tmp_path, {"verify_allow_conftest": True}).allow_conftest


def test_processes_of_pytest_xdist_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    alone = Settings().interpreter_jobs
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "1000")
    assert 1 == Settings().interpreter_jobs <= alone


@pytest.mark.parametrize(
    ("options", "ini", "words"),
    [
        ({"verify_dir": ["gone"]}, {}, ["--verify-dir", "there is no folder", "gone"]),
        ({"verify_dir": ["file.py"]}, {}, ["--verify-dir", "file.py is a file", "its folder"]),
        ({}, {"verify_dirs": ["gone"]}, ["there is no folder", "gone"]),
        ({}, {"verify_device": "tpu"}, ["verify_device", "'tpu'", "auto, npu, cuda, cpu"]),
        ({}, {"verify_start": "thread"}, ["verify_start", "'thread'", "auto, fork, spawn"]),
        ({"verify_masked_lanes": "one"}, {}, ["verify_masked_lanes", "'one'", "poison, zero"]),
        ({"verify_interpreter_jobs": "0"}, {}, ["--verify-interpreter-jobs", "less than 1"]),
        ({}, {"verify_interpreter_jobs": "all"}, ["--verify-interpreter-jobs", "'all'"]),
        ({"verify_timeout": "soon"}, {}, ["--verify-timeout", "'soon'", "no number of seconds"]),
        ({"verify_timeout": "0"}, {}, ["--verify-timeout", "'0'", "positive"]),
        ({"verify_timeout": "-3"}, {}, ["--verify-timeout", "'-3'", "positive"]),
        ({"verify_timeout": "inf"}, {}, ["--verify-timeout", "'inf'", "positive"]),
        ({"verify_timeout": "nan"}, {}, ["--verify-timeout", "'nan'", "positive"]),
        ({}, {"verify_timeout": "1 h"}, ["--verify-timeout", "'1 h'"]),
    ],
)
def test_what_cannot_be_is_said(
    tmp_path: Path, options: dict[str, Any], ini: dict[str, Any], words: list[str]
) -> None:
    (tmp_path / "file.py").touch()
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, options, ini)
    assert all(word in str(caught.value) for word in words)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("other", ["fresh_cache", "in_process"])
def test_a_second_cache_needs_a_first_one_and_processes(tmp_path: Path, other: str) -> None:
    with pytest.raises(SettingsError, match="leave one of them out"):
        load(tmp_path, {"verify_cache_ab": True, f"verify_{other}": True})


def test_the_page_of_a_step_is_written_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="GITHUB_STEP_SUMMARY names no file"):
        load(tmp_path, {"verify_github_summary": True})
    assert load(tmp_path).github_summary is None
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    assert load(tmp_path).github_summary == tmp_path / "step.md"
    assert load(tmp_path, {"verify_github_summary": True}).github_summary is not None
    assert load(tmp_path, ini={"verify_github_summary": "off"}).github_summary is None
    with pytest.raises(SettingsError, match="none of auto, on, off"):
        load(tmp_path, ini={"verify_github_summary": "perhaps"})


def test_numbers_of_runs(tmp_path: Path) -> None:
    assert (load(tmp_path).stress, load(tmp_path).trials) == (1, 1)
    found = load(tmp_path, {"verify_stress": "50", "verify_trials": "3"}, {"verify_stress": "7"})
    assert (found.stress, found.trials) == (50, 3)
    assert load(tmp_path, ini={"verify_stress": "7"}).stress == 7
    for value in ("0", "-1", "10001", "1.5"):
        with pytest.raises(SettingsError, match="--verify-trials"):
            load(tmp_path, {"verify_trials": value})
    with pytest.raises(SettingsError, match=r"'examples' is no whole number.*--verify-stress=50"):
        load(tmp_path, {"verify_stress": "examples"})
    with pytest.raises(SettingsError, match="verify_golden: 'float16' is none of own, float64"):
        load(tmp_path, {"verify_golden": "float16"})
