"""The figures of a micro-batch as numbers, for any listener of Spark's."""

from __future__ import annotations

from sparkshed.planner.streaming import Report, StreamingPlan

#: Figures that are no whole numbers.
FRACTIONS = (
    "z",
    "beta",
    "fixed_seconds",
    "variable_seconds",
    "delivered",
    "missed",
    "missed_variance",
    "engine_seconds",
    "drop",
)
_KINDS = ("arrived", "joined", "late", "null_time", "shed", "expired", "evicted")


def figures_of(plan: StreamingPlan) -> list[tuple[str, str]]:
    """The name of each figure, and how those of several hosts make one."""
    figures = [("z", "max"), ("beta", "max"), ("fixed_seconds", "max"), ("variable_seconds", "sum")]
    figures += [(name, "sum") for name in ("delivered", "missed", "missed_variance")]
    figures += [(name, "sum") for name in ("window_rows", "state_bytes", "state_reads", "state_read_bytes")]
    figures += [("engine_seconds", "max"), ("memory", "sum"), ("drop", "max")]
    for number, stream in enumerate(plan.spec.streams):
        copied = plan.hosts.keys is None and number != plan.hosts.master
        figures += [(f"{stream.name}_{kind}", "max" if copied else "sum") for kind in _KINDS]
        figures.append((f"{stream.name}_work", "sum"))
    return figures


def numbers_of(report: Report) -> list[float]:
    """The figures of one host, in the same order."""
    told, share = report.figures, report.completeness
    numbers = [report.throttle, told.get("beta", 1.0), told.get("fixed", 0.0)]
    numbers.append(told.get("unit", 0.0) * sum(report.work))
    numbers += [share.delivered, share.missed, share.variance]
    numbers += [report.rows, report.state_bytes, report.reads, report.read_bytes, report.seconds]
    numbers += [report.memory, report.drop]
    for counts, work in zip(report.streams, report.work, strict=True):
        numbers += [counts[kind] for kind in _KINDS]
        numbers.append(work)
    return [float(number) for number in numbers]
