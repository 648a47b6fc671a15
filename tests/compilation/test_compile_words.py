"""What compilers say, read: their own words, as they have printed them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_tritonverify.compilation import npu, words

if TYPE_CHECKING:
    from pathlib import Path

OVERFLOW = """\
[ERROR] Cannot find hivmc under $PATH
[NOTE] Ub overflow detected; automatically set enable-code-motion to false and retrying compilation.
loc("/tmp/x/kernel.ttadapter.mlir":1:1): error: Failed to run BiShengHIR pipeline

loc("/tmp/x/kernel.ttadapter.mlir":2:3): error: ub overflow, requires 4194304 bits while 1572864 \
bits available! (possible reason: tiling basic block is too large)
[ERROR] Failed to run BiShengIR pipeline
loc("/tmp/x/kernel.ttadapter.mlir":1:1): error: Failed to run BiShengHIR pipeline
"""
FAILED = "[ERROR] Failed to run BiShengIR pipeline"
ABSENT = "[ERROR] Cannot find hivmc-a5 under $PATH "
# As older versions spell it.
OLDER = "error: cbuf overflow, requires 9000 bits while 4000 bits avaliable!"
ASSEMBLER = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    16 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers
"""
AMD = """\
    .sgpr_count:     19
    .vgpr_count:     512
    .vgpr_spill_count: 140
"""


def test_an_overflow_says_what_is_needed_and_what_there_is() -> None:
    assert words.overflow(OVERFLOW) == words.Overflow("ub", 4194304, 1572864)
    assert words.overflow(OLDER) == words.Overflow("cbuf", 9000, 4000)
    assert words.overflow("all is well") is None
    assert words.gist(OVERFLOW) == "ub overflow, requires 4194304 bits while 1572864 bits available"
    assert npu.figures(OVERFLOW) == {
        "memory_space": "ub",
        "memory_bits": 4194304,
        "memory_bits_available": 1572864,
    }
    assert npu.figures("UB size = 65536 bits") == {"memory_space": "ub", "memory_bits": 65536}
    assert npu.figures("") == {}


@pytest.mark.parametrize(
    ("text", "front_end", "kind"),
    [
        (OVERFLOW, False, words.UB_OVERFLOW),
        (OLDER, False, words.MEMORY_OVERFLOW),
        ("unsupported AST node type: Continue", True, words.UNSUPPORTED),
        ("error: failed to legalize operation 'tt.atomic_cas'", False, words.UNSUPPORTED),
        ("type fp8e4nv not supported in this architecture", True, words.UNSUPPORTED),
        ("NameError('factor is not defined')", True, words.TRITON_ERROR),
        ("error: Failed to run BiShengHIR pipeline", False, words.COMPILER_ERROR),
        ("LLVM ERROR: unsupported datatype\nStack dump:\n0. ...", False, words.UNSUPPORTED),
        ("PLEASE submit a bug report to\nStack dump:\n0. ...", False, words.CRASH),
    ],
)
def test_failures_are_told_apart(text: str, front_end: bool, kind: str) -> None:
    assert words.subkind(text, front_end=front_end) == kind
    assert kind in words.SUBKINDS


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            'a.py:7:4: error: operand #0 is wrong\nloc("a.py":7:4): error: more',
            "operand #0 is wrong",
        ),
        (
            (
                "PTXAS error: Internal Triton PTX codegen error\n`ptxas` stderr:\n"
                "ptxas-blackwell /tmp/x7.ptx, line 5; error   : Modifier '.a' can't be here\n"
                "ptxas-blackwell fatal   : Ptx assembly aborted due to errors"
            ),
            "ptxas: Modifier '.a' can't be here",
        ),
        ("\n\n  just this\nand that", "just this"),
        ("", ""),
    ],
)
def test_one_line_says_what_is_wrong(text: str, line: str) -> None:
    assert words.gist(text) == line


@pytest.mark.parametrize(
    ("said", "reached"),
    [
        ("[NOTE] x\n[ERROR] External hivmc run fails, returning module before it", True),
        (f"{ABSENT}\n{ABSENT}\n\n{FAILED}\n[ERROR] Executing: /x/bishengir-compile-a5 y\n", True),
        (f'{ABSENT}\nloc("k.mlir":2:3): error: no\n{FAILED}\n', False),
        (f"{ABSENT}\nLLVM ERROR: no", False),
        (f"[a-pass] revert k: it failed\n{ABSENT}\n{FAILED}", True),
        (f"{ABSENT}\n[a-pass] it failed\n{FAILED}", False),
        (f"LLVM ERROR: no\n{ABSENT}\n{FAILED}", False),
        (f"{ABSENT}\n[ERROR] Failed to run `hivmc --version`.\n{FAILED}", False),
        (OVERFLOW, False),
        (FAILED, False),
        ("", False),
    ],
)
def test_what_lacks_only_the_code_generator_has_passed(
    said: str, reached: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert npu.reached_code_generator(said) is reached
    for name in ("hivmc", "hivmc-a5"):
        (tmp_path / name).touch(0o755)
    # It is there, so that it has failed itself.
    assert not npu.reached_code_generator(said)


def test_places_are_read() -> None:
    text = '/a/b.py:17:20: error: one\nloc("c.mlir":2:3): error: two\nd.py:5: error: none'
    assert words.diagnostics(text) == [("/a/b.py", 17, "one"), ("c.mlir", 2, "two")]


def test_frames_and_repetitions_are_left_out_and_code_is_not() -> None:
    framed = (
        "///------------------[ERROR][Triton][BEG]------------------\n"
        "[ConvertLinalgRToBinary] encounters error:\n"
        f"{OVERFLOW}"
        "[INFO]: The compiled kernel cache is in /tmp/x\n"
        "x = f(x)\nx = f(x)\n"
        "///------------------[ERROR][Triton][END]------------------"
    )
    kept = words.cleaned(framed).splitlines()
    assert kept[0].startswith("[NOTE]")
    assert kept[-2:] == ["x = f(x)", "x = f(x)"]
    assert len(kept) == 6
    assembler = "`ptxas` stderr:\nptxas /x.ptx, line 5; error   : no\nRepro command: ptxas /x.ptx"
    assert words.cleaned(f"{assembler}\n====\n{assembler}") == f"{assembler}\n===="


def test_figures_are_read() -> None:
    assert words.ptxas_figures(ASSEMBLER) == {"registers": 255, "spilled_bytes": 20}
    assert words.ptxas_figures("") == {}
    assert words.amd_figures(AMD) == {
        "registers": 512,
        "scalar_registers": 19,
        "spilled_registers": 140,
    }
    assert words.mix_mode('func.func @k() attributes {mix_mode = "aiv", x}') == "aiv"
    assert words.mix_mode("func.func @k()") is None
