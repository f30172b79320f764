"""One buffer for several joins, more than two streams, several attributes, and samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.experiments.datasets import given, stock, weather
from sparkshed.experiments.distortion import kl, sse
from sparkshed.experiments.evicting import FEW, MANY, SHARE, ahead
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.windowed import POLICIES, Data, Trials, compared, lead, limit_of, run
from sparkshed.workloads.correlated import attribute_table, correlated_pair

#: AGE is for streams in which rows of some ages have more results.
WITHOUT_AGE = tuple(policy for policy in POLICIES if policy != "age")
#: The streams of generated pairs: rows per second, seconds and the window.
_RATE, _SECONDS, _WINDOW = 8.0, 600.0, 60.0
#: Trades per second of a market in many places; with more, there are too many results.
_SLOW = 6.0


def fig6(settings: Settings) -> Result:
    """Two joins over four streams, directly and inversely correlated: one buffer, or a part for each stream.

    Joins that share a buffer join the same streams, and these have none in common. So the keys of the second
    join are numbered apart, and the two first streams make one stream, as do the two second ones: their join
    has the results of both. With a part for each, every join runs by itself in half of the memory.
    """
    seconds = _SECONDS / (4 if settings.quick else 1)
    pairs = [
        Data(kind, correlated_pair(kind, _RATE, seconds, seed=2 * settings.seed + k), _WINDOW)
        for k, kind in enumerate(("direct", "inverse"))
    ]
    both = Data("both", _together(*(pair.tables for pair in pairs)), _WINDOW)
    fulls = [run(data) for data in (*pairs, both)]
    require(fulls[0].results + fulls[1].results == fulls[2].results, "the joins should not meet")
    rows: list[Row] = []
    for number, policy in enumerate(("rand", "prob", "gdj")):
        settings.progress(number, 3, policy)
        limit = replace(limit_of(both, SHARE), policy=policy)
        half = replace(limit, rows=limit.limit // 2)
        apart = [run(data, half, settings.seed).results for data in pairs]
        one = run(both, replace(limit, unified=True), settings.seed)
        direct = int(one.values[:100].sum())
        ways = (("proportional", sum(apart), apart[0]), ("unified", one.results, direct))
        for kind, results, first in ways:
            rows.append(
                {
                    "policy": f"{kind} {policy}",
                    "results": results,
                    "direct": first,
                    "inverse": results - first,
                    "output": round(results / fulls[2].results, 4),
                }
            )
    by = {row["policy"]: row["results"] for row in rows}
    require(max(by.values()) <= fulls[2].results, "nobody should deliver more than there is")
    headline = {
        "unified_gdj_over_proportional_prob": round(by["unified gdj"] / by["proportional prob"], 4),
        "unified_gdj_over_proportional_gdj": round(by["unified gdj"] / by["proportional gdj"], 4),
        "unified_rand_over_proportional_rand": round(by["unified rand"] / by["proportional rand"], 4),
    }
    return Result("gdj-fig6", {"buffer": SHARE, "seed": settings.seed}, rows, headline)


def _together(first: Sequence[pa.Table], second: Sequence[pa.Table]) -> tuple[pa.Table, ...]:
    """Streams of two joins as two streams; the keys of the second join come after those of the first."""
    tables = []
    for one, other in zip(first, second, strict=True):
        apart = other.set_column(other.column_names.index("k"), "k", pc.add(other["k"], 100))
        tables.append(pa.concat_tables([one, apart]).sort_by("ts"))
    return tuple(tables)


def fig7(settings: Settings) -> Result:
    """Output by the number of streams, and by the number of attributes that are joined."""
    counts = (2, 3) if settings.quick else (2, 3, 4, 5)
    rows: list[Row] = []
    for number, m in enumerate(counts):
        settings.progress(number, 2 * len(counts), f"{m} streams")
        trials = Trials([stock(own, _WINDOW, m, _SLOW) for own in settings.repeats(MANY)])
        rows.append({"varied": "streams", "value": m, **compared(trials.each(SHARE))})
    streams = ahead(rows, settings)
    for number, attributes in enumerate((1, 2) if settings.quick else (1, 2, 3, 4)):
        settings.progress(len(counts) + number, 2 * len(counts), f"{attributes} attributes")
        skews = [(0.3 * (k + 1), 0.0) for k in range(attributes)]
        trials = Trials([_attributes(own, skews) for own in settings.repeats(FEW)])
        rows.append(
            {"varied": "attributes", "value": attributes, **compared(trials.each(SHARE, WITHOUT_AGE))}
        )
    by = {(row["varied"], row["value"]): row for row in rows}
    headline = {
        **streams,
        **{f"lead_of_prob_m{m}": lead(by["streams", m], ["prob"]) for m in counts},
        "gdj_lead_min_of_attributes": min(row["lead"] for row in rows if row["varied"] == "attributes"),
    }
    params = {"buffer": SHARE, "window": _WINDOW, "rate": _SLOW, "seed": settings.seed}
    return Result("gdj-fig7", params, rows, headline)


def _attributes(settings: Settings, skews: Sequence[tuple[float, float]]) -> Data:
    """Two streams that are joined on each of their attributes; the skews of each, on both sides."""
    seconds = _SECONDS / (4 if settings.quick else 2)
    tables = tuple(
        attribute_table(np.random.default_rng(2 * settings.seed + side), _RATE, seconds, own)
        for side, own in enumerate(zip(*skews, strict=True))
    )
    keys = tuple(f"a{k + 1}" for k in range(len(skews)))
    return Data(f"{len(skews)} attributes", tables, _WINDOW / 2, keys, settings.seed)


def fig8(settings: Settings) -> Result:
    """Two attributes: the first is uniform, the second has some skew in each stream."""
    steps = (0.1, 1.5) if settings.quick else (0.1, 0.5, 1.0, 1.5)
    rows: list[Row] = []
    for number, (one, other) in enumerate(product(steps, steps)):
        settings.progress(number, len(steps) ** 2, f"skews {one:g} and {other:g}")
        trials = Trials([_attributes(settings, [(0.0, 0.0), (one, other)])])
        own = trials.shares(SHARE, ("gdj", "prob", "lfu", "rand"))
        rows.append({"skew_1": one, "skew_2": other, **own, "full_results": trials.fulls[0].results})
    by = {(row["skew_1"], row["skew_2"]): row for row in rows}
    low, high = by[0.1, 0.1], by[1.5, 1.5]
    headline = {
        "gdj_over_rand_uniform": round(low["gdj"] / low["rand"], 4),
        "gdj_over_rand_skewed": round(high["gdj"] / high["rand"], 4),
        "gdj_over_prob_uniform": round(low["gdj"] / low["prob"], 4),
        "gdj_over_prob_skewed": round(high["gdj"] / high["prob"], 4),
    }
    require(high["full_results"] > low["full_results"], "skew should make more results")
    return Result("gdj-fig8", {"buffer": SHARE, "seed": settings.seed}, rows, headline)


def _sampled(settings: Settings, name: str) -> Result:
    """Rows are dropped with probability p in front of the buffer: output and distortion.

    With `auto` as many rows come as there is room for.
    """
    steps = ("0", "auto") if settings.quick else ("0", "0.2", "0.4", "0.6", "0.8", "auto")
    own = given(settings)
    found = [own] if own else [stock(settings), weather(settings)]
    rows: list[Row] = []
    for number, data in enumerate(found):
        full = run(data)
        for place, p in enumerate(steps):
            settings.progress(number * len(steps) + place, len(found) * len(steps), f"{data.name}, p = {p}")
            sample = p if p == "auto" else float(p) or None
            for policy in ("gdj", "prob", "fifo"):
                limit = replace(limit_of(data, SHARE), policy=policy, sample=sample)
                output = run(data, limit, settings.seed)
                rows.append(
                    {
                        "data": data.name,
                        "p": p,
                        "policy": policy,
                        "output": round(output.results / full.results, 4),
                        "sse": round(sse(output.values, full.values), 6),
                        "kl": round(kl(output.values, full.values), 5),
                    }
                )
    headline: dict[str, float] = {}
    for data in found:
        own_rows = [row for row in rows if row["data"] == data.name and row["policy"] == "gdj"]
        none, most = own_rows[0], own_rows[-1]
        require(most["output"] < none["output"], "a sample should have fewer results")
        for measure in ("sse", "kl"):
            headline[f"{measure}_all_{data.name}"] = none[measure]
            headline[f"{measure}_auto_{data.name}"] = most[measure]
    return Result(name, {"buffer": SHARE, "seed": settings.seed}, rows, headline)


fig9 = partial(_sampled, name="gdj-fig9")
fig10 = partial(_sampled, name="gdj-fig10")
