"""A run as one HTML page that needs nothing else: no network, no script, no other file."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timezone
from html import escape

from sparkshed.view import charts, diagram
from sparkshed.view.charts import Line
from sparkshed.view.figures import (
    REASONS,
    amount,
    began,
    busy,
    headline,
    instant,
    lasted,
    left_out,
    lost,
    percent,
    rate,
)
from sparkshed.view.journal import Record, Story

#: Columns of a heat map, at most.
_MOST_COLUMNS = 240
#: Rows of the table of decisions, at most.
_MOST_DECISIONS = 40

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 15px/1.45 Inter, system-ui, sans-serif; margin: 0 auto; max-width: 1180px; padding: 24px;
  color: #1c2733; background: #fff; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 18px; margin: 36px 0 8px; }
p.lead { color: #52606d; margin: 0 0 14px; max-width: 1000px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(max(150px, 23%), 1fr)); gap: 10px;
  margin-top: 18px; }
.card { background: #f4f6f9; border-radius: 8px; padding: 10px 14px; }
.card b { display: block; font-size: 20px; font-weight: 600; } .card span { color: #52606d; font-size: 13px; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 480px), 1fr));
  gap: 20px 26px; }
figure { margin: 0; } figcaption { font-weight: 600; font-size: 14px; margin-bottom: 2px; }
svg { width: 100%; height: auto; display: block; overflow: visible; }
svg.plan { max-width: 880px; }
svg .grid { stroke: #dde3ea; } svg .mark { stroke: #b6c0ca; }
svg .frame { fill: none; stroke: #b6c0ca; } svg .own { stroke: #d55e00; stroke-width: 1.4; }
svg .cells { shape-rendering: crispEdges; }
svg .curve { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
svg .tick { font-size: 11px; fill: #52606d; } svg .end { text-anchor: end; }
svg .middle { text-anchor: middle; }
svg .word { font-size: 14px; fill: #1c2733; } svg .small { font-size: 12px; fill: #52606d; }
.legend { font-size: 13px; color: #384350; display: flex; flex-wrap: wrap; align-items: center;
  gap: 2px 16px; margin: 4px 0 0 10.4%; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.legend i { width: 11px; height: 11px; border-radius: 2px; opacity: .85; }
.legend i.line { width: 20px; height: 0; border-radius: 0; opacity: 1; }
.legend i.scale { width: 120px; border: 1px solid #b6c0ca; opacity: 1; }
p.lead + .legend { margin: 0 0 14px; gap: 8px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13.5px; }
th { text-align: left; color: #52606d; font-weight: 600; }
th, td { padding: 5px 26px 5px 0; border-bottom: 1px solid #e4e9ef; vertical-align: top; }
td { font-variant-numeric: tabular-nums; } td.n, th.n { text-align: right; }
.none { color: #9aa5b1; }
ul { list-style: none; margin: 14px 0; padding: 0; } code, pre { font-size: 12.5px; }
pre { background: #f4f6f9; border-radius: 8px; padding: 12px 14px; overflow-x: auto; }
"""


def page_of(story: Story, title: str, remark: str = "") -> str:
    """The page of a run.

    Args:
        story: What its journal says.
        title: A name for it.
        remark: What else there is to say of it, above everything.
    """
    batches = busy(story.batches, story.names)
    parts = [_head(story, title), f'<p class="lead">{escape(remark)}</p>' if remark else "", _cards(story)]
    if batches:
        parts += [_charts(story, batches), _harvest(story, batches), _losses(story, batches)]
    parts.append(_plan(story))
    if batches:
        parts.append(_decisions(story, instant(batches[0])))
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
    words.append(diagram.hosts_of(plan))
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
    if len(batches) < 2:
        return ""
    names, times = story.names, _times(batches)
    share = Line(
        "delivered, with a 95 % interval",
        _all(batches, "completeness"),
        _all(batches, "completeness_low"),
        _all(batches, "completeness_high"),
    )
    drawn = [
        charts.stacked("Rows that arrive, per second", times, _arrivals(batches, names), text=amount),
        charts.lines("Results, per second", times, [_rates(batches, "results")], text=amount),
        charts.lines("Share of the true answer", times, [share], most=1.0, text=percent),
        charts.lines("z, the share of work done", times, [Line("", _all(batches, "z"))], most=1.0),
        charts.lines("A micro-batch, in seconds", times, _durations(batches)),
        charts.stacked("Work units, per second", times, _work(batches, names), text=amount),
        charts.lines("State, in bytes", times, [Line("", _all(batches, "state_bytes"))], text=_bytes),
        charts.lines("Rows in the windows", times, [Line("", _all(batches, "window_rows"))], text=amount),
    ]
    lead = "In minutes and seconds since the first micro-batch with rows."
    return f'<h2>Over time</h2><p class="lead">{lead}</p><div class="grid2">{"".join(drawn)}</div>'


def _all(batches: Sequence[Record], name: str) -> list[float]:
    return [float(own.get(name, 0)) for own in batches]


def _rates(batches: Sequence[Record], figure: str, label: str = "") -> Line:
    return Line(label, [rate(own, figure) for own in batches])


def _arrivals(batches: Sequence[Record], names: Sequence[str]) -> list[Line]:
    return [_rates(batches, f"{name}.arrived", name) for name in names]


def _durations(batches: Sequence[Record]) -> list[Line]:
    # How long the first input took to arrive is not known.
    inputs = [float(own.get("lasted") or math.nan) for own in batches]
    return [
        Line("time it took", _all(batches, "seconds")),
        Line("time its rows took to arrive", inputs, dashed=True),
    ]


