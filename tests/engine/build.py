"""Random joins: schemas, rows, predicates, bounds and a plan that uses any kernel that applies."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from copy import copy
from decimal import Decimal
from itertools import permutations
from random import Random
from typing import Any

import pyarrow as pa

from sparkshed.engine.operator import JoinOperator
from sparkshed.planner.physical import (
    BandKernel,
    Direction,
    EqualityKernel,
    Hop,
    HopKey,
    JoinSpec,
    Kernel,
    OutputColumn,
    ScanKernel,
    StreamExec,
)
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.predicate import Band, Equality, Predicate

TYPES = {
    "id": "bigint",
    "ts": "timestamp",
    "k": "int",
    "b": "bigint",
    "s": "string",
    "d": "double",
    "f": "float",
    "c": "decimal(10,2)",
    "w": "decimal(30,2)",
    "u": "timestamp",
    "day": "date",
    "flag": "boolean",
}
ARROW = {
    "bigint": pa.int64(),
    "int": pa.int32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "double": pa.float64(),
    "float": pa.float32(),
    "decimal(10,2)": pa.decimal128(10, 2),
    "decimal(30,2)": pa.decimal128(30, 2),
    "date": pa.date32(),
    "boolean": pa.bool_(),
}
INTERVAL = "interval day to second"


def table(rows: list[tuple[Any, ...]], stream: StreamExec) -> pa.Table:
    """Rows in physical form as an Arrow table."""
    arrays = []
    for c, type_ in enumerate(stream.types):
        values = [row[c] for row in rows]
        if type_ in ("timestamp", "timestamp_ntz"):
            arrays.append(pa.array(values, pa.int64()).cast(ARROW[type_]))
        elif type_ == "date":
            arrays.append(pa.array(values, pa.int32()).cast(pa.date32()))
        else:
            arrays.append(pa.array(values, ARROW[type_]))
    return pa.table(arrays, names=[f"c{c}" for c in range(len(arrays))])


def value(rng: Random, name: str) -> Any:
    if name != "id" and rng.random() < 0.1:
        return None
    if name in ("k", "b"):
        return rng.randint(-1, 1)
    if name == "u":
        return rng.randint(0, 4)
    if name == "day":
        return rng.randint(0, 2)
    if name == "s":
        return rng.choice(["", "a", "a", "ä", "ab", "a\0", "a rather long word", "a rather long wore"])
    if name in ("d", "f"):
        return rng.choice([0.0, -0.0, 0.5, 0.5, 1.0, math.nan, math.inf, -math.inf])
    if name == "flag":
        return rng.random() < 0.5
    if name == "w" and rng.random() < 0.3:
        return rng.choice([-1, 1]) * 10**22 + Decimal(rng.randint(-1, 1) * 5).scaleb(-1)
    return Decimal(rng.randint(-1, 1) * 5).scaleb(-1)


def close(bounds: list[list[int | None]]) -> tuple[tuple[int | None, ...], ...]:
    """Shortest paths: what the bounds imply for every pair."""
    m = len(bounds)
    inf = math.inf
    d: list[list[float]] = [[inf if b is None else b for b in row] for row in bounds]
    for j in range(m):
        for i in range(m):
            for k in range(m):
                d[i][k] = min(d[i][k], d[i][j] + d[j][k])
    return tuple(tuple(None if b == inf else int(b) for b in row) for row in d)


class World:
    """Everything that one random join consists of."""

    def __init__(self, rng: Random, m: int, rows: int) -> None:
        self.rng = rng
        self.streams: list[StreamExec] = []
        self.rows: list[list[tuple[Any, ...]]] = []
        for i in range(m):
            names = [n for n in TYPES if n in ("id", "ts") or rng.random() < 0.7]
            rng.shuffle(names)
            types = [TYPES[n] if n != "ts" else rng.choice(["timestamp", "timestamp_ntz"]) for n in names]
            self.streams.append(StreamExec(f"s{i}", tuple(names), tuple(types), names.index("ts")))
            count = rng.choice([0, 1] + [rows] * 14)
            self.rows.append([self._row(names, n) for n in range(count)])
        self.bounds = self._bounds(m)
        self.predicates = [self._predicate() for _ in range(rng.randint(0, min(m, 3)))]
        self.ids = [stream.columns.index("id") for stream in self.streams]

    def another(self) -> World:
        """Another join of the same rows."""
        other = copy(self)
        other.bounds = self._bounds(len(self.streams))
        other.predicates = [self._predicate() for _ in range(self.rng.randint(0, min(len(self.streams), 3)))]
        return other

    def _row(self, names: list[str], number: int) -> tuple[Any, ...]:
        out = []
        for name in names:
            if name == "id":
                out.append(number)
            elif name == "ts":
                out.append(None if self.rng.random() < 0.03 else self.rng.randint(-7, 7))
            else:
                out.append(value(self.rng, name))
        return tuple(out)

    def _bounds(self, m: int) -> tuple[tuple[int | None, ...], ...]:
        def some() -> int | None:
            return self.rng.choice([None, None, 0, 2, 5, 9, 20, 20, -1])

        bounds = [[0 if i == k else some() for k in range(m)] for i in range(m)]
        closed = close(bounds)
        if any(closed[i][i] != 0 for i in range(m)):
            return close([[0 if i == k else 6 for k in range(m)] for i in range(m)])
        return closed

    def column(self, name: str, stream: int) -> Col:
        c = self.streams[stream].columns.index(name)
        return Col(stream, c, self.streams[stream].types[c], f"s{stream}.{name}")

    def _pair(self, names: Iterable[str]) -> tuple[str, int, int] | None:
        options = []
        for name in names:
            having = [i for i, s in enumerate(self.streams) if name in s.columns]
            if len(having) > 1:
                options.append((name, *self.rng.sample(having, 2)))
        return self.rng.choice(options) if options else None

    def _predicate(self) -> Predicate:
        make = self.rng.choice([self._equality, self._band, self._inexact, self._general])
        return make() or self._order()

    def _order(self) -> Predicate:
        i, k = self.rng.sample(range(len(self.streams)), 2)
        left, right = self.column("id", i), self.column("id", k)
        return Predicate("order", Call("<=", (left, Call("+", (right, lit(3)), "bigint")), "boolean"))

    def _equality(self) -> Predicate | None:
        pair = self._pair(["k", "s", "d", "f", "c", "w", "u", "day", "flag"])
        if pair is None:
            return None
        left, right = self.column(pair[0], pair[1]), self.column(pair[0], pair[2])
        safe = self.rng.random() < 0.4
        expr = Call("<=>" if safe else "=", (left, right), "boolean")
        return Predicate("equality", expr, Equality(left, right, safe))

    def _band(self) -> Predicate | None:
        pair = self._pair(["b", "u"])
        if pair is None:
            return None
        left, right = self.column(pair[0], pair[1]), self.column(pair[0], pair[2])
        low, high = self.rng.choice([(-1, 1), (0, 2), (None, 0), (1, None), (-2, -1), (0, 0)])
        type_ = "bigint" if pair[0] == "b" else INTERVAL
        return Predicate(
            "band",
            within(Call("-", (left, right), type_), low, high, type_),
            Band(left, right, low, high, True),
        )

    def _inexact(self) -> Predicate | None:
        pair = self._pair(["d", "f", "c", "w"])
        if pair is None:
            return None
        left, right = self.column(pair[0], pair[1]), self.column(pair[0], pair[2])
        low, high = self.rng.choice([(-0.5, 0.5), (0.0, 1.0), (None, 0.5), (0.5, None)])
        type_ = {"d": "double", "f": "float", "c": "decimal(11,2)", "w": "decimal(31,2)"}[pair[0]]
        exact = type_.startswith("decimal")
        bounds = [None if b is None else (Decimal(str(b)) if exact else b) for b in (low, high)]
        expr = within(Call("-", (left, right), type_), bounds[0], bounds[1], type_)
        return Predicate("inexact", expr, Band(left, right, low, high, False))

    def _general(self) -> Predicate | None:
        pair = self._pair(["k", "s", "d", "w"])
        if pair is None:
            return None
        left, right = self.column(pair[0], pair[1]), self.column(pair[0], pair[2])
        less = Call(self.rng.choice(["<", "<=", ">", ">="]), (left, right), "boolean")
        null = Call("isnull", (left,), "boolean")
        options: list[Expr] = [
            less,
            Call("or", (less, null), "boolean"),
            Call("not", (Call("and", (less, Call("not", (null,), "boolean")), "boolean"),), "boolean"),
            Call("case", (null, Call("isnull", (right,), "boolean"), less), "boolean"),
            Call("in", (left, right, Lit(None, left.type, "NULL")), "boolean"),
            Call("=", (Call("greatest", (left, right), left.type), left), "boolean"),
            Call("<", (Call("coalesce", (left, right), left.type), right), "boolean"),
        ]
        if pair[0] == "s":
            word = Lit(self.rng.choice(["a", "a rather long word", "b", ""]), "string", "word")
            options += [
                Call("and", (less, Call(self.rng.choice(["<", "="]), (right, word), "boolean")), "boolean"),
                Call("not", (Call("in", (left, right, word), "boolean"),), "boolean"),
                Call("=", (Call("case", (null, word, left), "string"), right), "boolean"),
            ]
        return Predicate("general", self.rng.choice(options))

    def spec(self, chunk: int, basic: int) -> JoinSpec:
        m = len(self.streams)
        output = tuple(OutputColumn(i, self.ids[i], f"id{i}") for i in range(m))
        directions = tuple(self._direction(i) for i in range(m))
        hops = dict(self._first_hops())
        return JoinSpec(tuple(self.streams), self.bounds, directions, basic, output, chunk, hops=hops)

    def _first_hops(self) -> Iterator[tuple[HopKey, Hop]]:
        """Hops from single streams to any other: rows may try them."""
        for origin, target in permutations(range(len(self.streams)), 2):
            due = [p for p in self.predicates if p.streams == {origin, target}]
            kernel, used = self._kernel(due, target)
            left = tuple(p for p in due if p not in used)
            yield (origin, frozenset([origin]), target), Hop(target, kernel, left)

    def _direction(self, origin: int) -> Direction:
        others = [i for i in range(len(self.streams)) if i != origin]
        self.rng.shuffle(others)
        bound, hops = {origin}, []
        for target in others:
            bound = bound | {target}
            due = [p for p in self.predicates if target in p.streams and p.streams <= bound]
            kernel, used = self._kernel(due, target)
            hops.append(Hop(target, kernel, tuple(p for p in due if p not in used)))
        return Direction(origin, tuple(hops))

    def _kernel(self, due: list[Predicate], target: int) -> tuple[Kernel, list[Predicate]]:
        equal = [p for p in due if isinstance(p.form, Equality)]
        bands = [p for p in due if isinstance(p.form, Band)]
        if equal and self.rng.random() < 0.7:
            return EqualityKernel(tuple(p.form for p in equal)), equal  # type: ignore[misc]
        if bands and self.rng.random() < 0.8:
            first = self.rng.choice(bands)
            together = [band for band in bands if _column(band, target) == _column(first, target)]
            return BandKernel(tuple(together)), together
        return ScanKernel(), []


def _column(band: Predicate, target: int) -> tuple[int, bool]:
    """What an index for the band would sort by."""
    assert isinstance(band.form, Band)
    own = band.form.left if band.form.left.stream == target else band.form.right
    return own.column, band.form.exact


def lit(number: Any, type_: str = "bigint") -> Lit:
    return Lit(number, type_, str(number))


def within(difference: Expr, low: Any, high: Any, type_: str) -> Expr:
    sides: list[Expr] = []
    if low is not None:
        sides.append(Call(">=", (difference, lit(low, type_)), "boolean"))
    if high is not None:
        sides.append(Call("<=", (difference, lit(high, type_)), "boolean"))
    return sides[0] if len(sides) == 1 else Call("and", tuple(sides), "boolean")


def collect(op: JoinOperator, batch: dict[int, pa.Table | None], limit: int) -> Counter[tuple[Any, ...]]:
    """Results of one micro-batch as a multiset of rows; no chunk may exceed the limit."""
    chunks = list(op.process(batch))
    assert all(0 < results.num_rows <= limit for results in chunks)
    return counted(chunks)


def counted(chunks: Iterable[pa.RecordBatch]) -> Counter[tuple[Any, ...]]:
    """The rows of some chunks as a multiset."""
    found: Counter[tuple[Any, ...]] = Counter()
    for results in chunks:
        found.update(zip(*(column.to_pylist() for column in results.columns), strict=True))
    return found
