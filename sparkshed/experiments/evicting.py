"""What each policy delivers: by initial credit, by buffer, by window and by domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sparkshed.experiments.datasets import datasets, stock, synthetic
from sparkshed.experiments.offline import best_output, matches_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.windowed import POLICIES, Data, Output, lead, leads, limit_of, run, shares
from sparkshed.workloads.bursty import renewal_tables

#: The share of the windows that there is room for, where it is not varied.
SHARE = 0.2


def fig3(settings: Settings) -> Result:
    """The initial percentile, with each of the three methods, and what gdj finds by itself."""
    steps = (0.1, 0.5, 0.9) if settings.quick else (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.84, 0.95, 0.995)
    rows: list[Row] = []
    headline: dict[str, float] = {}
    found = datasets(settings)
    for number, data in enumerate(found):
        full = run(data)
        # METHOD 3 takes the same from all rows of a buffer, so it decides what METHOD 1 decides.
        methods = (1, 2, 3) if data.name == "stock-like" and not settings.quick else (1,)
        for method in methods:
            few = steps if method == 1 else (0.1, 0.5, 0.9)
            for place, percentile in enumerate((*few, None)):
                settings.progress(number * len(steps) + place, len(found) * len(steps), data.name)
                (own,) = shares(
                    data, SHARE, ["gdj"], full, settings.seed, percentile=percentile, method=method
                ).values()
                tuned = percentile is None
                rows.append(
                    {
                        "data": data.name,
                        "method": method,
                        "percentile": -1.0 if tuned else percentile,
                        "output": own,
                    }
                )
        first = [row for row in rows if row["data"] == data.name and row["method"] == 1]
        best = max((row for row in first if row["percentile"] >= 0), key=lambda row: row["output"])
        headline[f"best_percentile_{data.name}"] = best["percentile"]
        headline[f"selftuned_of_best_{data.name}"] = round(first[-1]["output"] / best["output"], 4)
    headline["selftuned_of_best_min"] = min(
        value for name, value in headline.items() if name.startswith("selftuned")
    )
    require(all(0 < row["output"] <= 1 for row in rows), "outputs are shares of all results")
    return Result("gdj-fig3", {"buffer": SHARE, "seed": settings.seed}, rows, headline)


def fig4(settings: Settings) -> Result:
    """Output by buffer size; on a small instance, beside the most that anyone could deliver."""
    sizes = (0.2, 1.0) if settings.quick else (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
    rows: list[Row] = []
    found = datasets(settings)
    for number, data in enumerate(found):
        full = run(data)
        for place, size in enumerate(sizes):
            settings.progress(number * len(sizes) + place, len(found) * len(sizes), f"{data.name}, {size:g}")
            own = shares(data, size, POLICIES, full, settings.seed)
            rows.append({"data": data.name, "buffer": size, **own, "full": 1.0, "lead": lead(own)})
    headline: dict[str, float] = leads(rows)
    for row in _beside_optimum(settings):
        rows.append(row)
        headline[f"gdj_of_opt_{row['buffer']:g}"] = round(row["gdj"] / row["opt"], 4)
    return Result("gdj-fig4", {"seed": settings.seed}, rows, headline)


def _beside_optimum(settings: Settings) -> list[Row]:
    """Every policy and OPT on 1 200 rows."""
    tables = renewal_tables([2 * settings.seed + k for k in range(2)], 600, 120.0)
    data = Data("small", tables, 20.0)
    full = run(data)
    streams, matches = matches_of(tables, data.window)
    require(len(matches) == full.results, "OPT and the join should know the same matches")
    rows = []
    for size in (0.1, 0.2, 0.4):
        places = limit_of(data, size).limit
        best = best_output(streams, matches, places, unified=True)
        row: Row = {"data": data.name, "buffer": size, **shares(data, size, POLICIES, full, settings.seed)}
        row |= {"full": 1.0, "lead": lead(row), "opt": round(best / full.results, 4)}
        require(all(row[name] <= row["opt"] for name in POLICIES), f"nobody should be above OPT: {row}")
        rows.append(row)
    return rows


def fig5(settings: Settings) -> Result:
    """Output by the length of the window, and by the number of values."""
    windows = (30.0, 60.0) if settings.quick else (15.0, 30.0, 60.0, 120.0)
    domains = (50, 200) if settings.quick else (25, 50, 200, 400)
    cases: list[tuple[str, float, Callable[[], Data]]] = [
        *(("window, synthetic", own, partial(synthetic, settings, own)) for own in windows),
        *(("window, stock-like", own, partial(stock, settings, own)) for own in windows),
        *(("values, synthetic", own, partial(synthetic, settings, 60.0, own)) for own in domains),
    ]
    rows = _varied(settings, cases)
    return Result("gdj-fig5", {"buffer": SHARE, "seed": settings.seed}, rows, leads(rows))


def _varied(settings: Settings, cases: Sequence[tuple[str, float, Callable[[], Data]]]) -> list[Row]:
    rows: list[Row] = []
    for number, (varied, value, make) in enumerate(cases):
        settings.progress(number, len(cases), f"{varied} = {value:g}")
        data = make()
        full: Output = run(data)
        row: Row = {"varied": varied, "value": value, **shares(data, SHARE, POLICIES, full, settings.seed)}
        rows.append({**row, "full": 1.0, "lead": lead(row)})
    return rows