def _work(batches: Sequence[Record], names: Sequence[str]) -> list[Line]:
    skipped = [left_out(own, names) / lasted(own) for own in batches]
    return [_rates(batches, "work", "done"), Line("left out, as estimated", skipped)]


def _bytes(value: float) -> str:
    return amount(value, "B")


def _times(batches: Sequence[Record]) -> list[float]:
    first = instant(batches[0])
    return [instant(own) - first for own in batches]


def _harvest(story: Story, batches: Sequence[Record]) -> str:
    """Heat maps of what is probed, for each hop of each direction."""
    first, last = instant(batches[0]), instant(batches[-1])
    hops: dict[tuple[str, str], list[tuple[tuple[float, float], Record]]] = {}
    for (begin, end), decision in _spans(story, first, last):
        for strip in decision["strips"]:
            # Orders may change: a hop is known by where it starts and what it probes.
            key = (strip["path"][0], strip["path"][-1])
            hops.setdefault(key, []).append(((begin - first, end - first), strip))
    if not hops:
        return ""
    drawn = [
        charts.heat_map(
            f"{origin} probes {target}",
            (0.0, last - first),
            [span for span, _ in known],
            [strip["shares"] for _, strip in known],
            (known[-1][1]["earliest"], known[-1][1]["latest"]),
        )
        for (origin, target), known in sorted(hops.items(), key=_place(story.names))
    ]
    note = (
        "How far before (−) or after (+) a row its partners are looked for; the line is its own time. "
        "Blank is the time before the first decision."
    )
    scale = charts.heat_scale("probed by no rows", "by all rows")
    head = f'<h2>What is harvested</h2><p class="lead">{note}</p>{scale}'
    return f'{head}<div class="grid2">{"".join(drawn)}</div>'


def _spans(story: Story, first: float, last: float) -> Iterator[tuple[tuple[float, float], Record]]:
    """Decisions with the times from and until which they held, some of them where there are many."""
    step = max(1, -(-len(story.decisions) // _MOST_COLUMNS))
    chosen = story.decisions[::-step][::-1]
    begins = [min(last, max(first, began(story, place))) for place, _ in chosen]
    for (_, decision), begin, end in zip(chosen, begins, [*begins, last][1:], strict=True):
        if begin < end:
            yield (begin, end), decision


def _place(names: Sequence[str]) -> Callable[[tuple[tuple[str, str], object]], list[int]]:
    """By the places of two streams in the query; an earlier run may have had others, which come last."""
    places = {name: place for place, name in enumerate(names)}
    return lambda hop: [places.get(name, len(places)) for name in hop[0]]


def _losses(story: Story, batches: Sequence[Record]) -> str:
    found = lost(batches, story.names)
    arrived = {name: sum(int(own[f"{name}.arrived"]) for own in batches) for name in story.names}
    head = "".join(f'<th class="n">{escape(words)}</th>' for words in REASONS.values())
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{arrived[name]:,}</td>'
        + "".join(_count(found[name][reason]) for reason in REASONS)
        + "</tr>"
        for name in story.names
    )
    return (
        '<h2>Rows that did not take part</h2><div class="wide"><table><tr><th>stream</th>'
        f'<th class="n">arrived</th>{head}</tr>{rows}</table></div>'
    )


def _count(number: int) -> str:
    return f'<td class="n{"" if number else " none"}">{number:,}</td>'


def _plan(story: Story) -> str:
    if not story.plan:
        return ""
    text = escape(str(story.plan.get("text", "")))
    return f"<h2>The plan</h2>{diagram.draw(story.plan)}<pre>{text}</pre>"


def _decisions(story: Story, first: float) -> str:
    """What was decided, the last decisions first."""
    if not story.decisions:
        return ""
    shown = story.decisions[-_MOST_DECISIONS:][::-1]
    here = f", the last {len(shown)} here" if len(shown) < len(story.decisions) else ""
    lead = (
        f"{len(story.decisions)} in all{here}. For the rows of each stream: the others in the order in which "
        "they are probed, and how much of their windows."
    )
    head = "".join(f"<th>rows of {escape(name)}</th>" for name in story.names)
    body = "".join(_decided(story, began(story, place) - first, own) for place, own in shown)
    return (
        f'<h2>Decisions</h2><p class="lead">{lead}</p><div class="wide"><table><tr><th class="n">from</th>'
        f'<th class="n">number</th><th class="n">z</th>{head}</tr>{body}</table></div>'
    )


def _decided(story: Story, since: float, decision: Record) -> str:
    cells = [charts.clock(max(0.0, since)), decision["version"], f"{decision['z']:.3g}"]
    numbers = "".join(f'<td class="n">{cell}</td>' for cell in cells)
    return f"<tr>{numbers}{''.join(_direction(decision, name) for name in story.names)}</tr>"


def _direction(decision: Record, name: str) -> str:
    """What the rows of a stream probe."""
    hops = [own for own in decision["strips"] if own["path"][0] == name]
    shares = [sum(own["shares"]) / max(1, len(own["shares"])) for own in hops]
    kept = decision.get("keep", {}).get(name, 1.0)
    if not kept or (shares and not shares[0]):
        return '<td class="none">nothing</td>'
    told = (f"{own['path'][-1]} {percent(share)}" for own, share in zip(hops, shares, strict=True))
    words = " ▸ ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in told)
    return f"<td>{escape(words if kept >= 1 else f'{percent(kept)} of them: {words}')}</td>"
