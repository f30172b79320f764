"""Experiments of the adaptive two-way join: time correlation, direction and basic windows."""

from __future__ import annotations

from math import inf

import numpy as np

from sparkshed.experiments.joins import overlap_join
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.selective import (
    ADAPTATIONS,
    CAPACITY,
    DIRECTION,
    QUICK,
    RATE,
    SHORT,
    SKEW,
    WINDOW,
    between,
    checked,
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


@on_one_thread
def fig6(settings: Settings) -> Result:
    """The shares r_1 and r_2 of the two windows over time, with all adaptations."""
    rates = rates_of(settings)
    run = select(overlap_join(), streams_of(SKEW, rates, settings), load_of(rates), DIRECTION)
    rows = [
        {
            "at": round(step.at, 1),
            "rate": rate_at(rates, step.at),
            "r": round(step.throttle, 4),
            # Rows of the first stream probe the window on the second one, and the other way round.
            "r_1": round(shares[1], 4),
            "r_2": round(shares[0], 4),
        }
        for step, shares in zip(run.outcome.steps, run.shares, strict=True)
    ]
    start, stop = phase_of(rates, 500.0)[0], phase_of(rates, 300.0)[1]
    loaded = [row for row in rows if start + 3 < row["at"] <= stop]
    headline = {
        f"mean_{name}_loaded": round(float(np.mean([row[name] for row in loaded])), 4)
        for name in ("r_1", "r_2")
    }
    require(
        headline["mean_r_1_loaded"] < 0.5 * headline["mean_r_2_loaded"],
        "the window with fewer results should be shed first",
    )
    return result_of("fig6", settings, rates, rows, headline, kappa=SKEW, least=3)


@on_one_thread
def fig7(settings: Settings) -> Result:
    """Output over time with more and more adaptations: shifted streams, overlap of 3.

    Rows are of the first seed.
    """
    rows, headline, runs = over_seeds(settings, _by_adaptations)
    least = min(headline["least_gain_time"], headline["least_gain_direction"])
    require(least > 0, "an adaptation without a gain")
    reached = settings.quick or headline["gain_direction"] >= 0.4
    require(reached, f"direction should add 40 %, and added {headline['gain_direction']:.2f}")
    return result_of("fig7", settings, rates_of(settings), rows, headline, kappa=SKEW, least=3, runs=runs)


def _by_adaptations(settings: Settings) -> tuple[list[Row], Row]:
    """The output of each interval, and what each adaptation gains under load and in parts of that time."""
    rates = rates_of(settings)
    load, join, tables = load_of(rates), overlap_join(), streams_of(SKEW, rates, settings)
    full = whole(join, tables, load)
    runs = {
        name: checked(select(join, tables, load, adaptations).outcome, full, name)
        for name, adaptations in ADAPTATIONS.items()
    }
    rows = []
    for step in runs["rate"].steps:
        at = 5.0 * round(step.at / 5)
        row: Row = {"at": at, "rate": rate_at(rates, step.at)}
        row |= {f"with {name}": round(between(own, at - 5, at)[0] / 5, 1) for name, own in runs.items()}
        rows.append(row | {"exact": round(between(full, at - 5, at)[0] / 5, 1)})
    loaded = phase_of(rates, 500.0)[0], phase_of(rates, 300.0)[1]
    gains: Row = {}
    for label, phase in (("", loaded), ("_500", phase_of(rates, 500.0)), ("_300", phase_of(rates, 300.0))):
        plain, timed, directed = (between(runs[name], *phase)[0] for name in ADAPTATIONS)
        gains[f"gain_time{label}"] = round(timed / max(1.0, plain) - 1, 4)
        gains[f"gain_direction{label}"] = round(directed / max(1.0, timed) - 1, 4)
    return rows, gains


@on_one_thread
def fig8(settings: Settings) -> Result:
    """Average output by skew with more and more adaptations: shifted streams, overlap of 4."""
    rates = QUICK if settings.quick else SHORT
    skews = [0.6, 1.0] if settings.quick else [0.2, 0.6, 0.8, 1.0]
    rows: list[Row] = []
    for number, skew in enumerate(skews):
        join, load, tables = overlap_join(least=4), load_of(rates), streams_of(skew, rates, settings)
        full = whole(join, tables, load)
        row: Row = {"kappa": skew}
        for name, adaptations in ADAPTATIONS.items():
            settings.progress(number, len(skews), f"kappa = {skew:g}, {name}")
            own = checked(select(join, tables, load, adaptations).outcome, full, f"κ = {skew:g}, {name}")
            row[f"with {name}"] = round(own.output_rate, 2)
        rows.append(row | {"exact": round(full.output_rate, 2)})
    headline = {}
    for row in rows:
        plain, timed, directed = (row[f"with {name}"] for name in ADAPTATIONS)
        headline[f"gain_time_kappa_{row['kappa']:g}"] = round(timed / max(0.01, plain) - 1, 4)
        headline[f"gain_direction_kappa_{row['kappa']:g}"] = round(directed / max(0.01, timed) - 1, 4)
    most, least = (headline[f"gain_time_kappa_{skew:g}"] for skew in (skews[-1], skews[0]))
    require(most > least, "more skew should make more of a gain")
    return result_of("fig8", settings, rates, rows, headline, least=4)


#: Windows of the indexed join of fig9. The paper has 200 s, which would take minutes here.
INDEXED_WINDOW = 40.0


@on_one_thread
def fig9(settings: Settings) -> Result:
    """Average output by the length of basic windows, without and with an index, at 500 rows per second."""
    skews = [0.8] if settings.quick else [0.6, 0.8]
    lengths = [1.0, 10.0, inf] if settings.quick else [0.2, 1.0, 2.0, 5.0, 10.0, inf]
    rate = 250.0 if settings.quick else 500.0
    rows: list[Row] = []
    kinds = [(False, WINDOW)] if settings.quick else [(False, WINDOW), (True, INDEXED_WINDOW)]
    cases = [(indexed, window, k) for indexed, window in kinds for k in skews if k == SKEW or not indexed]
    for number, (indexed, window, skew) in enumerate(cases):
        rates = [(window + (25.0 if settings.quick else 40.0), rate)]
        tables = streams_of(skew, rates, settings, window=window, vectors=not indexed)
        for b in lengths:
            settings.progress(number, len(cases), f"{'indexed' if indexed else 'compared'}, b = {b:g} s")
            load = load_of(rates, warm_up=window + 10, capacity=CAPACITY)
            # Without basic windows the newest part of the window is probed.
            join = overlap_join(window, min(b, window), indexed=indexed)
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
    return result_of("fig9", settings, [(0.0, rate)], rows, headline, least=3)
