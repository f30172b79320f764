"""How well and how fast harvests are chosen: no streams, only models."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from math import exp
from statistics import median

import numpy as np

from sparkshed.experiments.result import Result, Row, Settings, require
from sparkshed.planner.harvest import Choice, JoinModel, choose, paper_model

#: Choosers by the names that rows have; a greedy one for each of its metrics.
CHOOSERS: dict[str, tuple[str, str]] = {
    "lagrange": ("lagrange", "best_delta"),
    "best_output": ("greedy", "best_output"),
    "best_output_per_cost": ("greedy", "best_output_per_cost"),
    "best_delta": ("greedy", "best_delta"),
    "greedy_reverse": ("greedy_reverse", "best_delta"),
    "greedy_double": ("greedy_double", "best_delta"),
}
#: Partial results that one row finds in a window, on average over all instances: what the paper does not say.
FOUND = (1.0, 10.0, 100.0)
_WINDOW = 10.0


def instance(rng: np.random.Generator, m: int, n: int, found: float = 10.0) -> JoinModel:
    """A random join: rates from 100 to 500, windows of 10 s, random selectivities and bell-shaped scores.

    Orders go by the lowest selectivity, as in the paper.
    """
    rates = rng.uniform(100, 500, m)
    sigma = rng.uniform(0, 2 * found / (300 * _WINDOW), (m, m))
    middle, width = rng.uniform(0, n, (m, m, 1)), rng.uniform(0.5, n / 2, (m, m, 1))
    scores = np.exp(-(((np.arange(n) + 0.5 - middle) / width) ** 2) / 2) + 1e-6
    orders = [sorted({*range(m)} - {i}, key=lambda k, i=i: sigma[i, k]) for i in range(m)]
    return paper_model(rates.tolist(), [_WINDOW] * m, sigma.tolist(), scores.tolist(), orders)


def fig4(settings: Settings) -> Result:
    """The example configuration: the last stream of every result should do the joining.

    The paper gives rates, windows, lags and orders; the selectivities are in a figure. Here they follow
    from the lags: S_3 comes last, so its partners are in the windows already.
    """
    rates, b, n, z = [300.0, 100.0, 150.0], 2.0, 5, 0.5
    lag = {(1, 0): 4.0, (2, 0): 5.0, (2, 1): 1.0}
    width = 1.0
    share = {pair: _bell(lag.get(pair, -lag.get(pair[::-1], 0.0)), width, b, n) for pair in _pairs(3)}
    sigma = [[0.0] * 3 for _ in range(3)]
    for (i, k), parts in share.items():
        sigma[i][k] = 0.0002 * sum(parts)
    scores = [[share.get((i, k), [1.0] * n) for k in range(3)] for i in range(3)]
    orders = [[1, 2], [2, 0], [1, 0]]
    model = paper_model(rates, [b * n] * 3, sigma, scores, orders)
    rows = []
    best = choose(model, z * model.full_cost, "exhaustive")
    for number, (name, (chooser, metric)) in enumerate(
        {"exhaustive": ("exhaustive", "best_delta"), **CHOOSERS}.items()
    ):
        settings.progress(number, len(CHOOSERS) + 1, name)
        choice = choose(model, z * model.full_cost, chooser, metric)
        rows.append(_configured(name, model, choice, best, n))
    exhaustive, lagrange = rows[0], rows[1]
    require(exhaustive["z_31"] == exhaustive["z_32"] == 1.0, "the third direction should probe everything")
    require(lagrange["output"] >= exhaustive["output"] - 1e-9, "lagrange is below the optimum")
    params = {"rates": rates, "window": b * n, "basic": b, "z": z, "lags": {"21": 4.0, "31": 5.0}}
    return Result(
        "grubjoin-fig4", params, rows, {"z_31": 1.0, "z_32": 1.0, "lagrange": lagrange["optimality"]}
    )


def _configured(name: str, model: JoinModel, choice: Choice, best: Choice, n: int) -> Row:
    row: Row = {"chooser": name}
    for i, direction in enumerate(choice.dear):
        for j, slices in enumerate(direction):
            cheap = choice.cheap[i][j]
            row[f"z_{i + 1}{j + 1}"] = round(
                (choice.mix * len(slices) + (1 - choice.mix) * len(cheap)) / n, 3
            )
    row["cost"] = round(choice.cost(model) / model.full_cost, 4)
    row["output"] = round(choice.output(model) / model.full_output, 4)
    row["optimality"] = round(choice.output(model) / best.output(model), 4)
    return row


def _pairs(m: int) -> list[tuple[int, int]]:
    return [(i, k) for i in range(m) for k in range(m) if i != k]


def _bell(middle: float, width: float, b: float, n: int) -> list[float]:
    """How much of a lag's distribution lies in each slice of a window, by its middle."""
    return [exp(-(((b * (k + 0.5) - middle) / width) ** 2) / 2) + 1e-6 for k in range(n)]


