"""What the tests of the workflow share: commands, schemas and work directories."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from pytest_tritonverify import cli
from pytest_tritonverify.engine import Engine
from tests.support.workdirs import Builder

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.execution.host import Host


def schema(name: str) -> dict[str, Any]:
    text = resources.files("pytest_tritonverify.workflow") / "schemas" / f"{name}.schema.json"
    found: dict[str, Any] = json.loads(text.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return found


@dataclass(frozen=True)
class Answer:
    """What a command has come to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Commands:
    """Runs commands in this process; what they print as JSON keeps to its schema."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> Answer:
        self._capsys.readouterr()
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as left:
            code = int(str(left.code))
        captured = self._capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return Answer(code, captured.out, captured.err)

    def json(self, name: str, *arguments: str | Path) -> tuple[int, Any]:
        answer = self.run(name, *arguments, "--json")
        content = answer.json
        if "error" not in content:
            kind = "summary" if name == "report" else name.replace("-", "_")
            jsonschema.validate(content, schema(kind))
        return answer.code, content


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


@pytest.fixture
def shared_host(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands share a fork server: starting one takes seconds."""

    class Shared:
        problems = host.problems
        spawn = host.spawn

        def close(self) -> None:
            """Leave it to the next test."""

    monkeypatch.setattr(Engine, "_new_host", lambda *_: Shared())


@pytest.fixture
def work(tmp_path: Path) -> Builder:
    """A work directory with its task and nothing else."""
    return Builder(tmp_path / "op_3_softmax_20260903_1422_1234")
