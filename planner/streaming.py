"""The plan of a streaming join: hosts, what each of them needs, and what they tell the driver."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from sparkshed.planner.completeness import Completeness
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.diffusion.plan import RouterPlan, stages_of
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.physical import JoinSpec, Loads
from sparkshed.planner.shedding import Shedding
from sparkshed.planner.wire import (
    configuration_from_json,
    configuration_to_json,
    tally_from_json,
    tally_to_json,
)


@dataclass(frozen=True, slots=True)
class Hosts:
    """Who joins what.

    With a key that is equal in all streams, each host has the rows of some keys. Otherwise each has some
    segments of the master stream, dealt out in turn, and all rows of the others, so that every result is
    found by exactly one host: that of its master row::

        master   |0|1|0|1|0|1|      host of each segment
        others   to all hosts

    With a router, all of that changes while the join runs, as hosts turn out to be busy: see
    :mod:`sparkshed.planner.diffusion`.

    Attributes:
        count: Number of hosts.
        keys: The input column of each stream that is equal in all of them; None without one.
        master: Number of the master stream.
        segment: Length of its segments, in microseconds.
        router: What a router starts from; None if rows go where they always do.
    """

    count: int
    keys: tuple[int, ...] | None = None
    master: int = 0
    segment: int = 1
    router: RouterPlan | None = None

    @property
    def routing(self) -> str:
        """The routing in the hint's words."""
        if self.router is not None:
            return self.router.kind
        return "none" if self.count == 1 else "dealt" if self.keys is None else "hash"

    @property
    def lanes(self) -> int:
        """Parts of each host that know nothing of each other."""
        return 1 if self.router is None else self.router.lanes

    @property
    def mark(self) -> str:
        """What must not change while a checkpoint is in use."""
        own = asdict(self)
        if self.router is None:
            # As it was before there were routers.
            del own["router"]
        else:
            # Orders may change as long as rows are kept where they were.
            own["router"]["orders"] = [sorted(stages) for stages in stages_of(self.router.orders)]
        # Segments are dealt out in turn only where nobody asked for anything else.
        asked = "auto" if self.routing == "dealt" else self.routing
        return f"{asked}:{self.count} {_mark(own)}"


@dataclass(frozen=True, slots=True)
class StreamingPlan:
    """Everything that a host needs; picklable, and the same on every one.

    Attributes:
        spec: What is joined, and how.
        hosts: Who joins what.
        shedding: What is shed; None for the exact join. Its budget is 1 where it follows the load.
        follows: Whether z follows the load.
        static: Whether each stream is a table that is there from the start.
        regain: Microseconds by which Spark's watermark was held back for what follows the join.
        expires: Whether all streams have a watermark, so that rows leave the windows.
        waits: Whether a stream comes out of an operator that itself waits for the watermark, so that its rows
            are as old as that when they come.
        filters: Conditions on single streams.
        loads: What the busiest host was expected to do with each routing, if there was a choice.
    """

    spec: JoinSpec
    hosts: Hosts
    shedding: Shedding | None
    follows: bool
    static: tuple[bool, ...]
    regain: int = 0
    expires: bool = True
    waits: bool = False
    filters: tuple[tuple[str, ...], ...] = ()
    loads: Loads = ()

    @property
    def steered(self) -> bool:
        """Whether the driver decides how much work is done."""
        return self.shedding is not None and self.shedding.adapts

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """The orders to start with."""
        return self.spec.orders if self.shedding is None else self.shedding.configuration.orders

    @property
    def operators(self) -> int:
        """Operators with state that the join is made of: a router, and the stages of its hosts."""
        if self.hosts.router is None:
            return 1
        return 2 if self.hosts.router.kind == "atr" else len(self.spec.streams)

    @property
    def of_hosts(self) -> StreamingPlan:
        """The plan as hosts have it: where a router tells them the watermark, it is the join's own."""
        return self if self.hosts.router is None else replace(self, regain=0, waits=False)

    def watermark(self, former: int | None, now: int | None) -> int | None:
        """The watermark of the join, from Spark's last two."""
        if not self.expires:
            return None
        if self.waits:
            # Rows that waited for this watermark are as old as that; those of the last one are late.
            return former
        return None if now is None else now + self.regain

    @property
    def marks(self) -> dict[str, str]:
        """What must not change while a checkpoint is in use, by a word for it."""
        spec = self.spec
        beside = [(own.bounds, _conditions(own)) for own in spec.beside]
        return {
            "filters": _mark(self.filters),
            "streams": _mark([(s.name, s.columns, s.types, s.time) for s in spec.streams]),
            "time bounds": _mark(spec.bounds),
            "join conditions": _mark(_conditions(spec)),
            "output columns": _mark(spec.output),
            "basic window": _mark(spec.basic),
            "hosts": self.hosts.mark,
            "strategy": _mark(None if self.shedding is None else self.shedding.strategy),
            "memory": _mark(None if self.shedding is None else self.shedding.buffering),
            "rows of a window": _mark(spec.rows),
            "joins that share the memory": _mark(beside or None),
        }