def fig7(settings: Settings) -> Result:
    """Output of every chooser over that of the best setting, which is found by trying all."""
    instances = 40 if settings.quick else 500
    shares = [0.05, 0.1, 0.2, 0.4, 0.6, 0.8] if settings.quick else [0.05, *(k / 10 for k in range(1, 10))]
    cases = [(found, z) for found in FOUND for z in shares]
    ratios = {case: _ratios(settings, *case, instances, k, len(cases)) for k, case in enumerate(cases)}
    rows = [
        {
            "found": found,
            "z": z,
            **{name: round(float(np.mean(values)), 4) for name, values in own.items()},
            "lagrange_least": round(min(own["lagrange"]), 6),
            "best_delta_least": round(min(own["best_delta"]), 4),
        }
        for (found, z), own in ratios.items()
    ]
    least = min(min(own["lagrange"]) for own in ratios.values())
    require(least >= 1 - 1e-9, f"lagrange is below the best setting: {least}")
    means = {case: float(np.mean(own["best_delta"])) for case, own in ratios.items()}
    headline = {
        "lagrange_min": round(least, 9),
        "lagrange_mean_max": max(row["lagrange"] for row in rows),
        "best_delta_mean_min": round(min(mean for (found, _), mean in means.items() if found == 10), 4),
        "best_delta_mean_min_of_all": round(min(means.values()), 4),
        "best_delta_least": min(row["best_delta_least"] for row in rows),
    }
    params = {"instances": instances, "m": 3, "n": 10, "window": _WINDOW, "rates": [100, 500], "found": FOUND}
    return Result("grubjoin-fig7", {**params, "seed": settings.seed}, rows, headline)


def _ratios(
    settings: Settings, found: float, z: float, instances: int, part: int, parts: int
) -> dict[str, list[float]]:
    """Output over the best output, for each chooser and instance."""
    rng = np.random.default_rng(settings.seed)
    ratios: dict[str, list[float]] = {name: [] for name in CHOOSERS}
    for turn in range(instances):
        if turn % 20 == 0:
            settings.progress(part * instances + turn, parts * instances, f"z = {z}")
        model = instance(rng, 3, 10, found)
        budget = z * model.full_cost
        best = choose(model, budget, "exhaustive").output(model)
        for name, (chooser, metric) in CHOOSERS.items():
            choice = choose(model, budget, chooser, metric)
            require(choice.cost(model) <= budget * (1 + 1e-9), f"{name} spends more than the budget")
            ratios[name].append(choice.output(model) / best)
    return ratios


