"""The physical plan: everything a worker needs to run the join, and nothing about Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sparkshed.planner.slices import Slices
from sparkshed.sql.predicate import Band, Equality, Form, Overlap, Predicate, Similarity, WeightedOverlap

if TYPE_CHECKING:
    from sparkshed.planner.shedding import Shedding
    from sparkshed.planner.streaming import StreamingPlan

#: A time range over more basic windows than this is probed in larger windows.
MOST_WINDOWS = 8


@dataclass(frozen=True, slots=True)
class StreamExec:
    """One input of the operator.

    `types[c]` is the Spark type of input column c; `time` is the number of the column that holds
    the row's time (timestamp, timestamp_ntz or date). `strict_time` refuses a NULL time instead of
    dropping the row, because the SQL would let such a row join.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    time: int
    strict_time: bool = False

    def __post_init__(self) -> None:
        if len(self.columns) != len(self.types) or not 0 <= self.time < len(self.types):
            msg = f"stream {self.name!r}: columns, types and time do not fit together"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class EqualityKernel:
    """Look up rows with equal keys; several columns make one key."""

    keys: tuple[Equality, ...]

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up."""
        return self.keys


@dataclass(frozen=True, slots=True)
class BandKernel:
    """Look up rows in a range of values; several bands on one column of the target make one range.

    Every predicate has a band as its form; it is checked where rounding could decide.
    """

    predicates: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        if not self.predicates or len({band.exact for band in self.bands}) != 1:
            msg = "a band kernel needs bands, all of them exact or none"
            raise ValueError(msg)

    @property
    def bands(self) -> tuple[Band, ...]:
        """The ranges."""
        return tuple(p.form for p in self.predicates if isinstance(p.form, Band))

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up."""
        return self.bands


@dataclass(frozen=True, slots=True)
class SetKernel:
    """Look up rows that share `subset` items of a set, and count all that they share."""

    overlap: Overlap
    subset: int

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up."""
        return (self.overlap,)


@dataclass(frozen=True, slots=True)
class WeightedKernel:
    """Add up the products of weights, key by key; `predicate` is checked where rounding could decide."""

    overlap: WeightedOverlap
    predicate: Predicate

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up."""
        return (self.overlap,)


@dataclass(frozen=True, slots=True)
class VectorKernel:
    """Multiply blocks of vectors; `predicate` is checked where rounding could decide."""

    similarity: Similarity
    predicate: Predicate

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up."""
        return (self.similarity,)


@dataclass(frozen=True, slots=True)
class ScanKernel:
    """Compare with every row in the time range, block by block."""

    @property
    def forms(self) -> tuple[Form, ...]:
        """The conditions that it looks up: none."""
        return ()


Kernel = EqualityKernel | BandKernel | SetKernel | WeightedKernel | VectorKernel | ScanKernel


@dataclass(frozen=True, slots=True)
class Hop:
    """Extend partial results by stream `target`: candidates from `kernel`, then every check in turn."""

    target: int
    kernel: Kernel
    checks: tuple[Predicate, ...] = ()


@dataclass(frozen=True, slots=True)
class Direction:
    """How new rows of stream `origin` are joined: the order R_i, hop by hop."""

    origin: int
    hops: tuple[Hop, ...]


#: The probing stream, the streams that are joined already, and the one that is probed.
HopKey = tuple[int, frozenset[int], int]


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """One column of the operator's output: input column `column` of stream `stream`."""

    stream: int
    column: int
    name: str


