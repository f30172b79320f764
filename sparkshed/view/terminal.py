"""The live view of joins in a terminal, and the same in plain lines where there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sparkshed.view.figures import REASONS, amount, between, busy, late_words, lost, percent, rate
from sparkshed.view.journal import Record, Story

if TYPE_CHECKING:
    from rich.console import RenderableType

#: Without the full block, so that lines below each other stay apart.
_BARS = " ▁▂▃▄▅▆▇"
_SHADES = "·░▒▓█"
#: Micro-batches that a sparkline shows at most, and at least.
_LATELY, _FEWEST = 48, 8
#: Columns that the rest of a line takes, with frame, spaces and what was lost.
_BESIDE = 66


def spark(values: Sequence[float], most: float | None = None) -> str:
    """Values as a line of bars; only nothing is blank.

    >>> spark([0, 0.1, 2, 4])
    ' ▁▄▇'
    """
    top = most if most is not None else max(values, default=0.0)
    if top <= 0:
        return _BARS[0] * len(values)
    steps = len(_BARS) - 1
    return "".join(_BARS[math.ceil(steps * min(1.0, max(0.0, value / top)))] for value in values)


def strip_text(strip: Record) -> str:
    """What is probed of a window, from the earliest partners to the latest; `|` is the probing row.

    >>> strip_text({"shares": [1, 0.5, 0, 0], "earliest": -2.0, "latest": 2.0})
    '█▒|··'
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
    around = between(float(last["completeness_low"]), float(last["completeness_high"]))
    late = late_words([last], story.names)
    return (
        f"{title}: batch {last['batch']}, {float(last['seconds']):.2f} s, {rates}, z {float(last['z']):.3g}, "
        f"{amount(rate(last, 'results'))} results/s, {share} of the answer{around}{late}"
    )


def panel(story: Story, title: str, *, width: int = 120, strips: bool = True) -> RenderableType:
    """The view of one join.

    Args:
        story: What its journal says.
        title: Its name.
        width: Columns of the terminal.
        strips: Whether there is room for what is probed.
    """
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    batches = busy(story.batches, story.names)
    if not batches:
        return Panel(Text("waiting for the first rows …", style="dim"), title=title)
    parts: list[RenderableType] = [_numbers(story, batches, max(_FEWEST, min(_LATELY, width - _BESIDE)))]
    if story.decision is not None and strips:
        parts += ["", _strips(story.decision)]
    strategy = str(story.plan.get("strategy", ""))
    head = title if strategy == title else f"{title} · {strategy}"
    return Panel(Group(*parts), title=head, title_align="left", padding=(0, 1))


def view(
    stories: Sequence[tuple[str, Story]], above: Sequence[RenderableType], width: int, height: int
) -> RenderableType:
    """The view of some joins, with as much of each as the terminal has lines for."""
    from rich.console import Console, Group

    console = Console(width=width, height=height)
    drawn = Group()
    # What is probed goes first, of the last join first.
    for kept in range(len(stories), -1, -1):
        panels = [
            panel(story, title, width=width, strips=number < kept)
            for number, (title, story) in enumerate(stories)
        ]
        drawn = Group(*above, *panels)
        if len(console.render_lines(drawn)) < height:
            break
    return drawn


def _numbers(story: Story, batches: Sequence[Record], lately: int) -> RenderableType:
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    for style in ("dim", "bold", "cyan", "yellow"):
        grid.add_column(style=style, no_wrap=True)
    for row in (*_inputs(story, batches, lately), *_outputs(batches[-lately:])):
        grid.add_row(*row)
    return grid


def _inputs(story: Story, batches: Sequence[Record], lately: int) -> Iterator[tuple[str, str, str, str]]:
    """Rates of the streams, drawn to one scale, and what they lost."""
    gone, last = lost(batches, story.names), batches[-lately:]
    rates = {name: [rate(own, f"{name}.arrived") for own in last] for name in story.names}
    top = max(value for values in rates.values() for value in values)
    for name, values in rates.items():
        told = ", ".join(
            f"{amount(gone[name][why])} {why.replace('_', ' ')}" for why in REASONS if gone[name][why]
        )
        yield f"{name}, rows/s", amount(values[-1]), spark(values, top), told


def _outputs(lately: Sequence[Record]) -> Iterator[tuple[str, str, str]]:
    last = lately[-1]
    around = between(float(last["completeness_low"]), float(last["completeness_high"]))
    yield "results/s", amount(rate(last, "results")), spark([rate(own, "results") for own in lately])
    for label, figure, text, most in (
        ("of the answer", "completeness", f"{percent(float(last['completeness']))}{around}", 1.0),
        ("z", "z", f"{float(last['z']):.3g}", 1.0),
        ("batch", "seconds", f"{float(last['seconds']):.2f} s", None),
        ("work", "work", amount(float(last["work"])), None),
        ("state", "state_bytes", amount(float(last["state_bytes"]), "B"), None),
    ):
        yield label, text, spark([float(own[figure]) for own in lately], most)


def _strips(decision: Record) -> RenderableType:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
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
