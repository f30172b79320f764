"""Columns that are equal in every result of a join, over all of its streams."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sparkshed.engine.arrays import Ints
from sparkshed.engine.eviction.keys import NOTHING, Link, hashed, links_of
from sparkshed.engine.eviction.policy import Arrivals
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import JoinSpec
from sparkshed.sql.predicate import Equality


class EqualClass(NamedTuple):
    """Streams whose rows have the same key in every result of a join.

    Attributes:
        join: The number of the join.
        streams: At least two streams.
        columns: The columns of each that make its key.
        null_safe: Whether two nulls are equal, for each column of a key.
    """

    join: int
    streams: tuple[int, ...]
    columns: tuple[tuple[int, ...], ...]
    null_safe: tuple[bool, ...]

    def keys(self, arrivals: Arrivals, stores: Sequence[RowStore]) -> Ints:
        """The keys of new rows; `NOTHING` for rows of other streams."""
        keys = np.full(len(arrivals), NOTHING)
        for stream, columns in zip(self.streams, self.columns, strict=True):
            own = arrivals.streams == stream
            keys[own] = hashed(stores[stream], columns, self.null_safe, arrivals.rows[own])
        return keys


def classes_of(spec: JoinSpec) -> list[EqualClass]:
    """What is equal in each join, with what follows from it: a = b and b = c make one class of three."""
    found: list[tuple[Link, dict[int, tuple[int, ...]]]] = []
    for link in links_of(spec):
        ends = dict(zip(link.streams, link.columns, strict=True))
        rest = []
        for first, members in found:
            same = (first.join, first.null_safe) == (link.join, link.null_safe)
            fits = all(members.get(s, columns) == columns for s, columns in ends.items())
            if same and fits and members.keys() & ends.keys():
                ends |= members
            else:
                rest.append((first, members))
        found = [*rest, (link, ends)]
    return [
        EqualClass(link.join, tuple(sorted(own)), tuple(own[s] for s in sorted(own)), link.null_safe)
        for link, own in found
    ]


def is_equality(spec: JoinSpec) -> bool:
    """Whether rows of all streams match just because they have the same key, in every join of a plan.

    Then what a row will yield depends on the rows that come with its key, and on nothing else.
    """
    classes = classes_of(spec)
    forms = [
        form
        for join in spec.joins
        for hop in join.every_hop
        for form in (*hop.kernel.forms, *(check.form for check in hop.checks))
    ]
    return (
        sorted(own.join for own in classes) == list(range(len(spec.joins)))
        and all(len(own.streams) == len(spec.streams) for own in classes)
        and all(isinstance(form, Equality) for form in forms)
    )
