"""Charts as SVG text, without any library: lines, bands, stacked areas and heat maps over time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle, groupby

WIDTH, HEIGHT = 560, 190
_LEFT, _TOP = 58, 12
#: The size of the part with the values.
_ACROSS, _UP = WIDTH - _LEFT - 12, HEIGHT - _TOP - 26
#: Colours that people with colour vision deficiencies tell apart.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000")
#: Points of a line that are drawn at most.
_MOST_POINTS = 600
#: Seconds between marks on the time axis, up to a day.
_TIME_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a chart; with `low` and `high` a band is drawn around it, where a value is nan nothing."""

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
    whole = [value for line in drawn for value in (*line.values, *(line.high or ()))]
    plot = _plot(times, most or max(filter(math.isfinite, whole), default=1.0))
    parts = [_axes(plot, text)]
    for line, colour in zip(drawn, cycle(COLOURS)):
        parts += [_band(plot, times, line, colour), _curve(plot, times, line, colour)]
    legend = [(line.label, _stroke(line, colour)) for line, colour in zip(drawn, cycle(COLOURS))]
    return _figure(title, parts, legend)


def _band(plot: _Plot, times: Sequence[float], line: Line, colour: str) -> str:
    if line.low is None or line.high is None:
        return ""
    return _area(plot, times, line.low, line.high, f'fill="{colour}" opacity=".18"')


def _curve(plot: _Plot, times: Sequence[float], line: Line, colour: str) -> str:
    known = [n for n in _thinned(len(times)) if math.isfinite(line.values[n])]
    # The end of a line is round: one point alone is seen as a dot.
    places = [plot.at(times[n], line.values[n]) for n in (known * 2 if len(known) == 1 else known)]
    dash = ' stroke-dasharray="5 4"' if line.dashed else ""
    return f'<polyline points="{_points(places)}" stroke="{colour}" class="curve"{dash}/>'


def _stroke(line: Line, colour: str) -> str:
    """A short piece of a line, for the legend."""
    return f'<i class="line" style="border-top: 3px {"dashed" if line.dashed else "solid"} {colour}"></i>'


def stacked(
    title: str,
    times: Sequence[float],
    drawn: Sequence[Line],
    *,
    text: Callable[[float], str] = lambda value: f"{value:g}",
) -> str:
    """Areas on top of each other."""
    levels = [[0.0] * len(times)]
    for line in drawn:
        levels.append([known + value for known, value in zip(levels[-1], line.values, strict=True)])
    plot = _plot(times, max(levels[-1], default=1.0))
    parts = [_axes(plot, text)]
    for below, above, colour in zip(levels, levels[1:], cycle(COLOURS)):
        parts.append(_area(plot, times, below, above, f'fill="{colour}" opacity=".75"'))
    legend = [(line.label, _square(colour)) for line, colour in zip(drawn, cycle(COLOURS))]
    return _figure(title, parts, legend)


def _area(
    plot: _Plot, times: Sequence[float], below: Sequence[float], above: Sequence[float], style: str
) -> str:
    kept = _thinned(len(times))
    there = [plot.at(times[n], above[n]) for n in kept]
    back = [plot.at(times[n], below[n]) for n in reversed(kept)]
    return f'<polygon points="{_points([*there, *back])}" {style}/>'


def _square(colour: str) -> str:
    return f'<i style="background: {colour}"></i>'


def heat_map(
    title: str,
    times: tuple[float, float],
    spans: Sequence[tuple[float, float]],
    columns: Sequence[Sequence[float]],
    ends: tuple[float, float],
) -> str:
    """Shares by slice, from the earliest partners at the bottom to the latest, over time.

    Args:
        title: What is shown.
        times: Where the time axis begins and ends, in seconds from the start.
        spans: From when to when each column holds.
        columns: The shares of each column.
        ends: Where the slices begin and end, in seconds from the probing row.
    """
    plot = _Plot(*times, 1.0, 1.0)
    cells = []
    for shares, same in groupby(zip(spans, columns, strict=True), key=lambda own: own[1]):
        held = [span for span, _ in same]
        cells += _column(plot, (held[0][0], held[-1][1]), shares)
    frame = f'<rect x="{_LEFT}" y="{_TOP}" width="{_ACROSS}" height="{_UP}" class="frame"/>'
    parts = [f'<g class="cells">{"".join(cells)}</g>', frame, _partner_axis(*ends), _time_axis(plot)]
    return _figure(title, parts, [])


def _column(plot: _Plot, span: tuple[float, float], shares: Sequence[float]) -> Iterator[str]:
    """Neighbours of one share are one rectangle."""
    left, width = plot.x(span[0]), max(0.6, plot.x(span[1]) - plot.x(span[0]))
    below, height = 0, _UP / max(1, len(shares))
    for share, same in groupby(shares):
        count = len(list(same))
        below += count
        yield (
            f'<rect x="{left:.1f}" y="{_TOP + _UP - below * height:.1f}" width="{width:.1f}" '
            f'height="{count * height:.1f}" fill="{_heat(share)}"><title>{share:.0%} of rows</title></rect>'
        )


