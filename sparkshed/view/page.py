"""A run as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from html import escape

from sparkshed.view import charts, diagram
from sparkshed.view.charts import Line
from sparkshed.view.figures import REASONS, amount, busy, headline, instant, lost, percent, rate
from sparkshed.view.journal import Record, Story

#: Columns of a heat map, at most.
_MOST_COLUMNS = 240

_STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 1180px; padding: 24px;
  color: #1c2733; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 34px 0 10px; }
p.lead { color: #52606d; margin: 0 0 18px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(190px, 1fr)); gap: 10px; }
.card { background: #f4f6f9; border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 19px; font-weight: 600; } .card span { color: #52606d; font-size: 13px; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fill, minmax(480px, 1fr)); gap: 18px 26px; }
figure { margin: 0; } figcaption { font-weight: 600; font-size: 14px; margin-bottom: 2px; }
svg { width: 100%; height: auto; display: block; }
svg .grid { stroke: #dde3ea; stroke-width: 1; }
svg .tick { font-size: 10.5px; fill: #52606d; } svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; } svg .start { text-anchor: start; }
svg .word { font-size: 13px; fill: #1c2733; } svg .small { font-size: 11px; fill: #52606d; }
.legend { font-size: 12.5px; color: #384350; min-height: 18px; }
.legend span { margin-right: 14px; } .legend i { display: inline-block; width: 10px; height: 10px;
  border-radius: 2px; margin-right: 5px; }
table { border-collapse: collapse; font-size: 13.5px; }
th { text-align: left; color: #52606d; font-weight: 600; }
th, td { padding: 4px 14px 4px 0; border-bottom: 1px solid #e4e9ef; vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
pre { background: #f4f6f9; border-radius: 8px; padding: 12px 14px; overflow-x: auto; font-size: 12.5px; }
"""


def page_of(story: Story, title: str) -> str:
    """The page of a run.

    Args:
        story: What its journal says.
        title: A name for it.
    """
    batches = busy(story.batches, story.names)
    parts = [_head(story, title), _cards(story)]
    if batches:
        parts += [_charts(story, batches), _harvest(story, batches), _losses(story, batches)]
    parts += [_plan(story), _decisions(story, batches)]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body>{body}</body></html>\n"
    )


def charts_page(stories: Sequence[tuple[str, Story]]) -> str:
    """A page with the charts of some joins only, by their names."""
    parts = []
    for name, story in stories:
        batches = busy(story.batches, story.names)
        title = f"<h1>{escape(name)}</h1>" if len(stories) > 1 else ""
        parts.append(title + _cards(story) + (_charts(story, batches) if batches else ""))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><style>{_STYLE}</style></head>'
        f"<body>{''.join(parts)}</body></html>\n"
    )


def _head(story: Story, title: str) -> str:
    plan = story.plan
    started = datetime.fromtimestamp(plan["started"], timezone.utc) if plan.get("started") else None
    words = [f"strategy {plan.get('strategy', '?')}", f"{len(story.names)} streams"]
    words.append(f"{plan.get('hosts', 1)} host(s), routing {plan.get('routing', 'none')}")
    if started is not None:
        words.append(f"last started {started:%Y-%m-%d %H:%M:%S} UTC")
    return f'<h1>{escape(title)}</h1><p class="lead">{escape(" · ".join(words))}</p>'


def _cards(story: Story) -> str:
    cards = "".join(
        f'<div class="card"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in headline(story).items()
    )
    return f'<div class="cards">{cards}</div>'


def _charts(story: Story, batches: Sequence[Record]) -> str:
    names, times = story.names, _times(batches)

    def figures(name: str) -> list[float]:
        return [float(own.get(name, 0)) for own in batches]

    rates = [Line(name, [rate(own, f"{name}.arrived") for own in batches]) for name in names]
    share = Line(
        "delivered, with a 95 % interval",
        figures("completeness"),
        figures("completeness_low"),
        figures("completeness_high"),
    )
    skipped = [sum(float(own.get(f"{name}.skipped", 0)) for name in names) for own in batches]
    drawn = [
        charts.lines("Rows that arrive, per second", times, rates, text=amount),
        charts.lines(
            "Results, per second",
            times,
            [Line("results", [rate(own, "results") for own in batches])],
            text=amount,
        ),
        charts.lines("Share of the true answer", times, [share], most=1.0, text=percent),
        charts.lines("z, the share of the work that is done", times, [Line("z", figures("z"))], most=1.0),
        charts.lines(
            "A micro-batch, in seconds",
            times,
            [Line("how long it took", figures("seconds")), Line("its input", figures("lasted"), dashed=True)],
        ),
        charts.stacked(
            "Work units in a micro-batch",
            times,
            [Line("done", figures("work")), Line("left out", skipped)],
            text=amount,
        ),
        charts.lines(
            "State, in bytes", times, [Line("state", figures("state_bytes"))], text=lambda v: amount(v, "B")
        ),
        charts.lines("Rows in the windows", times, [Line("rows", figures("window_rows"))], text=amount),
    ]
    return f'<h2>Over time</h2><div class="grid2">{"".join(drawn)}</div>'


