"""Which function of a file is which, by its text alone."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import pytest

from pytest_tritonverify.evidence import codes
from pytest_tritonverify.evidence.sources import Sources

if TYPE_CHECKING:
    from pathlib import Path
    from types import CodeType

TEXT = """
    import functools

    @functools.lru_cache(
        maxsize=3
    )
    def kernel(x):
        "Say what it does."
        assert x
        return {1, 2} if x in {"a", "b", 3.0} else lambda y: y + x

    class Base:
        def forward(self, x):
            return x

    class ModelNew(Base):
        def __call__(self, x):
            return [self.forward(part) for part in x]
    """


def written(path: Path, text: str) -> Sources:
    path.write_text(textwrap.dedent(text))
    return Sources(path)


def codes_of(path: Path, optimize: int = -1) -> dict[str, CodeType]:
    found: dict[str, Any] = {}
    pending = [compile(path.read_bytes(), str(path), "exec", dont_inherit=True, optimize=optimize)]
    while pending:
        code = pending.pop()
        found[code.co_name] = code
        pending += [part for part in code.co_consts if hasattr(part, "co_code")]
    return found


def test_functions_begin_between_their_first_decorator_and_their_name(tmp_path: Path) -> None:
    path = tmp_path / "op.py"
    sources = written(path, TEXT)
    lines = [n for n in range(1, 30) if sources.defines(str(path), "kernel", n)]
    assert lines == [4, 5, 6, 7]
    assert not sources.defines(str(path), "other", 4)
    assert not sources.defines("/elsewhere/op.py", "kernel", 4)


@pytest.mark.parametrize("optimize", [0, 1, 2])
def test_codes_are_the_texts_however_it_was_optimised(tmp_path: Path, optimize: int) -> None:
    path = tmp_path / "op.py"
    sources = written(path, TEXT)
    for name, code in codes_of(path, optimize).items():
        assert sources.compiles_to(str(path), name, codes.digest(code)), name
    other = tmp_path / "other.py"
    written(other, TEXT.replace("3.0", "4.0"))
    digest = codes.digest(codes_of(other)["kernel"])
    assert not sources.compiles_to(str(path), "kernel", digest)


def test_digests_do_not_depend_on_files_lines_or_runs(tmp_path: Path) -> None:
    first, second = tmp_path / "a.py", tmp_path / "b.py"
    written(first, TEXT)
    second.write_text("\n\n" + first.read_text())
    before = codes.digest(codes_of(first)["kernel"])
    assert codes.digest(codes_of(second)["kernel"]) == before
    scope: dict[str, Any] = {}
    exec(compile(first.read_bytes(), "x", "exec", dont_inherit=True), scope)  # noqa: S102 - the text above
    kernel = scope["kernel"].__wrapped__
    for number in range(1, 3000):
        kernel(number)
    assert codes.digest(kernel.__code__) == before


def test_entries(tmp_path: Path) -> None:
    path = tmp_path / "op.py"
    sources = written(path, TEXT)
    file = str(path)
    call = codes_of(path)["__call__"].co_firstlineno
    base = codes_of(path)["forward"].co_firstlineno
    assert sources.is_entry(file, "__call__", "__call__", call)
    assert not sources.is_entry(file, "__call__", "kernel", 7)
    assert sources.is_entry(file, "forward", "forward", base)
    assert not sources.is_entry(file, "forward", "kernel", 7)
    decorated = written(path, TEXT.replace("    def __call__", "    @mine\n        def __call__"))
    assert decorated.is_entry(file, "__call__", "kernel", 7)
    quiet = written(
        path, TEXT.replace("    def __call__", "    @torch.no_grad()\n        def __call__")
    )
    assert not quiet.is_entry(file, "__call__", "kernel", 7)


def test_a_file_is_read_before_it_can_change_itself(tmp_path: Path) -> None:
    path = tmp_path / "op.py"
    sources = written(path, TEXT)
    path.write_text("def other(): pass\n")
    assert not sources.defines(str(path), "other", 1)
    assert sources.defines(str(path), "kernel", 7)


@pytest.mark.parametrize("text", ["def f(:", "\0", "(" * 500 + ")" * 500, "é".encode("latin-1")])
def test_what_cannot_be_read_defines_nothing(tmp_path: Path, text: str | bytes) -> None:
    path = tmp_path / "op.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    sources = Sources(path)
    assert not sources.defines(str(path), "f", 1)
    assert not sources.compiles_to(str(path), "f", "0")
    assert not Sources(tmp_path / "absent.py").defines(str(tmp_path / "absent.py"), "f", 1)
