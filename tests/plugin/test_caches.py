"""Triton's compile cache: a run's own one, what is kept of it, and whether it is to blame.

Triton's interpreter compiles nothing, so the implementations here look into the cache themselves: a
file in it stands for a bad binary.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_tritonverify.results.result_file import SCHEMA_PATH
from tests.support.pairs import WRONG, write_pair

if TYPE_CHECKING:
    from tests.support.runs import Run, Runner

# Right only where the cache holds no bad binary.
LOOKS = """
folder = os.environ.get("TRITON_CACHE_DIR", "")
factor = 3.0 if os.path.exists(os.path.join(folder, "bad.npubin")) else 2.0
open(os.path.join(folder, "new.npubin"), "w").close()
"""
# Wrong in every other process.
CHANGES = """
folder = os.path.dirname(os.path.abspath(__file__))
seen = os.path.join(folder, "seen")
if os.path.exists(seen):
    os.remove(seen)
else:
    factor = 3.0
    open(seen, "w").close()
"""
TELLS = """
folder = os.environ["TRITON_CACHE_DIR"]
assert os.listdir(folder) == [] and os.path.isabs(folder)
print("cache:", folder)
"""
KEPT = re.compile(r"^Triton 缓存目录已保留: (.*)$", re.MULTILINE)


@pytest.fixture
def cache(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, with a bad binary in it, in a home of their own."""
    folder = runner.path / "home" / "cache"
    folder.mkdir(parents=True)
    (folder / "bad.npubin").touch()
    monkeypatch.setenv("HOME", str(folder.parent))
    monkeypatch.delenv("TRITON_HOME", raising=False)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    return folder


def cleared(run: Run) -> list[Path]:
    """Return the caches that a run said it kept, less those that it should not have."""
    found = [Path(path) for path in KEPT.findall(run.err)]
    assert all(path.is_absolute() and path.is_dir() for path in found)
    return found


def test_accuracy_failures_are_tried_on_an_empty_cache(runner: Runner, cache: Path) -> None:
    bad = write_pair(runner.path / "ops" / "bad", "bad", cases=3, at={2: LOOKS})
    plain = write_pair(runner.path / "ops" / "plain", "plain", cases=2, at={1: WRONG})
    changes = write_pair(runner.path / "ops" / "changes", "changes", cases=1, at={1: CHANGES})
    good = write_pair(runner.path / "ops" / "good", "good", cases=1)
    run = runner.run("--verify-dir=ops", "--verify-cache-ab", "--verify-isolation=off")

    schema = json.loads(SCHEMA_PATH.read_text("utf-8"))
    sections = {}
    for pair in (bad, plain, changes, good):
        result = pair.result()
        jsonschema.validate(result, schema)
        sections[pair.task.name.partition("_")[0]] = result["cache_ab"]
    assert run.code == 1
    assert bad.result()["passed_cases"] == 2
    assert sections["good"] is None
    assert {op: found["code"] for op, found in sections.items() if found} == {
        "bad": "compiler_defect_suspected",
        "plain": "accuracy_defect",
        "changes": "unstable",
    }
    found = sections["bad"]
    assert found["first"]["failures"] == [{"case_idx": 2, "error_type": "AccuracyError"}]
    assert found["fresh"]["failures"] == []
    first, fresh = (found[name]["environment"]["cache"] for name in ("first", "fresh"))
    assert (first["dir"], first["fresh"], first["fresh_effective"]) == (str(cache), False, True)
    assert (fresh["dir"], fresh["fresh"], fresh["fresh_effective"]) == (
        found["kept_cache"],
        True,
        True,
    )
    kept = cleared(run)
    assert {str(path) for path in kept} == {
        found["kept_cache"],
        sections["changes"]["kept_cache"],
    }
    # The new binaries are in the new cache, and the user's own is as it was.
    assert [path.name for path in Path(found["kept_cache"]).iterdir()] == ["new.npubin"]
    for path in kept:
        shutil.rmtree(path)
    lines = [line for line in run.out.splitlines() if line.startswith("cache A/B: ")]
    assert len(lines) == 3
    assert lines[0].startswith("cache A/B: bad (triton_ascend_impl): 编译器缺陷嫌疑: ")
    assert found["kept_cache"] in lines[0]
    assert lines[2].startswith("cache A/B: plain (triton_ascend_impl): 真实精度缺陷: ")


def test_the_process_that_knows_all_outcomes_tries_it(runner: Runner, cache: Path) -> None:
    pair = write_pair(runner.path / "ops", cases=2, at={2: LOOKS})
    run = runner.run("--verify-dir=ops", "--verify-cache-ab", "-n1", plugins=["xdist"])
    found = pair.result()["cache_ab"]
    assert found["code"] == "compiler_defect_suspected"
    assert [str(path) for path in cleared(run)] == [found["kept_cache"]]
    shutil.rmtree(found["kept_cache"])
    assert (cache / "bad.npubin").exists()


@pytest.mark.parametrize(
    "options", [(), ("--verify-in-process", "-s")], ids=["workers", "in process"]
)
def test_a_fresh_cache_is_empty_and_removed(
    runner: Runner, cache: Path, options: tuple[str, ...]
) -> None:
    pair = write_pair(runner.path / "ops", cases=1, at={0: TELLS})
    run = runner.run("--verify-dir=ops", "--verify-fresh-cache", *options)
    assert run.code == 0, run.out
    found = pair.result()["environment"]["cache"]
    assert (found["fresh"], found["fresh_effective"]) == (True, True)
    folder = Path(found["dir"])
    assert folder.name.startswith("triton_verify_cache_")
    assert f"cache: {folder}" in (run.out if options else pair.result()["cases"][0]["output"])
    assert not folder.exists()
    assert cleared(run) == []
    # Neither the user's cache nor the default one was touched.
    assert [path.name for path in cache.iterdir()] == ["bad.npubin"]
    assert not (cache.parent / ".triton").exists()


def test_a_fresh_cache_is_kept_on_demand(runner: Runner, cache: Path) -> None:
    pair = write_pair(runner.path / "ops", cases=1, at={0: TELLS})
    options = ("--verify-fresh-cache", "--verify-keep-cache", "-n1")
    run = runner.run("--verify-dir=ops", *options, plugins=["xdist"])
    assert run.code == 0, run.out
    (kept,) = cleared(run)
    assert str(kept) == pair.result()["environment"]["cache"]["dir"] != str(cache)
    shutil.rmtree(kept)