def _times(batches: Sequence[Record]) -> list[float]:
    first = instant(batches[0])
    return [instant(own) - first for own in batches]


def _harvest(story: Story, batches: Sequence[Record]) -> str:
    """Heat maps of what is probed, for each hop of each direction."""
    if not story.decisions:
        return ""
    first, end = instant(batches[0]), instant(batches[-1]) - instant(batches[0])
    begins = []
    for place, _ in story.decisions:
        known = story.batches[: max(1, place)]
        begins.append(max(0.0, instant(known[-1]) - first))
    spans = list(zip(begins, [*begins[1:], max(end, begins[-1])], strict=True))
    step = max(1, -(-len(spans) // _MOST_COLUMNS))
    paths: dict[tuple[str, ...], list[tuple[tuple[float, float], Record]]] = {}
    for (_, decision), span in list(zip(story.decisions, spans, strict=True))[::step]:
        for strip in decision["strips"]:
            # Orders may change: a hop is known by where it starts and what it probes.
            key = (strip["path"][0], strip["path"][-1])
            paths.setdefault(key, []).append((span, strip))
    drawn = [
        charts.heat_map(
            f"{origin} probes {target}",
            [span for span, _ in known],
            [strip["shares"] for _, strip in known],
            (known[-1][1]["earliest"], known[-1][1]["latest"]),
        )
        for (origin, target), known in paths.items()
    ]
    note = (
        "Each column is a decision. The height is the time of the partner relative to the probing row (the "
        "line is its own time); the darker a slice, the more rows probe it."
    )
    return f'<h2>What is harvested</h2><p class="lead">{note}</p><div class="grid2">{"".join(drawn)}</div>'


def _losses(story: Story, batches: Sequence[Record]) -> str:
    found = lost(batches, story.names)
    arrived = {name: sum(int(own[f"{name}.arrived"]) for own in batches) for name in story.names}
    head = "".join(f'<th class="n">{escape(words)}</th>' for words in REASONS.values())
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{arrived[name]:,}</td>'
        + "".join(f'<td class="n">{found[name][reason]:,}</td>' for reason in REASONS)
        + "</tr>"
        for name in story.names
    )
    return (
        "<h2>Rows that did not take part</h2><table><tr><th>stream</th>"
        f'<th class="n">arrived</th>{head}</tr>{rows}</table>'
    )


def _plan(story: Story) -> str:
    if not story.plan:
        return ""
    text = escape(str(story.plan.get("text", "")))
    return f"<h2>The plan</h2>{diagram.draw(story.plan)}<pre>{text}</pre>"


def _decisions(story: Story, batches: Sequence[Record]) -> str:
    """What changed, the last changes first."""
    if not story.decisions:
        return ""
    first = instant(batches[0]) if batches else 0.0
    rows = list(_changes(story, first))[-40:][::-1]
    body = "".join(
        f'<tr><td class="n">{when}</td><td class="n">{version}</td><td class="n">{z}</td><td>{escape(orders)}'
        f"</td><td>{escape(probed)}</td></tr>"
        for when, version, z, orders, probed in rows
    )
    return (
        f"<h2>Decisions</h2><p class='lead'>{len(story.decisions)} in all, the last {len(rows)} here.</p>"
        '<table><tr><th class="n">after</th><th class="n">number</th><th class="n">z</th><th>orders</th>'
        f"<th>share of the windows that is probed</th></tr>{body}</table>"
    )


def _changes(story: Story, first: float) -> Iterator[tuple[str, int, str, str, str]]:
    for place, decision in story.decisions:
        when = instant(story.batches[place - 1]) - first if place else 0.0
        orders = "; ".join(" > ".join(order) for order in decision["orders"])
        probed = ", ".join(
            f"{' > '.join(strip['path'])} {percent(sum(strip['shares']) / max(1, len(strip['shares'])))}"
            for strip in decision["strips"]
        )
        kept = {name: share for name, share in decision.get("keep", {}).items() if share < 1}
        if kept:
            probed = ", ".join(f"{name} kept {percent(share)}" for name, share in kept.items())
        yield charts.clock(max(0.0, when)), decision["version"], f"{decision['z']:.3g}", orders, probed
