"""Random models of harvested joins for the tests."""

from __future__ import annotations

import math
import random

from sparkshed.planner.harvest import DirectionModel, HopModel, JoinModel, paper_model


def paper_instance(seed: int, streams: int, slices: int, include_output: bool = False) -> JoinModel:
    """Streams with bell-shaped lags, flat ones and sharp ones, and directional selectivities."""
    draw = random.Random(f"{seed}/{streams}/{slices}")
    numbers = range(streams)
    rates = [draw.uniform(50, 300) for _ in numbers]
    selectivity = [[10 ** draw.uniform(-3.5, -1.5) for _ in numbers] for _ in numbers]
    scores = [[_bell(draw, slices) for _ in numbers] for _ in numbers]
    orders = [draw.sample([other for other in numbers if other != i], streams - 1) for i in numbers]
    return paper_model(rates, [20.0] * streams, selectivity, scores, orders, include_output)


def _bell(draw: random.Random, slices: int) -> list[float]:
    middle, width = draw.uniform(0, slices), draw.uniform(0.3, slices)
    return [math.exp(-(((k + 0.5 - middle) / width) ** 2) / 2) + 1e-6 for k in range(slices)]


def general_instance(seed: int, streams: int, slices: int) -> JoinModel:
    """Costs, partial results and shares that have nothing to do with each other, zeros among them."""
    draw = random.Random(f"general {seed}/{streams}/{slices}")

    def values(scale: float) -> tuple[float, ...]:
        return tuple(0.0 if draw.random() < 0.1 else scale * draw.random() ** 2 for _ in range(slices))

    directions = []
    for _ in range(streams):
        hops = [HopModel(values(100), values(2), values(1)) for _ in range(streams - 1)]
        directions.append(DirectionModel(draw.uniform(0, 10), draw.uniform(0, 5), tuple(hops)))
    return JoinModel(tuple(directions))
