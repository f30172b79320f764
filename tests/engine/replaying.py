"""Memory-limited windows by their definition: one row at a time, plain lists, and a minimum over all rows."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from dataclasses import replace
from typing import Any

from engine.build import World
from engine.naive import naive_join, time_of
from sparkshed.engine.eviction.draws import Draws
from sparkshed.planner.buffering import Buffering
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.predicate import Equality

Row = tuple[int, int]


def arrivals(spec: JoinSpec, world: World) -> list[tuple[int, int, int]]:
    """Time, stream and number of every row, in the order in which they arrive."""
    return sorted(
        (time, stream, number)
        for stream, rows in enumerate(world.rows)
        for number, row in enumerate(rows)
        if (time := time_of(spec, stream, row)) is not None
    )


def longest(retentions: list[int | None]) -> int | None:
    """How long a row is of use to any join; None for ever."""
    return None if None in retentions else max(r for r in retentions if r is not None)


class Naive:
    """What is left of the results when rows arrive one by one; other joins of the same rows may be beside it.

    Of several joins, results have the number of theirs at the end.
    """

    def __init__(
        self, spec: JoinSpec, world: World, buffering: Buffering, seed: int, beside: tuple[World, ...] = ()
    ) -> None:
        self.spec, self.world, self.buffering = spec, world, buffering
        self.joins = [(replace(spec, beside=()), world), *zip(spec.beside, beside, strict=True)]
        self.streams = len(spec.streams)
        reserve = int(buffering.reserve * buffering.limit)
        self.limit, self.most = buffering.limit - reserve, reserve
        self.active: list[dict[str, Any]] = []
        self.reserve: list[dict[str, Any]] = []
        self.arrived = [0] * self.streams
        self.chance, self.lost, self.coins = 1.0, 0, Draws((seed, 0))
        self.draws = Draws((seed, 1))
        self.clock = 0.0
        self.levels: Counter[Any] = Counter()
        self.ranking: dict[Any, list[float]] = {}
        self.due = 0
        self.values: Counter[Any] = Counter()
        self.evicted = 0
        each = [own.retentions for own, _ in self.joins]
        self.retentions = retentions = [longest(list(of_stream)) for of_stream in zip(*each, strict=True)]
        self.steps = [0 if r is None else max(1, r // 64) for r in retentions]
        self.results = [[0] * 64 for _ in retentions]
        self.lived = [[0.0] * 64 for _ in retentions]
        self.best, self.looked = [0] * self.streams, None

    def run(self) -> Counter[Any]:
        spec, world = self.spec, self.world
        order = arrivals(spec, world)
        rank = {(stream, number): place for place, (_, stream, number) in enumerate(order)}
        numbers = list(range(self.streams))
        ids = [{row[world.ids[s]]: n for n, row in enumerate(world.rows[s])} for s in numbers]
        by_last: dict[Row, list[tuple[int, tuple[Row, ...]]]] = {}
        for join, (own_spec, own_world) in enumerate(self.joins):
            for found, count in naive_join(own_spec, own_world.predicates, world.rows, world.ids).items():
                assert count == 1
                members = tuple((s, ids[s][found[s]]) for s in numbers)
                by_last.setdefault(max(members, key=rank.__getitem__), []).append((join, members))
        emitted: Counter[Any] = Counter()
        for seq, (time, stream, number) in enumerate(order):
            held = {row["row"]: row for row in self.active + self.reserve}
            own = 0
            for join, members in by_last.get((stream, number), ()):
                partners = [member for member in members if member != (stream, number)]
                if all(partner in held for partner in partners):
                    own += 1
                    tag = (join,) if len(self.joins) > 1 else ()
                    emitted[tuple(world.rows[s][n][world.ids[s]] for s, n in members) + tag] += 1
                    for partner in partners:
                        self.credit(held[partner], seq, time)
            self.count(stream, number)
            self.end(time)
            self.enter(seq, time, stream, number, own)
            assert len(self.active) <= self.limit and len(self.reserve) <= self.most
            if seq + 1 >= self.due:
                self.refresh(time)
                self.due = seq + 1 + max(8, len(self.active) // 32)
        return emitted

    def group(self, stream: int) -> int:
        return 0 if self.buffering.unified else stream

    def credit(self, row: dict[str, Any], seq: int, time: int) -> None:
        policy = self.buffering.policy
        if policy == "lru":
            row["priority"] = seq
        elif policy == "lfu" or (policy == "gdj" and self.buffering.method != 2):
            row["priority"] += 1
        elif policy == "gdj":
            ranking = self.ranking.get(self.group(row["row"][0]), [0.0])
            row["priority"] += (bisect.bisect_right(ranking, row["priority"]) + 1) / (len(ranking) + 1)
        elif policy == "age" and self.steps[row["row"][0]]:
            stream = row["row"][0]
            self.results[stream][min(63, (time - row["time"]) // self.steps[stream])] += 1

    def keys(self, world: World, stream: int, number: int) -> list[tuple[int, int, Any]]:
        """For each stream that is joined by equality: the key, None where it can equal nothing."""
        found: dict[int, list[tuple[int, int, bool]]] = {}
        for predicate in world.predicates:
            form = predicate.form
            if isinstance(form, Equality):
                sides = [(form.left.stream, form.left.column), (form.right.stream, form.right.column)]
                for (one, mine), (other, theirs) in (sides, sides[::-1]):
                    if one == stream:
                        found.setdefault(other, []).append((mine, theirs, form.null_safe))
        keys = []
        for other, columns in sorted(found.items()):
            pairs = sorted(set(columns), key=lambda c: (c[0], c[1]) if stream < other else (c[1], c[0]))
            values = [self.world.rows[stream][number][mine] for mine, _, _ in pairs]
            null = any(v is None and not safe for v, (_, _, safe) in zip(values, pairs, strict=True))
            plain = tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in values)
            keys.append((other, stream, None if null else plain))
        return keys

    def count(self, stream: int, number: int) -> None:
        self.arrived[stream] += 1
        for join, (_, world) in enumerate(self.joins):
            for other, own, key in self.keys(world, stream, number):
                if key is not None:
                    self.values[join, own, other, key] += 1

    def priority(self, row: dict[str, Any]) -> float:
        if self.buffering.policy != "prob":
            return row["priority"]
        return sum(
            math.prod(self.values[join, other, own, key] for other, own, key in self.keys(world, *row["row"]))
            for join, (_, world) in enumerate(self.joins)
        )

    def end(self, time: int) -> None:
        for rows in (self.active, self.reserve):
            for row in rows[:]:
                retention = self.retentions[row["row"][0]]
                if retention is not None and time - row["time"] > retention:
                    rows.remove(row)

    def enter(self, seq: int, time: int, stream: int, number: int, own: int) -> None:
        row = {"row": (stream, number), "seq": seq, "time": time}
        while len(self.active) + 1 > self.limit:
            group = self.fullest(self.group(stream))
            rows = [r for r in self.active if self.group(r["row"][0]) == group]
            victim = min(rows, key=lambda r: (self.priority(r), r["seq"]))
            if self.buffering.policy == "age" and victim["priority"] > time:
                self.lose(row)
                return
            self.active.remove(victim)
            if self.buffering.policy == "rand":
                self.clock = max(self.clock, victim["priority"])
            self.lose(victim)
        row["priority"] = {
            "fifo": lambda: seq,
            "lru": lambda: seq,
            "lfu": lambda: own,
            "rand": lambda: self.clock - math.log1p(-self.draws.next()),
            "gdj": lambda: self.levels[self.group(stream)] + (own if self.buffering.own else 0),
            "age": lambda: time + self.best[stream],
            "prob": lambda: 0,
        }[self.buffering.policy]()
        self.active.append(row)

    def fullest(self, group: int) -> int:
        if self.buffering.unified:
            return 0
        quotas = [self.limit * count / sum(self.arrived) for count in self.arrived]
        sizes = [sum(row["row"][0] == s for row in self.active) for s in range(self.streams)]
        if sizes[group] and sizes[group] + 1 > quotas[group]:
            return group
        return max((s for s in range(self.streams) if sizes[s]), key=lambda s: (sizes[s] - quotas[s], -s))

    def lose(self, row: dict[str, Any]) -> None:
        self.evicted += 1
        if self.most >= 1:
            self.lost += 1
            if self.lost * self.chance > self.most:
                self.lost = 0
                if len(self.reserve) * 2 < self.most:
                    self.chance = min(1.0, 2 * self.chance)
            if self.chance == 1 or self.coins.next() < self.chance:
                self.reserve.append(row)
        while len(self.reserve) > self.most:
            self.chance /= 2
            self.lost = 0
            by_arrival = sorted(self.reserve, key=lambda r: r["seq"])
            gone = [r["row"] for r in by_arrival if self.coins.next() < 0.5]
            self.reserve = [r for r in self.reserve if r["row"] not in gone]

    def refresh(self, time: int) -> None:
        for group in range(1 if self.buffering.unified else self.streams):
            own = sorted(
                r["priority"] for r in self.active if self.group(r["row"][0]) == group and "priority" in r
            )
            if own:
                self.levels[group] = own[min(len(own) - 1, int((self.buffering.percentile or 0) * len(own)))]
                self.ranking[group] = own
        passed = 0 if self.looked is None else time - self.looked
        self.looked = time
        for row in self.active + self.reserve:
            stream = row["row"][0]
            if self.steps[stream]:
                step = self.steps[stream]
                self.lived[stream][min(63, (time - row["time"]) // step)] += passed / step
        for stream, step in enumerate(self.steps):
            if step and sum(self.results[stream]) >= 64:
                worth, total = [], 0.0
                for point in range(64):
                    total += self.results[stream][point] / max(1.0, self.lived[stream][point])
                    worth.append(total / (point + 1))
                self.best[stream] = step * (max(range(64), key=worth.__getitem__) + 1)
