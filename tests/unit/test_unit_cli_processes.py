"""The drop-in command as a process: what surrounds it can't change what it says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from tests.support.living import is_alive
from tests.support.pairs import HANGS, RAISES, WRONG, case_name, error_types, write_pair
from tests.support.runs import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = [sys.executable, "-m", "pytest_tritonverify"]


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    # What the outer run was told does not concern the inner one.
    for name in [n for n in os.environ if n.startswith("PYTEST_")]:
        monkeypatch.delenv(name)
    # Loading every installed plugin takes longer than the run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*MODULE, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def last_line(run: subprocess.CompletedProcess[str]) -> str:
    return run.stdout.splitlines()[-1]


# Whole runs


def test_a_right_pair_in_a_folder_full_of_traps(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "ops")
    marker = tmp_path / "imported"
    trap = f"open({str(marker)!r}, 'a').write(__file__ + '\\n')\n"
    (tmp_path / "conftest.py").write_text(trap)
    for name in ("pytest.py", "torch.py", "triton.py", "test_x.py", "sitecustomize.py"):
        (pair.folder / name).write_text(trap)
    (pair.folder / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    # A copy below: of no concern, though it has the same names, and a conftest.
    write_pair(pair.folder / "iter_0", factor=3.0)
    (pair.folder / "iter_0" / "conftest.py").write_text(trap)

    run = command("verify", "--op_name", "double", "--verify_dir", str(pair.folder), cwd=tmp_path)

    assert run.returncode == 0, run.stdout + run.stderr
    assert last_line(run) == "验证成功：共 3 组测试用例全部通过"
    assert run.stdout.count("[评测模式] ") == 3
    assert f"result: {pair.folder / 'verify_result.json'}" in run.stdout.splitlines()
    assert "configfile" not in run.stdout
    result = pair.result()
    assert (result["total_cases"], result["passed_cases"]) == (3, 3)
    assert not marker.exists()
    assert not list((pair.folder / "iter_0").glob("*.json*"))
    assert run.stderr == ""


def test_a_wrong_pair(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "ops", variant="v2", cases=4, at={2: WRONG, 4: RAISES})
    options = "--op_name double --triton_impl_name triton_v2 --output ../out/r.json --non-compute"

    run = command("verify", *options.split(), cwd=pair.folder)

    assert run.returncode == 1
    output = tmp_path / "out" / "r.json"
    assert last_line(run) == f"验证失败：2/4 组通过，2 组失败（详见 {output}）"
    result = json.loads(output.read_text(encoding="utf-8"))
    assert error_types(result) == {2: "AccuracyError", 4: "ValueError"}
    assert result["environment"]["cmdline"] == {
        "triton_impl_name": "triton_v2",
        "non_compute": True,
    }
    assert case_name(4) in run.stdout
    assert not list(pair.folder.glob("verify_result*"))


def test_a_hanging_pair(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "ops", at={1: HANGS})

    run = command("verify", "--op_name", "double", "--timeout", "5", cwd=pair.folder)

    assert run.returncode == 1
    assert "验证超时" in run.stdout
    assert last_line(run).startswith("验证失败：0/")
    assert error_types(pair.result())[1] == "VerifyTimeout"


def test_a_conftest_beside_the_pair_is_refused(tmp_path: Path) -> None:
    pair = write_pair(tmp_path / "ops")
    conftest = pair.folder / "conftest.py"
    conftest.write_text("import os\nos._exit(0)\n")
    (pair.folder / "verify_result.json").write_text('{"total_cases": 1, "passed_cases": 1}')

    run = command("verify", "--op_name", "double", cwd=pair.folder)

    assert run.returncode == 1
    assert f"{conftest} lies among the files to be judged" in run.stderr
    assert "Traceback" not in run.stderr
    assert last_line(run).startswith("验证失败：没有写出结果文件")
    assert not (pair.folder / "verify_result.json").exists()


# Around a run: pytest is replaced by a few lines


def start(pair_folder: Path, program: str, **environment: str) -> subprocess.Popen[str]:
    """Start the command with a program instead of pytest."""
    source = (
        "import sys; from pytest_tritonverify import cli, cli_pytest; "
        "cli_pytest._PYTEST = sys.argv.pop(1); "
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", source, textwrap.dedent(program), "verify", "--op_name", "double"],
        cwd=pair_folder,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


SLEEPER = """
    import os, pathlib, signal, sys, time
    seen = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: seen.append(1))
    pathlib.Path("pid").write_text(str(os.getpid()))
    pathlib.Path("ready").touch()
    while not seen:
        time.sleep(0.01)
    time.sleep(0.5)
    output = next(a.partition("=")[2] for a in sys.argv if a.startswith("--verify-output="))
    pathlib.Path(output).write_text(
        '{"total_cases": 3, "passed_cases": %d, "failed_cases": 2}' % len(seen)
    )
    sys.exit(2)
"""


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A command whose pytest waits to be interrupted; `tmp_path / 'ops'` is its folder."""
    folder = write_pair(tmp_path / "ops").folder
    process = start(folder, SLEEPER)
    wait_until((folder / "ready").exists, "it did not start")
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_what_asks_it_to_end_is_handed_on_once_and_waited_for(
    sleeper: subprocess.Popen[str], tmp_path: Path, sent: signal.Signals
) -> None:
    # As a terminal does: to everybody of the foreground group.
    os.killpg(sleeper.pid, sent)
    out, err = sleeper.communicate(timeout=PATIENCE)
    assert sleeper.returncode == 1
    output = tmp_path / "ops" / "verify_result.json"
    assert out.splitlines() == [f"验证失败：1/3 组通过，2 组失败（详见 {output}）"]
    assert err == ""


def test_pytest_does_not_outlive_the_command(
    sleeper: subprocess.Popen[str], tmp_path: Path
) -> None:
    pid = int((tmp_path / "ops" / "pid").read_text())
    sleeper.kill()
    wait_until(lambda: not is_alive(pid), f"process {pid} is left")


def test_a_terminal_that_cannot_show_the_line_gets_it_escaped(tmp_path: Path) -> None:
    folder = write_pair(tmp_path / "ops").folder
    process = start(folder, "raise SystemExit(4)", PYTHONIOENCODING="ascii:strict")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert out.startswith("\\u9a8c\\u8bc1\\u5931\\u8d25")
    assert err == ""


def test_without_a_command_the_usage_is_shown(tmp_path: Path) -> None:
    run = command(cwd=tmp_path)
    assert run.returncode == 2
    assert run.stderr.startswith("usage: python -m pytest_tritonverify")
    assert "COMMAND" in run.stderr
    run = command("verify", "--help", cwd=tmp_path)
    assert run.returncode == 0
    assert all(
        option in run.stdout
        for option in (
            "--op_name",
            "--verify_dir",
            "--triton_impl_name",
            "--timeout",
            "--output",
            "--non-compute",
            "--fresh-cache",
            "--keep-cache",
        )
    )
