"""Exceptions of user code become plain data, whatever they do to prevent that."""

from __future__ import annotations

import json
import linecache
import re
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tritonverify.execution import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


# Neither a deadline nor a verdict on speed: other work may load the machine.
CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture
def raised(tmp_path: Path) -> Callable[[str], BaseException]:
    """Runs source as a user's file and returns what it raises."""

    def run(source: str) -> BaseException:
        path = tmp_path / "user.py"
        path.write_text(source, encoding="utf-8")
        linecache.checkcache(str(path))
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - anything a user raises
            exec(compile(source, str(path), "exec"), {"__name__": "user"})  # noqa: S102
        return caught.value

    return run


def described(error: BaseException, tmp_path: Path) -> dict[str, Any]:
    found = errors.describe(error, "forward", (str(tmp_path),))
    json.dumps(found, allow_nan=False, ensure_ascii=False).encode()
    assert found["phase"] == "forward"
    return found


# clip, printable


@CALM
@given(text=st.text(max_size=400), limit=st.integers(0, 300))
def test_clip(text: str, limit: int) -> None:
    clipped = errors.clip(text, limit)
    assert len(clipped) <= limit
    if len(text) <= limit:
        assert clipped == text
    else:
        assert len(clipped) == limit
        assert clipped[: limit // 4] == text[: limit // 4] or limit < 80


@CALM
@given(length=st.integers(1, 3000), limit=st.integers(50, 2000))
def test_clip_keeps_both_ends_and_says_how_much_is_missing(length: int, limit: int) -> None:
    text = "".join(chr(0x4E00 + k) for k in range(length))
    clipped = errors.clip(text, limit)
    if length <= limit:
        assert clipped == text
        return
    head, count, tail = re.split(r"\n\.\.\. (\d+) characters left out \.\.\.\n", clipped)
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + int(count) + len(tail) == length
    assert min(len(head), len(tail)) >= (limit - 40) // 4


@CALM
@given(st.text(st.characters(categories=["L", "N", "Cs"])))
def test_printable(text: str) -> None:
    found = errors.printable(text)
    found.encode()
    assert (found == text) is not any(0xD800 <= ord(char) < 0xE000 for char in text)


def test_printable_shows_undecodable_bytes() -> None:
    assert errors.printable(b"a\xff".decode("utf-8", "surrogateescape")) == "a\\udcff"


# Hostile exceptions


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise self.args[0]


class Text(str):
    """A string that lies about itself."""

    __slots__ = ()

    def __len__(self) -> int:
        return 3

    def encode(self, *args: str, **kwargs: str) -> bytes:
        raise KeyError(args)


class LyingError(Exception):
    def __str__(self) -> str:
        return Text("x" * 100_000)


class RecursiveError(Exception):
    def __str__(self) -> str:
        return str(self)


class NoStringError(Exception):
    __str__: Any = lambda _: 5


class HostileError(Exception):
    """Compares and counts in ways of its own."""

    def __eq__(self, other: object) -> bool:
        raise KeyError(other)

    def __bool__(self) -> bool:
        raise KeyError

    __hash__ = Exception.__hash__


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("no such luck"), "no such luck"),
        (ValueError(), ""),
        (KeyError("n"), "'n'"),
        (SystemExit(3), "3"),
        (KeyboardInterrupt(), ""),
        (UnprintableError(ValueError("x")), "__str__ raised ValueError"),
        (UnprintableError(SystemExit(0)), "__str__ raised SystemExit"),
        (UnprintableError(KeyboardInterrupt()), "__str__ raised KeyboardInterrupt"),
        (RecursiveError(), "__str__ raised RecursionError"),
        (NoStringError(), "__str__ raised TypeError"),
        (ValueError("a\udcff"), "a\\udcff"),
        (LyingError(), "xxx"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_messages(tmp_path: Path, error: BaseException, message: str) -> None:
    found = described(error, tmp_path)
    assert found["type"] == type(error).__name__
    assert message in found["message"]
    assert (found["message"] == "") is (message == "")


def test_a_class_name_is_plain_text(tmp_path: Path) -> None:
    class Meta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise KeyError

    class OddError(Exception, metaclass=Meta):
        pass

    assert described(OddError(), tmp_path)["type"] == "OddError"
    long = type("E" * 5000, (Exception,), {})
    assert len(described(long(), tmp_path)["type"]) <= 200


def test_a_huge_message_keeps_both_ends(tmp_path: Path) -> None:
    message = described(ValueError("begin" + "x" * 10**6 + "end"), tmp_path)["message"]
    assert message.startswith("begin")
    assert message.endswith("end")
    assert len(message) <= 20_000


# Causes


def test_causes_are_told_nearest_first(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    error = raised(
        """
try:
    try:
        {}["n"]
    except KeyError as key:
        raise ValueError("no n") from key
except ValueError:
    raise RuntimeError("launch failed")
"""
    )
    found = described(error, tmp_path)
    assert found["type"] == "RuntimeError"
    assert found["message"].splitlines() == [
        "launch failed",
        "caused by ValueError: no n",
        "caused by KeyError: 'n'",
    ]


def test_a_cause_that_was_set_aside_is_not_told(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    error = raised('try:\n    {}["n"]\nexcept KeyError:\n    raise ValueError("no n") from None\n')
    assert described(error, tmp_path)["message"] == "no n"


def test_a_message_that_says_it_already_is_not_repeated(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    error = raised(
        'try:\n    int("x")\nexcept ValueError as e:\n    raise TypeError(f"bad: {e}") from e\n'
    )
    assert described(error, tmp_path)["message"].count("invalid literal") == 1


def test_cycles_of_causes_end(tmp_path: Path) -> None:
    first, second = HostileError("first"), HostileError("second")
    first.__cause__, second.__cause__ = second, first
    own = HostileError("own")
    own.__cause__ = own
    assert described(first, tmp_path)["message"] == "first\ncaused by HostileError: second"
    assert described(own, tmp_path)["message"] == "own"


def test_a_long_chain_is_cut(tmp_path: Path) -> None:
    error = ValueError("0")
    link: BaseException = error
    for number in range(1, 5000):
        link.__cause__ = ValueError(f"{number:04}" + "x" * 10_000)
        link = link.__cause__
    message = described(error, tmp_path)["message"]
    assert len(message) <= 20_000
    assert "0001x" in message


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with 3.11")
def test_groups_tell_their_members(tmp_path: Path) -> None:
    group = getattr(__import__("builtins"), "ExceptionGroup")  # noqa: B009 - mypy checks for 3.10
    error = group("both failed", [ValueError("first"), group("inner", [KeyError("n")])])
    message = described(error, tmp_path)["message"]
    assert message.splitlines() == [
        "both failed (2 sub-exceptions)",
        "holding ValueError: first",
        "holding ExceptionGroup: inner (1 sub-exception)",
    ]


def test_something_else_called_exceptions_is_no_group(tmp_path: Path) -> None:
    error = ValueError("x")
    error.exceptions = ["a", ValueError("b")]  # type: ignore[attr-defined]
    assert described(error, tmp_path)["message"] == "x"


# Places


def test_the_innermost_user_frame_is_the_place(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    error = raised(
        "import json\n\ndef inner():\n    json.loads('nonsense')  # here\n\ndef outer():\n"
        "    inner()\n\nouter()\n"
    )
    found = described(error, tmp_path)
    assert (found["file"], found["line"]) == (str(tmp_path / "user.py"), 4)
    assert found["code"] == "json.loads('nonsense')  # here"
    lines = found["traceback"].splitlines()
    assert lines[0] == "  user.py:9 in <module>"
    assert "  user.py:4 in inner" in lines
    assert "    json.loads('nonsense')  # here" in lines
    # Frames of others collapse to the last one.
    assert lines[-3].startswith("  ... ")
    assert "decoder.py" in lines[-2]
    assert not any("test_unit" in line for line in lines)


def test_the_cause_is_the_place_of_a_failure_that_somebody_wrapped(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    cause = raised("\n\nraise KeyError('n')\n")
    wrapped = RuntimeError("wrapped elsewhere")
    wrapped.__cause__ = cause
    found = described(wrapped, tmp_path)
    assert found["line"] == 3
    # The place that the header names is what the traceback shows.
    shown = "  user.py:3 in <module>\n    raise KeyError('n')"
    assert found["traceback"] == shown


WRAPPING = """import json

def kernel():
    offsets = 1 + json.loads('nonsense')

def launch():
    try:
        kernel()
    except ValueError as error:
        raise RuntimeError(repr(error)) from error

launch()
"""


def test_the_traceback_ends_where_the_cause_was_raised(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    lines = described(raised(WRAPPING), tmp_path)["traceback"].splitlines()
    users = [line for line in lines if line.startswith("  user.py:")]
    assert users[-1] == "  user.py:4 in kernel"
    at = lines.index(users[-1])
    assert lines[at + 1] == "    offsets = 1 + json.loads('nonsense')"
    if sys.version_info >= (3, 11):
        assert lines[at + 2] == "                  ^^^^^^^^^^^^^^^^^^^^^^"
        assert sum("^" in line for line in lines) == 1


def test_without_its_indentation_a_kernel_has_no_caret(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    # As Triton's interpreter compiles a kernel that stands in another function.
    source = """def make():
        def kernel():
            offsets = 1 + missing
            return offsets
        import ast, inspect, textwrap
        tree = ast.parse(textwrap.dedent(inspect.getsource(kernel)))
        ast.increment_lineno(tree, kernel.__code__.co_firstlineno - 1)
        names = {}
        exec(compile(tree, kernel.__code__.co_filename, 'exec'), names)
        names['kernel']()

make()
"""
    found = described(raised(source), tmp_path)
    assert "    offsets = 1 + missing" in found["traceback"].splitlines()
    assert "^" not in found["traceback"]


def test_without_user_frames_there_is_no_place(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Expecting value") as caught:
        json.loads("nonsense")
    found = described(caught.value, tmp_path)
    assert (found["file"], found["line"], found["code"], found["traceback"]) == (None, None, "", "")


def test_a_deep_recursion_is_shortened_in_the_middle(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    error = raised("def down(n):\n    return down(n + 1)\n\ndown(0)\n")
    found = described(error, tmp_path)
    lines = found["traceback"].splitlines()
    assert found["type"] == "RecursionError"
    assert len(lines) < 50
    assert lines[0] == "  user.py:4 in <module>"
    assert any(re.fullmatch(r"  \.\.\. \d+ lines left out", line) for line in lines)
    assert [line for line in lines if "^" not in line][-1] == "    return down(n + 1)"


def test_a_long_line_of_code_is_clipped(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    found = described(raised(f"raise ValueError  # {'x' * 10_000}\n"), tmp_path)
    assert found["line"] == 1
    assert len(found["traceback"]) < 1000
    assert len(found["code"]) <= 500


# Syntax errors


def test_a_syntax_error_of_the_users_file_is_its_place(tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text("x = 1\ny = (\n", encoding="utf-8")
    with pytest.raises(SyntaxError) as caught:
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
    found = described(caught.value, tmp_path)
    assert (found["file"], found["line"], found["code"]) == (str(path), 2, "y = (")
    assert "y = (" in found["traceback"]
    assert found["traceback"].endswith(found["message"].partition(" (user.py")[0])


def test_a_syntax_error_of_a_text_is_located_where_it_is_compiled(
    raised: Callable[[str], BaseException], tmp_path: Path
) -> None:
    found = described(raised("\n\nexec('x = (')\n"), tmp_path)
    assert (found["file"], found["line"]) == (str(tmp_path / "user.py"), 3)
    assert "x = (" in found["traceback"]


ODD_DETAILS: list[Any] = [(7, "two", "three", 4), ("user.py", "two", "three", "four")]


@pytest.mark.parametrize(
    "error",
    [
        SyntaxError(),
        SyntaxError("just words"),
        SyntaxError("odd", ODD_DETAILS[0]),
        SyntaxError("odd", ODD_DETAILS[1]),
        SyntaxError("odd", ("user.py", None, None, None)),
        SyntaxError("odd", ("user\udcff.py", 3, 99, "x\udcff")),
        SyntaxError("long", ("user.py", 1, 1, "x" * 10**6)),
    ],
)
def test_odd_syntax_errors(tmp_path: Path, error: SyntaxError) -> None:
    found = described(error, tmp_path)
    assert found["type"] == "SyntaxError"
    assert len(found["traceback"]) <= 20_000
    assert isinstance(found["line"], (int, type(None)))


# What would command a terminal


@CALM
@given(text=st.text(st.characters(codec=None), max_size=60))
def test_printable_text_commands_no_terminal(text: str) -> None:
    shown = errors.printable(text)
    shown.encode()
    for character in shown:
        assert character in "\t\n" or unicodedata.category(character) not in ("Cc", "Zl", "Zp")
        assert unicodedata.bidirectional(character) not in ("RLO", "LRO", "RLI", "LRI")
    assert errors.printable(shown) == shown
    assert "\n" not in errors.one_line(text, 50)
    assert len(errors.one_line(text, 50)) <= 50


def test_colours_go_and_the_rest_is_spelt_out() -> None:
    assert errors.printable("\x1b[1;31mred\x1b[0m") == "red"
    assert errors.printable("a\x1b[2J\x08\x9b1A\u202eb") == "a\\x1b[2J\\x08\\x9b1A\\u202eb"
    assert errors.printable("10%\r20%\r\nend") == "10%\n20%\nend"


def test_a_class_can_have_any_name(tmp_path: Path) -> None:
    odd = type("\x1b[2JE\nPASSED", (Exception,), {})
    assert described(odd("x"), tmp_path)["type"] == "\\x1b[2JE\\nPASSED"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exceptions have notes since Python 3.11")
def test_notes_are_told(raised: Callable[[str], BaseException], tmp_path: Path) -> None:
    error = raised("error = ValueError('x')\nerror.add_note('look here')\nraise error")
    assert described(error, tmp_path)["message"] == "x\nlook here"
    error.__notes__ = 5  # type: ignore[attr-defined]
    assert described(error, tmp_path)["message"] == "x"
