"""Plan text: every node one line `Name: key=value`, the walk over the tree here.

Nothing in it depends on the machine's speed or on the run: no ids, no timings, no paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sparkshed.planner.diffusion.plan import RouterPlan
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.physical import (
    BandKernel,
    EqualityKernel,
    Hop,
    HopEstimate,
    Kernel,
    Loads,
    SetKernel,
    ShedJoinExec,
    VectorKernel,
    WeightedKernel,
)
from sparkshed.planner.picture import expected_line, memory_lines
from sparkshed.planner.planner import Planned
from sparkshed.planner.strategies import KINDS
from sparkshed.planner.streaming import StreamingPlan
from sparkshed.sql.bounds import duration_text
from sparkshed.sql.predicate import Band, Equality, Form, Overlap, Similarity, WeightedOverlap

_DIRECTION_HEAD = ("hop", "stream", "window", "bound", "kernel", "checks", "selectivity", "in window", "out")
_KERNEL_HEAD = ("hop", "kernel", "checks", "touched", "cost", "")


def explain_text(plans: Sequence[Planned], mode: str) -> str:
    """Text of all shed plans of a statement."""
    render = {"simple": _simple, "extended": _extended, "formatted": _formatted}[mode]
    texts = []
    for number, planned in enumerate(plans, 1):
        head = f"== Shed Join {number} of {len(plans)} ==\n" if len(plans) > 1 else ""
        texts.append(head + render(planned))
    return "\n\n".join(texts) + "\n"


def _simple(planned: Planned) -> str:
    return "== Shed Plan ==\n" + "\n".join(_physical_lines(planned))


def _extended(planned: Planned) -> str:
    sections = [("Parsed Join Block", _block_lines(planned.steps[0][1]))]
    sections.append(("Bound Matrix", _matrix_lines(planned.logical)))
    sections.append(("Logical Plan", _logical_lines(planned.steps[0][1])))
    previous = _logical_lines(planned.steps[0][1])
    for name, plan in planned.steps[1:]:
        lines = _logical_lines(plan)
        sections.append((f"After {name}", lines if lines != previous else ["(unchanged)"]))
        previous = lines
    sections.append(("Shed Plan", _physical_lines(planned)))
    return "\n\n".join(f"== {name} ==\n" + "\n".join(lines) for name, lines in sections)


def _formatted(planned: Planned) -> str:
    lines = ["== Shed Plan ==", *_physical_lines(planned)]
    for direction, estimates in zip(
        planned.physical.spec.directions, planned.physical.estimates, strict=True
    ):
        origin = planned.logical.names[direction.origin]
        batch = planned.physical.has_master
        used = " (not used in batch)" if batch and direction.origin != planned.physical.layout.master else ""
        lines += ["", f"== Direction {origin}{used} =="]
        rows = [_DIRECTION_HEAD]
        for number, (hop, estimate) in enumerate(zip(direction.hops, estimates, strict=True), 1):
            at = planned.logical.closed.at
            rows.append(
                (
                    str(number),
                    planned.logical.names[hop.target],
                    duration_text(planned.logical.closed.window(hop.target)),
                    _range_text(at[direction.origin][hop.target], at[hop.target][direction.origin]),
                    _kernel_text(hop.kernel),
                    "; ".join(check.text for check in hop.checks) or "-",
                    f"{estimate.selectivity:.3g}",
                    _count(estimate.window),
                    _count(estimate.partials),
                )
            )
        lines += _table(rows)
        lines += ["", f"Kernels from {origin}, for one probe:", *_kernel_table(estimates)]
    return "\n".join(lines)


def _kernel_table(estimates: Sequence[HopEstimate]) -> list[str]:
    """The ways to make each hop, with what one probe touches and costs in units of a comparison."""
    rows = [_KERNEL_HEAD]
    for number, estimate in enumerate(estimates, 1):
        for place, kernel in enumerate(estimate.kernels):
            rows.append(
                (
                    str(number),
                    _kernel_text(kernel.kernel),
                    str(kernel.checks),
                    _count(kernel.entries),
                    _count(kernel.cost),
                    "chosen" if place == 0 else "",
                )
            )
    return _table(rows)


# Lines of the trees ---------------------------------------------------------------------------


def _block_lines(plan: ShedJoin) -> list[str]:
    block = plan.block
    lines = [f"JoinBlock: strategy={block.hint.strategy}, options={_options(plan)}"]
    for stream in block.streams:
        relation = " ".join(stream.relation.split())
        lines.append(f"  Relation: {stream.name}, from={relation}, time={stream.time_text or '-'}")
        lines += [f"    Filter: {_plain(text)}" for text in stream.filters]
    lines += [f"  TimeBound: {text}" for text in _unique(bound.text for bound in block.bounds)]
    lines += [
        f"  Predicate: {predicate.text}, form={_form(predicate.form)}" for predicate in block.predicates
    ]
    lines += [f"  Residual: {_plain(text)}" for text in block.residual]
    return lines


def _matrix_lines(plan: ShedJoin) -> list[str]:
    names = plan.names
    rows = [("T(row) - T(column) <=", *names)]
    rows += [(name, *map(duration_text, row)) for name, row in zip(names, plan.closed.at, strict=True)]
    lines = _table(rows)
    if plan.closed.empty:
        lines.append("The bounds contradict each other: the result is empty.")
    return lines


def _logical_lines(plan: ShedJoin) -> list[str]:
    basic = "" if plan.basic is None else f", basic={duration_text(plan.basic)}"
    closed = "" if plan.bounds is None else ", bounds=closed"
    lines = [f"ShedJoin: strategy={plan.hint.strategy}, streams={len(plan.names)}{closed}{basic}"]
    lines += [f"  Predicate: {p.text}, form={_form(p.form)}" for p in plan.predicates]
    lines += [f"  Implied: {i.predicate.text}" for i in plan.implied]
    for origin, order in enumerate(plan.orders):
        lines.append(f"  Order: {' > '.join(plan.names[s] for s in (origin, *order))}")
    for number, stream in enumerate(plan.block.streams):
        window = "" if plan.bounds is None else f", window={duration_text(plan.bounds.window(number))}"
        lines.append(f"  Stream: {stream.name}, rows={plan.statistics.streams[number].rows}{window}")
    return lines


def _physical_lines(planned: Planned) -> list[str]:
    physical, logical = planned.physical, planned.logical
    basic = duration_text(physical.spec.basic)
    lines = [f"ShedJoinExec: strategy={physical.strategy}, work={_work_text(physical)}, basic={basic}"]
    if physical.streaming is not None:
        lines += [f"  {line}" for line in _streaming_lines(physical.streaming, logical)]
    else:
        lines += [f"  {line}" for line in _shed_lines(physical, logical)]
        lines.append("  " + _layout_line(physical, logical))
        lines += [f"  {line}" for line in _loads_lines(physical.loads, "the slowest group")]
    if planned.buffer is not None:
        lines.append(f"  Buffer: {planned.buffer}")
    for direction in physical.directions:
        hops = [f"{logical.names[hop.target]} [{_hop_text(hop)}]" for hop in direction.hops]
        alone = physical.has_master and direction.origin == physical.layout.master
        master = ", master" if alone else ""
        lines.append(f"  Direction: {' > '.join([logical.names[direction.origin], *hops])}{master}")
    for number, stream in enumerate(logical.block.streams):
        window = duration_text(logical.closed.window(number))
        relation = " ".join(stream.relation.split())
        known = _rows_text(planned, number)
        lines.append(
            f"  Stream: {stream.name}, from={relation}, time={stream.time_text}, window={window}, {known}"
        )
        lines += [f"    Filter: {_plain(text)} (Spark, below the join)" for text in stream.filters]
    lines += [
        f"  Residual: {_plain(text)} (Spark, on the operator's output)" for text in logical.block.residual
    ]
    if logical.block.residual and logical.sheds:
        lines.append("  Note: what is learned and expected is that of the join before Residual")
    if logical.closed.empty:
        lines.append("  Note: the time bounds contradict each other, so the result is empty")
    return lines


def _shed_lines(physical: ShedJoinExec, logical: ShedJoin) -> list[str]:
    """What a plan sheds, and what is expected of that."""
    shedding = physical.shedding
    if shedding is None:
        return []
    lines = list(memory_lines(shedding, physical.layout.groups))
    if not shedding.adapts:
        return lines
    kind = KINDS[shedding.strategy]
    if kind.expect is None:
        return [*lines, *kind.draw(physical, logical.names)]
    if shedding.expectation is not None or shedding.budget < 1:
        lines += [*kind.draw(physical, logical.names), expected_line(shedding)]
    return lines


def _work_text(physical: ShedJoinExec) -> str:
    streaming = physical.streaming
    if streaming is not None and streaming.shedding is not None:
        return "as the load allows" if streaming.follows else f"{streaming.shedding.budget:g}"
    return f"{1 if physical.shedding is None else physical.shedding.budget:g}"


def _rows_text(planned: Planned, stream: int) -> str:
    streaming = planned.physical.streaming
    if streaming is None:
        return f"rows={planned.logical.statistics.streams[stream].rows}"
    return "a table, there from the start" if streaming.static[stream] else "a stream"


def _streaming_lines(plan: StreamingPlan, logical: ShedJoin) -> list[str]:
    hosts = plan.hosts
    line = f"Hosts: {hosts.count}, routing={hosts.routing}"
    if hosts.routing == "hash" and hosts.keys is not None:
        column = logical.block.streams[0].inputs[hosts.keys[0]]
        line += f", key={_plain(column.sql)}"
    elif hosts.router is not None:
        line += f", {_router_text(hosts.router, logical.names[hosts.master])}"
    elif hosts.routing == "dealt":
        line += f", master={logical.names[hosts.master]}, segment={duration_text(hosts.segment)}"
    lines = [line, *_loads_lines(plan.loads, "the busiest host in a second, with usual rates")]
    if not plan.expires:
        lines.append("Watermark: missing on a stream, so rows never leave the windows")
    elif plan.regain:
        lines.append(f"Watermark: {duration_text(plan.regain)} later behind the join, for its older rows")
    else:
        lines.append("Watermark: that of the operators in front of the join")
    if plan.spec.rows is not None:
        lines.append(f"Rows: the last {plan.spec.rows} of each stream")
    if plan.shedding is not None:
        lines += memory_lines(plan.shedding, plan.hosts.count)
    if plan.shedding is not None and plan.steered:
        policy = plan.shedding.policy
        adapt = duration_text(round(policy.adapt * 1_000_000))
        how = KINDS[plan.shedding.strategy].control(policy)
        lines.append(f"Control: every {adapt}, {how}")
    return lines


def _router_text(router: RouterPlan, master: str) -> str:
    """What a router starts from."""
    segment = duration_text(router.tick * router.length)
    if router.kind == "atr":
        return f"master={master} at first, segment={segment} at first"
    return f"segment={segment}"


def _loads_lines(loads: Loads, where: str) -> list[str]:
    """What led to the routing, if there was a choice."""
    texts = [f"{routing}={_count(load)}" for routing, load in loads]
    return [f"Diffusion: {', '.join(texts)} (work of {where})"] if texts else []


def _layout_line(physical: ShedJoinExec, logical: ShedJoin) -> str:
    layout = physical.layout
    parts = [f"Groups: {layout.groups}", f"routing={layout.routing}"]
    if physical.has_master:
        parts.append(f"master={logical.names[layout.master]}")
    if layout.keys is not None:
        column = logical.block.streams[layout.master].inputs[layout.keys[layout.master]]
        parts.append(f"key={_plain(column.sql)}, buckets={layout.buckets}")
    if layout.segments > 1:
        parts.append(f"segments={layout.segments}")
    parts.append(f"rows sent={physical.replication:.2f}x")
    return ", ".join(parts)


# Words ----------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    return text.replace("`", "")


def _options(plan: ShedJoin) -> str:
    return ", ".join(sorted(plan.hint.options)) or "none"


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _form(form: Form | None) -> str:
    if isinstance(form, Equality):
        return "null-safe equality" if form.null_safe else "equality"
    if isinstance(form, Band):
        return "band" if form.low is not None and form.high is not None else "half-open band"
    if isinstance(form, Overlap):
        return "set overlap"
    if isinstance(form, WeightedOverlap):
        return "weighted set overlap"
    if isinstance(form, Similarity):
        return "vectors"
    return "general"


def _kernel_text(kernel: Kernel) -> str:
    if isinstance(kernel, EqualityKernel):
        keys = ", ".join(
            f"{key.left.text} {'<=>' if key.null_safe else '='} {key.right.text}" for key in kernel.keys
        )
        return f"equality on {keys}"
    if isinstance(kernel, BandKernel):
        bands = [f"{b.left.text} - {b.right.text} in {_interval_text(b)}" for b in kernel.bands]
        return f"band on {', '.join(bands)}"
    if isinstance(kernel, SetKernel):
        sets = kernel.overlap
        sharing = f"{kernel.subset} shared item{'s' if kernel.subset > 1 else ''}"
        return f"postings on {sets.left.text}, {sets.right.text} by {sharing}, overlap >= {sets.least}"
    if isinstance(kernel, WeightedKernel):
        maps = kernel.overlap
        return f"postings on {maps.left.text}, {maps.right.text} by 1 shared key, product >= {maps.least:g}"
    if isinstance(kernel, VectorKernel):
        pair = kernel.similarity
        condition = f"{pair.measure.replace('_', ' ')} {pair.op} {pair.threshold:g}"
        return f"matrix product on {pair.left.text}, {pair.right.text}, {condition}"
    return "scan"


def _interval_text(band: Band) -> str:
    if band.left.type in ("timestamp", "timestamp_ntz"):
        low, high = (None if end is None else duration_text(int(end)) for end in (band.low, band.high))
    else:
        low, high = (None if end is None else f"{end:g}" for end in (band.low, band.high))
    return f"{'(-inf' if low is None else '[' + low}, {'inf)' if high is None else high + ']'}"


def _hop_text(hop: Hop) -> str:
    checks = f", checks={len(hop.checks)}" if hop.checks else ""
    return _kernel_text(hop.kernel) + checks


def _range_text(before: int | None, after: int | None) -> str:
    """Where the target's time may lie relative to the origin's."""
    low = "-inf" if before is None else duration_text(-before)
    high = "inf" if after is None else duration_text(after)
    return f"{low} .. {high}"


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]
