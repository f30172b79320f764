"""The paper's greedy choosers: one basic window at a time.

    greedy           none  --->  the best step that fits, again and again  --->  nothing fits
    greedy_reverse   all   --->  the step that hurts least                 --->  it fits
    greedy_double    the first for small budgets, the second for large ones

A step changes one direction only, so only the steps of that direction are worked out again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from sparkshed.planner.harvest.model import Choice, JoinModel, Setting
from sparkshed.planner.harvest.ranks import RankedDirection

_ROUNDING = 1e-12

Metric = Callable[[float, float, float, float], float]
"""Scores a step from the cost and output before it and the changes of both."""


def _best_output(cost: float, output: float, more_cost: float, more_output: float) -> float:
    return output + more_output


def _best_output_per_cost(cost: float, output: float, more_cost: float, more_output: float) -> float:
    after = output + more_output
    if cost + more_cost > 0:
        return after / (cost + more_cost)
    return inf if after > 0 else 0.0


def _best_delta(cost: float, output: float, more_cost: float, more_output: float) -> float:
    if more_cost == 0:
        return inf if more_output >= 0 else -inf
    ratio = more_output / more_cost
    return ratio if more_cost > 0 else -ratio


METRICS: dict[str, Metric] = {
    "best_output": _best_output,
    "best_output_per_cost": _best_output_per_cost,
    "best_delta": _best_delta,
}


class _Step:
    """A direction's next numbers of slices, its cost and output with them, and the changes of both."""

    __slots__ = ("after", "cost", "counts", "output")

    def __init__(self, counts: list[int], before: tuple[float, float], after: tuple[float, float]) -> None:
        self.counts, self.after = counts, after
        self.cost, self.output = after[0] - before[0], after[1] - before[1]


class _State:
    """Numbers of slices, and the cost and output of each direction."""

    def __init__(self, model: JoinModel, full: bool) -> None:
        self.directions = [RankedDirection(direction) for direction in model.directions]
        self.counts = [[hop.slices if full else 0 for hop in d.hops] for d in self.directions]
        self.own = [(0.0, 0.0)] * len(self.counts)
        if full:
            self.own = [d.evaluate(c) for d, c in zip(self.directions, self.counts, strict=True)]
        self.total()

    def total(self) -> None:
        """Adds the directions up again, so that rounding does not pile up."""
        self.cost = sum([cost for cost, _ in self.own])
        self.output = sum([output for _, output in self.own])

    def step(self, number: int, counts: list[int]) -> _Step:
        """A direction's change to other numbers of slices."""
        after = self.directions[number].evaluate(counts) if all(counts) else (0.0, 0.0)
        return _Step(counts, self.own[number], after)

    def take(self, number: int, step: _Step) -> None:
        """Makes the change."""
        self.counts[number], self.own[number] = step.counts, step.after
        self.total()

    def setting(self) -> Setting:
        """The slices that are in."""
        return tuple(d.setting(c) for d, c in zip(self.directions, self.counts, strict=True))

    def choice(self) -> Choice:
        """The slices that are in, for all rows."""
        setting = self.setting()
        return Choice(setting, setting)


def greedy(model: JoinModel, budget: float, metric: str = "best_delta") -> Choice:
    """Starts with nothing and adds slices while they fit.

    A direction is switched on with one slice in every hop. What does not fit once is frozen for good.
    """
    score, limit = METRICS[metric], budget * (1 + _ROUNDING)
    state = _State(model, full=False)
    frozen: set[tuple[int, int]] = set()
    steps = [_forward(state, number) for number in range(len(state.directions))]
    while True:
        best, picked = 0.0, None
        for number, options in enumerate(steps):
            for hop, step in options:
                if (number, hop) in frozen:
                    continue
                if state.cost + step.cost > limit:
                    frozen.add((number, hop))
                elif step.output > 0:
                    value = score(state.cost, state.output, step.cost, step.output)
                    if value > best:
                        best, picked = value, (number, step)
        if picked is None:
            return state.choice()
        state.take(*picked)
        steps[picked[0]] = _forward(state, picked[0])


def _forward(state: _State, number: int) -> list[tuple[int, _Step]]:
    """One more slice, for each hop that has one left; or the direction switched on, as hop -1."""
    counts = state.counts[number]
    if not any(counts):
        return [(-1, state.step(number, [1] * len(counts)))]
    return [
        (hop, state.step(number, [*counts[:hop], counts[hop] + 1, *counts[hop + 1 :]]))
        for hop, ranked in enumerate(state.directions[number].hops)
        if counts[hop] < ranked.slices
    ]


def grown(model: JoinModel, setting: Setting) -> Iterator[Setting]:
    """Larger and larger settings, each with the best next step by ΔO/ΔC; slices are taken in rank order."""
    state = _State(model, full=False)
    for number, own in enumerate(setting):
        if all(own):
            state.take(number, state.step(number, [len(slices) for slices in own]))
    steps = [_forward(state, number) for number in range(len(state.directions))]
    while any(steps):
        _, number, step = max(
            ((_best_delta(0.0, 0.0, s.cost, s.output), -n, s) for n, own in enumerate(steps) for _, s in own),
            key=lambda option: option[:2],
        )
        state.take(-number, step)
        steps[-number] = _forward(state, -number)
        yield state.setting()


def greedy_reverse(model: JoinModel, budget: float, metric: str = "best_delta") -> Choice:
    """Starts with everything and takes slices away until the rest fits.

    A direction that loses the last slice of a hop is off.
    """
    score, limit = METRICS[metric], budget * (1 + _ROUNDING)
    state = _State(model, full=True)
    steps = [_backward(state, number) for number in range(len(state.directions))]
    while state.cost > limit:
        best, picked = -inf, None
        for number, options in enumerate(steps):
            for step in options:
                value = score(state.cost, state.output, step.cost, step.output)
                if picked is None or value > best:
                    best, picked = value, (number, step)
        if picked is None:
            break
        state.take(*picked)
        steps[picked[0]] = _backward(state, picked[0])
    return state.choice()


def _backward(state: _State, number: int) -> list[_Step]:
    """One slice less, for each hop."""
    counts = state.counts[number]
    if not any(counts):
        return []
    off = [0] * len(counts)
    options = [
        [*counts[:hop], count - 1, *counts[hop + 1 :]] for hop, count in enumerate(counts) if count > 1
    ]
    if len(options) < len(counts):
        options.append(off)
    return [state.step(number, option) for option in options]


def greedy_double(model: JoinModel, budget: float, metric: str = "best_delta") -> Choice:
    """`greedy` for z ≤ 0.5^((m−1)/2), where little is taken; `greedy_reverse` where little is left out."""
    hops = max(len(direction.hops) for direction in model.directions)
    few = budget <= 0.5 ** (hops / 2) * model.full_cost
    return greedy(model, budget, metric) if few else greedy_reverse(model, budget, metric)
