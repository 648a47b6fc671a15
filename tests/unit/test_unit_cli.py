"""`python -m pytest_tritonverify verify`: the scripts' option names, exit status and last lines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify import cli
from pytest_tritonverify.cli_pytest import Ended

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class FakePytest:
    """Stands for the run of pytest: leaves a result and an exit status."""

    def __init__(self) -> None:
        self.options: list[str] = []
        self.folder: Path | None = None
        self.result: object = {"total_cases": 3, "passed_cases": 3, "failed_cases": 0}
        self.status = 0
        self.found_old = False

    def __call__(self, options: Sequence[str], folder: Path) -> Ended:
        self.options, self.folder = list(options), folder
        output = self.output
        self.found_old = output.exists()
        if self.result is not None:
            output.parent.mkdir(parents=True, exist_ok=True)
            output.write_text(json.dumps(self.result), encoding="utf-8")
        return Ended(self.status, interrupted=False)

    @property
    def output(self) -> Path:
        assert self.folder is not None
        return self.folder / self.value("--verify-output")

    def value(self, name: str) -> str:
        return next(o.partition("=")[2] for o in self.options if o.startswith(f"{name}="))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakePytest:
    one = FakePytest()
    monkeypatch.setattr(cli, "run_pytest", one)
    return one


@pytest.fixture
def ops(tmp_path: Path) -> Path:
    folder = tmp_path / "ops"
    folder.mkdir()
    for name in ("a_torch.py", "a_triton_ascend_impl.py", "a_triton_v2.py", "b_torch.py"):
        (folder / name).touch()
    return folder


def verify(*arguments: str) -> int:
    return cli.main(["verify", *arguments])


# Options


def test_the_operator_is_all_that_must_be_given(
    fake: FakePytest, ops: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ops)
    assert verify("--op_name", "a") == 0
    assert fake.folder == ops
    assert fake.output == ops / "verify_result.json"
    assert fake.value("--verify-dir") == str(ops)
    assert fake.value("--verify-op") == "a"
    assert fake.value("--verify-impl") == "triton_ascend_impl"
    assert float(fake.value("--verify-timeout")) == 900
    switches = {f"--verify-{n}" for n in ("non-compute", "exact-int", "fresh-cache", "keep-cache")}
    assert not switches & set(fake.options)
    assert not any(option.startswith("--verify-device") for option in fake.options)


def test_all_options_of_the_script(
    fake: FakePytest, ops: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = "--op_name a --verify_dir ops --triton_impl_name triton_v2 --timeout 1234567 "
    arguments += (
        "--output out/r.json --non-compute --exact-int --fresh-cache --keep-cache --device cpu"
    )
    assert verify(*arguments.split()) == 0
    assert fake.output == tmp_path / "out" / "r.json"
    assert fake.value("--verify-impl") == "triton_v2"
    assert float(fake.value("--verify-timeout")) == 1234567
    assert fake.value("--verify-device") == "cpu"
    switches = {"--verify-non-compute", "--verify-fresh-cache", "--verify-keep-cache"}
    assert switches <= set(fake.options)


@pytest.mark.parametrize(
    ("others", "impl", "name"),
    [
        ([], "triton_ascend_impl", "verify_result.json"),
        ([], "triton_v2", "verify_result_v2.json"),
        (["b_triton_v2.py"], "triton_ascend_impl", "a_verify_result.json"),
        (["b_triton_v2.py"], "triton_v2", "a_verify_result_v2.json"),
    ],
)
def test_the_result_goes_where_the_benchmark_looks_for_it(
    fake: FakePytest, ops: Path, others: list[str], impl: str, name: str
) -> None:
    for other in others:
        (ops / other).touch()
    assert verify("--op_name", "a", "--verify_dir", str(ops), "--triton_impl_name", impl) == 0
    assert fake.output == ops / name


def test_names_are_no_patterns(fake: FakePytest, ops: Path) -> None:
    for name in ("x[1]*_torch.py", "x[1]*_triton_?.py"):
        (ops / name).touch()
    arguments = ["--op_name", "x[1]*", "--verify_dir", str(ops), "--triton_impl_name", "triton_?"]
    assert verify(*arguments) == 0
    assert fake.value("--verify-op") == "x[[]1][*]"
    assert fake.value("--verify-impl") == "triton_[?]"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="no command"),
        pytest.param(["verify"], id="no operator"),
        pytest.param(["verify", "--op_name", "a", "--timeout", "soon"], id="no number"),
        pytest.param(["verify", "--op_name", "a", "--unknown"], id="unknown option"),
        pytest.param(["judge", "--op_name", "a"], id="unknown command"),
    ],
)
def test_wrong_usage_is_answered_with_the_right_one(
    capsys: pytest.CaptureFixture[str], fake: FakePytest, arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m pytest_tritonverify")
    assert fake.options == []


# What is not there


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--op_name", "a", "--verify_dir", "gone"], ["no folder", "gone", "--verify_dir"]),
        (["--op_name", "a", "--verify_dir", "ops/a_torch.py"], ["no folder", "a_torch.py"]),
        (
            ["--op_name", "c", "--verify_dir", "ops"],
            ["ops/c_torch.py", "--op_name", "tasks for: a, b"],
        ),
        (
            ["--op_name", "a", "--verify_dir", "ops", "--triton_impl_name", "triton_v3"],
            ["ops/a_triton_v3.py", "--triton_impl_name", "triton_ascend_impl, triton_v2"],
        ),
        (["--op_name", "b", "--verify_dir", "ops"], ["b_triton_ascend_impl.py", "there are: none"]),
    ],
)
def test_missing_files_are_told_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fake: FakePytest,
    ops: Path,
    arguments: list[str],
    words: list[str],
) -> None:
    monkeypatch.chdir(ops.parent)
    (ops / "verify_result.json").write_text("another pair's", encoding="utf-8")
    assert verify(*arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("verify: there is no ")
    assert err.count("\n") == 1
    assert all(word in err for word in words)
    assert fake.options == []
    assert (ops / "verify_result.json").exists()


# Outcomes


def counts(total: int, passed: int) -> dict[str, Any]:
    return {"total_cases": total, "passed_cases": passed, "failed_cases": total - passed}


@pytest.mark.parametrize(
    ("status", "result", "code", "line"),
    [
        (0, counts(7, 7), 0, "验证成功：共 7 组测试用例全部通过"),
        (1, counts(7, 5), 1, "验证失败：5/7 组通过，2 组失败（详见 {output}）"),
        (1, counts(0, 0), 1, "验证失败：0/0 组通过，0 组失败（详见 {output}）"),
        (2, counts(7, 1), 1, "验证失败：1/7 组通过，6 组失败（详见 {output}）"),
        # Nothing but a run that ended well is a success, whatever the file says.
        (3, counts(7, 7), 1, "验证失败：运行没有正常结束（pytest 退出码 3）"),
        (-9, counts(7, 7), 1, "验证失败：运行没有正常结束（pytest 退出码 -9）"),
        (0, counts(7, 6), 1, "验证失败：6/7 组通过，1 组失败（详见 {output}）"),
        (0, counts(0, 0), 1, "验证失败：0/0 组通过，0 组失败（详见 {output}）"),
        (4, None, 1, "验证失败：没有写出结果文件（pytest 退出码 4）"),
        (0, None, 1, "验证失败：没有写出结果文件（pytest 退出码 0）"),
        (0, [1], 1, "验证失败：没有写出结果文件（pytest 退出码 0）"),
        (0, {"total_cases": 3}, 1, "验证失败：没有写出结果文件（pytest 退出码 0）"),
    ],
)
def test_exit_status_and_last_line(
    capsys: pytest.CaptureFixture[str],
    fake: FakePytest,
    ops: Path,
    status: int,
    result: object,
    code: int,
    line: str,
) -> None:
    fake.status, fake.result = status, result
    assert verify("--op_name", "a", "--verify_dir", str(ops)) == code
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == line.format(output=ops / "verify_result.json")


def test_an_old_verdict_is_no_verdict(
    capsys: pytest.CaptureFixture[str], fake: FakePytest, ops: Path
) -> None:
    old = ops / "verify_result.json"
    old.write_text(json.dumps(counts(3, 3)), encoding="utf-8")
    fake.status, fake.result = 4, None
    assert verify("--op_name", "a", "--verify_dir", str(ops)) == 1
    assert not fake.found_old
    assert not old.exists()
    assert "验证成功" not in capsys.readouterr().out


def test_a_folder_in_the_way_of_the_result_is_told(
    capsys: pytest.CaptureFixture[str], fake: FakePytest, ops: Path
) -> None:
    assert verify("--op_name", "a", "--verify_dir", str(ops), "--output", str(ops)) == 1
    assert f"verify: the old {ops} can't be removed" in capsys.readouterr().err
    assert fake.options == []
