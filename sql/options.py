"""The options of the SHED hint: one definition each, from which parsing and docs are made."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from sparkshed.sql.errors import HintError, listing

CPU = ("grubjoin", "randomdrop", "adaptive", "dual")
EVICTION = ("gdj", "prob", "age", "lru", "lfu", "fifo", "rand")
STRATEGIES = ("exact", *CPU, *EVICTION)

#: Strategies whose windows may have a limit in memory; those of `dual` are counted in rows already.
LIMITABLE = ("grubjoin", "randomdrop", "adaptive", *EVICTION)

HARVESTS = ("lagrange", "greedy", "greedy_reverse", "greedy_double", "exhaustive")
METRICS = ("best_output", "best_output_per_cost", "best_delta")
ADAPTATIONS = ("rate", "time", "direction")
DIFFUSIONS = ("auto", "hash", "atr", "ctr", "none")
METHODS = ("method1", "method2", "method3")

_UNITS = {
    "microsecond": 1,
    "us": 1,
    "millisecond": 1_000,
    "ms": 1_000,
    "second": 1_000_000,
    "s": 1_000_000,
    "minute": 60_000_000,
    "min": 60_000_000,
    "hour": 3_600_000_000,
    "h": 3_600_000_000,
    "day": 86_400_000_000,
    "d": 86_400_000_000,
}
_BYTES = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30}


@dataclass(frozen=True, slots=True)
class Memory:
    """A limit for all windows together, in rows or in bytes."""

    amount: int
    unit: str


@dataclass(frozen=True, slots=True)
class Diffusion:
    """How the join is spread: the routing, and the number of hosts if fixed."""

    routing: str
    hosts: int | None = None

    @property
    def text(self) -> str:
        """As it is written."""
        return self.routing if self.hosts is None else f"{self.routing}:{self.hosts}"


@dataclass(frozen=True, slots=True)
class Credits:
    """A rule of the GreedyDual-Join paper: METHOD 1, 2 or 3, and the percentile that rows start with."""

    method: int
    percentile: float


@dataclass(frozen=True, slots=True)
class Option:
    """One hint option.

    Attributes:
        name: As written in the hint.
        default: As shown to users.
        allowed: What a value may be, in words.
        meaning: One line for the reference.
        strategies: Strategies it has an effect on.
        parse: Turns the text into a value; raises ValueError otherwise.
    """

    name: str
    default: str
    allowed: str
    meaning: str
    strategies: tuple[str, ...]
    parse: Callable[[str], object]


def duration(text: str) -> int:
    """Microseconds of a duration such as `2 seconds`.

    >>> duration("2 seconds"), duration("1.5 min"), duration("250ms")
    (2000000, 90000000, 250000)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    unit = _UNITS.get(match[2]) or _UNITS.get(match[2].rstrip("s")) if match else None
    if match is None or unit is None:
        raise ValueError(text)
    micros = round(float(match[1]) * unit)
    if micros < 1:
        raise ValueError(text)
    return micros


def _number(low: float, high: float, *, open_low: bool) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = float(text)
        if not (low < value if open_low else low <= value) or not value <= high:
            raise ValueError(text)
        return value

    return parse


_SHARE = _number(0, 1, open_low=False)


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError(text)
        return text.lower()

    return parse


def _auto_or(parse_value: Callable[[str], object]) -> Callable[[str], object]:
    return lambda text: "auto" if text.lower() == "auto" else parse_value(text)


def _harvest(text: str) -> tuple[str, str | None]:
    chooser, _, metric = text.lower().partition(":")
    if chooser not in HARVESTS or (metric and (metric not in METRICS or not chooser.startswith("greedy"))):
        raise ValueError(text)
    return chooser, metric or None


