"""What each policy delivers: by initial credit, by buffer, by window and by domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

from sparkshed.experiments.datasets import datasets, stock, synthetic
from sparkshed.experiments.offline import best_output, matches_of
from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.experiments.windowed import POLICIES, Data, Output, lead, leads, limit_of, run, shares
from sparkshed.workloads.bursty import renewal_tables

#: The share of the windows that there is room for, where it is not varied.
SHARE = 0.2


#: The three methods as the paper has them, and METHOD 1 with credit for the results that a row arrives with.
_STARTS = {"paper 1": (1, False), "paper 2": (2, False), "paper 3": (3, False), "own results": (1, True)}
#: Percentiles that the paper's `gdj` may choose from, where it is beside the others.
_CHOICE = (0.1, 0.3, 0.8)


def fig3(settings: Settings) -> Result:
    """The initial percentile, with and without credit for own results, and what gdj learns by itself."""
    steps = (0.05, 0.8) if settings.quick else (0.0, 0.03, 0.1, 0.3, 0.5, 0.8, 0.95)
    rows: list[Row] = []
    headline: dict[str, float] = {}
    found = datasets(settings)
    for number, data in enumerate(found):
        full = run(data)
        starts = list(_STARTS) if data.name == "stock-like" else ["paper 1", "own results"]
        tried: list[Row] = []
        for place, (start, percentile) in enumerate(product(starts, steps)):
            settings.progress(number * 32 + place, 32 * len(found), f"{data.name}, {start}")
            method, own = _STARTS[start]
            changes = {"percentile": percentile, "method": method, "own": own}
            (output,) = shares(data, SHARE, ["gdj"], full, settings.seed, **changes).values()
            shown = f"{percentile:g}"
            tried.append({"data": data.name, "start": start, "percentile": shown, "output": output})
        (learned,) = shares(data, SHARE, ["gdj"], full, settings.seed).values()
        rows += [*tried, {"data": data.name, "start": "learned", "percentile": "", "output": learned}]
        best = max(tried, key=lambda row: row["output"])
        headline[f"best_percentile_{data.name}"] = float(best["percentile"])
        headline[f"selftuned_of_best_{data.name}"] = round(learned / best["output"], 4)
    headline["selftuned_of_best_min"] = min(
        value for name, value in headline.items() if name.startswith("selftuned")
    )
    require(all(0 < row["output"] <= 1 for row in rows), "outputs are shares of all results")
    return Result("gdj-fig3", {"buffer": SHARE, "seed": settings.seed}, rows, headline)


def fig4(settings: Settings) -> Result:
    """Output by buffer size; on a small instance, beside the most that anyone could deliver."""
    sizes = (0.2, 1.0) if settings.quick else (0.1, 0.2, 0.3, 0.5, 1.0)
    rows: list[Row] = []
    found = datasets(settings)
    for number, data in enumerate(found):
        full = run(data)
        for place, size in enumerate(sizes):
            settings.progress(number * len(sizes) + place, len(found) * len(sizes), f"{data.name}, {size:g}")
            own = shares(data, size, POLICIES, full, settings.seed)
            paper = max(_paper(data, size, full, settings.seed, percentile) for percentile in _CHOICE)
            row = {"data": data.name, "buffer": size, **own, "gdj_paper": paper, "full": 1.0}
            rows.append({**row, "lead": lead(own)})
    headline: dict[str, float] = leads(rows)
    for row in _beside_optimum(settings):
        rows.append(row)
        headline[f"gdj_of_opt_{row['buffer']:g}"] = round(row["gdj"] / row["opt"], 4)
    return Result("gdj-fig4", {"seed": settings.seed}, rows, headline)


def _paper(data: Data, size: float, full: Output, seed: int, percentile: float) -> float:
    """What METHOD 1 of the paper delivers with a percentile."""
    return shares(data, size, ["gdj"], full, seed, own=False, percentile=percentile)["gdj"]


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
    windows = (30.0, 60.0) if settings.quick else (20.0, 60.0, 120.0)
    domains = (50, 200) if settings.quick else (50, 200, 400)
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
