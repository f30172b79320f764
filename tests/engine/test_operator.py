"""The operator on small examples that can be worked out by hand."""

from __future__ import annotations

import pickle
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.build import lit, within
from sparkshed.engine.codes import _NULL
from sparkshed.engine.errors import NullTimeError
from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import (
    BandKernel,
    Direction,
    EqualityKernel,
    Hop,
    JoinSpec,
    Kernel,
    OutputColumn,
    ScanKernel,
    StreamExec,
)
from sparkshed.sql.expr import Call, Col
from sparkshed.sql.predicate import Band, Equality, Predicate

DAY = 86_400_000_000


def two(
    kernel: Kernel, key: str = "bigint", time: str = "timestamp_ntz", checks: Any = (), **options: Any
) -> JoinSpec:
    """Two streams (ts, key), at most 5 apart, basic windows of 10."""
    streams = tuple(StreamExec(name, ("ts", "key"), (time, key), 0) for name in "ab")
    directions = (Direction(0, (Hop(1, kernel, checks),)), Direction(1, (Hop(0, kernel, checks),)))
    output = (OutputColumn(0, 1, "left"), OutputColumn(1, 1, "right"))
    spec = JoinSpec(streams, ((0, 5), (5, 0)), directions, 10, output)
    return replace(spec, **options)


def sides(key: str = "bigint") -> tuple[Col, Col]:
    return Col(0, 1, key, "a.key"), Col(1, 1, key, "b.key")


def rows(times: list[Any], keys: Any, type_: pa.DataType | None = None) -> pa.Table:
    array = keys if isinstance(keys, pa.Array) else pa.array(keys, type_)
    return pa.table([pa.array(times, pa.int64()).cast(pa.timestamp("us")), array], names=["t", "v"])


def feed(op: JoinOperator, batch: dict[int, pa.Table | None]) -> list[tuple[Any, ...]]:
    out: list[tuple[Any, ...]] = []
    for result in op.process(batch):
        out += zip(*(column.to_pylist() for column in result.columns), strict=True)
    return sorted(out, key=repr)


def equality(key: str = "bigint", null_safe: bool = False) -> EqualityKernel:
    return EqualityKernel((Equality(*sides(key), null_safe),))


def test_scan_counts_the_rows_in_the_time_range() -> None:
    op = JoinOperator(two(ScanKernel()))
    assert feed(op, {1: rows([0, 4, 8, 12, 30], [0, 1, 2, 3, 4])}) == []
    assert op.statistics.work == 0
    assert feed(op, {0: rows([7], [9])}) == [(9, 1), (9, 2), (9, 3)]
    direction = op.statistics.directions[0]
    assert (direction.comparisons, direction.results, direction.work) == (3, 3, 6)
    assert op.statistics.directions[1].work == 0


def test_equality_counts_equal_keys_in_time() -> None:
    op = JoinOperator(two(equality()))
    feed(op, {1: rows([0, 1, 8, 11, 25], [7, 7, 7, 5, 7])})
    assert feed(op, {0: rows([6], [7])}) == [(7, 7), (7, 7)]
    # Three rows have key 7, of which one is out of time.
    assert op.statistics.comparisons == 2
    assert op.statistics.work == 4


def band_kernel(low: float | None, high: float | None, type_: str = "bigint") -> BandKernel:
    left, right = sides(type_)
    expr = within(Call("-", (left, right), type_), low, high, type_)
    form = Band(left, right, low, high, type_ == "bigint")
    return BandKernel((Predicate("band", expr, form),))


def test_band_counts_entries_in_the_value_range() -> None:
    op = JoinOperator(two(band_kernel(-1, 1)))
    feed(op, {1: rows([0, 1, 8, 11], [1, 2, 3, 9])})
    assert feed(op, {0: rows([5], [2])}) == [(2, 1), (2, 2), (2, 3)]
    assert (op.statistics.comparisons, op.statistics.results) == (3, 3)
    # One search among four rows takes three steps.
    assert [d.searches for d in op.statistics.directions] == [3, 0]
    assert op.statistics.work == 3 + 3 + 3


