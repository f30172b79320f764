"""The buffer: arrivals of a micro-batch one by one, and who has to leave for each of them.

    for each arrival        its results, with partners that are still there, are emitted and give credit
                            rows out of reach in time no longer take part
                            while there is no room: first those go, then the row with the lowest priority
                            it enters

All results of the micro-batch are known by then, so that is all there is to do; and it makes no difference
where micro-batches are cut.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np

from sparkshed.engine.arrays import Bools, Ints
from sparkshed.engine.eviction.draws import Draws
from sparkshed.engine.eviction.meetings import Meetings, all_there
from sparkshed.engine.eviction.policy import Arrivals, Policy
from sparkshed.engine.eviction.ranks import Heaps
from sparkshed.engine.eviction.reserve import Reserve
from sparkshed.engine.eviction.slots import ACTIVE, GONE, NEVER, PAST, RESERVED, Slots

#: Rows of streams are counted over so many times the rows that the buffer holds, to divide it among them.
_COUNTED = 64
#: While as many rows arrive as there is room for, the room that is used changes by this much at most, in the
#: logarithm.
_SPEED = 0.5
#: The share of the room that is used at least.
_LEAST = 1 / 16


class Buffer:
    """Rows of all streams, as many as the limit allows, by the rules of a policy.

    Where work is limited, too, it may be better to hold fewer: rows that are there are compared with others,
    and what they yield may be less than the same work brings elsewhere. What work is worth is the `price`,
    what the next unit of it would bring over what one brings on average. Rows that promise less than the
    price times the mean are not worth the work on them. So the room that is used closes step by step while
    there are such rows, and opens again where work costs nothing.

    Attributes:
        price: What work is worth; 0 if there is time for all of it.
    """

    def __init__(
        self,
        policy: Policy,
        limit: int,
        retentions: Sequence[int | None],
        *,
        unified: bool,
        reserve: float,
        seed: tuple[int, ...],
    ) -> None:
        """Start empty.

        Args:
            policy: Decides who leaves.
            limit: What all rows together may cost.
            retentions: How long a row of each stream can match, in microseconds; None for ever.
            unified: Whether streams share the buffer.
            reserve: The share of it in which evicted rows may live on.
            seed: Decides which do.
        """
        self.slots = Slots()
        self.policy = policy
        most = int(reserve * limit)
        self._limit = limit - most
        self._room = float(self._limit)
        self._looked = 0
        self.price = 0.0
        self._retentions = retentions
        self._streams = len(retentions)
        self._unified = unified
        self.reserve = Reserve(self.slots, most, Draws((*seed, 0)))
        policy.bind(self.slots, limit)
        groups = 1 if unified else self._streams
        self._ranks = policy.ranks(groups) or Heaps(policy, self.slots, groups)
        self._sizes = [0] * groups
        self._arrived = [0] * self._streams
        self._past: deque[int] = deque()
        self._clock = -NEVER
        self._held = 0
        self._active = 0
        self._seq = 0
        self._due = 0
        self.evicted: list[int] = []
        self.ended: list[int] = []

    @property
    def held(self) -> int:
        """What all rows cost."""
        return self._held + self.reserve.size

    def replay(self, arrivals: Arrivals, costs: Ints, meetings: Meetings) -> None:
        """Let rows arrive, in order.

        Args:
            arrivals: The rows; they have slots.
            costs: What each takes of the limit.
            meetings: The results that each arrives with.
        """
        slots, policy = self.slots, self.policy
        if not len(arrivals):
            return
        clock = np.maximum.accumulate(np.maximum(arrivals.times, self._clock))
        slots.losts[:] = slots.lefts[:] = NEVER
        new = arrivals.slots
        slots.seqs[new] = np.arange(self._seq, self._seq + len(new))
        slots.costs[new], slots.times[new], slots.streams[new] = costs, arrivals.times, arrivals.streams
        ends_at, ending = self._ends(arrivals, clock)
        policy.arriving(arrivals)
        meetings.prepare(slots, sort=policy.credits or policy.learns)
        now, ended, learned, until = clock.tolist(), 0, 0, 0
        for place, (slot, stream, cost) in enumerate(
            zip(new.tolist(), arrivals.streams.tolist(), costs.tolist(), strict=True)
        ):
            seq = self._seq
            if place >= until:
                until = min(len(new), place + max(1, self._due - seq))
                policy.stretch(place, until, seq)
            own = meetings.credit(place, policy, seq) if policy.credits else 0
            policy.arrive(place, stream)
            self._count(stream)
            while ended < len(ending) and ends_at[ended] <= place:
                self._end(ending[ended], place)
                ended += 1
            group = 0 if self._unified else stream
            self._seq += 1
            if self._make_room(cost, group, now[place], place):
                self._enter(slot, seq, group, cost, own)
            else:
                policy.refused()
                slots.lost[slot] = place
                self._lose(slot, place)
            if self._seq >= self._due:
                self._learn(meetings, learned, place + 1, clock)
                learned = place + 1
                self._refresh(now[place])
                self._due = self._seq + policy.interval(self._active)
        self._learn(meetings, learned, len(new), clock)
        self._clock = now[-1]

    def _refresh(self, now: int) -> None:
        """Let the policy look at all rows."""
        self.policy.refresh(self._seq, now)
        if self.policy.reprices:
            self._ranks.rebuild()
        if self.policy.foretells:
            self._follow_price()

    def _follow_price(self) -> None:
        """Leave room unused that rows are not worth."""
        rows = self._limit * self._active / max(1, sum(self._sizes))
        passed = (self._seq - self._looked) / max(1.0, rows)
        self._looked = self._seq
        if not self.price or not self._active:
            self._room = min(self._limit, self._room * exp(passed * _SPEED))
            return
        active = self.slots.of(ACTIVE)
        promised = self.policy.currents(active)
        worth_it = self.slots.costs.take(active[promised >= self.price * promised.mean()]).sum()
        closed = min(self._room, self._held) * exp(-passed * _SPEED)
        self._room = max(float(worth_it), closed, _LEAST * self._limit)

    def _ends(self, arrivals: Arrivals, clock: Ints) -> tuple[list[int], list[int]]:
        """Which rows get out of reach, and at which arrival."""
        slots = self.slots
        known = np.concatenate([slots.of(ACTIVE, RESERVED), arrivals.slots])
        ends = np.full(len(known), NEVER)
        streams, times = slots.streams.take(known), slots.times.take(known)
        for stream, retention in enumerate(self._retentions):
            if retention is not None:
                own = streams == stream
                ends[own] = clock.searchsorted(times[own] + retention, "right")
        # A row is there until the next one arrives at least.
        first = len(known) - len(arrivals)
        ends[first:] = np.maximum(ends[first:], np.arange(1, len(arrivals) + 1))
        due = np.flatnonzero(ends < len(arrivals))
        due = due.take(ends.take(due).argsort(kind="stable"))
        return ends.take(due).tolist(), known.take(due).tolist()

    def _end(self, slot: int, place: int) -> None:
        """A row is out of reach."""
        state = self.slots.state
        if state[slot] == ACTIVE:
            self._deactivate(slot, place)
            state[slot] = PAST
            self._past.append(slot)
        elif state[slot] == RESERVED:
            self.reserve.remove(slot)
            self._drop(slot, place, self.ended)

    def _deactivate(self, slot: int, place: int) -> None:
        cost = self.slots.cost[slot]
        self._sizes[self.slots.group[slot]] -= cost
        self._active -= 1
        self.slots.lost[slot] = place
        self.policy.lost(slot, self._seq)

    def _drop(self, slot: int, place: int, gone: list[int]) -> None:
        self.slots.state[slot] = GONE
        self.slots.left[slot] = place
        gone.append(slot)

    def _enter(self, slot: int, seq: int, group: int, cost: int, own: int) -> None:
        slots = self.slots
        slots.state[slot] = ACTIVE
        slots.group[slot] = group
        priority = slots.priority[slot] = self.policy.enter(slot, seq, group, own)
        self._sizes[group] += cost
        self._held += cost
        self._active += 1
        self._ranks.add(slot, seq, group, priority)

    def _make_room(self, cost: int, group: int, now: int, place: int) -> bool:
        """Whether there is room for a row; the others make it if they must."""
        if cost > self._room:
            return False
        while self._held + cost > self._room:
            if self._past:
                slot = self._past.popleft()
                self._held -= self.slots.cost[slot]
                self._drop(slot, place, self.ended)
                continue
            part = self._fullest(group, cost)
            slot = self._ranks.lowest(part)
            priority = self.slots.priority[slot]
            if self.policy.keeps(priority, now, own=part == group):
                self._ranks.put_back(slot, part)
                return False
            self._deactivate(slot, place)
            self._held -= self.slots.cost[slot]
            self.policy.evicted(priority)
            self._lose(slot, place)
        return True

    def _lose(self, slot: int, place: int) -> None:
        """A row is evicted: it is gone, or one of the reserve."""
        if self.reserve.takes(slot):
            self.slots.state[slot] = RESERVED
        else:
            self._drop(slot, place, self.evicted)
        while self.reserve.is_over:
            for old in self.reserve.thin():
                self._drop(old, place, self.evicted)

    def _count(self, stream: int) -> None:
        """Rows of each stream, of late ones more than of those long ago."""
        self._arrived[stream] += 1
        if self._arrived[stream] > _COUNTED * self._limit:
            self._arrived = [count // 2 for count in self._arrived]

    def _fullest(self, group: int, cost: int) -> int:
        """The part of the buffer that a row leaves: its own if full, else the one most above its share."""
        sizes = self._sizes
        if self._unified:
            return 0
        if sizes[group] and sizes[group] + cost > self._quota(group):
            return group
        excess = [size - self._quota(number) if size else -NEVER for number, size in enumerate(sizes)]
        return excess.index(max(excess))

    def _quota(self, group: int) -> float:
        return self._room * self._arrived[group] / max(1, sum(self._arrived))

    def _learn(self, meetings: Meetings, first: int, last: int, clock: Ints) -> None:
        if self.policy.learns and first < last:
            partners, places = meetings.emitted_between(first, last)
            self.policy.learn(partners, places, clock.take(places), last)

    def emitted(self, partners: Ints, places: Ints) -> Bools:
        """Which results have all of their partners there when they are due."""
        return all_there(self.slots, partners, places)

    def expire(self, gone: Ints) -> None:
        """Rows were dropped because they are out of reach."""
        slots = self.slots
        for slot in gone.tolist():
            state = slots.state[slot]
            if state == ACTIVE:
                self._deactivate(slot, 0)
            if state == RESERVED:
                self.reserve.remove(slot)
            else:
                self._held -= slots.cost[slot]
        left = set(gone.tolist())
        self._past = deque(slot for slot in self._past if slot not in left)
        slots.let_go(gone.tolist())

    def notes(self, order: Ints) -> dict[str, Any]:
        """What must be written down; `order` has the slots of all rows."""
        slots = self.slots
        names = ("states", "priorities", "seqs", "costs", "times", "groups")
        return {
            "columns": {name: getattr(slots, name).take(order) for name in names},
            "policy": self.policy.notes(order),
            "reserve": self.reserve.notes(),
            "arrived": self._arrived,
            "room": (self._room, self._looked),
            "clock": self._clock,
            "seq": self._seq,
            "due": self._due,
        }

    def recall(self, notes: dict[str, Any], order: Ints, streams: Ints) -> None:
        """Go on from there: the rows are in the slots `order`, in the same order as then."""
        slots = self.slots
        for name, values in notes["columns"].items():
            getattr(slots, name)[order] = values
        slots.streams[order] = streams
        self._arrived = list(notes["arrived"])
        # Checkpoints may have been written before room could be left unused.
        self._room, self._looked = notes.get("room", (float(self._limit), self._seq))
        self._clock, self._seq, self._due = notes["clock"], notes["seq"], notes["due"]
        self.reserve.recall(notes["reserve"])
        for slot in slots.of(ACTIVE).tolist():
            self._active += 1
            self._sizes[slots.group[slot]] += slots.cost[slot]
        self._held = int(slots.costs.take(slots.of(ACTIVE, PAST)).sum())
        past = slots.of(PAST)
        reach = np.array([own or 0 for own in self._retentions], np.int64)
        ends = slots.times.take(past) + reach.take(slots.streams.take(past))
        self._past = deque(past.take(ends.argsort(kind="stable")).tolist())
        self.policy.recall(notes["policy"], order)
        self._ranks.rebuild()
