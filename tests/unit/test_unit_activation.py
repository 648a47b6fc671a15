"""What a run is about follows from verify dirs and from the files that its arguments name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify import activation, discovery
from pytest_tritonverify.activation import Activation

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pytest_tritonverify.discovery import Findings


def write(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("class ModelNew: pass\nclass Model: pass\n", encoding="utf-8")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(
        tmp_path,
        "ops/a_torch.py",
        "ops/a_triton_x.py",
        "ops/a_triton_y.py",
        "ops/deep/b_torch.py",
        "ops/deep/b_triton_x.py",
        "ops/deep/helper.py",
        "more/c_torch.py",
        "more/c_triton_x.py",
        "tests/test_own.py",
    )
    return tmp_path


def activate(root: Path, dirs: Sequence[str] = (), explicit: Sequence[str] = ()) -> Activation:
    paths = tuple(activation.positional_path(root, argument) for argument in explicit)
    folders = tuple(root / name for name in dirs)
    return Activation(folders, activation.named_pairs(paths), paths, root)


def found_in(active: Activation) -> Findings:
    return discovery.walk(active.dirs, lambda _: False)


# Positional arguments


@pytest.mark.parametrize(
    ("argument", "path"),
    [
        ("ops/a_triton_x.py", "ops/a_triton_x.py"),
        ("ops/a_triton_x.py::case1-float32-2x3", "ops/a_triton_x.py"),
        ("./ops/../ops/a_triton_x.py::", "ops/a_triton_x.py"),
        ("ops/", "ops"),
        (".", "."),
    ],
)
def test_positional_path(tmp_path: Path, argument: str, path: str) -> None:
    assert activation.positional_path(tmp_path, argument) == tmp_path / path
    absolute = f"{tmp_path}/{argument}"
    assert activation.positional_path(tmp_path / "elsewhere", absolute) == tmp_path / path


@pytest.mark.parametrize(
    ("explicit", "named"),
    [
        (["ops/a_triton_x.py"], ["a_triton_x.py"]),
        (["ops/a_torch.py"], ["a_triton_x.py", "a_triton_y.py"]),
        (["ops/a_torch.py", "ops/a_triton_y.py"], ["a_triton_x.py", "a_triton_y.py"]),
        (["ops/a_triton_x.py::case1", "ops/a_triton_x.py::case2"], ["a_triton_x.py"]),
        (["ops", "tests/test_own.py", "ops/a_triton_gone.py", "gone_torch.py"], []),
        ([], []),
    ],
)
def test_named_pairs(root: Path, explicit: list[str], named: list[str]) -> None:
    assert [p.implementation.name for p in activate(root, (), explicit).named] == named


def test_a_file_that_only_has_such_a_name_is_no_pair(root: Path) -> None:
    (root / "ops" / "a_triton_x.py").write_text("def test_it(): pass\n", encoding="utf-8")
    assert [p.variant for p in activate(root, (), ["ops/a_torch.py"]).named] == ["y"]
    assert activate(root, (), ["ops/a_triton_x.py"]).named == ()


# What belongs to the run


@pytest.mark.parametrize(
    ("dirs", "explicit", "path", "concerned"),
    [
        (["ops"], [], "ops/deep/helper.py", True),
        (["ops"], [], "ops", True),
        (["ops"], [], "tests/test_own.py", False),
        (["ops"], ["ops/deep/helper.py"], "ops/deep/helper.py", False),
        (["ops"], ["ops/deep"], "ops/deep/helper.py", False),
        (["ops"], ["ops/deep"], "ops/a_triton_x.py", True),
        ([], ["ops/a_triton_x.py"], "ops/deep/helper.py", False),
    ],
)
def test_concerns(
    root: Path, dirs: list[str], explicit: list[str], path: str, concerned: bool
) -> None:
    assert activate(root, dirs, explicit).concerns(root / path) is concerned


def test_pairs_of_dirs_and_named_pairs_are_ours(root: Path) -> None:
    pairs = {p.label: p for p in found_in(activate(root, ["."])).pairs}
    active = activate(root, ["ops/deep"], ["more/c_triton_x.py"])

    ours = {label for label, pair in pairs.items() if active.is_ours(pair)}

    assert ours == {"b (triton_x)", "c (triton_x)"}
    assert active.folders() == {root / "ops" / "deep", root / "more"}


# Intruders


def test_conftests_below_dirs_and_beside_named_pairs_are_intruders(root: Path) -> None:
    write(root, "conftest.py", "ops/deep/conftest.py", "more/conftest.py", "tests/conftest.py")
    active = activate(root, ["ops"], ["more/c_triton_x.py"])
    assert activation.intruders(active, found_in(active), None) == (
        root / "ops" / "deep" / "conftest.py",
        root / "more" / "conftest.py",
    )


def test_an_intruder_is_told_once(root: Path) -> None:
    write(root, "ops/conftest.py")
    active = activate(root, ["ops"], ["ops/a_torch.py"])
    assert activation.intruders(active, found_in(active), None) == (root / "ops" / "conftest.py",)


@pytest.mark.parametrize(
    ("ini", "intrudes"),
    [
        ("ops/pytest.ini", True),
        ("ops/.pytest.ini", True),
        ("ops/pytest.toml", True),
        ("ops/deep/tox.ini", True),
        ("more/setup.cfg", True),
        ("pytest.ini", False),
        ("tests/pytest.ini", False),
        # Given by -c.
        ("ops/own.cfg", False),
    ],
)
def test_ini_files(root: Path, ini: str, intrudes: bool) -> None:
    active = activate(root, ["ops"], ["more/c_triton_x.py"])
    found = activation.intruders(active, found_in(active), root / ini)
    assert found == ((root / ini,) if intrudes else ())


# What pytest is to collect


@pytest.mark.parametrize(
    ("dirs", "arguments", "collected"),
    [
        pytest.param(["ops"], ["tests"], ["tests", "{root}/ops"], id="tests and a dir"),
        pytest.param(["ops"], ["ops"], ["ops"], id="the dir itself"),
        pytest.param(["ops"], ["."], ["."], id="a folder above the dir"),
        pytest.param(["ops"], ["ops/a_triton_x.py"], ["ops/a_triton_x.py"], id="one pair of it"),
        pytest.param(
            ["ops"], ["ops/a_triton_x.py::case1"], ["ops/a_triton_x.py::case1"], id="one item of it"
        ),
        pytest.param(["ops"], ["ops/deep"], ["ops/deep"], id="a folder of it"),
        pytest.param(
            ["ops"],
            ["ops/deep/helper.py"],
            ["ops/deep/helper.py", "{root}/ops"],
            id="a file of it that is no pair",
        ),
        pytest.param(
            ["ops", "more"],
            ["ops/a_triton_x.py"],
            ["ops/a_triton_x.py", "{root}/more"],
            id="one pair of one of two dirs",
        ),
        pytest.param(
            ["ops"],
            ["ops/a_torch.py"],
            ["{root}/ops/a_triton_x.py", "{root}/ops/a_triton_y.py"],
            id="a task of it",
        ),
        pytest.param(
            [],
            ["ops/a_torch.py", "tests/test_own.py"],
            ["{root}/ops/a_triton_x.py", "{root}/ops/a_triton_y.py", "tests/test_own.py"],
            id="a task without a dir",
        ),
        pytest.param([], ["more/c_triton_x.py"], ["more/c_triton_x.py"], id="a pair without a dir"),
        pytest.param(
            ["ops", "ops/deep"], ["tests"], ["tests", "{root}/ops", "{root}/ops/deep"], id="nested"
        ),
    ],
)
def test_arguments_of_the_user(
    root: Path, dirs: list[str], arguments: list[str], collected: list[str]
) -> None:
    active = activate(root, dirs, arguments)
    found = activation.to_collect(arguments, active, found_in(active), from_user=True, cwd=root)
    assert found == [text.format(root=root) for text in collected]


def test_arguments_that_nobody_gave_make_way_for_the_dirs(root: Path) -> None:
    active = activate(root, ["ops", "more"])
    found = activation.to_collect(
        [str(root / "tests")], active, found_in(active), from_user=False, cwd=root
    )
    assert found == [str(root / "ops"), str(root / "more")]


# What pytest would not collect


@pytest.mark.parametrize(
    ("path", "patterns", "ignored", "globs", "expected"),
    [
        ("ops/deep", ["deep"], [], [], True),
        ("ops/deep", ["de*", ".*"], [], [], True),
        ("ops/deep", ["ops/deep"], [], [], True),
        ("ops/deep", ["*/ops/deep"], [], [], True),
        ("ops/deep", ["ops"], [], [], False),
        ("ops/a_triton_x.py", ["a_triton_x.py"], [], [], False),
        ("ops/a_triton_x.py", [], ["ops/a_triton_x.py"], [], True),
        ("ops/a_triton_x.py", [], ["ops/a_triton_y.py"], [], False),
        ("ops/deep", [], ["ops/deep"], [], True),
        ("ops/a_triton_x.py", [], [], ["*_x.py"], True),
        ("ops/a_triton_x.py", [], [], ["*/deep/*"], False),
        ("ops/deep/b_triton_x.py", [], [], ["*/deep/*"], True),
        ("ops/gone", [], [], [], False),
    ],
)
def test_is_ignored(
    root: Path,
    path: str,
    patterns: list[str],
    ignored: list[str],
    globs: list[str],
    expected: bool,
) -> None:
    paths = frozenset(root / name for name in ignored)
    assert activation.is_ignored(root / path, patterns, paths, globs) is expected


def test_virtual_environments_are_ignored(root: Path) -> None:
    assert not activation.is_ignored(root / "ops", (), (), ())
    (root / "ops" / "pyvenv.cfg").touch()
    assert activation.is_ignored(root / "ops", (), (), ())