def test_bands_on_one_column_narrow_one_range() -> None:
    a, b, c = (Col(stream, 1, "bigint", f"{stream}.key") for stream in range(3))
    near = {
        (left.stream, right.stream): Predicate(
            "", within(Call("-", (left, right), "bigint"), -1, 1, "bigint"), Band(left, right, -1, 1, True)
        )
        for left, right in ((a, b), (a, c), (b, c))
    }
    first = Direction(0, (Hop(1, BandKernel((near[0, 1],))), Hop(2, BandKernel((near[0, 2], near[1, 2])))))
    rest = [
        Direction(origin, tuple(Hop(t, ScanKernel(), tuple(near.values())) for t in range(3) if t != origin))
        for origin in (1, 2)
    ]
    streams = tuple(StreamExec(n, ("ts", "key"), ("timestamp", "bigint"), 0) for n in "abc")
    output = tuple(OutputColumn(s, 1, f"k{s}") for s in range(3))
    spec = JoinSpec(streams, ((0, 9, 9), (9, 0, 9), (9, 9, 0)), (first, *rest), 10, output)
    op = JoinOperator(spec)
    feed(op, {1: rows([0, 1], [1, 2]), 2: rows([0, 1, 2, 3], [0, 1, 2, 3])})
    assert feed(op, {0: rows([5], [1])}) == [(1, 1, 0), (1, 1, 1), (1, 1, 2), (1, 2, 1), (1, 2, 2)]
    # Two entries in the first range, three and two in the second: nothing outside both bands is touched.
    assert op.statistics.comparisons == 2 + 5


def test_rows_of_one_batch_meet_once_in_either_order() -> None:
    op = JoinOperator(two(equality()))
    assert feed(op, {0: rows([3, 3, 6], [1, 1, 1]), 1: rows([3, 4], [1, 1])}) == [(1, 1)] * 6
    # Equal times: the later stream probes. Time 4 probes both rows at 3; time 6 probes both of b.
    assert [d.results for d in op.statistics.directions] == [2, 4]


def test_a_late_row_probes_rows_newer_than_itself() -> None:
    op = JoinOperator(two(ScanKernel()))
    assert feed(op, {0: rows([100, 104], [1, 2]), 1: None}) == []
    assert feed(op, {1: rows([99], [3])}) == [(1, 3), (2, 3)]


@pytest.mark.parametrize("chunk", [1, 2, 100])
def test_chunks_are_limited_and_batches_unsorted(chunk: int) -> None:
    op = JoinOperator(two(ScanKernel(), chunk=chunk))
    list(op.process({1: rows([4, 0, 2], [2, 0, 1])}))
    sizes = [batch.num_rows for batch in op.process({0: rows([3, 1], [0, 1])})]
    assert sum(sizes) == 6
    assert max(sizes) <= chunk


def test_no_output_columns_still_count_rows() -> None:
    op = JoinOperator(two(ScanKernel(), output=()))
    list(op.process({1: rows([0, 1], [0, 0])}))
    (batch,) = op.process({0: rows([0], [0])})
    assert batch.schema == pa.schema([("__row", pa.int8())])
    assert batch.num_rows == 2


def test_null_times_are_counted_or_refused() -> None:
    op = JoinOperator(two(ScanKernel()))
    feed(op, {1: rows([0, None, 2], [1, 2, 3])})
    assert (op.statistics.streams[1].arrived, op.statistics.streams[1].null_time) == (3, 1)
    assert feed(op, {0: rows([1], [0])}) == [(0, 1), (0, 3)]
    spec = two(ScanKernel())
    strict = replace(spec, streams=(spec.streams[0], replace(spec.streams[1], strict_time=True)))
    with pytest.raises(NullTimeError, match=r"add `b\.ts IS NOT NULL` to WHERE") as caught:
        JoinOperator(strict).process({1: rows([None], [1])})
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_expiry_drops_whole_windows_only() -> None:
    op = JoinOperator(two(equality("string"), "string"))
    feed(op, {0: rows([1, 9, 12, 30], list("abcd"))})
    assert op.expire(14) == 0
    assert op.expire(15) == 2
    assert op.statistics.streams[0].expired == 2
    assert feed(op, {1: rows([15, 30], list("cd"))}) == [("c", "c"), ("d", "d")]
    assert op.expire(100) == 4
    assert feed(op, {0: rows([99], ["x"]), 1: rows([100], ["x"])}) == [("x", "x")]


