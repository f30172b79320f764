"""The stage in front of the hosts of a streaming join: it says where rows go, and looks into few of them.

    packers ──(stream, tick, blob)──▶ router ──(lane, host, blob)──▶ hosts
    driver  ──── loads, T, master ──▶   │     ──── watermark, decision ──▶
                                        ▼
                                  routing table

There is one router for a join, so that what it decides is the same for all rows. It keeps its table in
Spark's state, and does what follows from that, the micro-batch and what the driver told: a micro-batch that
is repeated is routed alike.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from sparkshed.engine.host import refuse_others
from sparkshed.engine.kinds import DECISION, TOLD
from sparkshed.engine.timing import NEVER, times_of
from sparkshed.engine.wire import from_blob, to_blob
from sparkshed.planner.diffusion.ticks import Ticks
from sparkshed.planner.streaming import Clock, Report, StreamingPlan


class Packed(NamedTuple):
    """Rows of a stream that belong to one tick; None if they have no time."""

    stream: int
    tick: int | None
    blob: bytes
    rows: int


class Sent(NamedTuple):
    """A blob on its way to a host.

    Attributes:
        host: Its number.
        stream: Says what is in it.
        blob: Rows, or what else it is.
        stage: Where the host finds partners for it, if there are several places.
        header: What is to be done with it, as JSON; empty if it is only kept.
    """

    host: int
    stream: int
    blob: bytes
    stage: int = 0
    header: str = ""


class Notebook(Protocol):
    """Where a router keeps its table."""

    def load(self) -> bytes | None:
        """What was saved last; None before that."""

    def save(self, notes: bytes) -> None:
        """Replace it."""


def packed(table: pa.Table, stream: int, plan: StreamingPlan) -> Iterator[Packed]:
    """The rows of a stream, tick by tick."""
    assert plan.hosts.router is not None
    if not table.num_rows:
        return
    times = times_of(table, plan.spec.streams[stream])
    ticks = times // plan.hosts.router.tick
    ticks[times == NEVER] = NEVER
    if ticks.min() == ticks.max():
        found: Iterable[tuple[int, pa.Table]] = [(int(ticks[0]), table)]
    else:
        order = ticks.argsort(kind="stable")
        ordered, ticks = table.take(pa.array(order)), ticks.take(order)
        begins = np.flatnonzero(np.diff(ticks, prepend=ticks[:1] - 1))
        ends = [*begins[1:].tolist(), len(ticks)]
        found = [
            (int(ticks[begin]), ordered.slice(begin, end - begin))
            for begin, end in zip(begins.tolist(), ends, strict=True)
        ]
    for tick, rows in found:
        yield Packed(stream, None if tick == NEVER else tick, to_blob(rows.combine_chunks()), rows.num_rows)


@dataclass(slots=True)
class _Notes:
    """What a router knows between micro-batches.

    Attributes:
        marks: Of the plan that wrote it.
        table: Its routing table.
        watermark: Spark's last one.
        decision: The last decision that hosts were told.
        lanes: The lanes that know it.
        told: Number of the last thing that the driver told it.
        matches: How many rows of each stream match one of another, as the driver told it.
        shares: What a copy of a row of each stream counts for.
    """

    marks: dict[str, str]
    table: dict[str, Any] | None = None
    watermark: int | None = None
    decision: dict[str, Any] | None = None
    lanes: list[int] = field(default_factory=list)
    told: int = 0
    matches: list[list[float]] | None = None
    shares: list[float] | None = None


@dataclass(slots=True)
class _Counts:
    """One stream in a micro-batch.

    Attributes:
        arrived: Its rows.
        late: Those that came too late.
        kept: Copies that hosts keep.
        sent: Copies that were sent, those that are looked up only, too.
    """

    arrived: int = 0
    late: int = 0
    kept: int = 0
    sent: int = 0

    def share(self, former: float) -> float:
        """What a copy counts for; as before, if there are none."""
        return (self.arrived - self.late) / self.kept if self.kept else former


class Routing(ABC):
    """One micro-batch of a router."""

    def __init__(self, plan: StreamingPlan, notebook: Notebook, clock: Clock) -> None:
        """Go on from the notes of the last micro-batch.

        Raises:
            CheckpointError: They were written by another plan.
        """
        own = plan.hosts.router
        assert own is not None
        self._plan, self._notebook, self._clock = plan, notebook, clock
        self._began = clock()
        known = notebook.load()
        self._notes = _Notes(plan.marks) if known is None else _Notes(**json.loads(known))
        refuse_others(self._notes.marks, plan.marks)
        self._ticks = Ticks(own.tick, plan.spec.bounds)
        self._counts = [_Counts() for _ in plan.spec.streams]
        self._bytes = [0] * plan.hosts.count

    def process(
        self, rows: Iterable[Packed], told: Mapping[str, Any] | None, watermark: int | None
    ) -> Iterator[Sent]:
        """Send rows to their hosts, and tell all of them what they must know.

        Args:
            rows: Of the micro-batch.
            told: What the driver decided, for the router and for the hosts; None if that is nothing new.
            watermark: Spark's watermark in microseconds; None before there is one.
        """
        notes = self._notes
        former, notes.watermark = notes.watermark, watermark
        own = self._plan.watermark(former, watermark)
        if told is not None and told["routing"] is not None:
            self._follow(told["routing"])
        if own is not None:
            self._forget(self._ticks.of(own))
        yield from self._routed([timely for packet in rows if (timely := self._in_time(packet, own))])
        yield from self._told(own, renewed=self._take(told))
        notes.table = self._table()
        self._notebook.save(json.dumps(self._notes_as_json(), separators=(",", ":")).encode())

    @abstractmethod
    def _routed(self, packets: Sequence[Packed]) -> Iterator[Sent]:
        """The rows on their way to their hosts."""

    @abstractmethod
    def _obey(self, told: Mapping[str, Any]) -> None:
        """Do something new that the driver says."""

    @abstractmethod
    def _forget(self, tick: int) -> None:
        """No row before a tick will come any more."""

    @abstractmethod
    def _table(self) -> dict[str, Any]:
        """The routing table, to be written down."""

    @abstractmethod
    def _places(self) -> list[tuple[int, int]]:
        """The lanes and stages in which hosts are to be told what they must know."""

    @abstractmethod
    def _figures(self) -> dict[str, Any]:
        """What there is to say of the table."""

    def _notes_as_json(self) -> dict[str, Any]:
        own = self._notes
        return {name: getattr(own, name) for name in own.__slots__}

    def _follow(self, told: Mapping[str, Any]) -> None:
        """Do what the driver says, if that is new."""
        if told["number"] > self._notes.told:
            self._notes.told = told["number"]
            self._obey(told)

    def _in_time(self, packet: Packed, watermark: int | None) -> Packed | None:
        """The rows that are not later than the watermark; few blobs must be opened for that."""
        counts = self._counts[packet.stream]
        counts.arrived += packet.rows
        if watermark is None or packet.tick is None:
            return packet
        last = self._ticks.of(watermark)
        if packet.tick > last:
            return packet
        if packet.tick < last:
            counts.late += packet.rows
            return None
        table = from_blob(packet.blob)
        timely = times_of(table, self._plan.spec.streams[packet.stream]) >= watermark
        left = int(timely.sum())
        counts.late += packet.rows - left
        if left == packet.rows:
            return packet
        return packet._replace(blob=to_blob(table.filter(pa.array(timely))), rows=left) if left else None

    def _sent(self, packet: Packed, host: int, *, lane: int = 0, stage: int = 0, header: str = "") -> Sent:
        self._bytes[host] += len(packet.blob)
        self._counts[packet.stream].sent += packet.rows
        return Sent(lane * self._plan.hosts.count + host, packet.stream, packet.blob, stage, header)

    def _take(self, told: Mapping[str, Any] | None) -> bool:
        """Keep a new decision for the hosts, for those also that have nothing to do yet."""
        notes, decision = self._notes, None if told is None else told["decision"]
        last = None if notes.decision is None else notes.decision["version"]
        if decision is None or (last is not None and decision["version"] <= last):
            return False
        notes.decision = decision
        return True

    def _told(self, watermark: int | None, *, renewed: bool) -> Iterator[Sent]:
        """What every host must know, whether it has rows or not."""
        notes, count = self._notes, self._plan.hosts.count
        places = self._places()
        lanes = {lane for lane, _ in places}
        ignorant = lanes if renewed else lanes - set(notes.lanes)
        # Lanes that are left hear of the watermark once more, by which all of their rows are gone.
        left = [(lane, 0) for lane in sorted(set(notes.lanes) - lanes)]
        notes.lanes = sorted(lanes)
        former = notes.shares or [1.0] * len(self._counts)
        notes.shares = [own.share(last) for own, last in zip(self._counts, former, strict=True)]
        told = {"watermark": watermark, "shares": notes.shares, "counts": None}
        plain, decision = json.dumps(told).encode(), json.dumps({"decision": notes.decision}).encode()
        counted = {
            **told,
            "counts": [[own.arrived, own.late] for own in self._counts],
            "routing": self._report(),
        }
        for place, host in product([*places, *left], range(count)):
            lane, stage = place
            number = lane * count + host
            if notes.decision is not None and lane in ignorant:
                yield Sent(number, DECISION, decision, stage)
            first = host == 0 and place == places[0]
            yield Sent(number, TOLD, json.dumps(counted).encode() if first else plain, stage)

    def _report(self) -> dict[str, Any]:
        """What the driver must know to tell more."""
        return self._figures() | {
            "sent": sum(own.sent for own in self._counts),
            "bytes": self._bytes,
            "seconds": self._clock() - self._began,
        }


def as_told(report: Report, told: Mapping[str, Any]) -> None:
    """Let copies of a row count as parts of one; what arrived is counted by the router.

    Args:
        report: Of a host; it is changed.
        told: What the router told the host.
    """
    arrived = told["counts"] or [(0, 0)] * len(report.streams)
    for own, share, (rows, late) in zip(report.streams, told["shares"], arrived, strict=True):
        for kind in ("shed", "expired", "evicted"):
            own[kind] = own[kind] * share
        own["arrived"], own["late"] = rows, late
        own["joined"] = rows - late - own["null_time"] - own["shed"]
    report.routing = told.get("routing")
