"""The two kinds of routers, as stages of a streaming join."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from sparkshed.engine.routing import Notebook, Packed, Routing, Sent
from sparkshed.planner.diffusion.aligned import AlignedRouter
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter, Path
from sparkshed.planner.diffusion.overhead import Flow
from sparkshed.planner.diffusion.plan import stages_of
from sparkshed.planner.streaming import Clock, StreamingPlan


class AlignedRouting(Routing):
    """Deals out the segments of a master, and lets all other rows follow them."""

    def __init__(self, plan: StreamingPlan, notebook: Notebook, clock: Clock) -> None:
        """Go on from the notes of the last micro-batch."""
        super().__init__(plan, notebook, clock)
        assert plan.hosts.router is not None
        length = plan.hosts.router.length
        self._router = AlignedRouter(self._ticks, plan.hosts.count, plan.hosts.master, length)
        if self._notes.table is not None:
            self._router.recall(self._notes.table)

    def _routed(self, packets: Sequence[Packed]) -> Iterator[Sent]:
        # Tasks deliver in any order, and segments get their hosts in that of their rows.
        found = sorted({(own.tick, own.stream) for own in packets if own.tick is not None})
        routes = {(tick, stream): self._router.route(stream, tick) for tick, stream in found}
        # Rows without a time are counted, or refused, by any host.
        anywhere = [(self._router.eras[-1].lane, 0)]
        for packet in packets:
            places = anywhere if packet.tick is None else routes[packet.tick, packet.stream]
            self._counts[packet.stream].kept += packet.rows * len(places)
            for lane, host in places:
                yield self._sent(packet, host, lane=lane)

    def _obey(self, told: Mapping[str, Any]) -> None:
        self._router.length = told["length"]
        self._router.measure(told["loads"], self._router.ticks)
        self._router.switch(told["master"])

    def _forget(self, tick: int) -> None:
        self._router.forget(tick)

    def _table(self) -> dict[str, Any]:
        return self._router.notes()

    def _places(self) -> list[tuple[int, int]]:
        return [(era.lane, 0) for era in self._router.eras]

    def _figures(self) -> dict[str, Any]:
        own = self._router
        return {"master": own.master, "length": own.length, "table": own.size}


class CoordinatedRouting(Routing):
    """Finds rows a place, and a path to where their partners are.

    Rows are kept in each of the stages in which they may be probed. On their paths they go through the stages
    one after another; a header says where they go next.
    """

    def __init__(self, plan: StreamingPlan, notebook: Notebook, clock: Clock) -> None:
        """Go on from the notes of the last micro-batch."""
        super().__init__(plan, notebook, clock)
        assert plan.hosts.router is not None
        self._orders = plan.hosts.router.orders
        self._router = CoordinatedRouter(self._ticks, plan.hosts.count, self._orders)
        if self._notes.table is not None:
            self._router.recall(self._notes.table)
        self._router.flow = None if self._notes.matches is None else matched(self._notes.matches)
        self._stages = stages_of(self._orders)

    def _routed(self, packets: Sequence[Packed]) -> Iterator[Sent]:
        timed = [packet for packet in packets if packet.tick is not None]
        paths = self._router.route([(own.stream, own.tick) for own in timed if own.tick is not None])
        for packet in packets:
            if packet.tick is None:
                # Rows without a time are counted, or refused, by any host.
                self._counts[packet.stream].kept += packet.rows
                yield self._sent(packet, 0, stage=min(self._stages[packet.stream]))
                continue
            path = paths[packet.stream, packet.tick]
            stages = self._stages[packet.stream]
            self._counts[packet.stream].kept += packet.rows * len(path.keepers) * len(stages)
            probing = path.hops[0].hosts if path.hops else []
            for stage, host in product(sorted(stages), path.keepers):
                if stage or host not in probing:
                    yield self._sent(packet, host, stage=stage)
            for host in probing:
                kept = 0 in stages and host in path.keepers
                yield self._sent(packet, host, header=self._header(packet.stream, path, host, kept=kept))

    def _header(self, stream: int, path: Path, host: int, *, kept: bool) -> str:
        order = [hop.target for hop in path.hops]
        first, *others = path.hops
        rest = [[[other, self._spans(runs)] for other, runs in sorted(hop.answers.items())] for hop in others]
        header = {"origin": stream, "order": order, "spans": self._spans(first.answers[host]), "next": rest}
        return json.dumps(header | {"kept": kept}, separators=(",", ":"))

    def _spans(self, runs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        length = self._ticks.length
        return [(first * length, (last + 1) * length - 1) for first, last in runs]

    def _obey(self, told: Mapping[str, Any]) -> None:
        self._router.measure(told["loads"], sum(self._router.loads.given))
        self._notes.matches = told["matches"]
        self._router.flow = matched(told["matches"])

    def _forget(self, tick: int) -> None:
        self._router.forget(tick)

    def _table(self) -> dict[str, Any]:
        return self._router.notes()

    def _places(self) -> list[tuple[int, int]]:
        return [(0, stage) for stage in range(len(self._plan.spec.streams) - 1)]

    def _figures(self) -> dict[str, Any]:
        return {"table": self._router.size}


def routing_of(plan: StreamingPlan, notebook: Notebook, clock: Clock) -> Routing:
    """The router of a plan."""
    assert plan.hosts.router is not None
    kind = AlignedRouting if plan.hosts.router.kind == "atr" else CoordinatedRouting
    return kind(plan, notebook, clock)


def matched(matches: Sequence[Sequence[float]]) -> Flow:
    """Streams of which nothing matters but how many rows of another one a row matches."""
    ones = (1.0,) * len(matches)
    return Flow(ones, (ones,) * len(matches), tuple(map(tuple, matches)))