def test_unbounded_streams_do_not_expire() -> None:
    op = JoinOperator(two(ScanKernel(), bounds=((0, 5), (None, 0))))
    feed(op, {0: rows([0], [1]), 1: rows([0], [2])})
    # b may follow a at any distance, so a stays; a may follow b by 5 at most, so b goes.
    assert op.expire(1000) == 1
    assert feed(op, {1: rows([10**15], [3])}) == [(1, 3)]


def test_null_keys() -> None:
    batch = {0: rows([0, 0], [None, 1], pa.int64()), 1: rows([0, 0], [None, 1], pa.int64())}
    assert feed(JoinOperator(two(equality())), batch) == [(1, 1)]
    assert feed(JoinOperator(two(equality(null_safe=True))), batch) == [(1, 1), (None, None)]


def test_a_value_that_hashes_like_null_is_told_apart() -> None:
    twin = int(np.uint64(_NULL).view(np.int64))
    op = JoinOperator(two(equality(null_safe=True)))
    assert feed(op, {0: rows([0], [None], pa.int64()), 1: rows([0], [twin])}) == []
    assert op.statistics.comparisons == 1


def test_every_nan_and_zero_is_one_key() -> None:
    other_nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]
    op = JoinOperator(two(equality("double"), "double"))
    left = rows([0, 0, 0], pa.array(np.array([np.nan, -0.0, 1.0])))
    assert len(feed(op, {0: left, 1: rows([0, 0], pa.array(np.array([other_nan, 0.0])))})) == 2


@pytest.mark.parametrize(
    ("type_", "arrow", "values"),
    [
        ("boolean", pa.bool_(), [True, False]),
        ("date", pa.date32(), [1, 2]),
        ("decimal(38,2)", pa.decimal128(38, 2), ["1.5", "2.5"]),
        ("binary", pa.binary(), [b"x", b"y"]),
        ("array<double>", pa.list_(pa.float64()), [[1.0, None], [float("inf")]]),
        ("struct<a:int,b:string>", pa.struct({"a": pa.int32(), "b": pa.string()}), [{"a": 1}, {"b": "z"}]),
    ],
)
def test_keys_of_other_types(type_: str, arrow: pa.DataType, values: list[Any]) -> None:
    array = pa.array(values).cast(arrow) if isinstance(values[0], str) else pa.array(values, arrow)
    op = JoinOperator(two(equality(type_), type_))
    first, second = array.to_pylist()
    assert feed(op, {0: rows([0, 0], array), 1: rows([0], array[:1])}) == [(first, first)]
    assert feed(op, {1: rows([1], array[1:])}) == [(second, second)]


def test_producers_may_encode_differently() -> None:
    op = JoinOperator(two(equality("string"), "string"))
    feed(op, {1: rows([0, 0], pa.array(["a", "b"]).dictionary_encode())})
    nanos = pa.table(
        [pa.array([0], pa.timestamp("ns")), pa.array(["a"], pa.large_string())], names=["t", "v"]
    )
    assert feed(op, {0: nanos}) == [("a", "a")]
    assert feed(op, {0: rows([1], ["b"])}) == [("b", "b")]


