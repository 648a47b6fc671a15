"""Coordinates of what the page draws. Colours are the style sheet's, but for heat maps."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_tritonverify import figures
from pytest_tritonverify.html_report import text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

BAR_SPAN = 100.0
"""Half the width of a speed-up's bar: 1x stands in the middle."""

HISTOGRAM_WIDTH, HISTOGRAM_HEIGHT = 54, 20
"""A bar for exact elements, a gap, 48 quarters of a decade around the limit, a gap, a bar for
elements that are not finite."""

_BINS_FROM = 3
_BINS = 48
_LOWEST = -6.0
_MOST = 1 << 53

# Level 0 is the page's own colour. Within the limit a blue that grows stronger, beyond it from
# yellow to a dark red: the two differ in lightness, too.
_PALETTE = (
    (0x80, 0x80, 0x80, 0x10),
    (0x3B, 0x82, 0xF6, 0x28),
    (0x3B, 0x82, 0xF6, 0x50),
    (0x3B, 0x82, 0xF6, 0x80),
    (0x2F, 0x74, 0xE8, 0xB8),
    (0x1D, 0x5F, 0xD1, 0xF0),
    (0xFB, 0xBF, 0x24, 0xFF),
    (0xF9, 0x73, 0x16, 0xFF),
    (0xDC, 0x26, 0x26, 0xFF),
    (0x8B, 0x0A, 0x3D, 0xFF),
)
_FIRST_BEYOND = "6"
_FEWEST = 24


@dataclass(frozen=True)
class Bar:
    """A bar between 1x and a speed-up.

    Attributes:
        x, width: in a picture of the width `2 * BAR_SPAN`.
        kind: `faster`, `slower` or `same`.
    """

    x: float
    width: float
    kind: str


def bar(speedup: float, span: float) -> Bar:
    """Return the bar of a speed-up, on a logarithmic scale.

    Args:
        speedup: above 0.
        span: binary logarithm of the speed-up whose bar is the longest.
    """
    share = max(-1.0, min(1.0, math.log2(speedup) / span))
    width = round(max(abs(share) * BAR_SPAN, 1.0), 1)
    kind = "same" if round(speedup, 3) == 1 else "faster" if share > 0 else "slower"
    return Bar(BAR_SPAN if share >= 0 else round(BAR_SPAN - width, 1), width, kind)


def span_of(speedups: Sequence[float]) -> float:
    """Return the span that makes room for all of some speed-ups."""
    return max((abs(math.log2(s)) for s in speedups), default=1.0) or 1.0


@dataclass(frozen=True)
class Histogram:
    """Errors over their limit, as paths of SVG in a picture of the size given above.

    Attributes:
        within, beyond, over: bars of elements within the limit, above it, and above the hard one.
        equal, non_finite: the bars beside the scale.
        label: the same in words.
    """

    within: str
    beyond: str
    over: str
    equal: str
    non_finite: str
    label: str


def histogram(errors: Mapping[str, Any]) -> Histogram | None:
    """Return the histogram of an output's errors; None where there is none, or in no known form.

    Heights are logarithmic: a single element is to be seen among millions.

    Args:
        errors: an entry `cases[].outputs[].errors` of a result.
    """
    found = errors.get("histogram")
    equal, apart = _count(errors.get("equal")), _count(errors.get("non_finite"))
    if not isinstance(found, dict):
        return None
    counts, lowest = _counts(found.get("counts")), figures.number(found.get("lowest"))
    if not counts or lowest is None:
        return None
    over = (_counts(found.get("over")) or []) + [0] * len(counts)
    first = round((lowest - _LOWEST) / _step())
    if not 0 <= first <= _BINS - len(counts):
        return None
    most = max(*counts, equal, apart, 1)
    middle = _BINS // 2
    parts: dict[str, list[str]] = {"within": [], "beyond": [], "over": []}
    total_beyond = total_over = 0
    for place, count in enumerate(counts, first):
        x = _BINS_FROM + place
        if place < middle:
            parts["within"].append(_column(x, 1, count, most))
            continue
        worst = min(over[place - first], count)
        total_beyond, total_over = total_beyond + count, total_over + worst
        parts["beyond"].append(_column(x, 1, count, most))
        parts["over"].append(_column(x, 1, worst, most))
    label = (
        f"Histogram of error over limit: of {text.plural(equal + apart + sum(counts), 'element')} "
        f"{equal:,} are exact, {sum(counts) - total_beyond:,} within the limit, "
        f"{total_beyond:,} beyond it"
    )
    label += f", {total_over:,} of them above the hard limit" if total_over else ""
    label += f"; {apart:,} are not finite where they should be" if apart else ""
    return Histogram(
        within="".join(parts["within"]),
        beyond="".join(parts["beyond"]),
        over="".join(parts["over"]),
        equal=_column(0, 2, equal, most),
        non_finite=_column(HISTOGRAM_WIDTH - 2, 2, apart, most),
        label=label,
    )


def _step() -> float:
    return -2 * _LOWEST / _BINS


def _column(x: int, width: int, count: int, most: int) -> str:
    if count <= 0:
        return ""
    height = HISTOGRAM_HEIGHT * math.log1p(count) / math.log1p(most)
    return f"M{x} {HISTOGRAM_HEIGHT}v-{height:.1f}h{width}v{height:.1f}z"


def _count(value: object) -> int:
    # Nothing has more elements; figures of floating point can't hold every integer.
    return value if type(value) is int and 0 <= value < _MOST else 0


def _counts(values: object) -> list[int] | None:
    if not isinstance(values, list) or len(values) > _BINS:
        return None
    return [_count(value) for value in values]


