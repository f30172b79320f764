"""What is shown of the figures of a join, in the terminal and on the page alike."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median

from sparkshed.view.journal import Record, Story

#: Why rows did not take part, by the words of the figures.
REASONS = {
    "late": "later than the watermark",
    "shed": "shed in front of the join",
    "evicted": "evicted from the windows",
    "null_time": "without a time",
}


def lasted(batch: Record) -> float:
    """Seconds of input in a micro-batch, as far as that is known."""
    return float(batch.get("lasted") or batch.get("seconds") or 1.0) or 1.0


def rate(batch: Record, figure: str) -> float:
    """A count in a second."""
    return float(batch.get(figure, 0)) / lasted(batch)


def instant(batch: Record) -> float:
    """When a micro-batch was triggered, in seconds of the epoch."""
    return datetime.fromisoformat(str(batch["timestamp"]).replace("Z", "+00:00")).timestamp()


def busy(batches: Sequence[Record], names: Sequence[str]) -> list[Record]:
    """The micro-batches that had rows."""
    return [own for own in batches if any(own.get(f"{name}.arrived") for name in names)]


def late_words(batches: Sequence[Record], names: Sequence[str]) -> str:
    """Words for rows that came too late to count; nothing if none did.

    >>> late_words([{"a.late": 2, "b.late": 0}], ["a", "b"])
    '; 2 rows of a came too late, and are not counted'
    """
    late = {name: sum(int(own.get(f"{name}.late", 0)) for own in batches) for name in names}
    told = [f"{count:,} rows of {name}" for name, count in late.items() if count]
    return f"; {' and '.join(told)} came too late, and are not counted" if told else ""


def began(story: Story, place: int) -> float:
    """When the micro-batch began that has so many before it; of one that is still to come, the last one."""
    return instant(story.batches[min(place, len(story.batches) - 1)])


def headline(story: Story) -> dict[str, str]:
    """A run in a few numbers, by what they mean."""
    batches, names = busy(story.batches, story.names), story.names
    if not batches:
        return {"micro-batches": "none with rows yet"}
    last = batches[-1]
    seconds = [float(own["seconds"]) for own in batches]
    rows = sum(int(own[f"{name}.arrived"]) for own in batches for name in names)
    share, low, high = (float(last[f"total_completeness{part}"]) for part in ("", "_low", "_high"))
    late = sum(int(own.get(f"{name}.late", 0)) for own in batches for name in names)
    return {
        f"of the true answer{between(low, high)}": percent(share),
        "results": f"{sum(int(own['results']) for own in batches):,}",
        "rows": f"{rows:,}",
        **({"of them too late, and not counted": f"{late:,}"} if late else {}),
        "state now": amount(float(last["state_bytes"]), "B"),
        "micro-batches": f"{len(batches):,}",
        "micro-batch, median": f"{median(seconds):.2f} s",
        "micro-batch, longest": f"{max(seconds):.2f} s",
        "z now, the share of work done": f"{float(last['z']):.3g}",
    }


def left_out(batch: Record, names: Sequence[str]) -> float:
    """Work that was not done; full work is an estimate, which does not count while everything is done."""
    if float(batch["z"]) >= 1:
        return 0.0
    return sum(float(batch.get(f"{name}.skipped", 0)) for name in names)


def percent(share: float) -> str:
    """A share as people read it.

    >>> percent(1.0), percent(0.634), percent(0.0049)
    ('100 %', '63.4 %', '0.49 %')
    """
    if share >= 0.9995:
        return "100 %"
    return f"{100 * share:.3g} %"


def between(low: float, high: float) -> str:
    """An interval of shares in brackets, unless it is a point.

    >>> between(0.0391, 0.0731), between(1.0, 1.0)
    (' (3.91–7.31 %)', '')
    """
    ends = percent(low), percent(high)
    return "" if ends[0] == ends[1] else f" ({ends[0].removesuffix(' %')}–{ends[1]})"


def amount(value: float, unit: str = "") -> str:
    """A number in thousands, millions and so on.

    >>> amount(950), amount(12_345), amount(3_600_000, "B")
    ('950', '12.3 k', '3.6 MB')
    """
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    text = f"{value:.3g}" if value % 1 else f"{value:.0f}"
    return f"{text} {unit}".rstrip()


def lost(batches: Sequence[Record], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """Rows that did not take part, by stream and reason."""
    return {
        name: {
            reason: round(sum(float(own.get(f"{name}.{reason}", 0)) for own in batches)) for reason in REASONS
        }
        for name in names
    }
