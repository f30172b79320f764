"""Rows that leave by their values: all rows of a stream with one value are worth the same."""

from __future__ import annotations

from collections import deque
from heapq import heapify, heappop, heappush, heapreplace

import numpy as np

from sparkshed.engine.eviction.promise import Promise
from sparkshed.engine.eviction.slots import ACTIVE, Slots

#: Buckets are filled anew when they have so many times more rows than they had then.
_STALE = 2


class Buckets:
    """A bucket for each stream and value, and a heap of buckets for each part of the buffer.

    The oldest row of a bucket leaves it first. When a value comes, nothing is done for the rows that have it:
    the bucket is brought up to date when it comes to the top. So a look costs as much as there are values,
    however many rows have them.
    """

    def __init__(self, promise: Promise, slots: Slots, groups: int) -> None:
        """Start without rows; what is promised is that of one join in which all streams have the same key."""
        self._promise, self._slots = promise, slots
        self._streams = len(promise.classes[0].streams)
        self._groups = groups
        #: Rows in all buckets, with those that left, and what they were when these were last taken away.
        self._held = self._last = 0
        self._rows: dict[int, deque[tuple[int, int]]] = {}
        self._heaps: list[list[tuple[float, int, int]]] = [[] for _ in range(groups)]

    def add(self, slot: int, seq: int, group: int, priority: float) -> None:
        """A row enters a part of the buffer."""
        key = self._promise.buckets[seq - self._promise.first]
        rows = self._rows.get(key)
        if rows is None:
            self._rows[key] = deque([(seq, slot)])
            heappush(self._heaps[group], (priority, seq, key))
        else:
            rows.append((seq, slot))
        self._held += 1

    def lowest(self, group: int) -> int:
        """The row that leaves a part of the buffer next; it is taken from there."""
        heap, streams, slots = self._heaps[group], self._streams, self._slots
        state, seqs = slots.state, slots.seq
        _, known, offers = self._promise.came[0]
        while True:
            priority, seq, key = heap[0]
            rows = self._rows[key]
            oldest, slot = rows[0]
            if state[slot] == ACTIVE and seqs[slot] == oldest:
                at = known.get(key // streams)
                newest = priority if at is None else offers[key % streams][at]
                if newest > priority or oldest != seq:
                    heapreplace(heap, (max(newest, priority), oldest, key))
                    continue
                leaves = True
            else:
                leaves = False
            # The oldest row of the bucket is taken away, and the bucket, too, if it was the only one.
            rows.popleft()
            self._held -= 1
            if rows:
                heapreplace(heap, (priority, rows[0][0], key))
            else:
                heappop(heap)
                del self._rows[key]
            if leaves:
                slots.priority[slot] = priority
                return slot

    def put_back(self, slot: int, group: int) -> None:
        """The row that was the lowest one stays after all."""
        slots = self._slots
        key = self._promise.code(slot) * self._streams + slots.stream[slot]
        rows = self._rows.get(key)
        if rows is None:
            self._rows[key] = deque([(slots.seq[slot], slot)])
            heappush(self._heaps[group], (slots.priority[slot], slots.seq[slot], key))
        else:
            rows.appendleft((slots.seq[slot], slot))
        self._held += 1

    def rebuild(self) -> None:
        """What buckets are worth has changed."""
        if self._promise.renamed or self._held > _STALE * self._last + 64:
            self._fill()
        keys = np.array(list(self._rows), np.int64)
        codes, streams = np.divmod(keys, self._streams)
        worth = self._promise.offered(codes, streams)
        oldest = np.array([rows[0][0] for rows in self._rows.values()], np.int64)
        for group in range(self._groups):
            own = slice(None) if self._groups == 1 else streams == group
            self._heaps[group] = list(
                zip(worth[own].tolist(), oldest[own].tolist(), keys[own].tolist(), strict=True)
            )
            heapify(self._heaps[group])

    def _fill(self) -> None:
        """Buckets with the rows that take part and no others."""
        slots, self._promise.renamed = self._slots, False
        active = slots.of(ACTIVE)
        self._held = self._last = len(active)
        keys = self._promise.codes(active) * self._streams + slots.streams.take(active)
        self._rows = {}
        for key, seq, slot in zip(
            keys.tolist(), slots.seqs.take(active).tolist(), active.tolist(), strict=True
        ):
            self._rows.setdefault(key, deque()).append((seq, slot))
