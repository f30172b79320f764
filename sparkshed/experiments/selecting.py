"""The experiments of the adaptive two-way join: partial processing, time correlation and direction."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa

from sparkshed.experiments.harness import Load, Outcome
from sparkshed.experiments.joins import Join, overlap_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.selective import (
    ADAPTATIONS,
    CAPACITY,
    DIRECTION,
    RATE,
    between,
    drop,
    on_one_thread,
    select,
    whole,
)
from sparkshed.workloads.drifting import PAPER_RATES, drifting_sets, paper_drift

Rates = Sequence[tuple[float, float]]

WINDOW = 20.0
#: The paper does not say which skew its figures over time have; it shows match probabilities for 0.6 and 0.8.
SKEW = 0.8
#: A second of input at the highest rate, as in the paper.
BUFFER = 500
WARM_UP = 20.0
_TICK = 0.2
#: The same rates with less of the time in which nothing is shed; and a look at them.
_SHORT: Rates = ((30.0, 100.0), (15.0, 500.0), (30.0, 300.0))
_QUICK: Rates = ((25.0, 100.0), (10.0, 500.0), (10.0, 300.0), (5.0, 100.0))


def _rates(settings: Settings) -> Rates:
    return _QUICK if settings.quick else PAPER_RATES


def _phase(rates: Rates, rate: float) -> tuple[float, float]:
    """When the phase with a rate begins and ends; the first one of them."""
    place = [own for _, own in rates].index(rate)
    start = sum(seconds for seconds, _ in rates[:place])
    return start, start + rates[place][0]


def _rate_at(rates: Rates, at: float) -> float:
    """The rate of an interval that ends at a time."""
    start = 0.0
    for seconds, rate in rates:
        start += seconds
        if at <= start + 2:
            break
    return rate


def _load(rates: Rates, **changes: Any) -> Load:
    plain = {"capacity": CAPACITY, "buffer": BUFFER, "warm_up": WARM_UP, "tick": _TICK}
    return Load(seconds=sum(seconds for seconds, _ in rates), **plain | changes)


def _streams(
    skew: float,
    rates: Rates,
    settings: Settings,
    *,
    aligned: bool = False,
    window: float = WINDOW,
    vectors: bool = True,
) -> tuple[pa.Table, ...]:
    drift, seed = paper_drift(window, skew, aligned=aligned), 100 * settings.seed
    return drifting_sets(drift, rates, seeds=(seed, seed + 1), vectors=vectors)


def _result(
    name: str, settings: Settings, rates: Rates, rows: list[Row], headline: Row, **more: Any
) -> Result:
    plain = {"capacity": CAPACITY, "buffer": BUFFER, "rates": [list(own) for own in rates], "window": WINDOW}
    return Result(f"adaptive-{name}", {**plain, "adapt": 5, "seed": settings.seed, **more}, rows, headline)


def _checked(outcome: Outcome, full: Outcome, what: str) -> Outcome:
    """Refuse a run that found or did more than there is."""
    require(outcome.results <= full.results * 1.02, f"{what}: more results than the exact join has")
    require(outcome.work_rate <= 1.05 * CAPACITY, f"{what}: more work than the CPU can do")
    return outcome


def fig2(settings: Settings) -> Result:
    """How likely a new row of S_1 matches a row of W_2, by the age of that, counted on the streams."""
    skews = [0.8] if settings.quick else [0.6, 0.8]
    rates = [(60.0, 50.0 if settings.quick else 100.0)]
    rows: list[Row] = []
    for number, skew in enumerate(skews):
        settings.progress(number, len(skews), f"kappa = {skew:g}")
        times, sets = zip(*map(_matrix, _streams(skew, rates, settings)), strict=True)
        ages = times[0][:, None] - times[1][None, :]
        inside = (ages >= 0) & (ages < WINDOW) & (times[0][:, None] >= WINDOW)
        matches = inside & (sets[0] @ sets[1].T >= 3)
        places = np.floor(ages).astype(np.int64)
        pairs, found = (np.bincount(places[own], minlength=int(WINDOW)) for own in (inside, matches))
        rows += [
            {"kappa": skew, "age": age, "probability": round(float(found[age] / pairs[age]), 5)}
            for age in range(int(WINDOW))
        ]
    headline: Row = {}
    for skew in skews:
        own = [row["probability"] for row in rows if row["kappa"] == skew]
        headline[f"peak_age_kappa_{skew:g}"] = int(np.argmax(own))
        headline[f"peak_over_mean_kappa_{skew:g}"] = round(max(own) / float(np.mean(own)), 2)
    require(abs(headline["peak_age_kappa_0.8"] + 0.5 - 0.75 * WINDOW) <= 2, "the peak is not at ρ - σ")
    return _result("fig2", settings, rates, rows, headline, least=3)


def _matrix(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Times in seconds from the start, and sets as rows of 0 and 1."""
    times = table["ts"].cast(pa.int64()).to_numpy() / 1e6
    sets = table["v"].combine_chunks().flatten().to_numpy().reshape(len(times), -1)
    return times - np.floor(times[0]), sets


