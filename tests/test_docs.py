"""The documents agree with the program, with each other and with what lies in the repository."""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from pytest_tritonverify import cli_options, discovery
from pytest_tritonverify.accuracy.verdict import Category
from pytest_tritonverify.execution.worker import ROLES
from pytest_tritonverify.results.result_file import SCHEMA_PATH
from pytest_tritonverify.settings import DEFAULT_TIMEOUT

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pytest_tritonverify"
README, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
DOCUMENTS = (
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "examples" / "README.md",
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def text_of(path: Path) -> str:
    return path.read_text("utf-8")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def prose_of(path: Path) -> str:
    return FENCED.sub("", text_of(path))


def blocks(path: Path, language: str) -> list[str]:
    return [body for found, body in FENCED.findall(text_of(path)) if found == language]


def commands() -> list[str]:
    """Return the README's shell commands."""
    lines = "".join(blocks(README, "console")).splitlines()
    assert lines
    assert all(line.startswith("$ ") for line in lines)
    return [line.removeprefix("$ ") for line in lines]


def links(path: Path) -> list[str]:
    targets: list[str] = re.findall(r"\]\(([^)\s]+)\)", prose_of(path))
    return [t for t in targets if not re.match(r"[a-z]+:|#", t)]


def table_cells(path: Path) -> list[list[str]]:
    rows = (line for line in prose_of(path).splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


@pytest.fixture(scope="module")
def help_text(tmp_path_factory: pytest.TempPathFactory) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tritonverify", "--help"],
        cwd=tmp_path_factory.mktemp("help"),
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return run.stdout


@pytest.fixture(scope="module")
def options(help_text: str) -> set[str]:
    return set(re.findall(r"^ +(--verify-[a-z0-9-]+)", help_text, re.MULTILINE))


@pytest.fixture(scope="module")
def ini_names(help_text: str) -> set[str]:
    return set(re.findall(r"^ +(verify_[a-z0-9_]+) \(", help_text, re.MULTILINE))


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text_of(SCHEMA_PATH))
    return found


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_option_that_a_document_names_exists(path: Path, options: set[str]) -> None:
    named = set(re.findall(r"--verify-[a-z][a-z0-9-]*[a-z0-9]", text_of(path)))
    assert named <= options


@pytest.mark.parametrize("path", [README, CHINESE], ids=name_of)
def test_the_table_of_options_is_complete(
    path: Path, options: set[str], ini_names: set[str]
) -> None:
    rows = [cells for cells in table_cells(path) if cells[0].startswith("`--verify-")]
    assert {re.sub(r"[\[=`].*", "", cells[0].strip("`")) for cells in rows} == options
    assert {cells[1].strip("`") for cells in rows if cells[1].startswith("`")} == ini_names
    defaults = {cells[0]: cells[2] for cells in rows}
    assert float(defaults["`--verify-timeout=SECONDS`"]) == DEFAULT_TIMEOUT


def test_the_page_on_options_has_a_section_for_each(options: set[str], ini_names: set[str]) -> None:
    headings = re.findall(
        r"^### (--\S+) \((.*)\)$", text_of(ROOT / "docs/options.md"), re.MULTILINE
    )
    assert {re.sub(r"[\[=].*", "", option) for option, _ in headings} == options
    assert {n for _, about in headings for n in re.findall(r"`(verify_\w+)`", about)} == ini_names


def test_commands_of_the_readme_name_what_is_there() -> None:
    for command in commands():
        if command.startswith("make "):
            target = command.removeprefix("make ")
            assert re.search(rf"^{target}:", text_of(ROOT / "Makefile"), re.MULTILINE), command
    transcripts = "".join(blocks(README, "text"))
    folders = re.findall(r"--(?:verify-dir|ignore)=(examples\S*)", transcripts)
    assert folders
    assert all((ROOT / folder).is_dir() for folder in folders)


def test_the_command_for_scripts_is_understood() -> None:
    prefix = "python -m pytest_tritonverify verify "
    parser = argparse.ArgumentParser()
    cli_options.add_verify_options(parser)
    (command,) = (c for c in commands() if c.startswith(prefix))
    options = parser.parse_args(command.removeprefix(prefix).split())
    assert (options.op_name, options.triton_impl_name) == ("scale", "triton_ascend_impl")
    also = re.search(r"It also takes (.*?)\.", prose_of(README), re.DOTALL)
    assert also is not None
    for name in re.findall(r"`(--[\w-]+)`", also[1]):
        assert name in parser.format_help()


def test_the_pair_of_the_readme_is_a_pair(tmp_path: Path) -> None:
    names = re.findall(r"^`ops/scale/(\S+)`, the", text_of(README), re.MULTILINE)
    for name, source in zip(names, blocks(README, "python"), strict=False):
        ast.parse(source)
        (tmp_path / name).write_text(source, encoding="utf-8")
    pair = discovery.pair_of(tmp_path / names[1])
    assert pair is not None
    assert (pair.op, pair.impl_name, pair.task.name) == ("scale", "triton_ascend_impl", names[0])
    assert discovery.is_real_pair(pair)


def test_configuration_of_the_readme_is_known(ini_names: set[str]) -> None:
    tomllib = pytest.importorskip("tomllib", reason="part of Python since 3.11")
    (source,) = blocks(README, "toml")
    assert set(tomllib.loads(source)["tool"]["pytest"]["ini_options"]) <= ini_names


def test_the_excerpt_of_a_result_keeps_to_the_schema(
    schema: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    excerpt, settings = (json.loads(source) for source in blocks(README, "json"))
    assert [key for key in schema["properties"] if key in excerpt] == list(excerpt)
    for key, value in excerpt.items():
        jsonschema.validate(value, {**schema["properties"][key], "$defs": schema["$defs"]})
    assert settings["python.testing.pytestArgs"] == ["--verify-dir=ops"]
    (tmp_path / "verify_result.json").write_text(json.dumps(excerpt), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {}
    exec(blocks(README, "python")[2], namespace)  # noqa: S102 - the README's own three lines
    assert namespace["ok"] is False


def test_every_key_of_the_result_is_explained(schema: dict[str, Any]) -> None:
    page = text_of(ROOT / "docs/result.md")
    parts = (
        schema,
        schema["properties"]["failures"]["items"],
        schema["properties"]["sources"],
        schema["$defs"]["case"],
        schema["$defs"]["output"],
    )
    missing = {key for part in parts for key in part["properties"] if f"`{key}`" not in page}
    assert not missing
    assert all(f"`{category}`" in page for category in get_args(Category))
    source = "".join(text_of(path) for path in PACKAGE.rglob("*.py"))
    codes = set(re.findall(r"""Caution\(\s*["'](\w+)["']""", source))
    assert codes
    assert {code for code in codes if f"`{code}`" not in page} == set()


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path: Path) -> None:
    broken = [t for t in links(path) if not (path.parent / t.partition("#")[0]).exists()]
    assert not broken


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_documents_name_no_place_of_one_machine(path: Path) -> None:
    assert not re.findall(r"/(?:tmp|root|home|work|Users)/\S*", text_of(path))


def test_all_documents_are_listed() -> None:
    listed = {(ROOT / "docs" / target).resolve() for target in links(ROOT / "docs/README.md")}
    unlisted = {path.name for path in DOCUMENTS if path not in listed}
    assert unlisted == {"README.md", "README.zh-CN.md", "CHANGELOG.md"}


def test_the_chinese_readme_keeps_in_step() -> None:
    def outline(path: Path) -> list[int]:
        return [len(marks) for marks in re.findall(r"^(#+) ", prose_of(path), re.MULTILINE)]

    assert outline(CHINESE) == outline(README)
    assert FENCED.findall(text_of(CHINESE)) == FENCED.findall(text_of(README))
    assert len(table_cells(CHINESE)) == len(table_cells(README))
    assert prose_of(CHINESE).count("\n- ") == prose_of(README).count("\n- ")
    assert sorted(set(links(CHINESE)) - {"README.md"}) == sorted(
        set(links(README)) - {"README.zh-CN.md"}
    )


def test_log_lines_are_quoted_to_the_letter() -> None:
    quoted = [b for b in blocks(README, "text") if "验证成功" in b or "评测模式" in b]
    assert len(quoted) == 2
    source = "".join(text_of(path) for path in PACKAGE.rglob("*.py"))
    words = set(re.findall(r"[\u3001-\u301f\u4e00-\u9fff\uff01-\uff5e]+", "".join(quoted)))
    assert {word for word in words if word not in source} == set()


_PACKAGES_WITH_A_PAGE = (
    "accuracy",
    "benchmark",
    "compilation",
    "degeneration",
    "evidence",
    "forensics",
    "html_report",
    "interpreter",
    "observing",
    "probe",
    "standin",
    "timing",
    "workflow",
    "strictness",
)


def test_what_shows_a_guarantee_is_there() -> None:
    page = text_of(ROOT / "docs/trust.md")
    named = set(re.findall(r"`((?:\w+/)?test_\w+\.py)`", page))
    assert len(named) > 20
    assert {name for name in named if not (ROOT / "tests" / name).is_file()} == set()


def test_every_module_has_its_line() -> None:
    page = text_of(ROOT / "docs/architecture.md")
    named = set(re.findall(r"`(\w+\.py)`", page)) - {"conftest.py"}
    modules = {
        path.name
        for path in PACKAGE.rglob("*.py")
        if not path.name.startswith("__") and path.parent.name not in _PACKAGES_WITH_A_PAGE
    }
    inside = {path.name for path in PACKAGE.rglob("*.py")}
    assert modules <= named <= inside
    assert all(f"`{role}`" in page for role in ROLES)


def test_the_picture_is_well_formed() -> None:
    picture = ET.parse(ROOT / "docs" / "processes.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    ids = {element.get("id") for element in picture.iter()}
    values = " ".join(value for element in picture.iter() for value in element.attrib.values())
    uses = set(re.findall(r"url\(#(\w+)\)", values))
    assert uses
    assert uses <= ids
