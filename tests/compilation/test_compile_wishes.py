"""What the user may ask for, and what is said of the rest."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.compilation import targets, toolchains
from pytest_tritonverify.compilation.options import DEFAULT_LIMIT
from pytest_tritonverify.compilation.targets import Target, TargetError
from pytest_tritonverify.compilation.wishes import CompileWishes
from pytest_tritonverify.settings import Settings, SettingsError

if TYPE_CHECKING:
    from pathlib import Path


def load(folder: Path, **options: Any) -> Settings:
    ini = folder / "ini"
    return Settings.load(options.get, lambda _: None, folder, ini)


def test_targets_are_read_once_each_and_in_order() -> None:
    found = targets.parse(["cuda:90, hip:gfx942", "Ascend910B4", "cuda:90"])
    assert [(one.name, one.kind, one.arch) for one in found] == [
        ("cuda:90", "cuda", "90"),
        ("hip:gfx942", "hip", "gfx942"),
        ("Ascend910B4", "npu", "Ascend910B4"),
    ]
    # 227 KiB, and 64 KiB of LDS.
    assert [one.shared for one in found] == [232448, 65536, None]
    assert [one.warp_size for one in found] == [32, 64, 0]


@pytest.mark.parametrize("name", ["cuda", "cuda:42", "gfx942", "Ascend 910", "910B4", "npu"])
def test_an_unknown_target_lists_the_known_ones(name: str) -> None:
    with pytest.raises(TargetError) as caught:
        targets.parse([name])
    assert all(word in str(caught.value) for word in (name, *targets.GPU_TARGETS, "Ascend910B4"))


def test_a_chip_is_spelt_as_its_compiler_spells_it() -> None:
    known = ["Ascend910B3", "Ascend910B4", "Ascend910B4-1"]
    (found,) = targets.check_ascend(targets.parse(["ascend910b4-1"]), known)
    assert found == Target("Ascend910B4-1", "npu", "Ascend910B4-1")
    with pytest.raises(TargetError, match="Ascend910B3, Ascend910B4, Ascend910B4-1"):
        targets.check_ascend(targets.parse(["Ascend911"]), known)


def test_settings_hold_the_wishes(tmp_path: Path) -> None:
    assert load(tmp_path).compile is None
    asked = load(
        tmp_path,
        verify_compile=["cuda:90"],
        verify_compile_all_configs=True,
        verify_ascend_python="venv/bin/python",
        verify_compile_timeout="7",
    ).compile
    assert asked == CompileWishes(
        targets=targets.parse(["cuda:90"]),
        all_configurations=True,
        ascend_python=tmp_path / "venv/bin/python",
        limit=7.0,
    )
    plain = load(tmp_path, verify_compile=["cuda:90"]).compile
    assert plain is not None
    assert plain.limit == DEFAULT_LIMIT


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"verify_compile": ["cuda:42"]}, "no known target"),
        ({"verify_compile_timeout": "soon"}, "no number of seconds"),
        ({"verify_compile_timeout": "-1"}, "no positive number"),
    ],
)
def test_impossible_settings_are_refused(
    options: dict[str, Any], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=said):
        load(tmp_path, **{"verify_compile": ["cuda:90"], **options})


def test_an_interpreter_without_the_compiler_says_what_it_lacks(tmp_path: Path) -> None:
    chip = targets.parse(["Ascend910B4"])
    with pytest.raises(toolchains.ToolchainError) as caught:
        toolchains.resolve(chip, None, [tmp_path])
    assert str(tmp_path / ".venv-ascend/bin/python") in str(caught.value)
    with pytest.raises(toolchains.ToolchainError, match="there is no file"):
        toolchains.resolve(chip, tmp_path / "python", [])
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 3\n")
    broken.chmod(0o700)
    with pytest.raises(toolchains.ToolchainError, match=r"exit status 3.*out of order"):
        toolchains.resolve(chip, broken, [])
    # A real one, which has triton and not triton-ascend.
    beside = tmp_path / ".venv-ascend" / "bin"
    beside.mkdir(parents=True)
    (beside / "python").symlink_to(sys.executable)
    with pytest.raises(toolchains.ToolchainError, match="has no triton-ascend"):
        toolchains.resolve(chip, None, [tmp_path])


def test_gpus_are_compiled_for_by_this_interpreter() -> None:
    wanted = targets.parse(["cuda:80,hip:gfx942"])
    found = toolchains.resolve(wanted, None, [])
    assert set(found) == set(wanted)
    assert {one.python for one in found.values()} == {None}
    assert str(found[wanted[0]]).startswith("triton ")
