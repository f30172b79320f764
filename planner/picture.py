"""Plan text for what is shed: the slices that each hop harvests, drawn on a line of time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sparkshed.planner.configuration import Configuration
from sparkshed.planner.physical import JoinSpec, ShedJoinExec
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.slices import Slices
from sparkshed.sql.bounds import duration_text


def shed_lines(physical: ShedJoinExec, names: Sequence[str]) -> Iterator[str]:
    """What a plan sheds, line by line."""
    shedding = physical.shedding
    if shedding is None:
        return
    policy, configuration = shedding.policy, shedding.configuration
    if shedding.strategy == "dual":
        yield from _dual_lines(shedding, physical.spec, names)
        return
    if shedding.strategy == "grubjoin":
        chooser = policy.chooser + (f":{policy.metric}" if policy.chooser.startswith("greedy") else "")
        histograms = "per_stream" if policy.per_stream else "pairwise"
        mix = "" if configuration.dear == configuration.cheap else f", mix={configuration.mix:.2f}"
        yield f"Harvest: chooser={chooser}, histograms={histograms}, shred={policy.shred:g}{mix}"
        yield from _pictures(configuration, physical.spec, physical.layout.master, names)
    else:
        kept = ", ".join(f"{name}={share:.3g}" for name, share in zip(names, configuration.keep, strict=True))
        yield f"Keep: {kept}"
    yield _expected(shedding)


def _dual_lines(shedding: Shedding, spec: JoinSpec, names: Sequence[str]) -> Iterator[str]:
    """Windows of rows, and what the sample makes of them."""
    yield f"Rows: the last {spec.rows} of each stream"
    if shedding.speed is not None:
        configuration = shedding.configuration
        rear = ", ".join(f"{name}={share:.3g}" for name, share in zip(names, configuration.rear, strict=True))
        front = 1 - min(configuration.keep)
        yield f"Shed: k_r {rear}, k_f={front:.3g}, V_opt={shedding.speed:.3g} of the input rate"


def _expected(shedding: Shedding) -> str:
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
    """A line for each hop of a direction: `#` is probed by all rows, `+` by some, `.` by none."""
    dear, cheap = configuration.dear[origin], configuration.cheap[origin]
    path = names[origin]
    rows = []
    for place, target in enumerate(configuration.orders[origin]):
        slices = spec.slices[origin][target]
        everything = range(slices.first, slices.last + 1)
        some = everything if dear is None else dear[place]
        all_rows = everything if cheap is None else cheap[place]
        share = configuration.mix * len(some) + (1 - configuration.mix) * len(all_rows)
        path = f"{path} > {names[target]}"
        rows.append((path, f"{share / slices.count:.2f}", *_strip(slices, some, all_rows)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for path, share_text, low, strip, high in rows:
        head = f"  {path.ljust(widths[0])}  {share_text.ljust(widths[1])}"
        yield f"{head}  {low.rjust(widths[2])} {strip} {high}"


def _strip(slices: Slices, some: Collection[int], every: Collection[int]) -> tuple[str, str, str]:
    """The slices from the earliest partners to the latest, with the times at both ends.

    >>> _strip(Slices.of(6, 2, 2), [1, 2], [1])
    ('-6 µs', '[+#.|.]', '2 µs')
    """
    marks = []
    for number in range(slices.last, slices.first - 1, -1):
        if number == -1:
            marks.append("|")
        probed = (number in some) + (number in every)
        marks.append(".+#"[probed])
    low = duration_text(-slices.basic * (slices.last + 1))
    return low, f"[{''.join(marks)}]", duration_text(-slices.basic * slices.first)
