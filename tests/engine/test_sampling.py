"""Estimates from samples, where the truth is known."""

from __future__ import annotations

import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info

from sparkshed.engine.operator import JoinOperator
from sparkshed.engine.sampling import SampledPair, hop_fanouts
from sparkshed.engine.threads import one_thread
from sparkshed.planner.physical import Direction, EqualityKernel, Hop, JoinSpec, ScanKernel, StreamExec
from sparkshed.sql.expr import Call, Col
from sparkshed.sql.predicate import Equality, Predicate

SECOND = 1_000_000


def stream(name: str) -> StreamExec:
    return StreamExec(name, ("ts", "k"), ("timestamp", "int"), 0)


def rows(count: int, keys: int) -> pa.Table:
    times = pa.array([n * SECOND for n in range(count)], pa.timestamp("us", "UTC"))
    return pa.table([times, pa.array([n % keys for n in range(count)], pa.int32())], ["ts", "k"])


def equality(left: int, right: int) -> Predicate:
    a, b = Col(left, 1, "int", "a.k"), Col(right, 1, "int", "b.k")
    return Predicate("a.k = b.k", Call("=", (a, b), "boolean"), Equality(a, b))


def three_way(seconds: int | None) -> JoinSpec:
    """A chain 0 = 1 = 2 within some seconds."""
    bound = None if seconds is None else seconds * SECOND
    bounds = tuple(tuple(0 if i == k else bound for k in range(3)) for i in range(3))

    def key(left: int, right: int) -> EqualityKernel:
        form = equality(left, right).form
        assert isinstance(form, Equality)
        return EqualityKernel((form,))

    directions = (
        Direction(0, (Hop(1, key(0, 1)), Hop(2, key(1, 2)))),
        Direction(1, (Hop(0, key(1, 0)), Hop(2, key(1, 2)))),
        Direction(2, (Hop(1, key(2, 1)), Hop(0, key(1, 0)))),
    )
    return JoinSpec((stream("a"), stream("b"), stream("c")), bounds, directions, 10 * SECOND, ())


def selectivity(tables: tuple[pa.Table, pa.Table], bounds: tuple[tuple[int | None, ...], ...]) -> float:
    pair = SampledPair.of((stream("a"), stream("b")), bounds, (0, 1), tables, ansi=True)
    found = pair.selectivity([equality(0, 1)])
    measured = pair.measure(equality(0, 1))
    assert measured.selectivity == found
    # Entries of the outermost windows are touched although some are out of time.
    assert found <= measured.indexes[0].touched <= 2 * found
    return found


def test_pair_selectivity_is_matches_per_pair_in_time():
    bounds = ((0, 4 * SECOND), (4 * SECOND, 0))
    tables = (rows(50, 1), rows(50, 1))
    assert selectivity(tables, bounds) == 1.0
    tables = (rows(50, 5), rows(50, 5))
    pairs = [(i, k) for i in range(50) for k in range(50) if abs(i - k) <= 4]
    matches = [pair for pair in pairs if pair[0] % 5 == pair[1] % 5]
    found = selectivity(tables, bounds)
    assert found == len(matches) / len(pairs)


def test_pair_selectivity_never_takes_a_stream_for_empty():
    bounds = ((0, None), (None, 0))
    never = pa.table([rows(10, 1).column(0), pa.array([9] * 10, pa.int32())], ["ts", "k"])
    found = selectivity((rows(10, 1), never), bounds)
    assert found == 0.5 / 100


def test_partial_results_are_counted_hop_by_hop():
    operator = JoinOperator(three_way(None))
    for batch in ({1: rows(30, 3), 2: rows(60, 3)}, {0: rows(12, 3)}):
        for _ in operator.process(batch):
            pass
    counters = operator.statistics.directions[0]
    assert counters.partials == [12 * 10, 12 * 10 * 20]
    assert counters.results == 12 * 10 * 20


def test_fanouts_are_scaled_by_what_the_sample_holds():
    sample = (rows(12, 3), rows(30, 3), rows(60, 3))
    assert hop_fanouts(three_way(None), 0, sample, (1.0, 1.0, 1.0)) == (10.0, 20.0)
    assert hop_fanouts(three_way(None), 0, sample, (0.1, 0.5, 0.25)) == pytest.approx((20.0, 80.0))
    assert hop_fanouts(three_way(None), 2, sample, (1.0, 1.0, 1.0)) == pytest.approx((10.0, 4.0))


def test_fanouts_need_enough_and_not_too_much():
    assert hop_fanouts(three_way(None), 0, (rows(1, 1), rows(2, 1), rows(2, 1)), (1.0, 1.0, 1.0)) is None
    large = rows(200, 1)
    assert hop_fanouts(three_way(None), 0, (large, large, large), (1.0, 1.0, 1.0)) is None


def test_a_scan_sees_the_same_pairs():
    spec = JoinSpec(
        (stream("a"), stream("b")),
        ((0, 4 * SECOND), (4 * SECOND, 0)),
        (Direction(0, (Hop(1, ScanKernel()),)), Direction(1, (Hop(0, ScanKernel()),))),
        SECOND,
        (),
    )
    pairs = sum(abs(i - k) <= 4 for i in range(50) for k in range(50))
    assert hop_fanouts(spec, 0, (rows(50, 1), rows(50, 1)), (1.0, 1.0)) == (pairs / 50,)


def test_matrix_products_stay_on_one_thread_and_are_let_go_again() -> None:
    def threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = threads()
    assert before
    with one_thread():
        assert set(threads()) == {1}
    assert threads() == before


def test_the_last_of_several_users_takes_the_limit_back() -> None:
    before = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    first, second = one_thread(), one_thread()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} == {1}
    second.__exit__(None, None, None)
    assert [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"] == before
