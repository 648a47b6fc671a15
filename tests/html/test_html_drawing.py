"""What the page draws is what was measured."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_tritonverify.html_report import drawing, rules, text

QUICK = settings(max_examples=30, deadline=None)
LEVELS = st.lists(st.text("0123456789", min_size=3, max_size=3), min_size=1, max_size=32)


def columns(path: str) -> list[tuple[int, float]]:
    """The places and heights of a path's bars."""
    return [(int(x), float(h)) for x, h in re.findall(r"M(\d+) 20v-([\d.]+)h", path)]


@QUICK
@given(LEVELS)
def test_a_map_has_a_pixel_for_every_cell(cells: list[str]) -> None:
    found = drawing.heat_map({"heat_map": {"rows": 64, "columns": 9, "cells": cells}})
    assert found is not None
    data = base64.b64decode(found.uri.removeprefix("data:image/png;base64,"))
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        (check,) = struct.unpack(">I", data[at + 8 + size : at + 12 + size])
        assert check == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + size
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (3, len(cells))
    assert len(chunks[b"PLTE"]) == 30
    rows = zlib.decompress(chunks[b"IDAT"])
    assert rows == b"".join(b"\0" + bytes(map(int, line)) for line in cells)
    beyond = sum(int(cell) > 5 for line in cells for cell in line)
    assert f"; {beyond} {'has' if beyond == 1 else 'have'} one beyond the limit" in found.caption


@pytest.mark.parametrize(
    ("rows", "columns", "shape", "words"),
    [
        (64, 9, None, "64 rows down, 9 columns across; "),
        (64, 9, [3, 64, 1, 9], "64 rows down, 9 columns across; "),
        (32, 32, [1000], "the elements in reading order, 32 lines of 32; "),
        (32, 32, [1, 1000, 1], "the elements in reading order, 32 lines of 32; "),
        (1, 37, [37], "37 elements in a line; "),
        (1, 1, [], "1 element in a line; "),
    ],
)
def test_a_map_says_what_lies_where(rows: int, columns: int, shape: object, words: str) -> None:
    errors = {"heat_map": {"rows": rows, "columns": columns, "cells": ["06"]}}
    found = drawing.heat_map(errors, shape)
    assert found is not None
    assert found.caption.startswith(words)


@pytest.mark.parametrize(
    "cells", [None, [], ["12", "1"], ["1a"], [5], ["1"] * 999, ["²"], [""], "12"]
)
def test_what_is_no_map_is_not_drawn(cells: object) -> None:
    assert drawing.heat_map({"heat_map": {"rows": 1, "columns": 2, "cells": cells}}) is None
    assert drawing.heat_map({"heat_map": cells}) is None


@QUICK
@given(
    st.integers(0, 47).flatmap(
        lambda first: st.tuples(
            st.just(first), st.lists(st.integers(0, 10**6), min_size=1, max_size=48 - first)
        )
    ),
    st.integers(0, 10**6),
)
def test_bars_stand_on_their_side_of_the_limit(placed: tuple[int, list[int]], equal: int) -> None:
    first, counts = placed
    errors = {
        "equal": equal,
        "non_finite": 2,
        "histogram": {"lowest": first / 4 - 6, "step": 0.25, "counts": counts, "over": None},
    }
    found = drawing.histogram(errors)
    assert found is not None
    within, beyond = columns(found.within), columns(found.beyond)
    drawn = [first + place for place, count in enumerate(counts) if count]
    assert [x - 3 for x, _ in within] == [bar for bar in drawn if bar < 24]
    assert [x - 3 for x, _ in beyond] == [bar for bar in drawn if bar >= 24]
    assert all(0 < height <= 20 for _, height in (*within, *beyond, *columns(found.equal)))
    assert f"{sum(counts[max(24 - first, 0) :]):,} beyond it" in found.label


@pytest.mark.parametrize(
    "histogram",
    [
        None,
        {"lowest": None, "counts": [1]},
        {"lowest": 0.0, "counts": []},
        {"lowest": 5.75, "counts": [1, 1]},
        {"lowest": -7.0, "counts": [1]},
        {"lowest": True, "counts": [1]},
        {"lowest": 0.0, "counts": "11"},
        {"lowest": math.nan, "counts": [1]},
    ],
)
def test_what_is_no_histogram_is_not_drawn(histogram: object) -> None:
    assert drawing.histogram({"equal": 1, "non_finite": 0, "histogram": histogram}) is None


@QUICK
@given(st.floats(1e-12, 1e12), st.floats(1e-3, 40))
def test_faster_stands_on_the_right_and_slower_on_the_left(speedup: float, span: float) -> None:
    found = drawing.bar(speedup, span)
    assert 0 <= found.x <= found.x + found.width <= 200
    if found.kind == "faster":
        assert speedup > 1
        assert found.x == 100
    elif found.kind == "slower":
        assert speedup < 1
        assert found.x + found.width == pytest.approx(100)


@QUICK
@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=50))
def test_the_chart_has_all_pairs_from_the_fastest_to_the_slowest(speedups: list[float]) -> None:
    found = drawing.chart([(n, f"pair {n}", s) for n, s in enumerate(speedups)])
    assert found is not None
    order = [speedups[number] for *_, number, _ in found.bars]
    assert order == sorted(speedups, reverse=True)
    assert all(0 <= y <= y + height <= found.height + 1 for _, y, height, *_ in found.bars)
    assert len(found.bars) <= found.width
    assert (found.one, "1×") in found.ticks or len(found.ticks) > 3


@QUICK
@given(st.text(max_size=400), st.integers(20, 200))
def test_texts_are_short_and_hold_nothing_that_is_not_seen(words: str, limit: int) -> None:
    shown = text.shown(words, limit)
    assert len(shown) <= limit
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    shown.encode("utf-8")
    if words.isascii() and words.isprintable() and len(words) <= limit:
        assert shown == words


def test_colours_of_terminals_are_taken_out_and_other_controls_are_written_out() -> None:
    assert text.shown("\x1b[1;31mred\x1b[0m\r\nnext\x00\u202e") == "red\nnext\\x00\\u202e"


def test_shares_are_not_rounded_up_to_all() -> None:
    metrics = {"matched_ratio": 0.9999999, "total_finite": 12345678, "rtol": 2**-9, "atol": 2**-16}
    found = rules.sentence("eco_open_source", metrics)
    assert found.startswith("99.99 % of 12,345,678 elements within 2⁻¹⁶ + 2⁻⁹·|golden|")
    assert rules.sentence("unheard_of", metrics) == ""
