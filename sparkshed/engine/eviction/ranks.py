"""Who leaves next: the lowest priority of each part of the buffer, of equal ones the oldest row."""

from __future__ import annotations

from heapq import heappop, heappush, heapreplace

from sparkshed.engine.eviction.policy import Policy
from sparkshed.engine.eviction.slots import ACTIVE, Slots

#: A heap is built anew when it has this many times more entries than there are rows.
_STALE = 2


class Heaps:
    """A heap of rows for each part of the buffer.

    Priorities only rise between two looks, so an entry is brought up to date when it comes to the top, and
    not before. Rows that left are passed over there.
    """

    def __init__(self, policy: Policy, slots: Slots, groups: int) -> None:
        """Start without rows."""
        self._policy, self._slots = policy, slots
        self._heaps: list[list[tuple[float, int, int]]] = [[] for _ in range(groups)]
        self._most = 64

    def add(self, slot: int, seq: int, group: int, priority: float) -> None:
        """A row enters a part of the buffer."""
        heap = self._heaps[group]
        heappush(heap, (priority, seq, slot))
        if len(heap) > self._most:
            self.rebuild()

    def lowest(self, group: int) -> int:
        """The row that leaves a part of the buffer next; it is taken from there."""
        heap, slots = self._heaps[group], self._slots
        state, seqs, current = slots.state, slots.seq, self._policy.current
        while True:
            priority, seq, slot = heap[0]
            if state[slot] != ACTIVE or seqs[slot] != seq:
                heappop(heap)
                continue
            newest = current(slot)
            if newest <= priority:
                heappop(heap)
                slots.priority[slot] = priority
                return slot
            heapreplace(heap, (newest, seq, slot))

    def put_back(self, slot: int, group: int) -> None:
        """The row that was the lowest one stays after all."""
        slots = self._slots
        self.add(slot, slots.seq[slot], group, slots.priority[slot])

    def rebuild(self) -> None:
        """All rows in their order, which is a heap."""
        slots = self._slots
        active = slots.of(ACTIVE)
        groups = slots.groups.take(active)
        self._most = _STALE * len(active) + 64
        for group, _ in enumerate(self._heaps):
            own = active if len(self._heaps) == 1 else active[groups == group]
            priorities = self._policy.currents(own)
            order = priorities.argsort(kind="stable")
            own = own.take(order)
            self._heaps[group] = list(
                zip(priorities.take(order).tolist(), slots.seqs.take(own).tolist(), own.tolist(), strict=True)
            )
