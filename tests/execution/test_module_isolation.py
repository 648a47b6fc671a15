"""Which modules a worker finds: helpers beside a pair, and never a stand-in for a real package."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.execution.devices import DEVICES
from pytest_tritonverify.execution.host import Host, HostConfig, import_path
from tests.support.workers import Bench, write_pair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_tritonverify.discovery import Pair

_SIDE = """
import torch
import helper_of_pairs
{top}

class {name}(torch.nn.Module):
    def forward(self, x):
        return x * helper_of_pairs.FACTOR

def get_inputs():
    return [torch.ones(2)]
"""
INTRUDERS = (
    *("torch", "triton", "numpy", "json", "sitecustomize", "usercustomize"),
    *("pytest_tritonverify", "signal", "faulthandler", "encodings", "helper_of_nobody"),
)


def _pair(folder: Path, factor: float, top: str = "") -> Pair:
    pair = write_pair(
        folder, _SIDE.format(name="Model", top=top), _SIDE.format(name="ModelNew", top=top)
    )
    (folder / "helper_of_pairs.py").write_text(f"FACTOR = {factor}\n")
    return pair


def _intrude(folder: Path) -> Path:
    """Write modules that leave a trace when they are imported; return the file of traces."""
    traces = folder / "traces"
    for name in INTRUDERS:
        (folder / f"{name}.py").write_text(
            f"with open({str(traces)!r}, 'a') as file:\n    file.write('{name} ')\n"
        )
    return traces


def test_helpers_of_two_folders_do_not_meet(bench: Bench, tmp_path: Path) -> None:
    for number, name in enumerate(("first", "second", "third"), 1):
        (sides,) = bench.both(_pair(tmp_path / name, number))
        assert sides.agree
        assert sides.expected.tolist() == [number, number]


def test_stand_ins_beside_a_pair_are_not_imported(bench: Bench, tmp_path: Path) -> None:
    top = "import json, numpy, signal, triton, triton.language"
    pair = _pair(tmp_path, 3, top)
    traces = _intrude(tmp_path)
    (sides,) = bench.both(pair)
    assert sides.agree
    assert not traces.exists()
    # Whose name nobody else has is found.
    (sides,) = bench.both(_pair(tmp_path, 3, "import helper_of_nobody"))
    assert sides.agree
    assert traces.read_text().split() == ["helper_of_nobody"] * 2


@pytest.fixture
def exposed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A bench whose host was started from the folder of a pair, which is on every path."""
    folder = tmp_path / "pair"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{tmp_path / 'innocent'}::.")
    monkeypatch.setattr(sys, "path", ["", ".", str(folder), *sys.path])
    host = Host(HostConfig(DEVICES["cpu"], fork=False, private_dirs=frozenset({folder})))
    bench = Bench(host)
    yield bench
    bench.close()
    host.close()


def test_stand_ins_are_not_imported_where_python_would_look_first(
    exposed: Bench, tmp_path: Path
) -> None:
    top = """
import os, subprocess, sys
print("PATH", os.environ["PYTHONPATH"], sys.path)
subprocess.run([sys.executable, "-c", "import json, numpy"], check=True, cwd="/")
"""
    pair = _pair(tmp_path / "pair", 2, top)
    traces = _intrude(tmp_path / "pair")
    (sides,) = exposed.both(pair)
    assert sides.agree
    assert not traces.exists()


def test_import_path_keeps_what_belongs_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, library = tmp_path / "pair", tmp_path / "library"
    for folder in (pair, library):
        folder.mkdir()
    (tmp_path / "link").symlink_to(pair)
    monkeypatch.chdir(tmp_path)
    given = [
        *("", ".", "pair", "./pair/../pair", str(pair), str(tmp_path / "link")),
        *("library", str(library), "/nowhere"),
    ]
    assert import_path(given, {pair}) == [
        str(tmp_path),
        str(library),
        str(library),
        "/nowhere",
    ]
    assert import_path(given, {pair, tmp_path}) == [str(library), str(library), "/nowhere"]
    assert import_path(["library.zip"], set()) == [str(tmp_path / "library.zip")]


def test_workers_start_in_an_empty_folder_of_their_own(bench: Bench, tmp_path: Path) -> None:
    side = """
    import os
    import torch

    class {}(torch.nn.Module):
        def forward(self, x):
            return [os.getcwd(), os.listdir()]

    def get_inputs():
        return [torch.ones(1)]
    """
    pair = write_pair(tmp_path, side.format("Model"), side.format("ModelNew"))
    (sides,) = bench.both(pair)
    # A task may look for its data in the current folder, which is its own.
    assert sides.expected[0] == str(tmp_path)
    assert sides.got[1] == []
    assert not Path(sides.got[0]).is_relative_to(tmp_path)