def fig8(settings: Settings) -> Result:
    """Milliseconds of CPU time per choice, by the number of slices."""
    sizes = [5, 10, 20] if settings.quick else [2, 5, 8, 10, 15, 20, 30]
    cases: list[tuple[str, int, int]] = []
    for n in sizes:
        cases += [(name, m, n) for m in (3, 4, 5) for name in ("greedy", "lagrange")]
        if n <= 20:
            cases.append(("exhaustive", 3, n))
    rows = _timed(settings, cases, lambda case: 0.25)
    by = {(row["chooser"], row["m"], row["n"]): row["ms"] for row in rows}
    headline = {
        "lagrange_ms_m3_n10": by["lagrange", 3, 10],
        "greedy_ms_m3_n10": by["greedy", 3, 10],
        "exhaustive_ms_m3_n10": by["exhaustive", 3, 10],
        "lagrange_ms_m5_n20": by["lagrange", 5, 20],
        "greedy_ms_m5_n20": by["greedy", 5, 20],
    }
    return Result("grubjoin-fig8", {"z": 0.25, "seed": settings.seed}, rows, headline)


def fig9(settings: Settings) -> Result:
    """Milliseconds of CPU time per choice, by the throttle and the number of streams."""
    shares = [0.1, 0.5, 0.9] if settings.quick else [0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
    rows = []
    for number, z in enumerate(shares):
        cases = [(name, m, 10) for m in (3, 4, 5) for name in ("greedy", "lagrange")]
        rows += [{"z": z, **row} for row in _timed(settings, cases, lambda case, z=z: z, number, len(shares))]
    worst = {
        name: max(row["ms"] for row in rows if row["chooser"] == name) for name in ("greedy", "lagrange")
    }
    headline = {f"{name}_ms_max": ms for name, ms in worst.items()}
    return Result("grubjoin-fig9", {"n": 10, "seed": settings.seed}, rows, headline)


def fig10(settings: Settings) -> Result:
    """Milliseconds of CPU time per choice of the greedy choosers, by the throttle, for three streams."""
    shares = [0.1, 0.5, 0.9] if settings.quick else [0.01, *(k / 10 for k in range(1, 10)), 0.99]
    rows = []
    for number, z in enumerate(shares):
        cases = [(name, 3, 10) for name in ("greedy", "greedy_reverse", "greedy_double", "lagrange")]
        rows += [{"z": z, **row} for row in _timed(settings, cases, lambda case, z=z: z, number, len(shares))]
    by = {(row["chooser"], row["z"]): row["steps"] for row in rows}
    few, many = shares[0], shares[-1]
    require(by["greedy", few] < by["greedy", many], "greedy should take more steps for a larger z")
    require(by["greedy_reverse", few] > by["greedy_reverse", many], "greedy_reverse should take fewer")
    headline = {
        f"{name}_ms_max": max(row["ms"] for row in rows if row["chooser"] == name)
        for name in ("greedy", "greedy_reverse", "greedy_double", "lagrange")
    }
    return Result("grubjoin-fig10", {"m": 3, "n": 10, "seed": settings.seed}, rows, headline)


def _timed(
    settings: Settings,
    cases: Sequence[tuple[str, int, int]],
    share: Callable[[tuple[str, int, int]], float],
    part: int = 0,
    parts: int = 1,
) -> list[Row]:
    """The median CPU time of each case, and the slices that it takes or leaves out one by one."""
    rows = []
    for number, case in enumerate(cases):
        chooser, m, n = case
        settings.progress(part * len(cases) + number, parts * len(cases), f"{chooser}, m = {m}, n = {n}")
        rng = np.random.default_rng(settings.seed)
        repeats = 3 if chooser == "exhaustive" else 9 if settings.quick else 31
        times, steps = [], []
        for _ in range(repeats):
            model = instance(rng, m, n)
            began = time.thread_time()
            choice = choose(model, share(case) * model.full_cost, chooser)
            times.append(1000 * (time.thread_time() - began))
            taken = sum(len(slices) for direction in choice.dear for slices in direction)
            steps.append(m * (m - 1) * n - taken if chooser == "greedy_reverse" else taken)
        require(min(times) > 0, "no time has passed")
        rows.append(
            {"chooser": chooser, "m": m, "n": n, "ms": round(median(times), 3), "steps": median(steps)}
        )
    return rows
