"""The join graph: which streams a predicate links, and the orders it allows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sparkshed.sql.predicate import Predicate


class JoinGraph:
    """Streams as nodes, pairwise predicates as edges.

        a ── b ── c        from a: b first, then c; a > c > b would be a cross product

    A predicate over three streams links all of them, but only once two are joined; it makes an edge
    between each pair so that a stream is not counted as unlinked.
    """

    def __init__(self, streams: int, predicates: Iterable[Predicate]) -> None:
        """Build the graph of some predicates."""
        self.streams = streams
        self._edges: set[frozenset[int]] = set()
        for predicate in predicates:
            linked = sorted(predicate.streams)
            self._edges |= {frozenset((a, b)) for a in linked for b in linked if a < b}

    def linked(self, a: int, b: int) -> bool:
        """Whether a predicate links the two streams."""
        return frozenset((a, b)) in self._edges

    def next_streams(self, joined: Iterable[int]) -> list[int]:
        """Streams that may come next: linked ones, or any while none is linked."""
        joined = set(joined)
        rest = [stream for stream in range(self.streams) if stream not in joined]
        linked = [stream for stream in rest if any(self.linked(stream, other) for other in joined)]
        return linked or rest

    def orders(self, origin: int) -> Iterator[tuple[int, ...]]:
        """All orders from a stream that never take a cross product while a link remains.

        >>> from sparkshed.sql.expr import Call, Col
        >>> def p(a, b):
        ...     return Predicate("", Call("=", (Col(a, 0, "int", ""), Col(b, 0, "int", "")), "boolean"))
        >>> list(JoinGraph(3, [p(0, 1), p(1, 2)]).orders(0))
        [(1, 2)]
        """
        yield from self._extend((origin,))

    def _extend(self, path: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(path) == self.streams:
            yield path[1:]
            return
        for stream in self.next_streams(path):
            yield from self._extend((*path, stream))
