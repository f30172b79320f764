"""Why there is something to keep: how often values come, and how soon they come again."""

from __future__ import annotations

import numpy as np

from sparkshed.experiments.datasets import datasets, kinds
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.workloads.streams import Ints

#: Sizes of a cache, as shares of the values that there are.
SIZES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def stack_distances(values: Ints) -> Ints:
    """How many other values came between two equal ones, for each value that came before.

    >>> stack_distances(np.array([1, 2, 2, 3, 1])).tolist()
    [0, 2]
    """
    stack: list[int] = []
    found = []
    for value in values.tolist():
        if value in stack:
            place = stack.index(value)
            found.append(place)
            del stack[place]
        stack.insert(0, value)
    return np.array(found, np.int64)


def fig2(settings: Settings) -> Result:
    """Popularity by rank, and stack distances of a trace beside those of the same trace shuffled."""
    rows: list[Row] = []
    headline: dict[str, float] = {}
    for number, trials in enumerate(datasets(settings)):
        (data,) = trials.runs
        settings.progress(number, kinds(settings), data.name)
        values = data.tables[0]["k"].to_numpy()
        counts = np.sort(np.bincount(values))[::-1]
        counts = counts[counts > 0]
        ranks = np.arange(1, len(counts) + 1)
        slope = float(np.polyfit(np.log(ranks), np.log(counts), 1)[0])
        rng = np.random.default_rng(settings.seed)
        own, shuffled = stack_distances(values), stack_distances(rng.permutation(values))
        for size in SIZES:
            places = max(1, round(size * len(counts)))
            rows.append(
                {
                    "data": data.name,
                    "cache": size,
                    "hits": round(float(np.mean(own < places)), 4),
                    "shuffled": round(float(np.mean(shuffled < places)), 4),
                    "popularity": round(float(counts[:places].sum() / counts.sum()), 4),
                }
            )
        tenth = next(row for row in rows if row["data"] == data.name and row["cache"] == 0.1)
        headline[f"slope_{data.name}"] = round(-slope, 3)
        headline[f"gain_of_order_{data.name}"] = round(tenth["hits"] / tenth["shuffled"], 3)
    require(all(row["hits"] == 1 for row in rows if row["cache"] == 1), "a cache for all values hits always")
    return Result("gdj-fig2.1", {"seed": settings.seed}, rows, headline)