def _conditions(spec: JoinSpec) -> list[str]:
    """What a join compares, in words that do not depend on its orders."""
    hops = spec.hops.values() or [hop for direction in spec.directions for hop in direction.hops]
    checks = {check.text for hop in hops for check in hop.checks}
    return sorted(checks | {str(form) for hop in hops for form in hop.kernel.forms})


def _mark(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


#: The mark of what a plan does not have: a limit to its memory, joins beside its own.
NO_LIMIT = _mark(None)


@dataclass(frozen=True, slots=True)
class Decision:
    """What the driver tells all hosts: a configuration, and what led to it.

    Attributes:
        version: Later decisions have higher ones.
        configuration: What hosts do from the next micro-batch on.
        figures: z, β and costs, for whoever watches.
        most: Effort that there is time for, for each row of a batch; a host that is about to spend more
            sheds more on its own. None if there is no limit.
    """

    version: int
    configuration: Configuration
    figures: Mapping[str, float] = field(default_factory=dict)
    most: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As lists and numbers."""
        return {
            "version": self.version,
            "configuration": configuration_to_json(self.configuration),
            "figures": dict(self.figures),
            "most": self.most,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Decision:
        """The decision again."""
        configuration = configuration_from_json(data["configuration"])
        return Decision(data["version"], configuration, data["figures"], data.get("most"))


@dataclass(slots=True)
class Report:
    """What one host did in one micro-batch.

    Attributes:
        host: Number of the host.
        version: Of the decision that it followed; 0 if it planned for itself.
        throttle: z that it worked with, on average where it had to shed more than it was told.
        streams: Counts of rows by stream: arrived, late, null_time, shed, joined, expired, evicted.
        work: Work units of each direction.
        effort: What the work and the results cost, in comparisons.
        completeness: Results delivered and missed.
        tally: What was learned.
        rows: Rows that its windows hold.
        memory: What they may hold, in rows or in bytes; 0 without a limit.
        drop: The probability with which rows are sampled out in front of them.
        state_bytes: Size of its windows in the state store.
        reads: Blobs that were read from the state store.
        read_bytes: Their size.
        seconds: Time that the engine took.
        joining: Part of it in which rows were joined, and results handed on.
        figures: Those of the decision.
        received: Rows that came, copies included.
        routing: What the router says of the micro-batch, on one of the hosts.
        met: Origins and targets of hops, and partial results that came to each and left it, where these
            travel from host to host.
    """

    host: int
    version: int
    throttle: float
    streams: list[dict[str, float]]
    work: list[int]
    effort: float
    completeness: Completeness
    tally: Tally
    rows: int = 0
    memory: int = 0
    drop: float = 0.0
    state_bytes: int = 0
    reads: int = 0
    read_bytes: int = 0
    seconds: float = 0.0
    joining: float = 0.0
    figures: Mapping[str, float] = field(default_factory=dict)
    received: int = 0
    routing: Mapping[str, Any] | None = None
    met: list[list[int]] = field(default_factory=list)

    def skipped(self, stream: int) -> float:
        """Work of new rows of a stream that was left out, as far as it is known what all of it is."""
        if self.throttle >= 1:
            # What all of it would be was learned from other rows.
            return 0.0
        done, full = float(self.work[stream]), self.figures.get(full_name(stream))
        whole = done / self.throttle if full is None else full * self.tally.directions[stream].rows
        return max(0.0, whole - done)

    def to_json(self) -> dict[str, Any]:
        """As lists and numbers."""
        plain = {own.name: getattr(self, own.name) for own in fields(self)}
        return {
            **plain,
            "completeness": asdict(self.completeness),
            "tally": tally_to_json(self.tally),
            "figures": dict(self.figures),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Report:
        """The report again."""
        own = dict(data)
        own["completeness"] = Completeness(**own["completeness"])
        own["tally"] = tally_from_json(own["tally"])
        return Report(**own)


def full_name(stream: int) -> str:
    """Among the figures of a decision: the full work of a row of a stream."""
    return f"full_{stream}"


Clock = Callable[[], float]