@on_one_thread
def fig3(settings: Settings) -> Result:
    """The share r follows the rates: aligned streams, rate adaptation only."""
    rates = _rates(settings)
    run = select(overlap_join(), _streams(SKEW, rates, settings, aligned=True), _load(rates), RATE)
    rows = [
        {"at": round(s.at, 1), "rate": _rate_at(rates, s.at), "r": round(s.throttle, 4), "lost": s.lost}
        for s in run.outcome.steps
    ]
    headline = {}
    for rate in (100.0, 300.0, 500.0):
        start, stop = _phase(rates, rate)
        # r is that of the next interval; the first one of a phase is still that of the last one.
        own = [row["r"] for row in rows if start + 3 < row["at"] <= stop - 3]
        headline[f"r_{rate:g}"] = round(float(np.mean(own[1:] or own)), 4)
    require(headline["r_100"] > 0.95, "at 100 rows per second nothing should be shed")
    require(max(headline["r_300"], headline["r_500"]) < 0.5, "r should fall with higher rates")
    return _result("fig3", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig4(settings: Settings) -> Result:
    """Output over time with rate adaptation, beside dropping at random: aligned streams, overlap of 3."""
    rates = _rates(settings)
    load, join, tables = _load(rates), overlap_join(), _streams(SKEW, rates, settings, aligned=True)
    settings.progress(0, 3, "the exact join")
    full = whole(join, tables, load)
    settings.progress(1, 3, "rate adaptation")
    own = _checked(select(join, tables, load, RATE).outcome, full, "rate adaptation")
    settings.progress(2, 3, "random drop")
    dropped = _checked(drop(join, tables, load), full, "random drop")
    rows = []
    for step in own.steps:
        at = 5.0 * round(step.at / 5)
        found, work = between(own, at - 5, at)
        results, all_work = between(full, at - 5, at)
        rows.append(
            {
                "at": at,
                "rate": _rate_at(rates, step.at),
                "adaptive": round(found / 5, 1),
                "randomdrop": round(between(dropped, at - 5, at)[0] / 5, 1),
                "same_work": round(results * work / max(1.0, all_work) / 5, 1),
                "exact": round(results / 5, 1),
                "utilisation": round(step.busy, 3),
            }
        )
    headline = {}
    for rate in (500.0, 300.0):
        phase = _phase(rates, rate)
        (found, work), (results, all_work) = between(own, *phase), between(full, *phase)
        beside = between(dropped, *phase)[0]
        headline[f"gain_{rate:g}_clock"] = round(found / max(1.0, beside) - 1, 4)
        headline[f"gain_{rate:g}_same_work"] = round(found / (results * work / all_work) - 1, 4)
        gains = headline[f"gain_{rate:g}_clock"], headline[f"gain_{rate:g}_same_work"]
        headline[f"gain_{rate:g}"] = min(gains)
    require(min(headline["gain_500"], headline["gain_300"]) > 0, "no gain over dropping at random")
    return _result("fig4", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig5(settings: Settings) -> Result:
    """Average output with rate adaptation by skew and window, beside dropping with the same work."""
    rates = _QUICK if settings.quick else _SHORT
    cases = [(w, k) for w in ((10.0,) if settings.quick else (10.0, 20.0, 30.0)) for k in (0.2, 0.6, 1.0)]
    rows: list[Row] = []
    for number, (window, skew) in enumerate(cases):
        settings.progress(number, len(cases), f"window of {window:g} s, kappa = {skew:g}")
        join, load = overlap_join(window, window / 20), _load(rates)
        tables = _streams(skew, rates, settings, aligned=True, window=window)
        full = whole(join, tables, load)
        own = _checked(select(join, tables, load, RATE).outcome, full, f"w = {window:g}, κ = {skew:g}")
        dropped = _same_work(own, full)
        rows.append(
            {
                "window": window,
                "kappa": skew,
                "adaptive": round(own.output_rate, 1),
                "same_work": round(dropped, 1),
                "gain": round(own.output_rate / dropped - 1, 4),
                "exact": round(full.output_rate, 1),
            }
        )
    gains = {(row["window"], row["kappa"]): row["gain"] for row in rows}
    require(all(gains[w, 1.0] > gains[w, 0.2] for w, _ in cases), "more skew should make more of a gain")
    headline = {f"gain_w{w:g}_kappa_{k:g}": gain for (w, k), gain in gains.items()}
    return _result("fig5", settings, rates, rows, headline, window=None, least=3)


def _same_work(own: Outcome, full: Outcome) -> float:
    """Results per second of dropping at random with the same work in every interval."""
    found = 0.0
    for mine, all_of_it in zip(own.steps, full.steps, strict=False):
        if mine.at > WARM_UP + 2:
            found += all_of_it.results * min(1.0, mine.work / max(1.0, all_of_it.work))
    return found / own.seconds


@on_one_thread
def fig6(settings: Settings) -> Result:
    """The shares r_1 and r_2 of the two windows over time, with all adaptations."""
    rates = _rates(settings)
    run = select(overlap_join(), _streams(SKEW, rates, settings), _load(rates), DIRECTION)
    rows = [
        {
            "at": round(step.at, 1),
            "rate": _rate_at(rates, step.at),
            "r": round(step.throttle, 4),
            # Rows of the first stream probe the window on the second one, and the other way round.
            "r_1": round(shares[1], 4),
            "r_2": round(shares[0], 4),
        }
        for step, shares in zip(run.outcome.steps, run.shares, strict=True)
    ]
    start, stop = _phase(rates, 500.0)[0], _phase(rates, 300.0)[1]
    loaded = [row for row in rows if start + 3 < row["at"] <= stop]
    headline = {
        f"mean_{name}_loaded": round(float(np.mean([row[name] for row in loaded])), 4)
        for name in ("r_1", "r_2")
    }
    require(
        headline["mean_r_1_loaded"] < 0.5 * headline["mean_r_2_loaded"],
        "the window with fewer results should be shed first",
    )
    return _result("fig6", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig7(settings: Settings) -> Result:
    """Output over time with more and more adaptations: shifted streams, overlap of 3."""
    rates = _rates(settings)
    load, join, tables = _load(rates), overlap_join(), _streams(SKEW, rates, settings)
    full = whole(join, tables, load)
    runs: dict[str, Outcome] = {}
    for number, (name, adaptations) in enumerate(ADAPTATIONS.items()):
        settings.progress(number, len(ADAPTATIONS), name)
        runs[name] = _checked(select(join, tables, load, adaptations).outcome, full, name)
    rows = []
    for step in runs["rate"].steps:
        at = 5.0 * round(step.at / 5)
        row: Row = {"at": at, "rate": _rate_at(rates, step.at)}
        row |= {f"with {name}": round(between(own, at - 5, at)[0] / 5, 1) for name, own in runs.items()}
        rows.append(row | {"exact": round(between(full, at - 5, at)[0] / 5, 1)})
    loaded = _phase(rates, 500.0)[0], _phase(rates, 300.0)[1]
    headline = {}
    for label, phase in (("", loaded), ("_500", _phase(rates, 500.0)), ("_300", _phase(rates, 300.0))):
        plain, timed, directed = (between(runs[name], *phase)[0] for name in ADAPTATIONS)
        headline[f"gain_time{label}"] = round(timed / max(1.0, plain) - 1, 4)
        headline[f"gain_direction{label}"] = round(directed / max(1.0, timed) - 1, 4)
    require(min(headline["gain_time"], headline["gain_direction"]) > 0, "an adaptation without a gain")
    return _result("fig7", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig8(settings: Settings) -> Result:
    """Average output by skew with more and more adaptations: shifted streams, overlap of 4."""
    rates = _QUICK if settings.quick else _SHORT
    skews = [0.6, 1.0] if settings.quick else [0.2, 0.6, 0.8, 1.0]
    rows: list[Row] = []
    for number, skew in enumerate(skews):
        join, load, tables = overlap_join(least=4), _load(rates), _streams(skew, rates, settings)
        full = whole(join, tables, load)
        row: Row = {"kappa": skew}
        for name, adaptations in ADAPTATIONS.items():
            settings.progress(number, len(skews), f"kappa = {skew:g}, {name}")
            own = _checked(select(join, tables, load, adaptations).outcome, full, f"κ = {skew:g}, {name}")
            row[f"with {name}"] = round(own.output_rate, 2)
        rows.append(row | {"exact": round(full.output_rate, 2)})
    headline = {}
    for row in rows:
        plain, timed, directed = (row[f"with {name}"] for name in ADAPTATIONS)
        headline[f"gain_time_kappa_{row['kappa']:g}"] = round(timed / max(0.01, plain) - 1, 4)
        headline[f"gain_direction_kappa_{row['kappa']:g}"] = round(directed / max(0.01, timed) - 1, 4)
    most, least = (headline[f"gain_time_kappa_{skew:g}"] for skew in (skews[-1], skews[0]))
    require(most > least, "more skew should make more of a gain")
    return _result("fig8", settings, rates, rows, headline, least=4)


#: Windows of the indexed join of fig9. The paper has 200 s, which would take minutes here.
INDEXED_WINDOW = 40.0


@on_one_thread
def fig9(settings: Settings) -> Result:
    """Average output by the length of basic windows, without and with an index, at 500 rows per second."""
    skews = [0.8] if settings.quick else [0.6, 0.8]
    lengths = [1.0, 10.0, inf] if settings.quick else [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, inf]
    rate = 250.0 if settings.quick else 500.0
    rows: list[Row] = []
    kinds = [(False, WINDOW)] if settings.quick else [(False, WINDOW), (True, INDEXED_WINDOW)]
    cases = [(indexed, window, k) for indexed, window in kinds for k in skews]
    for number, (indexed, window, skew) in enumerate(cases):
        rates = [(window + (25.0 if settings.quick else 40.0), rate)]
        tables = _streams(skew, rates, settings, window=window, vectors=not indexed)
        for b in lengths:
            settings.progress(number, len(cases), f"{'indexed' if indexed else 'compared'}, b = {b:g} s")
            load = _load(rates, warm_up=window + 10, capacity=CAPACITY)
            # Without basic windows the newest part of the window is probed.
            join: Join = overlap_join(window, min(b, window), indexed=indexed)
            own = select(join, tables, load, RATE if b == inf else DIRECTION).outcome
            require(own.work_rate <= 1.05 * CAPACITY, "more work than the CPU can do")
            rows.append(
                {
                    "indexed": indexed,
                    "window": window,
                    "kappa": skew,
                    "b": "none" if b == inf else f"{b:g}",
                    "adaptive": round(own.output_rate, 1),
                    "utilisation": round(own.work_rate / CAPACITY, 3),
                }
            )
    by = {(row["indexed"], row["kappa"], row["b"]): row["adaptive"] for row in rows}
    headline = {}
    for indexed, _, skew in cases:
        what = f"{'indexed' if indexed else 'compared'}_kappa_{skew:g}"
        headline[f"gain_b1_over_none_{what}"] = round(
            by[indexed, skew, "1"] / by[indexed, skew, "none"] - 1, 4
        )
    require(min(headline.values()) > 0, "basic windows should help")
    return _result("fig9", settings, [(0.0, rate)], rows, headline, least=3)
