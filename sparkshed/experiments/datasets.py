"""The streams of the experiments with limited windows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

import pyarrow as pa

from sparkshed.experiments.feeds import SECOND
from sparkshed.experiments.result import Settings
from sparkshed.experiments.windowed import Data, Trials
from sparkshed.workloads.bursty import DAY, market_tables, renewal_tables
from sparkshed.workloads.recorded import AIRPORTS, airport_tables, file_tables

#: Rows of a stream that the window over a file holds on average.
_HELD = 240
_HOUR = 3600.0


def synthetic(settings: Settings, window: float = 60.0, values: int = 100) -> Data:
    """Two streams of one day with Zipf's law and Pareto's; a second stands for a minute."""
    part = 0.25 if settings.quick else 1.0
    seeds = [2 * settings.seed + k for k in range(2)]
    tables = renewal_tables(seeds, round(4800 * part), DAY * part, values)
    return Data("synthetic", tables, window, seed=settings.seed)


def stock(settings: Settings, window: float = 60.0, m: int = 2, rate: float = 23.0) -> Data:
    """One market in m places; quick runs have two minutes of it."""
    seconds = 120.0 if settings.quick else 420.0
    return Data("stock-like", market_tables(m, seconds, settings.seed, rate), window, seed=settings.seed)


def weather(settings: Settings, airports: tuple[str, str] = ("EWR", "JFK")) -> Data:
    """The dew points at two airports, each hour of a year; the window has ten days."""
    tables = airport_tables("dewp", airports, 1200 if settings.quick else None)
    return Data("weather", tables, 240 * _HOUR, seed=settings.seed)


def departures(settings: Settings) -> Data:
    """The destinations of flights from three airports, some weeks of them; the window has six hours."""
    tables = airport_tables("dest", AIRPORTS, 1200 if settings.quick else 6000)
    return Data("departures", tables, 6 * _HOUR, seed=settings.seed)


def given(settings: Settings) -> Data | None:
    """The file that the user named, if any."""
    if settings.data is None:
        return None
    tables = file_tables(settings.data, settings.key, settings.streams)
    if settings.quick:
        tables = tuple(table.slice(0, 1200) for table in tables)
    data = Data(settings.data.stem, tables, 1.0)
    times = tables[0]["ts"].cast(pa.int64()).to_numpy()
    return replace(
        data, seed=settings.seed, window=_HELD * (int(times[-1]) - int(times[0])) / SECOND / len(times)
    )


def datasets(settings: Settings, repeats: int = 1) -> Iterator[Trials]:
    """What experiments run on: the user's file if there is one.

    Args:
        settings: Of the experiment.
        repeats: Streams that are made anew are as many; recorded ones are of all pairs of airports, then.
    """
    own = given(settings)
    if own:
        yield Trials([own])
        return
    for make in (synthetic, stock):
        yield Trials([make(seeded) for seeded in settings.repeats(repeats)])
    pairs = list(combinations(AIRPORTS, 2))
    several = repeats > 1 and not settings.quick
    yield Trials([weather(settings, pair) for pair in (pairs if several else pairs[:1])])
    yield Trials([departures(settings)])


def kinds(settings: Settings) -> int:
    """How many kinds of streams these are."""
    return 4 if settings.data is None else 1