def _orders(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    orders = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        origin, colon, hops = part.partition(":")
        names = tuple(hop.strip() for hop in hops.split(">"))
        if not colon or not origin.strip() or not all(names):
            raise ValueError(text)
        orders.append((origin.strip(), names))
    if not orders:
        raise ValueError(text)
    return tuple(orders)


def _memory(text: str) -> Memory:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(b|kb|mb|gb|rows?)?", text.strip().lower())
    if match is None:
        raise ValueError(text)
    unit = match[2] or "rows"
    amount = round(float(match[1]) * _BYTES.get(unit, 1))
    if amount < 1:
        raise ValueError(text)
    return Memory(amount, "bytes" if unit in _BYTES else "rows")


def _credits(text: str) -> Credits | None:
    if text.lower() == "learned":
        return None
    method, _, percentile = text.lower().partition(":")
    if method not in METHODS:
        raise ValueError(text)
    return Credits(METHODS.index(method) + 1, _SHARE(percentile))


def _counters(text: str) -> int | None:
    if text.lower() == "exact":
        return None
    kind, _, counters = text.lower().partition(":")
    if kind != "sketch":
        raise ValueError(text)
    return _rows(counters)


def _adaptations(text: str) -> tuple[str, ...]:
    words = {word.strip().lower() for word in text.split(",")}
    if not words <= set(ADAPTATIONS):
        raise ValueError(text)
    return tuple(word for word in ADAPTATIONS if word in words)


def _rows(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError(text)
    return value


def _diffusion(text: str) -> Diffusion:
    routing, colon, hosts = text.lower().partition(":")
    if routing not in DIFFUSIONS or (colon and routing == "none"):
        raise ValueError(text)
    return Diffusion(routing, _rows(hosts) if colon else None)


OPTIONS: dict[str, Option] = {
    option.name: option
    for option in (
        Option(
            "budget",
            "auto",
            "`auto`, or a number above 0 and at most 1",
            "share of the full join's work that may be spent; `auto` follows the load and is 1 in batch",
            CPU,
            _auto_or(_number(0, 1, open_low=True)),
        ),
        Option(
            "basic",
            "a tenth of the longest window",
            "a duration such as `2 seconds` or `500 ms`",
            "basic window length: the unit in which windows are stored, indexed and harvested; `exact` in "
            "batch takes a longer one where a tenth holds fewer than 256 rows",
            STRATEGIES,
            duration,
        ),
        Option(
            "adapt",
            "5 seconds",
            "a duration such as `5 seconds`",
            "adaptation interval of a streaming join",
            CPU,
            duration,
        ),
        Option(
            "boost",
            "1.2",
            "a number above 1 and at most 10",
            "boost factor γ: how fast the throttle of a streaming join opens again",
            CPU,
            _number(1, 10, open_low=True),
        ),
        Option(
            "shred",
            "0.1",
            "a number above 0 and at most 1",
            "share of new rows, at most, that are joined with a sample of each window, to learn from",
            ("grubjoin", "adaptive"),
            _number(0, 1, open_low=True),
        ),
        Option(
            "harvest",
            "lagrange",
            f"one of {listing(HARVESTS)}; the greedy ones take a metric, `greedy:best_delta`",
            "how the segments to probe are chosen",
            ("grubjoin",),
            _harvest,
        ),
        Option(
            "histograms",
            "pairwise",
            "`pairwise` or `per_stream`",
            "what is learned of the time correlations",
            ("grubjoin",),
            _one_of("pairwise", "per_stream"),
        ),
        Option(
            "order",
            "chosen from a sample",
            "orders such as `a:b>c; b:a>c; c:b>a`, each naming every other stream once",
            "fixed join orders, one per direction",
            STRATEGIES,
            _orders,
        ),
        Option(
            "memory",
            "–",
            "a number of rows, or a size such as `64 MB`",
            "what all windows together may hold; required by the memory strategies",
            LIMITABLE,
            _memory,
        ),
        Option(
            "buffers",
            "unified",
            "`unified` or `proportional`",
            "one buffer for all streams, or one each",
            LIMITABLE,
            _one_of("unified", "proportional"),
        ),
        Option(
            "evict",
            "gdj",
            f"one of {listing(EVICTION)}",
            "which rows leave when `memory` is given to a CPU strategy",
            LIMITABLE[:3],
            _one_of(*EVICTION),
        ),
        Option(
            "sample",
            "–",
            "`auto`, or a number from 0 to 1",
            "drop probability in front of a limited buffer; `auto` gives unbiased sampling",
            LIMITABLE,
            _auto_or(_number(0, 1, open_low=False)),
        ),
        Option(
            "credits",
            "learned",
            "`learned`, or a rule and a percentile from 0 to 1, `method1:0.8`, with `method1`, `method2` or "
            "`method3`",
            "how rows earn credit where `gdj` decides who leaves: as arrivals teach, or by a rule of the "
            "paper, in which rows start with a percentile of all credits",
            ("grubjoin", "randomdrop", "adaptive", "gdj"),
            _credits,
        ),
        Option(
            "counts",
            "exact",
            "`exact`, or a sketch of so many counters for each stream, `sketch:4096`",
            "how often values came, where `prob` decides who leaves: a counter for each value, or a "
            "count-min sketch, whose size does not grow",
            ("grubjoin", "randomdrop", "adaptive", "prob"),
            _counters,
        ),
        Option(
            "adaptations",
            "all",
            f"any of {listing(ADAPTATIONS)}, separated by commas",
            "what `adaptive` adapts: how much is done, which slices come first, how it is shared between the "
            "directions",
            ("adaptive",),
            _adaptations,
        ),
        Option(
            "rows",
            "–",
            "a whole number of rows, at least 1",
            "join over the last so many rows of each stream; required by `dual`, which needs no time bounds",
            ("dual",),
            _rows,
        ),
        Option(
            "diffuse",
            "auto",
            "`auto`, `none`, `hash`, `atr` or `ctr`; `auto:4` or `atr:4` fixes the number of hosts",
            "how the join is spread over hosts",
            STRATEGIES,
            _diffusion,
        ),
        Option(
            "seed",
            "drawn when the statement is planned",
            "a whole number, 0 or more",
            "makes shredding and sampling repeatable",
            STRATEGIES,
            _seed,
        ),
    )
}


def bad_value(option: Option, text: str) -> HintError:
    """The error for a value that an option does not take."""
    return HintError(
        f"SHED option `{option.name}` cannot be `{text}`: it takes {option.allowed}. "
        f"Write it as '{option.name}=…' inside the hint."
    )