def test_extreme_band_values_do_not_wrap_around() -> None:
    big = (1 << 63) - 1
    op = JoinOperator(two(band_kernel(1, None)))
    # left >= right + 1: nothing is greater than the largest value.
    assert feed(op, {1: rows([0, 0], [big, big - 1]), 0: rows([0], [big])}) == [(big, big - 1)]
    op = JoinOperator(two(band_kernel(-(1 << 70), 1 << 70)))
    assert feed(op, {1: rows([0], [big]), 0: rows([0], [-big])}) == [(-big, big)]


def test_inexact_band_reaches_rounded_and_special_values() -> None:
    op = JoinOperator(two(band_kernel(0.1, None, "double"), "double"))
    ours = [0.4, float("nan"), float("inf"), 1e308]
    found = feed(op, {1: rows([0] * 4, [0.3, float("nan"), float("-inf"), -1e308]), 0: rows([1] * 4, ours)})
    expected = [(a, b) for a in ours for b in [0.3, float("nan"), float("-inf"), -1e308] if not a - b < 0.1]
    assert len(found) == len(expected)
    # 0.4 - 0.3 is a little more than 0.1 in doubles, and it must be found.
    assert (0.4, 0.3) in found


def test_inexact_band_agrees_with_single_precision() -> None:
    left, right = sides("float")
    tenth = np.float32(0.1)
    centres = np.append(np.random.default_rng(0).uniform(0, 1, 300), 0.0).astype(np.float32)
    edges = np.concatenate([centres + tenth, np.nextafter(centres + tenth, np.float32(9))])
    op = JoinOperator(two(band_kernel(None, 0.1, "float"), "float", output=()))
    # Single precision's 0.1 is above the band's 0.1: the search must reach beyond its own bound.
    assert float(tenth) > 0.1
    batch = {0: rows([0] * len(edges), edges), 1: rows([0] * len(centres), centres)}
    assert sum(b.num_rows for b in op.process(batch)) == (edges[:, None] - centres <= tenth).sum()


def test_dates_are_days() -> None:
    spec = two(ScanKernel(), time="date", bounds=((0, DAY), (0, 0)), basic=DAY)

    def days(numbers: list[int]) -> pa.Table:
        return pa.table(
            [pa.array(numbers, pa.int32()).cast(pa.date32()), pa.array(numbers)], names=["t", "v"]
        )

    op = JoinOperator(spec)
    assert feed(op, {0: days([1, 2, 3]), 1: days([2])}) == [(2, 2), (3, 2)]


def test_many_basic_windows_are_probed_as_fewer() -> None:
    times = list(range(0, 4000, 10))
    bounds = ((0, 3000), (3000, 0))
    fine = JoinOperator(two(equality(), bounds=bounds))
    plain = JoinOperator(two(equality(), bounds=bounds, basic=100))
    for op in (fine, plain):
        feed(op, {1: rows(times, [t % 70 for t in times])})
    batch = {0: rows([2000], [0])}
    assert feed(fine, batch) == feed(plain, batch)
    feed(fine, {1: rows([2005], [0])})
    assert fine.expire(4500) == 150
    assert plain.expire(4500) == 150
    batch = {0: rows([4501], [0])}
    found = feed(fine, batch)
    feed(plain, {1: rows([2005], [0])})
    assert found == feed(plain, batch)
    assert len(found) == 37


def test_a_stale_codebook_is_rebuilt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkshed.engine.holding._SMALL_CODEBOOK", 10)
    op = JoinOperator(two(equality("string"), "string", bounds=((0, 15), (15, 0))))
    previous: list[str] = []
    for start in range(0, 1000, 10):
        names = [f"{start}-{n}" for n in range(5)]
        op.expire(start)
        assert len(
            feed(op, {0: rows([start] * 5, names), 1: rows([start] * len(previous), previous)})
        ) == len(previous)
        previous = names
    assert len(op._codebook) <= 120


def test_rows_outlive_the_codebook_that_encoded_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparkshed.engine.holding._SMALL_CODEBOOK", 3)
    monkeypatch.setattr("sparkshed.engine.holding._STALE", 0)
    op = JoinOperator(two(equality("string"), "string"))
    same = [(name, name) for name in "abcde"]
    assert feed(op, {0: rows([0] * 5, list("abcde")), 1: rows([0] * 5, list("abcde"))}) == same
    assert op.expire(0) == 0
    assert len(op._codebook) == 0
    assert feed(op, {1: rows([1] * 5, list("edcba"))}) == same