@dataclass(frozen=True)
class HeatMap:
    """Where an output's errors lie.

    Attributes:
        uri: the picture, a pixel for every cell.
        flat: it has few lines.
        caption: what is drawn, in words.
    """

    uri: str
    flat: bool
    caption: str


def heat_map(errors: Mapping[str, Any], shape: object = None) -> HeatMap | None:
    """Return the map of an output's errors; None where there is none, or in no known form.

    Args:
        errors: as in `histogram`.
        shape: the output's, as far as it is known.
    """
    found = errors.get("heat_map")
    if not isinstance(found, dict):
        return None
    cells, rows, columns = (found.get(name) for name in ("cells", "rows", "columns"))
    if not isinstance(cells, list) or not 1 <= len(cells) <= 256:  # noqa: PLR2004 - a small picture
        return None
    lines = [line for line in cells if isinstance(line, str)]
    widths = {len(line) for line in lines}
    if len(lines) != len(cells) or len(widths) != 1 or not 1 <= max(widths) <= 256:  # noqa: PLR2004 - as above
        return None
    if not all(line.isdecimal() and line.isascii() for line in lines):
        return None
    beyond = sum(cell >= _FIRST_BEYOND for line in lines for cell in line)
    caption = (
        f"{_plane(_count(rows), _count(columns), shape)}; each of the "
        f"{len(lines) * max(widths):,} cells has the colour of its worst element; "
        f"{beyond:,} {'has' if beyond == 1 else 'have'} one beyond the limit"
    )
    return HeatMap(_png(lines), len(lines) <= 4, caption)  # noqa: PLR2004 - lines that make a strip


def _plane(rows: int, columns: int, shape: object) -> str:
    """Say what lies where: an output with one long axis is broken into lines."""
    long = [size for size in shape if size != 1] if isinstance(shape, list) else [rows, columns]
    if len(long) > 1:
        return f"{text.plural(rows, 'row')} down, {text.plural(columns, 'column')} across"
    if rows == 1:
        return f"{text.plural(columns, 'element')} in a line"
    return f"the elements in reading order, {rows:,} lines of {columns:,}"


def _png(lines: Sequence[str]) -> str:
    """Return a picture with a palette as a `data:` address."""
    raw = b"".join(b"\0" + bytes(ord(cell) - ord("0") for cell in line) for line in lines)
    size = struct.pack(">IIBBBBB", len(lines[0]), len(lines), 8, 3, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", size),
            (b"PLTE", bytes(value for colour in _PALETTE for value in colour[:3])),
            (b"tRNS", bytes(colour[3] for colour in _PALETTE)),
            (b"IDAT", zlib.compress(raw, 9)),
            (b"IEND", b""),
        )
    )
    return f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(kind + content)
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


@dataclass(frozen=True)
class Chart:
    """Speed-ups of all pairs side by side, on a logarithmic scale.

    Attributes:
        height: of the picture; a pair is one unit wide.
        width: of the picture, in pairs: few of them don't fill it.
        bars: for each pair its place x, upper end y, height, `faster`, `slower` or `same`, the
            number of its pair, and its words.
        ticks: y and label of the lines of the scale.
        one: y of 1x.
        label: the same in words.
    """

    height: int
    width: int
    bars: tuple[tuple[int, float, float, str, int, str], ...]
    ticks: tuple[tuple[float, str], ...]
    one: float
    label: str


def chart(speedups: Sequence[tuple[int, str, float]], height: int = 150) -> Chart | None:
    """Return the chart of speed-ups.

    Args:
        speedups: number, name and speed-up of each measured pair.
        height: in pixels.

    Returns:
        None where fewer than two pairs were measured.
    """
    if len(speedups) < 2:  # noqa: PLR2004 - one is told by its row
        return None
    ordered = sorted(speedups, key=lambda entry: -entry[2])
    top = max(math.ceil(math.log2(ordered[0][2])), 0)
    bottom = min(math.floor(math.log2(ordered[-1][2])), 0)
    if top == bottom:
        top += 1

    def y(speedup: float) -> float:
        return round(height * (top - math.log2(speedup)) / (top - bottom), 1)

    bars = []
    for place, (number, name, speedup) in enumerate(ordered):
        upper, lower = sorted((y(speedup), y(1.0)))
        kind = bar(speedup, 1.0).kind
        words = f"{name}: {text.times(speedup)}"
        bars.append((place, upper, round(max(lower - upper, 1.0), 1), kind, number, words))
    step = max(1, math.ceil((top - bottom) / 6))
    ticks = tuple((y(2.0**k), _power(k)) for k in range(top, bottom - 1, -step))
    middle = ordered[len(ordered) // 2][2]
    label = (
        f"Speed-ups of {len(ordered)} pairs, from {text.times(ordered[0][2])} down to "
        f"{text.times(ordered[-1][2])}; the middle one is {text.times(middle)}"
    )
    return Chart(height, max(len(ordered), _FEWEST), tuple(bars), ticks, y(1.0), label)


def _power(exponent: int) -> str:
    return f"{2**exponent}×" if exponent >= 0 else f"1/{2**-exponent}×"


def strip(statuses: Sequence[bool]) -> tuple[str, str]:
    """Return a path for passed and one for failed cases, a square for each, ten units apart."""
    parts: dict[bool, list[str]] = {True: [], False: []}
    for place, passed in enumerate(statuses):
        parts[passed].append(f"M{place * 10} 0h8v10h-8z")
    return "".join(parts[True]), "".join(parts[False])
