"""Honest mistakes are refused in their own words; ways around the check stay violations."""

from __future__ import annotations

import json
import keyword
import re
from typing import TYPE_CHECKING

import pytest
import torch
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.degeneration import check_source, tables
from pytest_tritonverify.degeneration.command import validate
from pytest_tritonverify.degeneration.spelling import names_of
from tests.support import torch_names
from tests.support.degeneration_snippets import model

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_tritonverify.degeneration.report import Report

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
GRID = "out = torch.empty_like(x)\n{}\nreturn out"
LAUNCH = "scale_kernel[(triton.cdiv({}, 256),)](x, out, x.numel(), BLOCK=256)"


def check(source: bytes, policy: str = "strict") -> Report:
    return check_source(source, filename="a/f.py", policy=policy)  # type: ignore[arg-type]


MISTAKES = {
    "method": (
        model("n = x.nume()\n" + GRID.format(LAUNCH.format("n"))),
        "AttributeError: torch.Tensor has no method `nume`; did you mean `numel`?",
    ),
    "method's result used as the number that was meant": (
        model(GRID.format(LAUNCH.format("(x.nume() + 255) // 256 * 256"))),
        "AttributeError: torch.Tensor has no method `nume`; did you mean `numel`?",
    ),
    "method that resembles none": (
        model("x = x.frobnicate()\nreturn launch(x)"),
        "AttributeError: torch.Tensor has no method `frobnicate`",
    ),
    "function of torch": (
        model("out = torch.empty_lik(x)\n" + LAUNCH.format("8") + "\nreturn out"),
        "AttributeError: torch has no function `empty_lik`; did you mean `empty_like`?",
    ),
    "function of torch.nn.functional": (
        model("return launch(F.paad(x, (0, 1)))"),
        "AttributeError: torch.nn.functional has no function `paad`; did you mean `pad`?",
    ),
    "kernel's name": (
        model(GRID.format(LAUNCH.format("8").replace("scale_kernel", "scale_kernl"))),
        "NameError: name `scale_kernl` is not defined; did you mean `scale_kernel`?",
    ),
    "kernel's name, run": (
        model(GRID.format("scale_kernl.run(x, out, 8, grid=(1,), BLOCK=8)")),
        "NameError: name `scale_kernl` is not defined; did you mean `scale_kernel`?",
    ),
    "helper's name": (
        model("return lanch(x)"),
        "NameError: name `lanch` is not defined; did you mean `launch`?",
    ),
    "helper's name, its result used as a number": (
        model(GRID.format(LAUNCH.format("count_of(x) + 1"))),
        "NameError: name `count_of` is not defined",
    ),
    "decorator's name": (
        model(
            "return twice(x)",
            module="@regster\ndef twice(x):\n    return launch(x)\ndef register(f):\n    return f",
        ),
        "NameError: name `regster` is not defined; did you mean `register`?",
    ),
    "decorator's name, of one kernel of two": (
        model(
            "out = torch.empty_like(x)\nmore[(1,)](x, out, 4)\nreturn launch(out)",
            module="@tuned(configs=[])\n@triton.jit\ndef more(x_ptr, o_ptr, n):\n"
            "    tl.store(o_ptr, tl.load(x_ptr) + n)",
        ),
        "NameError: name `tuned` is not defined",
    ),
    "import of torch": (
        model("return launch(x)").replace(b"\nimport torch\n", b"\n"),
        "NameError: name `torch` is not defined; write `import torch` at the top of the file",
    ),
    "import of triton": (
        model("return launch(x)").replace(b"\nimport triton\n", b"\n"),
        "NameError: name `triton` is not defined; write `import triton` at the top of the file",
    ),
    "method of the model": (
        model("return self.double(x)", members="def doubles(self, x):\n    return launch(x)\n")
        .replace(b"double(x)", b"doubel(x)")
        .replace(b"doubles", b"double"),
        "AttributeError: `ModelNew` has no attribute `doubel`; did you mean `double`?",
    ),
    "kernel of the model": (
        model(
            GRID.format("self.kernl[(8,)](x, out, x.numel(), BLOCK=256)"),
            init="self.kernel = scale_kernel",
        ),
        "AttributeError: `ModelNew` has no attribute `kernl`; did you mean `kernel`?",
    ),
    "function taken for a method": (
        model("return self.launch(x)"),
        (
            "AttributeError: `ModelNew` has no attribute `launch`; `launch` is no method: call it "
            "without the dot"
        ),
    ),
    "no grid": (
        model(GRID.format("scale_kernel(x, out, x.numel(), BLOCK=256)")),
        "RuntimeError: `scale_kernel` is called without a grid; write scale_kernel[grid](...)",
    ),
    "round brackets around the grid": (
        model(GRID.format("scale_kernel((8,))(x, out, x.numel(), BLOCK=256)")),
        "RuntimeError: `scale_kernel` is called without a grid; write scale_kernel[grid](...)",
    ),
    "no forward": (
        model("return launch(x)").replace(b"def forward", b"def call"),
        "MissingNameError: `ModelNew` has no method `forward` (it defines `call`)",
    ),
    "nothing in the model": (
        model("return launch(x)").partition(b"    \ndef forward")[0].partition(b"\nclass")[0]
        + b"\nclass ModelNew(nn.Module):\n    pass\n",
        "MissingNameError: `ModelNew` has no method `forward`",
    ),
    "no model": (
        model("return launch(x)").replace(b"ModelNew", b"NewModel"),
        "MissingNameError: f.py has no class `ModelNew` (it defines NewModel)",
    ),
    "function of Triton's language": (
        model("return launch(x)").replace(b"tl.store", b"tl.stoor"),
        "AttributeError: triton.language has no function `stoor`; did you mean `store`?",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_as_one(name: str) -> None:
    source, words = MISTAKES[name]
    report = check(source)
    assert report.mistaken, report.to_text()
    assert not report.passed
    (mistake,) = report.mistakes
    assert f"{mistake.error_type}: {mistake.message}" == words
    assert report.refusal_text().partition("\n")[0] == words
    text = report.to_text()
    assert words in text
    assert not re.search("Type [1-4]|PyTorch computes|can't be seen", text)
    document = report.to_json()
    assert (document["valid"], document["error"]) == (False, words)
    assert document["mistakes"] == [vars(mistake)]
    assert document["checks"]["no_forbidden_torch_ops"]["violations"] == []
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize("name", ["method", "kernel's name", "no grid", "no forward"])
def test_a_mistake_is_shown_where_it_stands(name: str) -> None:
    source, words = MISTAKES[name]
    report = check(source)
    (mistake,) = report.mistakes
    line = source.decode().splitlines()[mistake.line - 1]
    begins = {
        "method": "x.nume()",
        "kernel's name": "scale_kernl[",
        "no grid": "scale_kernel(",
        "no forward": "class ModelNew",
    }
    assert line[mistake.column - 1 :].startswith(begins[name])
    shown = report.refusal_text().splitlines()
    assert shown[0] == words
    assert shown[1] == f'  File "a/f.py", line {mistake.line}'
    assert shown[2].strip() == line.strip()
    assert shown[3].index("^") == 4 + mistake.column - 1 - (len(line) - len(line.lstrip()))


# Of these no line of the model is reached.
UNREACHED = ("no forward", "nothing in the model", "no model", "import of torch")


@pytest.mark.parametrize("name", [name for name in MISTAKES if name not in UNREACHED])
def test_what_computes_beside_a_mistake_is_still_named(name: str) -> None:
    source, words = MISTAKES[name]
    source = source.replace(
        b"def forward(self, x, w):\n", b"def forward(self, x, w):\n        w.exp_()\n"
    )
    report = check(source)
    assert not report.mistaken
    assert report.regression_type in (1, 2, 3)
    assert [v.call for v in report.violations if v.kind == "torch"] == ["w.exp_"]
    if report.regression_type != 1:
        assert words in report.to_text()


CHEATS = {
    "a name made at run time": model("return launch(getattr(x, 'nu' + 'me')())"),
    "a name given as text": model("return launch(getattr(x, 'nume')())"),
    "a name kept in a string": model("name = 'nume'\nreturn launch(x.nume())"),
    "a method of one's own": model("return launch(x.nume())", module="torch.Tensor.nume = nume\n"),
    "a method set by name": model(
        "return launch(x.nume())", module="setattr(torch.Tensor, 'nume', torch.softmax)\n"
    ),
    "PyTorch's own method": model(
        "return launch(x.nume())", module="torch.Tensor.nume = torch.Tensor.exp\n"
    ),
    "a function of one's own": model(
        "return launch(torch.expp(x))", module="torch.expp = torch.exp\n"
    ),
    "all names of a module": model("return fast(x)", module="from helpers import *\n"),
    "a name made by exec": model("return fast(x)", module="exec('fast = torch.exp')\n"),
    "a name among the globals": model("return fast(x)", module="globals().update(torch.__dict__)"),
    "a builtin of one's own": model(
        "return fast(x)", module="import builtins\nbuiltins.fast = torch.exp\n"
    ),
    "a module of one's own": model(
        "return fast(x)",
        module="import sys\nsetattr(sys.modules[__name__], 'fast', torch.exp)\n",
    ),
    "an attribute set by name": model("return self.fast(x)", init="vars(self)['fast'] = torch.exp"),
    "a foreign base": model("return self.fast(x)")
    .replace(b"ModelNew(nn.Module)", b"ModelNew(Base)")
    .replace(b"import math", b"import math\nfrom helpers import Base"),
    "a name that is bound later": model("return fast(x)", module="for fast in ():\n    pass\n"),
}


@pytest.mark.parametrize("name", CHEATS)
def test_a_name_that_may_be_made_up_stays_a_violation(name: str) -> None:
    report = check(CHEATS[name])
    assert not report.mistaken, report.to_text()
    assert 3 in report.regression_types, report.to_text()


def test_what_a_constructor_gets_from_an_unknown_method_stays_a_tensor() -> None:
    source = model("return launch(self.w * 2)", init="self.w = torch.ones(3).nume()")
    report = check(source)
    assert [v.call for v in report.violations] == ["*"]


def test_code_for_machines_without_an_accelerator_is_left_to_the_runs() -> None:
    source = model("if not x.is_cuda:\n    return x.nume()\nreturn launch(x)")
    report = check(source)
    assert report.passed
    assert [note.code for note in report.notes] == ["device-fallback"]


def test_a_wrong_name_that_gets_no_tensor_is_left_to_the_run() -> None:
    assert check(model("n = next_pow2(8)\nreturn launch(x)")).passed
    assert check(model("return launch(x) if x.shape else nothing")).passed


def test_a_call_without_a_grid_beside_a_launch_is_left_to_the_run() -> None:
    assert check(model("scale_kernel(x, x, 8, BLOCK=8)\nreturn launch(x)")).passed


def test_where_pytorch_may_compute_its_names_are_left_to_the_run() -> None:
    assert check(model("return launch(x.nume() + torch.expp(w))"), policy="partial").passed
    assert not check(model("return lanch(x)"), policy="partial").passed


def test_the_table_has_all_names_of_this_pytorch() -> None:
    # `python -m tests.support.torch_names` adds those of a newer one.
    for owner in ("torch.Tensor", "torch.nn.Module", "torch.nn.functional"):
        public = {name for name in torch_names.installed(owner) if not name.startswith("_")}
        assert public <= names_of(owner)


@CALM
@given(name=st.sampled_from(sorted(n for n in dir(torch.Tensor) if n.isidentifier())))
def test_a_name_that_exists_is_no_mistake(name: str) -> None:
    assert check(model(f"return launch(x.{name}())")).mistakes == ()


@CALM
@given(
    name=st.sampled_from(sorted(n for n in dir(torch.Tensor) if n[0] != "_" and len(n) > 3)),
    data=st.data(),
)
def test_a_misspelt_name_never_passes(name: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(name) - 1))
    wrong = name[:at] + name[at + 1 :]
    known = {*dir(torch.Tensor), *tables.CASTS, *tables.METADATA, *tables.PROPERTIES}
    assume(wrong not in known and wrong.isidentifier() and not keyword.iskeyword(wrong))
    assume(not wrong.startswith("npu"))
    report = check(model(f"y = x.{wrong}()\nreturn launch(y)", signature="x: torch.Tensor"))
    assert not report.passed
    assert report.mistaken, report.to_text()
    assert f"`{wrong}`" in report.mistakes[0].message


# Files that can't be read, and sources


@pytest.mark.parametrize("as_json", [False, True])
def test_files_that_are_not_there_have_a_sentence_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool
) -> None:
    file = tmp_path / "file.py"
    file.write_bytes(b"")
    cases = {
        tmp_path / "nowhere.py": "there is no such file",
        file / "below.py": "there is no such file: a part of its path is no folder",
        tmp_path: "this is a folder",
    }
    for path, words in cases.items():
        assert validate(str(path), as_json=as_json) == 1
        out = capsys.readouterr().out
        assert "valid Python" not in out
        if as_json:
            document = json.loads(out)
            assert (document["valid"], document["error"]) == (False, words)
            assert list(document)[:4] == ["valid", "regression_type", "checks", "suggestion"]
        else:
            assert out.startswith(f"{path}: error: {words}\n")
            assert "Type" not in out


def test_a_file_that_may_not_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    # Whoever runs the tests as root may read anything.
    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    assert validate(str(tmp_path / "secret.py")) == 1
    assert ": error: the file may not be read\n" in capsys.readouterr().out


def test_text_is_a_source_too() -> None:
    source = model("s = '\u4e2d'; return launch(x.relu())")
    as_text, told = (
        check_source(source.decode(), filename="f.py"),
        check_source(source, filename="f.py"),
    )
    assert as_text == told
    task = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x): return x.t()\n"
    for reference in (task, task.encode()):
        assert check_source(source, filename="f.py", reference=reference).violations
    assert check_source("\ufeff" + source.decode(), filename="f.py") == told
    broken = check_source("x = (\n", filename="f.py")
    assert broken.refusal_text().splitlines()[2:] == ["    x = (", "        ^"]
    cookie = "# -*- coding: latin-1 -*-\ns = '\u4e2d'\n" + source.decode()
    assert check_source(cookie, filename="f.py").regression_types == (3,)


def test_anything_else_is_no_source() -> None:
    with pytest.raises(TypeError, match="a source is bytes or str, not int"):
        check_source(3, filename="f.py")  # type: ignore[arg-type]
