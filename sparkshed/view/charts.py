"""Charts as SVG text, without any library: lines, bands, stacked areas and heat maps over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 560, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 12, 12, 26
#: Colours that people with colour vision deficiencies tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
#: Points of a line that are drawn at most.
_MOST_POINTS = 600


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart; with `low` and `high` a band is drawn around it."""

    label: str
    values: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    dashed: bool = False


def lines(
    title: str,
    times: Sequence[float],
    drawn: Sequence[Line],
    *,
    most: float | None = None,
    text: Callable[[float], str] = lambda value: f"{value:g}",
) -> str:
    """Lines over time.

    Args:
        title: What is shown.
        times: Seconds from the start.
        drawn: The lines, each with a value for each time.
        most: The end of the scale; by default what fits.
        text: Of a value on the scale.
    """
    kept = _thinned(len(times))
    whole = [value for line in drawn for value in (*line.values, *(line.high or ()))]
    top = most if most is not None else _nice(max([v for v in whole if math.isfinite(v)], default=1.0))
    plot = _Plot(times[0] if times else 0.0, times[-1] if times else 1.0, top)
    parts = [_axes(plot, text)]
    for number, line in enumerate(drawn):
        colour = COLOURS[number % len(COLOURS)]
        if line.low is not None and line.high is not None:
            there = [plot.at(times[n], line.high[n]) for n in kept]
            back = [plot.at(times[n], line.low[n]) for n in reversed(kept)]
            parts.append(f'<polygon points="{_points([*there, *back])}" fill="{colour}" opacity=".18"/>')
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        points = _points([plot.at(times[n], line.values[n]) for n in kept])
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>')
    return _figure(title, parts, [line.label for line in drawn])


def stacked(
    title: str,
    times: Sequence[float],
    drawn: Sequence[Line],
    *,
    text: Callable[[float], str] = lambda value: f"{value:g}",
) -> str:
    """Areas on top of each other."""
    kept = _thinned(len(times))
    sums = [0.0] * len(times)
    layers = []
    for line in drawn:
        below = list(sums)
        sums = [known + value for known, value in zip(sums, line.values, strict=True)]
        layers.append((below, list(sums)))
    plot = _Plot(times[0] if times else 0.0, times[-1] if times else 1.0, _nice(max(sums, default=1.0)))
    parts = [_axes(plot, text)]
    for number, (below, above) in enumerate(layers):
        there = [plot.at(times[n], above[n]) for n in kept]
        back = [plot.at(times[n], below[n]) for n in reversed(kept)]
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<polygon points="{_points([*there, *back])}" fill="{colour}" opacity=".75"/>')
    return _figure(title, parts, [line.label for line in drawn])


def heat_map(
    title: str,
    spans: Sequence[tuple[float, float]],
    columns: Sequence[Sequence[float]],
    ends: tuple[float, float],
) -> str:
    """Shares by slice, from the earliest partners at the bottom to the latest, over time.

    Args:
        title: What is shown.
        spans: From when to when each column holds, in seconds from the start.
        columns: The shares of each column.
        ends: Where the slices begin and end, in seconds from the probing row.
    """
    first, last = (spans[0][0], spans[-1][1]) if spans else (0.0, 1.0)
    plot = _Plot(first, last, 1.0)
    parts = []
    for (begin, end), shares in zip(spans, columns, strict=True):
        x, width = plot.x(begin), max(0.6, plot.x(end) - plot.x(begin))
        height = plot.height / max(1, len(shares))
        for number, share in enumerate(shares):
            y = HEIGHT - _BOTTOM - (number + 1) * height
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height + 0.3:.1f}" '
                f'fill="{_heat(share)}"><title>{share:.0%} of rows</title></rect>'
            )
    low, high = ends
    if low < 0 < high:
        y = HEIGHT - _BOTTOM - plot.height * -low / (high - low)
        parts.append(
            f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#d55e00" '
            'stroke-width="1"/>'
        )
    for share, value in ((0.0, low), (0.5, (low + high) / 2), (1.0, high)):
        y = HEIGHT - _BOTTOM - share * plot.height
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 3:.1f}" class="tick end">{value:+.3g} s</text>')
    parts.append(_time_axis(plot))
    return _figure(title, parts, [])


def _heat(share: float) -> str:
    """From nearly white to dark blue."""
    share = min(1.0, max(0.0, share))
    low, high = (238, 242, 247), (0, 62, 126)
    red, green, blue = (round(a + (b - a) * share**0.7) for a, b in zip(low, high, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where values are in the picture."""

    first: float
    last: float
    top: float

    @property
    def height(self) -> float:
        return HEIGHT - _TOP - _BOTTOM

    def x(self, time: float) -> float:
        span = self.last - self.first
        share = (time - self.first) / span if span > 0 else 0.0
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)

    def at(self, time: float, value: float) -> tuple[float, float]:
        share = min(1.0, max(0.0, value / self.top)) if self.top and math.isfinite(value) else 0.0
        return self.x(time), HEIGHT - _BOTTOM - share * self.height


def _thinned(count: int) -> list[int]:
    """Which of so many points are drawn."""
    step = max(1, -(-count // _MOST_POINTS))
    kept = list(range(0, count, step))
    return kept if not count or kept[-1] == count - 1 else [*kept, count - 1]


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _nice(value: float) -> float:
    """A round number that is not below a value.

    >>> _nice(0.7), _nice(12), _nice(430)
    (0.8, 15.0, 500.0)
    """
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
    return next(float(f"{step * unit:.3g}") for step in steps if step * unit >= value * (1 - 1e-9))


def _axes(plot: _Plot, text: Callable[[float], str]) -> str:
    parts = []
    for step in range(5):
        value = plot.top * step / 4
        _, y = plot.at(plot.first, value)
        parts.append(f'<line x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        if step % 2 == 0:
            parts.append(
                f'<text x="{_LEFT - 6}" y="{y + 3:.1f}" class="tick end">{escape(text(value))}</text>'
            )
    return "".join([*parts, _time_axis(plot)])


def _time_axis(plot: _Plot) -> str:
    parts = []
    span = plot.last - plot.first
    for step in range(5):
        time = plot.first + span * step / 4
        anchor = ("start", "middle", "middle", "middle", "end")[step]
        parts.append(
            f'<text x="{plot.x(time):.1f}" y="{HEIGHT - 8}" class="tick {anchor}">{clock(time)}</text>'
        )
    return "".join(parts)


def clock(seconds: float) -> str:
    """A length of time on a scale.

    >>> clock(8), clock(95), clock(7300)
    ('8 s', '1:35', '2:01:40')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _figure(title: str, parts: Sequence[str], labels: Sequence[str]) -> str:
    legend = "".join(
        f'<span><i style="background:{COLOURS[number % len(COLOURS)]}"></i>{escape(label)}</span>'
        for number, label in enumerate(labels)
        if label
    )
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        f'<div class="legend">{legend}</div></figure>'
    )