def test_results_must_be_read_before_the_next_batch() -> None:
    op = JoinOperator(two(ScanKernel()))
    op.process({1: rows([0], [0])})
    pending = op.process({0: rows([0], [0])})
    with pytest.raises(RuntimeError, match="read to the end"):
        op.process({})
    with pytest.raises(RuntimeError, match="read to the end"):
        op.expire(0)
    assert sum(batch.num_rows for batch in pending) == 1
    assert feed(op, {1: rows([1], [0])}) == [(0, 0)]


def test_wrong_input_is_named() -> None:
    op = JoinOperator(two(ScanKernel()))
    with pytest.raises(ValueError, match="stream numbers must be 0 … 1"):
        op.process({2: None})
    with pytest.raises(ValueError, match="stream 'a': expected 2 columns"):
        op.process({0: rows([0], [0]).select([0])})


def test_two_column_keys_from_two_streams() -> None:
    streams = tuple(StreamExec(n, ("ts", "x", "y"), ("timestamp_ntz", "int", "int"), 0) for n in "abc")

    def at(stream: int, column: int) -> Col:
        return Col(stream, column, "int", f"{'abc'[stream]}.{'txy'[column]}")

    keys = (Equality(at(0, 1), at(2, 1)), Equality(at(2, 2), at(1, 2)))
    both = EqualityKernel(keys)
    less = Predicate("a.y < b.x", Call("<", (at(0, 2), at(1, 1)), "boolean"))
    x_equal = (Predicate("a.x = c.x", Call("=", (at(0, 1), at(2, 1)), "boolean")),)
    directions = (
        Direction(0, (Hop(1, ScanKernel(), (less,)), Hop(2, both))),
        Direction(1, (Hop(0, ScanKernel(), (less,)), Hop(2, both))),
        Direction(2, (Hop(1, EqualityKernel(keys[1:])), Hop(0, ScanKernel(), (less, *x_equal)))),
    )
    bounds = tuple(tuple(0 if i == k else 9 for k in range(3)) for i in range(3))
    spec = JoinSpec(streams, bounds, directions, 4, tuple(OutputColumn(i, 0, f"t{i}") for i in range(3)))

    def made(items: list[tuple[int, int, int]]) -> pa.Table:
        times, x, y = zip(*items, strict=True)
        return pa.table(
            [pa.array(times, pa.timestamp("us")), pa.array(x, pa.int32()), pa.array(y, pa.int32())],
            names="txy",
        )

    batch = {
        0: made([(0, 1, 1), (1, 2, 5)]),
        1: made([(0, 3, 7), (9, 3, 8)]),
        2: made([(2, 1, 7), (3, 2, 7), (4, 1, 8)]),
    }
    expected = 2  # a(0,1,1) with b(0,3,7) and c(2,1,7); and with b(9,3,8) and c(4,1,8)
    for split in ([batch], [{i: t} for i, t in batch.items()], [{i: batch[i]} for i in (2, 1, 0)]):
        op = JoinOperator(spec)
        assert sum(len(feed(op, part)) for part in split) == expected


def test_a_failing_check_raises_while_iterating() -> None:
    left, right = sides()
    total = Call("<", (Call("+", (left, right), "bigint"), lit(0)), "boolean")
    spec = two(ScanKernel(), checks=(Predicate("a.key + b.key < 0", total),))
    batch = {0: rows([0], [(1 << 63) - 1]), 1: rows([0], [1])}
    with pytest.raises(ArithmeticError, match=r"^\[ARITHMETIC_OVERFLOW\]"):
        feed(JoinOperator(spec), batch)
    assert len(feed(JoinOperator(replace(spec, ansi=False)), batch)) == 1
