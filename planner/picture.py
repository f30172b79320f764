"""Plan text for what is shed: the slices that each hop harvests, drawn on a line of time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from sparkshed.planner.adaptive import selective
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec, ShedJoinExec
from sparkshed.planner.selecting import share_of
from sparkshed.planner.slices import Slices
from sparkshed.sql.bounds import duration_text

if TYPE_CHECKING:
    from sparkshed.planner.shedding import Shedding


def harvest_lines(physical: ShedJoinExec, names: Sequence[str]) -> Iterator[str]:
    """What GrubJoin harvests."""
    assert physical.shedding is not None
    policy, configuration = physical.shedding.policy, physical.shedding.configuration
    chooser = policy.chooser + (f":{policy.metric}" if policy.chooser.startswith("greedy") else "")
    histograms = "per_stream" if policy.per_stream else "pairwise"
    mix = "" if configuration.dear == configuration.cheap else f", mix={configuration.mix:.2f}"
    yield f"Harvest: chooser={chooser}, histograms={histograms}, shred={policy.shred:g}{mix}"
    yield from _pictures(configuration, physical.spec, physical.layout.master, names)


def running_lines(configuration: Configuration, spec: JoinSpec, names: Sequence[str]) -> Iterator[str]:
    """What a running join does: what it keeps of each stream, and what every hop probes."""
    if any(share < 1 for share in configuration.keep):
        kept = zip(names, configuration.keep, strict=True)
        yield f"Keep: {', '.join(f'{name}={share:.3g}' for name, share in kept)}"
    if any(own is not None for own in (*configuration.dear, *configuration.cheap)):
        mix = "" if configuration.dear == configuration.cheap else f", mix={configuration.mix:.2f}"
        yield f"Harvest: shred={configuration.shred:g}{mix}"
        for origin, _ in enumerate(names):
            yield from _pictures(configuration, spec, origin, names)


def keep_lines(physical: ShedJoinExec, names: Sequence[str]) -> Iterator[str]:
    """What RandomDrop keeps."""
    assert physical.shedding is not None
    keep = physical.shedding.configuration.keep
    kept = ", ".join(f"{name}={share:.3g}" for name, share in zip(names, keep, strict=True))
    yield f"Keep: {kept}"


def select_lines(physical: ShedJoinExec, names: Sequence[str]) -> Iterator[str]:
    """What `adaptive` selects: r of each direction that has work, and its slices."""
    shedding, master = physical.shedding, physical.layout.master
    assert shedding is not None
    policy, configuration = shedding.policy, shedding.configuration
    mix = "" if configuration.dear == configuration.cheap else f", mix={configuration.mix:.2f}"
    adaptations = ",".join(policy.adaptations) or "none"
    shares = ["unused"] * len(names)
    learned = shedding.learned(physical.spec)
    if learned is not None:
        # Rows of the master probe the other window.
        shares[1 - master] = f"{selective(configuration, learned, master, physical.spec.slices)[0]:.3g}"
    text = ", ".join(f"r_{number}={share}" for number, share in enumerate(shares, 1))
    yield f"Select: adaptations={adaptations}, {text}, full={configuration.shred:.3g}{mix}"
    yield from _pictures(configuration, physical.spec, master, names)


def dual_lines(physical: ShedJoinExec, names: Sequence[str]) -> Iterator[str]:
    """Windows of rows, and what the sample makes of them."""
    shedding = physical.shedding
    assert shedding is not None
    yield f"Rows: the last {physical.spec.rows} of each stream"
    if shedding.speed is not None:
        configuration = shedding.configuration
        rear = ", ".join(f"{name}={share:.3g}" for name, share in zip(names, configuration.rear, strict=True))
        front = 1 - min(configuration.keep)
        yield f"Shed: k_r {rear}, k_f={front:.3g}, V_opt={shedding.speed:.3g} of the input rate"


def memory_lines(shedding: Shedding, parts: int) -> Iterator[str]:
    """The limit of the windows, where there is one, for each of several groups or hosts."""
    own = shedding.buffering
    if own is None:
        return
    amount = f"{own.rows} rows" if own.rows is not None else f"{own.limit} bytes"
    each = f", in each of {parts} parts" if parts > 1 else ""
    sample = "" if own.sample is None else f", sample={own.sample}"
    buffers = "unified" if own.unified else "proportional"
    credits = "" if own.percentile is None else f", credits=method{own.method}:{own.percentile:g}"
    counts = "" if own.sketch is None else f", counts=sketch:{own.sketch}"
    yield f"Memory: {amount}{each}, evict={own.policy}{credits}{counts}, buffers={buffers}{sample}"


def expected_line(shedding: Shedding) -> str:
    """What the pilot makes one expect."""
    expected = shedding.expectation
    if expected is None:
        return "Expected: nothing, as the pilot found no rows to learn from"
    return (
        f"Expected: work={expected.work:.3g}, completeness={expected.completeness:.2f}, "
        f"pilot rows={expected.pilot_rows}, pilot work={expected.pilot_work:.2g}"
    )


def _pictures(
    configuration: Configuration, spec: JoinSpec, origin: int, names: Sequence[str]
) -> Iterator[str]:
    """A line for each hop: `#` is probed by all rows, `/` in part, `+` by some of them, `.` by none."""
    dear, cheap, partly = (
        configuration.dear[origin],
        configuration.cheap[origin],
        configuration.partly[origin],
    )
    path = names[origin]
    rows = []
    for place, target in enumerate(configuration.orders[origin]):
        slices = spec.slices[origin][target]
        everything = range(slices.first, slices.last + 1)
        some = everything if dear is None else dear[place]
        all_rows = everything if cheap is None else cheap[place]
        share = configuration.mix * len(some) + (1 - configuration.mix) * len(all_rows)
        number, part = (None, 0.0) if partly is None or place else share_of(slices, partly)
        path = f"{path} > {names[target]}"
        rows.append((path, f"{(share + part) / slices.count:.2f}", *_strip(slices, some, all_rows, number)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for path, share_text, low, strip, high in rows:
        head = f"  {path.ljust(widths[0])}  {share_text.ljust(widths[1])}"
        yield f"{head}  {low.rjust(widths[2])} {strip} {high}"


def _strip(
    slices: Slices, some: Collection[int], every: Collection[int], partly: int | None = None
) -> tuple[str, str, str]:
    """The slices from the earliest partners to the latest, with the times at both ends.

    >>> _strip(Slices.of(6, 2, 2), [1, 2], [1], 0)
    ('-6 µs', '[+#/|.]', '2 µs')
    """
    marks = []
    for number in range(slices.last, slices.first - 1, -1):
        if number == -1:
            marks.append("|")
        probed = (number in some) + (number in every)
        marks.append("/" if number == partly else ".+#"[probed])
    low = duration_text(-slices.basic * (slices.last + 1))
    return low, f"[{''.join(marks)}]", duration_text(-slices.basic * slices.first)
