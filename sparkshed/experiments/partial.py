"""Experiments of the adaptive two-way join: where matches are, and partial processing beside random drop."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sparkshed.experiments.harness import Outcome
from sparkshed.experiments.joins import overlap_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.selective import (
    QUICK,
    RATE,
    SHORT,
    SKEW,
    WARM_UP,
    WINDOW,
    between,
    checked,
    drop,
    load_of,
    on_one_thread,
    over_seeds,
    phase_of,
    rate_at,
    rates_of,
    result_of,
    select,
    streams_of,
    whole,
)


def fig2(settings: Settings) -> Result:
    """How likely a new row of S_1 matches a row of W_2, by the age of that, counted on the streams."""
    skews = [0.8] if settings.quick else [0.6, 0.8]
    rates = [(60.0, 50.0 if settings.quick else 100.0)]
    rows: list[Row] = []
    for number, skew in enumerate(skews):
        settings.progress(number, len(skews), f"kappa = {skew:g}")
        times, sets = zip(*map(_matrix, streams_of(skew, rates, settings)), strict=True)
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
    return result_of("fig2", settings, rates, rows, headline, least=3)


def _matrix(table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Times in seconds from the start, and sets as rows of 0 and 1."""
    times = table["ts"].cast(pa.int64()).to_numpy() / 1e6
    sets = table["v"].combine_chunks().flatten().to_numpy().reshape(len(times), -1)
    return times - np.floor(times[0]), sets


@on_one_thread
def fig3(settings: Settings) -> Result:
    """The share r follows the rates: aligned streams, rate adaptation only."""
    rates = rates_of(settings)
    run = select(overlap_join(), streams_of(SKEW, rates, settings, aligned=True), load_of(rates), RATE)
    rows = [
        {"at": round(s.at, 1), "rate": rate_at(rates, s.at), "r": round(s.throttle, 4), "lost": s.lost}
        for s in run.outcome.steps
    ]
    headline = {}
    for rate in (100.0, 300.0, 500.0):
        start, stop = phase_of(rates, rate)
        # r is that of the next interval; the first one of a phase is still that of the last one.
        own = [row["r"] for row in rows if start + 3 < row["at"] <= stop - 3]
        headline[f"r_{rate:g}"] = round(float(np.mean(own[1:] or own)), 4)
    # In the short time that quick runs have for it, windows still fill.
    kept_up = settings.quick or headline["r_100"] > 0.95
    require(kept_up, "at 100 rows per second hardly anything should be shed")
    require(max(headline["r_300"], headline["r_500"]) < 0.5, "r should fall with higher rates")
    return result_of("fig3", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig4(settings: Settings) -> Result:
    """Output over time with rate adaptation, beside dropping at random: aligned streams, overlap of 3.

    Rows are of the first seed.
    """
    rows, headline, runs = over_seeds(settings, _beside_drop)
    least = min(headline["least_gain_500"], headline["least_gain_300"])
    require(least > 0, "no gain over dropping at random")
    return result_of("fig4", settings, rates_of(settings), rows, headline, kappa=SKEW, least=3, runs=runs)


def _beside_drop(settings: Settings) -> tuple[list[Row], Row]:
    """The output of each interval, and the gains in each phase."""
    rates = rates_of(settings)
    load, join, tables = load_of(rates), overlap_join(), streams_of(SKEW, rates, settings, aligned=True)
    full = whole(join, tables, load)
    own = checked(select(join, tables, load, RATE).outcome, full, "rate adaptation")
    dropped = checked(drop(join, tables, load), full, "random drop")
    rows = []
    for step in own.steps:
        at = 5.0 * round(step.at / 5)
        found, work = between(own, at - 5, at)
        results, all_work = between(full, at - 5, at)
        rows.append(
            {
                "at": at,
                "rate": rate_at(rates, step.at),
                "adaptive": round(found / 5, 1),
                "randomdrop": round(between(dropped, at - 5, at)[0] / 5, 1),
                "same_work": round(results * work / max(1.0, all_work) / 5, 1),
                "exact": round(results / 5, 1),
                "utilisation": round(step.busy, 3),
            }
        )
    gains: Row = {}
    for rate in (500.0, 300.0):
        phase = phase_of(rates, rate)
        (found, work), (results, all_work) = between(own, *phase), between(full, *phase)
        beside = between(dropped, *phase)[0]
        clock, same_work = found / max(1.0, beside) - 1, found / (results * work / all_work) - 1
        gains[f"gain_{rate:g}_clock"], gains[f"gain_{rate:g}_same_work"] = clock, same_work
        gains[f"gain_{rate:g}"] = min(clock, same_work)
    return rows, {name: round(gain, 4) for name, gain in gains.items()}


@on_one_thread
def fig5(settings: Settings) -> Result:
    """Average output with rate adaptation by skew and window, beside dropping with the same work."""
    rates = QUICK if settings.quick else SHORT
    cases = [(w, k) for w in ((10.0,) if settings.quick else (10.0, 20.0, 30.0)) for k in (0.2, 0.6, 1.0)]
    rows: list[Row] = []
    for number, (window, skew) in enumerate(cases):
        settings.progress(number, len(cases), f"window of {window:g} s, kappa = {skew:g}")
        join, load = overlap_join(window, window / 20), load_of(rates)
        tables = streams_of(skew, rates, settings, aligned=True, window=window)
        full = whole(join, tables, load)
        own = checked(select(join, tables, load, RATE).outcome, full, f"w = {window:g}, κ = {skew:g}")
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
    return result_of("fig5", settings, rates, rows, headline, window=None, least=3)


def _same_work(own: Outcome, full: Outcome) -> float:
    """Results per second of dropping at random with the same work in every interval."""
    found = 0.0
    for mine, all_of_it in zip(own.steps, full.steps, strict=False):
        if mine.at > WARM_UP + 2:
            found += all_of_it.results * min(1.0, mine.work / max(1.0, all_of_it.work))
    return found / own.seconds
