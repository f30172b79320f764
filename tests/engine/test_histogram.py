"""Histograms of the last rows of a stream: what counting one by one finds, wherever the rows are cut."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from sparkshed.engine.arrays import Vector
from sparkshed.engine.histogram import Histogram


@pytest.mark.parametrize("seed", range(30))
def test_counts_are_those_of_counting_one_by_one(seed):
    rng = Random(seed)
    window, keys, known = rng.choice([1, 5, 40]), rng.choice([2, 30]), []
    histogram, rank = Histogram(), 0
    for _ in range(rng.randint(1, 25)):
        # Rows that were dropped in front leave gaps between ranks.
        new = []
        for _ in range(rng.choice([0, 1, 3, 60])):
            rank += rng.choice([1, 1, 1, 4])
            new.append((rng.choice([None, *range(keys)]), rank, rng.choice([1.0, 2.5])))
        known += new
        histogram.add(*columns(new))
        asked = [(rng.choice([None, *range(keys + 1)]), rng.randint(rank - 2, rank + 3)) for _ in range(20)]
        values = vector([key for key, _ in asked])
        high = np.array([before for _, before in asked], np.int64)
        found, stands = histogram.count(values, high - window, high)
        for (key, before), own, weight in zip(asked, found.tolist(), stands.tolist(), strict=True):
            there = [w for k, r, w in known if k is not None and k == key and before - window <= r < before]
            assert (own, weight) == (len(there), sum(there))
        histogram.forget(rank - 2 - window)
    assert len(histogram._runs) <= 12


def test_sums_of_weights_do_not_depend_on_cuts():
    rng = np.random.default_rng(0)
    keys, ranks, weights = rng.integers(0, 5, 500), np.arange(500), 1 / rng.uniform(0.1, 1, 500)
    one, many = Histogram(), Histogram()
    one.add(Vector(keys, None), ranks, weights)
    for start in range(0, 500, 7):
        part = slice(start, start + 7)
        many.add(Vector(keys[part], None), ranks[part], weights[part])
    asked, high = Vector(np.arange(5), None), np.full(5, 480)
    for low in (0, 100):
        assert (
            one.count(asked, high * 0 + low, high)[1].tolist()
            == many.count(asked, high * 0 + low, high)[1].tolist()
        )
    assert one.count(asked, high * 0, high)[1].sum() == pytest.approx(weights[:480].sum(), rel=1e-6)


def vector(keys: list[int | None]) -> Vector:
    return Vector(
        np.array([key or 0 for key in keys], np.int64), np.array([key is not None for key in keys], bool)
    )


def columns(rows):
    return (
        vector([key for key, _, _ in rows]),
        np.array([rank for _, rank, _ in rows], np.int64),
        np.array([weight for _, _, weight in rows]),
    )
