"""Posting lists and matrices of a window that grows: only new rows are worked on, and nothing changes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.postings import PostingsFinder
from sparkshed.engine.vectors import VectorFinder
from sparkshed.planner.physical import (
    Direction,
    Hop,
    JoinSpec,
    OutputColumn,
    SetKernel,
    StreamExec,
    VectorKernel,
)
from sparkshed.sql.expr import Call, Col, Lit
from sparkshed.sql.predicate import Overlap, Predicate, Similarity

SECOND = 1_000_000


def spec_of(kind: str) -> JoinSpec:
    type_ = "array<int>" if kind == "sets" else "array<float>"
    a, b = (Col(stream, 2, type_, f"s{stream}.v") for stream in (0, 1))
    if kind == "sets":
        kernel = SetKernel(Overlap(a, b, 1), 1)
    else:
        expr = Call(">=", (Call("inner_product", (a, b), "float"), Lit(0.5, "float", "0.5")), "boolean")
        kernel = VectorKernel(Similarity("inner_product", a, b, ">=", 0.5), Predicate("inner product", expr))
    streams = tuple(StreamExec(name, ("id", "ts", "v"), ("bigint", "timestamp", type_), 1) for name in "ab")
    return JoinSpec(
        streams=streams,
        bounds=((0, 60 * SECOND), (60 * SECOND, 0)),
        directions=(Direction(0, (Hop(1, kernel),)), Direction(1, (Hop(0, kernel),))),
        basic=100 * SECOND,
        output=(OutputColumn(0, 0, "a"), OutputColumn(1, 0, "b")),
    )


def rows(rng: np.random.Generator, kind: str, start: int, count: int, times: list[int]) -> pa.Table:
    if kind == "sets":
        lists, element = [rng.integers(0, 9, rng.integers(0, 4)).tolist() for _ in range(count)], pa.int32()
    else:
        lists, element = [rng.random(3).tolist() for _ in range(count)], pa.float32()
    return pa.table(
        [
            pa.array(range(start, start + count), pa.int64()),
            pa.array([t * SECOND for t in times], pa.timestamp("us", "UTC")),
            pa.array(lists, pa.list_(element)),
        ],
        ["id", "ts", "v"],
    )


@pytest.mark.parametrize(("kind", "finder"), [("sets", PostingsFinder), ("vectors", VectorFinder)])
@pytest.mark.parametrize("ordered", [True, False])
@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 1 << 30), cuts=st.lists(st.integers(1, 6), min_size=2, max_size=5))
def test_batches_give_what_all_rows_at_once_give(kind, finder, ordered, seed, cuts):
    rng = np.random.default_rng(seed)
    built: list[int] = []
    index = finder.index

    def counted(self, window):
        built.append(len(window.rows))
        return index(self, window)

    whole: list[list[pa.Table]] = [[], []]
    operator, found, clock = JoinOperator(spec_of(kind)), [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finder, "index", counted)
        for number, count in enumerate(cuts):
            batch = {}
            for stream in (0, 1):
                times = sorted(rng.integers(0, 5, count).tolist())
                times = [clock + t for t in times] if ordered else times
                batch[stream] = rows(rng, kind, number * 10, count, times)
                whole[stream].append(batch[stream])
            clock += 5
            for chunk in operator.process(batch):
                found += zip(*(column.to_pylist() for column in chunk.columns), strict=True)
    once = JoinOperator(spec_of(kind))
    expected = []
    for chunk in once.process({stream: pa.concat_tables(parts) for stream, parts in enumerate(whole)}):
        expected += zip(*(column.to_pylist() for column in chunk.columns), strict=True)
    assert sorted(found) == sorted(expected)
    if ordered:
        assert max(built) <= max(cuts), "only new rows are indexed"
