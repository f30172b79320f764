"""How even the work is: ATR and CTR, which do not look at values, beside partitions by a hash of the key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sparkshed.engine.arrays import Floats
from sparkshed.experiments.diffusion.cluster import simulate
from sparkshed.experiments.diffusion.figures import params
from sparkshed.experiments.diffusion.hosts import Costs, Hosts
from sparkshed.experiments.diffusion.runs import INTERVAL, TICK, WAYS, Case, streams_of
from sparkshed.experiments.result import Result, Row, Settings, require

#: Keys, and what they are skewed by.
_KEYS, _SKEW = 1000, 1.0
#: What was asked for: standard deviation over mean of the work of hosts.
_WANTED = 0.2
#: Rates over those of the paper, so that hosts have a good part of the work that they can do.
_FACTORS = {10: 1.0, 30: 1.5}


def balance(settings: Settings) -> Result:
    """Work per host over several minutes, three streams with windows of 30 s.

    The keys of all streams follow a Zipf distribution. A hash gives each key a host; rows meet those of their
    key only, so a key makes work with the square of its frequency, of first hops alone.
    """
    rows: list[Row] = []
    cases = [(count, kind) for count in _FACTORS for kind in ("alike", "drawn")]
    for number, (count, kind) in enumerate(cases[:1] if settings.quick else cases):
        row: Row = {"hosts": count, "kind": kind}
        for way in ("atr", "ctr"):
            settings.progress(2 * number, 2 * len(cases), f"{count} hosts, {kind}, {way}")
            cv, busy = _measured(way, count, kind, settings)
            row |= {way: round(cv, 3), f"{way}_busy": round(busy, 3)}
            require(
                kind != "alike" or cv < _WANTED,
                f"{way}: work should vary by less than {_WANTED}, not {cv:.2f}",
            )
        row["hash"] = round(_hashed(count, settings.seed), 3)
        require(row["hash"] > 2 * max(row["atr"], row["ctr"]), f"hashing should be less even: {row}")
        rows.append(row)
    headline = {
        f"{way}_most_alike": max(r[way] for r in rows if r["kind"] == "alike") for way in ("atr", "ctr")
    }
    headline["hash_least"] = min(row["hash"] for row in rows)
    return Result("diffusion-balance", params(settings, keys=_KEYS, skew=_SKEW), rows, headline)


def _measured(way: str, count: int, kind: str, settings: Settings) -> tuple[float, float]:
    """Variation and mean of the time that hosts were busy."""
    warm_up, counted = (800.0, 200.0) if settings.quick else (1000.0, 500.0)
    case = Case(hosts=count, factor=_FACTORS[count])
    query, arrivals = streams_of(case, settings.seed, warm_up + counted)
    costs, rng = Costs(), np.random.default_rng([settings.seed, 1])
    hosts = Hosts.alike(count) if kind == "alike" else Hosts.drawn(count, rng, costs)
    report = simulate(
        query,
        arrivals,
        hosts,
        WAYS[way](query, hosts, settings.seed),
        costs,
        interval=round(INTERVAL / TICK),
        warm_up=round(warm_up / TICK),
    )
    return report.variation, float(np.mean(report.work))


def _hashed(count: int, seed: int) -> float:
    """Variation of the work where each key has a host, on average over ways to hash."""
    shares = zipf(_KEYS, _SKEW)
    rng = np.random.default_rng([seed, 3])
    found = []
    for _ in range(20):
        work = np.bincount(rng.integers(count, size=_KEYS), shares**2, minlength=count)
        found.append(_variation(work))
    return float(np.mean(found))


def zipf(keys: int, skew: float) -> Floats:
    """How frequent keys are.

    >>> zipf(3, 1.0).round(3).tolist()
    [0.545, 0.273, 0.182]
    """
    weights = np.arange(1, keys + 1) ** -skew
    found: Floats = weights / weights.sum()
    return found


def _variation(work: Sequence[float] | Floats) -> float:
    return float(np.std(work) / np.mean(work))
