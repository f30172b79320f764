"""A plan as a picture: streams, hosts, and the way of a row from stream to stream."""

from __future__ import annotations

from html import escape

from sparkshed.view.charts import COLOURS
from sparkshed.view.journal import Record

_ROW, _TOP = 56, 10
_ARROW = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker></defs>'
)


def draw(plan: Record) -> str:
    """Streams on the left, in the middle the hosts with the order of each direction, results on the right."""
    height = _TOP * 2 + _ROW * max(len(plan["streams"]), 1)
    parts = [_ARROW]
    for number, stream in enumerate(plan["streams"]):
        parts.append(_stream(stream, plan, number, height / 2))
    parts += [_hosts(plan, height), _arrow(670, height / 2, 760, height / 2)]
    parts.append(_box(760, height / 2 - 20, 110, 40, "#1c2733"))
    parts.append(f'<text x="815" y="{height / 2 + 5}" class="word middle">results</text>')
    conditions = [*plan.get("conditions", ()), *plan.get("bounds", ())]
    told = "".join(f"<li><code>{escape(text)}</code></li>" for text in conditions)
    picture = (
        f'<svg viewBox="0 0 880 {height}" class="plan" role="img" aria-label="plan">{"".join(parts)}</svg>'
    )
    return f"{picture}<ul>{told}</ul>"


def hosts_of(plan: Record) -> str:
    """How many there are, and how rows come to them.

    >>> hosts_of({}), hosts_of({"hosts": 2, "routing": "dealt"})
    ('one host', '2 hosts, routing dealt')
    """
    hosts = plan.get("hosts", 1)
    return "one host" if hosts == 1 else f"{hosts} hosts, routing {plan.get('routing')}"


def _stream(stream: Record, plan: Record, number: int, middle: float) -> str:
    y = _TOP + _ROW * number + _ROW / 2
    window = "kept for good" if stream["window"] is None else f"kept for {stream['window']:g} s"
    if plan.get("rows"):
        window = f"the last {plan['rows']} rows"
    where = "table" if stream["table"] else "stream"
    return (
        _box(1, y - 22, 199, 44, COLOURS[number % len(COLOURS)])
        + f'<text x="14" y="{y - 3}" class="word">{escape(stream["name"])}</text>'
        + f'<text x="14" y="{y + 13}" class="small">{where}, {escape(window)}</text>'
        + _arrow(200, y, 290, middle + (y - middle) * 0.5)
    )


def _hosts(plan: Record, height: float) -> str:
    orders = [" ▸ ".join(order) for order in plan["orders"]]
    lines = [f"{plan['strategy']}, {hosts_of(plan)}", *orders]
    step = (height - 2 * _TOP) / (len(lines) + 1)
    parts = [_box(290, _TOP, 380, height - 2 * _TOP, "#52606d")]
    for number, line in enumerate(lines, 1):
        place = f'x="480" y="{_TOP + number * step + 4:.1f}"'
        parts.append(
            f'<text {place} class="{"small" if number > 1 else "word"} middle">{escape(line)}</text>'
        )
    return "".join(parts)


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return (
        f'<rect x="{x}" y="{y:.1f}" width="{width}" height="{height:.1f}" rx="7" fill="#fff" '
        f'stroke="{colour}" stroke-width="1.6"/>'
    )


def _arrow(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1}" y1="{y1:.1f}" x2="{x2 - 2}" y2="{y2:.1f}" stroke="#52606d" stroke-width="1.4" '
        'marker-end="url(#tip)"/>'
    )
