"""The figures of a micro-batch: one list for whoever asks sparkshed, and for any listener of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.diffusion.loads import uneven
from sparkshed.planner.streaming import Report, StreamingPlan

_KINDS = ("arrived", "joined", "late", "null_time", "shed", "expired", "evicted")
#: What the share of delivered results is found by.
_DELIVERED, _MISSED, _VARIANCE, _WEIGHT = "results", "missed", "missed_variance", "missed_weight"
_HIDDEN = (_VARIANCE, _WEIGHT)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure.

    Attributes:
        name: Its name, with a dot between a stream and what is said of it.
        aggregate: How those of several hosts make one, `sum` or `max`.
        of: What one host says.
        whole: Whether it is a whole number.
    """

    name: str
    aggregate: str
    of: Callable[[Report], float]
    whole: bool = True

    def together(self, reports: Sequence[Report]) -> float:
        """That of all hosts."""
        found = [self.of(report) for report in reports]
        total = sum(found) if self.aggregate == "sum" else max(found)
        return round(total) if self.whole else float(total)


def figures_of(plan: StreamingPlan) -> list[Figure]:
    """All of them; those of decisions are of the one that was in force."""
    figures = [
        Figure("z", "max", lambda own: own.throttle, whole=False),
        Figure("beta", "max", lambda own: own.figures.get("beta", 1.0), whole=False),
        Figure("fixed_seconds", "max", lambda own: own.figures.get("fixed", 0.0), whole=False),
        Figure("variable_seconds", "sum", lambda own: own.figures.get("unit", 0.0) * own.effort, whole=False),
        Figure("decision", "max", lambda own: own.version),
        Figure(_DELIVERED, "sum", lambda own: own.completeness.delivered),
        Figure("work", "sum", lambda own: sum(own.work)),
        Figure(_MISSED, "sum", lambda own: own.completeness.missed, whole=False),
        Figure(_VARIANCE, "sum", lambda own: own.completeness.variance, whole=False),
        Figure(_WEIGHT, "max", lambda own: own.completeness.weight, whole=False),
        Figure("window_rows", "sum", lambda own: own.rows),
        Figure("memory", "sum", lambda own: own.memory),
        Figure("drop", "max", lambda own: own.drop, whole=False),
        Figure("state_bytes", "sum", lambda own: own.state_bytes),
        Figure("state_reads", "sum", lambda own: own.reads),
        Figure("state_read_bytes", "sum", lambda own: own.read_bytes),
        Figure("engine_seconds", "max", lambda own: own.seconds, whole=False),
    ]
    for number, stream in enumerate(plan.spec.streams):
        # Copies of a row on several hosts count once.
        copied = plan.hosts.router is None and plan.hosts.keys is None and number != plan.hosts.master
        figures += [_rows_of(stream.name, number, kind, copied=copied) for kind in _KINDS]
        figures += [_work_of(stream.name, number), _skipped_of(stream.name, number)]
    return figures


def _rows_of(name: str, number: int, kind: str, *, copied: bool) -> Figure:
    return Figure(f"{name}.{kind}", "max" if copied else "sum", lambda own: own.streams[number][kind])


def _work_of(name: str, number: int) -> Figure:
    return Figure(f"{name}.work", "sum", lambda own: own.work[number])


def _skipped_of(name: str, number: int) -> Figure:
    return Figure(f"{name}.skipped", "sum", lambda own: own.skipped(number), whole=False)


def numbers_of(plan: StreamingPlan, report: Report) -> list[float]:
    """The figures of one host, in the order of the list."""
    return [float(figure.of(report)) for figure in figures_of(plan)]


def record_of(plan: StreamingPlan, reports: Sequence[Report]) -> dict[str, float]:
    """The figures of all hosts, by their names."""
    return {
        figure.name: figure.together(reports) for figure in figures_of(plan) if figure.name not in _HIDDEN
    }


def routing_of(plan: StreamingPlan, reports: Sequence[Report]) -> dict[str, Any]:
    """How busy each host was, and what a router did.

    `host_work` is what work and results cost on each host, in comparisons, and `unevenness` its coefficient
    of variation; `copies` is how many times over rows were sent.
    """
    work = [0.0] * plan.hosts.count
    for own in reports:
        work[own.host % len(work)] += own.effort
    found: dict[str, Any] = {"host_work": work, "unevenness": uneven(work)}
    told = next((own.routing for own in reports if own.routing is not None), None)
    if plan.hosts.router is None or told is None:
        return found
    arrived = sum(count["arrived"] - count["late"] for own in reports for count in own.streams)
    found |= {
        "copies": told["sent"] / arrived if arrived else 1.0,
        "routing_entries": told["table"],
        "routing_seconds": told["seconds"],
    }
    if plan.hosts.router.kind == "atr":
        found["master"] = plan.spec.streams[told["master"]].name
        found["segment_seconds"] = told["length"] * plan.hosts.router.tick / 1_000_000
    return found


def shares_of(completeness: Completeness, prefix: str = "") -> dict[str, float]:
    """The share of results that was delivered, with its interval, by their names."""
    low, high = completeness.interval
    shares = {"completeness": completeness.share, "completeness_low": low, "completeness_high": high}
    return {prefix + name: share for name, share in shares.items()}


def observed_of(plan: StreamingPlan) -> dict[str, str]:
    """The same as SQL over the numbers of all hosts, `figures`, by names without dots."""
    columns = {}
    for number, figure in enumerate(figures_of(plan)):
        text = f"{figure.aggregate}(figures[{number}])"
        columns[figure.name.replace(".", "_")] = f"bigint(round({text}))" if figure.whole else text
    shares = _shares(*(columns[name] for name in (_DELIVERED, _MISSED, _VARIANCE, _WEIGHT)))
    return {name: text for name, text in columns.items() if name not in _HIDDEN} | shares


def _shares(delivered: str, missed: str, variance: str, weight: str) -> dict[str, str]:
    """`shares_of` in SQL."""
    guessed = f"{missed} > 0 AND {variance} > 0"
    hidden = f"(3 * {weight})"
    # So that the branch that is not taken divides by nothing, either.
    some = f"greatest({missed}, 1e-300)"
    factor = f"exp(least(1.96 * sqrt(ln(1 + {variance} / {some} / {some})), 50))"
    fewest = f"if({guessed}, {missed} / {factor}, greatest(0, if({weight} <= 0, {missed}, 0)))"
    most = (
        f"if({guessed}, greatest({missed} * {factor}, least({hidden}, {missed} + {hidden})), "
        f"greatest(0, {missed}) + {hidden})"
    )

    def share(lost: str) -> str:
        return f"if({delivered} + {lost} > 0, {delivered} / ({delivered} + {lost}), 1D)"

    return {
        "completeness": share(f"greatest(0, {missed})"),
        "completeness_low": share(most),
        "completeness_high": share(fewest),
    }