@dataclass(frozen=True, slots=True)
class JoinSpec:
    """The join operator's whole configuration; picklable, and the same on every worker.

    `bounds[i][k]` is the largest `T_i - T_k` allowed, in microseconds (days for dates are converted),
    None where unbounded; the matrix is closed. `basic` is the basic window length in microseconds.
    `hops` has what other orders than those of `directions` need. With `rows`, windows hold the last so many
    rows of each stream that came.

    `beside` has other joins of the same streams that share the windows: a row is held once for all of them.
    Each has its own bounds, directions and hops; the output is that of this one, with the number of the join.
    """

    streams: tuple[StreamExec, ...]
    bounds: tuple[tuple[int | None, ...], ...]
    directions: tuple[Direction, ...]
    basic: int
    output: tuple[OutputColumn, ...]
    chunk: int = 1 << 18
    ansi: bool = True
    hops: Mapping[HopKey, Hop] = field(default_factory=dict)
    rows: int | None = None
    beside: tuple[JoinSpec, ...] = ()

    def __post_init__(self) -> None:
        m = len(self.streams)
        if any((own.streams, own.basic, own.beside) != (self.streams, self.basic, ()) for own in self.beside):
            msg = "joins that share windows must have the same streams and basic windows"
            raise ValueError(msg)
        if [d.origin for d in self.directions] != list(range(m)):
            msg = "one direction per stream is needed, in stream order"
            raise ValueError(msg)
        for direction in self.directions:
            visited = {direction.origin, *(hop.target for hop in direction.hops)}
            if visited != set(range(m)) or len(direction.hops) != m - 1:
                msg = f"direction {direction.origin} must visit every other stream once"
                raise ValueError(msg)

    @property
    def joins(self) -> tuple[JoinSpec, ...]:
        """This join, and those beside it."""
        return (self, *self.beside)

    @property
    def every_hop(self) -> list[Hop]:
        """The hops of all directions in any order."""
        return [*(hop for direction in self.directions for hop in direction.hops), *self.hops.values()]

    @property
    def orders(self) -> tuple[tuple[int, ...], ...]:
        """The order R_i of each direction."""
        return tuple(tuple(hop.target for hop in direction.hops) for direction in self.directions)

    @property
    def slices(self) -> tuple[tuple[Slices, ...], ...]:
        """The slices of the window on stream l that rows of stream i probe, by i and l."""
        return tuple(
            tuple(Slices.of(past, self.bounds[target][origin], self.basic) for target, past in enumerate(row))
            for origin, row in enumerate(self.bounds)
        )

    @property
    def retentions(self) -> tuple[int | None, ...]:
        """How long a row of each stream k can match: the largest `T_i - T_k` of any join; None for ever."""
        found: list[int | None] = []
        for k, _ in enumerate(self.streams):
            reach = [row[k] for join in self.joins for i, row in enumerate(join.bounds) if i != k]
            finite = [bound for bound in reach if bound is not None]
            found.append(max(finite) if len(finite) == len(reach) else None)
        return tuple(found)

    def direction(self, origin: int, order: Sequence[int]) -> Direction:
        """How rows of a stream are joined in another order, or in the first part of one."""
        known = self.directions[origin]
        if tuple(order) == tuple(hop.target for hop in known.hops):
            return known
        joined = [frozenset((origin, *order[:number])) for number in range(len(order))]
        return Direction(
            origin, tuple(self.hops[origin, seen, target] for seen, target in zip(joined, order, strict=True))
        )


#: What the busiest host, or the slowest group, would have to do with each routing that was considered.
Loads = tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Which group of rows joins where.

    A row of the master stream belongs to one group: its key's bucket and its time's segment. Rows
    of the others go to every segment in which a master row could meet them.

        master   |--- segment 0 ---|--- segment 1 ---|--- segment 2 ---|
        slave         |<------- rows that segment 1 needs ------->|
                      W before                            W after

    `keys[i]` is the input column of stream i that is equal in all streams, None without one; `cuts`
    are the times at which segments end. Where the join is `relayed`, each row of any stream belongs to the
    segment of its time only, and partial results travel from segment to segment.
    """

    master: int
    buckets: int = 1
    cuts: tuple[int, ...] = ()
    keys: tuple[int, ...] | None = None
    relayed: bool = False

    def __post_init__(self) -> None:
        if self.buckets > 1 and self.keys is None:
            msg = "hash buckets need a key in every stream"
            raise ValueError(msg)
        if list(self.cuts) != sorted(set(self.cuts)):
            msg = "cuts must ascend"
            raise ValueError(msg)

    @property
    def segments(self) -> int:
        """Number of time segments."""
        return len(self.cuts) + 1

    @property
    def groups(self) -> int:
        """Number of groups."""
        return self.buckets * self.segments

    @property
    def routing(self) -> str:
        """The routing in the hint's words."""
        if self.relayed:
            return "ctr"
        if self.groups == 1:
            return "none"
        if self.segments == 1:
            return "hash"
        return "atr" if self.buckets == 1 else "hash+atr"


@dataclass(frozen=True, slots=True)
class KernelEstimate:
    """One way to make a hop: its kernel, and what one probe costs with it.

    Attributes:
        kernel: The kernel.
        checks: How many conditions it leaves to be checked.
        entries: Rows or index entries that a probe touches.
        cost: Expected cost of a probe, in units of one comparison.
    """

    kernel: Kernel
    checks: int
    entries: float
    cost: float


@dataclass(frozen=True, slots=True)
class HopEstimate:
    """What one hop is expected to do.

    Attributes:
        window: Rows of the target within the time range of a probe.
        selectivity: Share of them that match.
        probes: Partial results that enter the hop, over the whole input.
        partials: Partial results after the hop, over the whole input.
        kernels: The ways to make it, the chosen one first.
    """

    window: float
    selectivity: float
    probes: float
    partials: float
    kernels: tuple[KernelEstimate, ...]


@dataclass(frozen=True, slots=True)
class ShedJoinExec:
    """The physical plan of one hinted block; without `shedding` it computes everything."""

    strategy: str
    spec: JoinSpec
    layout: Layout
    estimates: tuple[tuple[HopEstimate, ...], ...]
    replication: float
    loads: Loads = ()
    shedding: Shedding | None = None
    streaming: StreamingPlan | None = None

    @property
    def has_master(self) -> bool:
        """Whether rows of one stream do all the probing: in batch, unless windows are of rows."""
        return self.streaming is None and self.spec.rows is None

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions in the orders that are used first."""
        if self.shedding is None:
            return self.spec.directions
        orders = self.shedding.configuration.orders
        return tuple(self.spec.direction(origin, order) for origin, order in enumerate(orders))