def _partner_axis(low: float, high: float) -> str:
    """The time of a partner before and after the row that probes."""

    def y(value: float) -> float:
        return _TOP + _UP * (high - value) / ((high - low) or 1.0)

    marks = [low, high]
    parts = []
    if low < 0 < high:
        parts.append(_level(y(0), "own"))
        marks += [0.0] if min(y(low) - y(0), y(0) - y(high)) > 12 else []
    return "".join([*parts, *(_value(y(mark), _offset(mark)) for mark in marks)])


def _offset(seconds: float) -> str:
    """A time before or after another one.

    >>> _offset(-20), _offset(0), _offset(0.5), _offset(7200)
    ('−20 s', '0 s', '+0.5 s', '+2:00:00')
    """
    sign = "" if not seconds else "+" if seconds > 0 else "−"
    return sign + (f"{abs(seconds):.3g} s" if abs(seconds) < 60 else clock(abs(seconds)))


def heat_scale(least: str, most: str) -> str:
    """What the colours of heat maps mean.

    Args:
        least: The meaning of the lightest.
        most: The meaning of the darkest.
    """
    colours = ", ".join(_heat(step / 4) for step in range(5))
    scale = f'<i class="scale" style="background: linear-gradient(90deg, {colours})"></i>'
    return f'<div class="legend"><span>{escape(least)}</span>{scale}<span>{escape(most)}</span></div>'


def _heat(share: float) -> str:
    """From nearly white to dark blue."""
    share = min(1.0, max(0.0, share))
    low, high = (238, 242, 247), (0, 62, 126)
    red, green, blue = (round(a + (b - a) * share**0.7) for a, b in zip(low, high, strict=True))
    return f"#{red:02x}{green:02x}{blue:02x}"


@dataclass(frozen=True, slots=True)
class _Plot:
    """Where values are in the picture, and how far apart the marks of the scale."""

    first: float
    last: float
    top: float
    step: float

    def x(self, time: float) -> float:
        span = self.last - self.first
        share = (time - self.first) / span if span > 0 else 0.0
        return _LEFT + share * _ACROSS

    def at(self, time: float, value: float) -> tuple[float, float]:
        share = min(1.0, max(0.0, value / self.top)) if self.top and math.isfinite(value) else 0.0
        return self.x(time), _TOP + (1 - share) * _UP


def _plot(times: Sequence[float], most: float) -> _Plot:
    """A place for values up to the largest one."""
    step = _step(most)
    top = step * max(1, math.ceil(most / step - 1e-9))
    return _Plot(times[0] if times else 0.0, times[-1] if times else 1.0, top, step)


def _thinned(count: int) -> list[int]:
    """Which of so many points are drawn."""
    step = max(1, -(-count // _MOST_POINTS))
    kept = list(range(0, count, step))
    return kept if not count or kept[-1] == count - 1 else [*kept, count - 1]


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _step(value: float) -> float:
    """A round number, at most four of which are needed to reach a value.

    >>> _step(0.7), _step(1), _step(12), _step(430)
    (0.2, 0.25, 5.0, 200.0)
    """
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value / 4))
    steps = (float(f"{factor * unit:.3g}") for factor in (1, 2, 2.5, 5, 10))
    return next(step for step in steps if 4 * step >= value * (1 - 1e-9))


def _axes(plot: _Plot, text: Callable[[float], str]) -> str:
    parts = []
    for mark in range(round(plot.top / plot.step) + 1):
        _, y = plot.at(plot.first, mark * plot.step)
        parts += [_level(y, "grid"), _value(y, text(mark * plot.step))]
    return "".join([*parts, _time_axis(plot)])


def _level(y: float, kind: str) -> str:
    return f'<line x1="{_LEFT}" x2="{_LEFT + _ACROSS}" y1="{y:.1f}" y2="{y:.1f}" class="{kind}"/>'


def _value(y: float, text: str) -> str:
    """Text on the scale."""
    return f'<text x="{_LEFT - 6}" y="{y + 3.5:.1f}" class="tick end">{escape(text)}</text>'


def _time_axis(plot: _Plot) -> str:
    span = plot.last - plot.first
    step = next((own for own in _TIME_STEPS if own * 6 >= span), math.ceil(span / 6 / 86400) * 86400)
    bottom = _TOP + _UP
    parts = []
    for mark in range(math.ceil(plot.first / step), math.floor(plot.last / step) + 1):
        x = plot.x(mark * step)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" class="mark"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" class="tick middle">{clock(mark * step)}</text>')
    return "".join(parts)


def clock(seconds: float) -> str:
    """A length of time, in minutes and seconds or with hours.

    >>> clock(8), clock(95), clock(7300)
    ('0:08', '1:35', '2:01:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _figure(title: str, parts: Sequence[str], legend: Sequence[tuple[str, str]]) -> str:
    """A picture with its title, and with what its signs mean where they have a name."""
    signs = "".join(f"<span>{sign}{escape(label)}</span>" for label, sign in legend if label)
    below = f'<div class="legend">{signs}</div>' if signs else ""
    return (
        f"<figure><figcaption>{escape(title)}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        f"{below}</figure>"
    )
