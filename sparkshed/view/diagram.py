"""A plan as a picture: streams, hosts, and the way of a row from stream to stream."""

from __future__ import annotations

from html import escape

from sparkshed.view.charts import COLOURS
from sparkshed.view.journal import Record

_ROW, _TOP = 44, 16


def draw(plan: Record) -> str:
    """Streams on the left, in the middle the hosts with the order of each direction, results on the right."""
    streams, orders = plan["streams"], plan["orders"]
    height = _TOP * 2 + _ROW * max(len(streams), 1)
    middle = height / 2
    parts = []
    for number, stream in enumerate(streams):
        y = _TOP + _ROW * number + _ROW / 2
        colour = COLOURS[number % len(COLOURS)]
        window = "kept for good" if stream["window"] is None else f"kept for {stream['window']:g} s"
        if plan.get("rows"):
            window = f"the last {plan['rows']} rows"
        where = "table" if stream["table"] else "stream"
        parts.append(_box(10, y - 17, 190, 34, colour))
        parts.append(f'<text x="20" y="{y - 2}" class="word">{escape(stream["name"])}</text>')
        parts.append(f'<text x="20" y="{y + 12}" class="small">{where}, {escape(window)}</text>')
        parts.append(_arrow(200, y, 290, middle + (y - middle) * 0.5))
    parts.append(_box(290, _TOP, 380, height - 2 * _TOP, "#52606d"))
    hosts = plan.get("hosts", 1)
    told = "one host" if hosts == 1 else f"{hosts} hosts, routing {plan.get('routing')}"
    lines = [f"{plan['strategy']}, {told}", *(" ▸ ".join(order) for order in orders)]
    step = (height - 2 * _TOP) / (len(lines) + 1)
    for number, line in enumerate(lines, 1):
        kind = "word" if number == 1 else "small"
        parts.append(
            f'<text x="480" y="{_TOP + number * step + 4:.1f}" class="{kind} middle">{escape(line)}</text>'
        )
    parts.append(_arrow(670, middle, 760, middle))
    parts.append(_box(760, middle - 17, 110, 34, "#1c2733"))
    parts.append(f'<text x="815" y="{middle + 4}" class="word middle">results</text>')
    arrow = (
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#52606d"/></marker></defs>'
    )
    conditions = [*plan.get("conditions", ()), *plan.get("bounds", ())]
    told = "".join(f"<tr><td>{escape(text)}</td></tr>" for text in conditions)
    return (
        f'<svg viewBox="0 0 880 {height}" role="img" aria-label="plan">{arrow}{"".join(parts)}</svg>'
        f"<table><tr><th>conditions</th></tr>{told}</table>"
    )


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
