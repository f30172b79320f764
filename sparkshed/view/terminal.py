"""The live view of joins in a terminal, and the same in plain lines where there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sparkshed.view.figures import REASONS, amount, busy, lost, percent, rate
from sparkshed.view.journal import Record, Story

if TYPE_CHECKING:
    from rich.console import RenderableType

_BARS = " ▁▂▃▄▅▆▇█"
_SHADES = " ░▒▓█"
#: Micro-batches that a sparkline shows.
_LATELY = 48


def spark(values: Sequence[float], most: float | None = None) -> str:
    """Values as a line of bars.

    >>> spark([0, 1, 2, 4])
    ' ▂▄█'
    """
    top = most if most is not None else max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    steps = len(_BARS) - 1
    return "".join(_BARS[round(steps * min(1.0, max(0.0, value / top)))] for value in values)


def strip_text(strip: Record) -> str:
    """What is probed of a window, from the earliest partners to the latest; `|` is the probing row.

    >>> strip_text({"shares": [1, 0.5, 0, 0], "earliest": -2.0, "latest": 2.0})
    '█▒|  '
    """
    shares = strip["shares"]
    marks = [_SHADES[round((len(_SHADES) - 1) * share)] for share in shares]
    low, high = strip["earliest"], strip["latest"]
    if low < 0 < high:
        marks.insert(round(len(shares) * -low / (high - low)), "|")
    return "".join(marks)


def plain_line(story: Story, title: str) -> str:
    """The last micro-batch in one line."""
    batches = busy(story.batches, story.names)
    if not batches:
        return f"{title}: waiting for rows"
    last = batches[-1]
    rates = ", ".join(f"{name} {amount(rate(last, f'{name}.arrived'))}/s" for name in story.names)
    share = percent(float(last["completeness"]))
    low, high = percent(float(last["completeness_low"])), percent(float(last["completeness_high"]))
    return (
        f"{title}: batch {last['batch']}, {float(last['seconds']):.2f} s, {rates}, z {float(last['z']):.3g}, "
        f"{amount(rate(last, 'results'))} results/s, {share} of the answer ({low} to {high})"
    )


def panel(story: Story, title: str) -> RenderableType:
    """The view of one join."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    batches = busy(story.batches, story.names)
    if not batches:
        return Panel(Text("waiting for the first rows …", style="dim"), title=title)
    parts: list[RenderableType] = [_numbers(batches), _streams(story, batches)]
    if story.decision is not None:
        parts.append(_strips(story.decision))
    return Panel(Group(*parts), title=f"{title} · {story.plan.get('strategy', '')}", title_align="left")


def _numbers(batches: Sequence[Record]) -> RenderableType:
    from rich.table import Table

    last, lately = batches[-1], batches[-_LATELY:]
    grid = Table.grid(padding=(0, 2))
    for style in ("dim", "bold", "cyan"):
        grid.add_column(style=style, no_wrap=True)

    def drawn(values: Sequence[float], most: float | None = None) -> str:
        return spark(values, most)

    share = float(last["completeness"])
    low, high = percent(float(last["completeness_low"])), percent(float(last["completeness_high"]))
    rows = [
        ("results/s", amount(rate(last, "results")), drawn([rate(own, "results") for own in lately])),
        ("of the answer", f"{percent(share)}  ({low} to {high})", drawn(_all(lately, "completeness"), 1.0)),
        ("z", f"{float(last['z']):.3g}", drawn(_all(lately, "z"), 1.0)),
        ("batch", f"{float(last['seconds']):.2f} s", drawn(_all(lately, "seconds"))),
        ("work", amount(float(last["work"])), drawn(_all(lately, "work"))),
        ("state", amount(float(last["state_bytes"]), "B"), drawn(_all(lately, "state_bytes"))),
    ]
    for row in rows:
        grid.add_row(*row)
    return grid


def _all(batches: Sequence[Record], name: str) -> list[float]:
    return [float(own[name]) for own in batches]


def _streams(story: Story, batches: Sequence[Record]) -> RenderableType:
    from rich.table import Table

    gone = lost(batches, story.names)
    shown = [reason for reason in REASONS if any(own[reason] for own in gone.values())]
    table = Table(box=None, padding=(0, 2), header_style="dim")
    table.add_column("stream")
    for head in ("rows/s", "", *shown):
        table.add_column(head, justify="right" if head else "left")
    last = batches[-1]
    top = max(rate(own, f"{name}.arrived") for own in batches[-_LATELY:] for name in story.names)
    for name in story.names:
        line = spark([rate(own, f"{name}.arrived") for own in batches[-24:]], top)
        counts = [amount(gone[name][reason]) for reason in shown]
        table.add_row(name, amount(rate(last, f"{name}.arrived")), f"[cyan]{line}[/]", *counts)
    return table


def _strips(decision: Record) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2), header_style="dim")
    for head in ("probes", "share", "which parts of the window"):
        table.add_column(head, no_wrap=True)
    for strip in decision["strips"]:
        shares = strip["shares"]
        low, high = f"{strip['earliest']:+g} s", f"{strip['latest']:+g} s"
        table.add_row(
            " > ".join(strip["path"]),
            percent(sum(shares) / max(1, len(shares))),
            f"[dim]{low}[/] [green]{strip_text(strip).replace('|', '[bold red]|[/]')}[/] [dim]{high}[/]",
        )
    return table


def summary_lines(story: Story, numbers: dict[str, Any]) -> Iterator[str]:
    """A run in a few lines."""
    width = max(map(len, numbers), default=0)
    for name, value in numbers.items():
        yield f"  {name:<{width}}  {value}"
