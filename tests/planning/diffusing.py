"""Hosts that join by hand what routers send them, and the join that everything is compared with."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

from sparkshed.planner.diffusion.aligned import AlignedRouter
from sparkshed.planner.diffusion.coordinated import CoordinatedRouter
from sparkshed.planner.diffusion.ticks import Bounds, Ticks

FAR = 10**12


@dataclass(frozen=True, slots=True)
class Row:
    """A row; `number` tells rows apart."""

    stream: int
    time: int
    value: int
    batch: int
    number: int

    @property
    def arrival(self) -> tuple[int, int, int]:
        return self.batch, self.time, self.stream


def closed(bounds: list[list[int | None]]) -> list[list[int | None]]:
    m = len(bounds)
    for k, i, j in product(range(m), repeat=3):
        one, two, own = bounds[i][k], bounds[k][j], bounds[i][j]
        if one is not None and two is not None and (own is None or one + two < own):
            bounds[i][j] = one + two
    return bounds


@dataclass(slots=True)
class World:
    """Streams, cut into batches that come a little out of order, with a watermark before each."""

    bounds: Bounds
    batches: list[list[Row]] = field(default_factory=list)
    watermarks: list[int] = field(default_factory=list)

    @staticmethod
    def random(rng: Random, *, endless: bool = False) -> World:
        m = rng.choice([2, 2, 3, 3, 4])
        while True:
            bounds: list[list[int | None]] = [
                [0 if i == k else rng.choice([0, 3, 10, 10, 25]) for k in range(m)] for i in range(m)
            ]
            if rng.random() < 0.2:
                i, k = rng.sample(range(m), 2)
                bounds[i][k] = -2
            if endless:
                own = rng.randrange(m)
                for k in range(m):
                    if k != own:
                        bounds[own][k] = None
            closed(bounds)
            if all(bounds[i][i] is not None and bounds[i][i] >= 0 for i in range(m)):
                break
        world, late = World(bounds), rng.choice([0, 5, 20])
        values, clock, number = rng.choice([1, 1, 2]), 0, 0
        rates = [rng.choice([1, 3, 6] if m < 4 else [1, 2]) for _ in range(m)]
        # Clocks that are wrong by years, before there is a watermark and after it.
        wrong, unmarked = rng.choice([0.0, 0.0, 0.1]), rng.choice([0, 3, 9])
        for batch in range(rng.randrange(1, 10)):
            world.watermarks.append(-FAR * 2 if batch < unmarked else clock - late)
            step = rng.choice([1, 5, 10, 20, 100])
            rows = []
            for stream in range(m):
                for _ in range(rng.randrange(rates[stream] + 1)):
                    time = rng.randrange(max(0, clock - late), clock + step)
                    if rng.random() < wrong:
                        time += rng.choice([-FAR, FAR]) if batch < unmarked else FAR
                    rows.append(Row(stream, time, rng.randrange(values), batch, number))
                    number += 1
            clock += step
            world.batches.append(rows)
        return world

    @property
    def rows(self) -> list[Row]:
        return [row for batch in self.batches for row in batch]

    def matches(self, one: Row, two: Row) -> bool:
        if one.value != two.value:
            return False
        for a, b in ((one, two), (two, one)):
            bound = self.bounds[a.stream][b.stream]
            if bound is not None and a.time - b.time > bound:
                return False
        return True

    def extended(self, partials: Iterable[tuple[Row, ...]], rows: Sequence[Row]) -> list[tuple[Row, ...]]:
        return [
            (*own, row) for own in partials for row in rows if all(self.matches(row, other) for other in own)
        ]

    def joined(self, rows: Iterable[Row]) -> Counter:
        """All results of some rows."""
        streams: dict[int, list[Row]] = defaultdict(list)
        for row in rows:
            streams[row.stream].append(row)
        partials: list[tuple[Row, ...]] = [()]
        for stream, _ in enumerate(self.bounds):
            partials = self.extended(partials, streams[stream])
        return Counter(tuple(row.number for row in own) for own in partials)

    def retention(self, stream: int) -> int | None:
        own = [row[stream] for other, row in enumerate(self.bounds) if other != stream]
        return None if None in own else max(own)


def by_aligned_hosts(world: World, ticks: Ticks, router: AlignedRouter, rng: Random) -> Counter:
    """What all hosts find together, while masters, lengths and loads change."""
    windows: dict[tuple[int, int], list[Row]] = defaultdict(list)
    found: Counter = Counter()
    for rows, watermark in zip(world.batches, world.watermarks, strict=True):
        router.forget(ticks.of(watermark))
        if rng.random() < 0.4:
            router.switch(rng.randrange(len(world.bounds)))
        if rng.random() < 0.4:
            router.length = rng.choice([1, 2, 7, 30])
        if rng.random() < 0.4:
            router.measure([rng.random() for _ in range(len(router.loads))], rng.random() * 10)
        if rng.random() < 0.3:
            notes = router.notes()
            router = AlignedRouter(ticks, len(router.loads), 0, 1)
            router.recall(notes)
        arrived = defaultdict(list)
        for row in sorted(rows, key=lambda own: rng.random()):
            assert row.time >= watermark
            for place in router.route(row.stream, ticks.of(row.time)):
                arrived[place].append(row)
        for place, new in arrived.items():
            kept = []
            for row in windows[place]:
                retention = world.retention(row.stream)
                if retention is None or row.time >= watermark - retention:
                    kept.append(row)
            found += world.joined([*kept, *new]) - world.joined(kept)
            windows[place] = [*kept, *new]
    return found


def by_coordinated_hosts(world: World, ticks: Ticks, router: CoordinatedRouter, rng: Random) -> Counter:
    """What all hosts find together, hop by hop."""
    kept: dict[tuple[int, int], list[Row]] = defaultdict(list)
    found: Counter = Counter()
    for rows, watermark in zip(world.batches, world.watermarks, strict=True):
        router.forget(ticks.of(watermark))
        if rng.random() < 0.4:
            router.measure([rng.random() for _ in range(len(router.loads))], rng.random() * 10)
        if rng.random() < 0.3:
            notes, fresh = router.notes(), CoordinatedRouter(ticks, len(router.loads), router._orders)
            fresh.recall(notes)
            router = fresh
        paths = router.route([(row.stream, ticks.of(row.time)) for row in rows])
        for row in rows:
            for host in paths[row.stream, ticks.of(row.time)].keepers:
                kept[host, row.stream].append(row)
        for row in rows:
            partials: list[tuple[Row, ...]] = [(row,)]
            hops = paths[row.stream, ticks.of(row.time)].hops
            for hop in hops:
                further = []
                for host, answered in hop.answers.items():
                    there = [
                        own
                        for own in kept[host, hop.target]
                        if own.arrival < row.arrival
                        and any(first <= ticks.of(own.time) <= last for first, last in answered)
                    ]
                    further += world.extended(partials, there)
                partials = further
            for own in partials if hops else ():
                ordered = sorted(own, key=lambda member: member.stream)
                found[tuple(member.number for member in ordered)] += 1
    return found
