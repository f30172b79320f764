"""All experiments by name: what runs, and how its picture looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sparkshed.experiments import (
    budgets,
    bursts,
    choosing,
    dual,
    evicting,
    following,
    general,
    joint,
    locality,
    output,
    partial,
    saving,
    selecting,
)
from sparkshed.experiments.diffusion import balance, figures, scaling, timing
from sparkshed.experiments.diffusion.runs import COMPARED
from sparkshed.experiments.result import Result, Settings
from sparkshed.experiments.windowed import POLICIES


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines in a diagram.

    Attributes:
        x: Column of the rows on the x-axis.
        ys: Columns that are drawn, a line for each.
        by: Columns whose values make separate lines.
        log: Whether the y-axis is logarithmic.
        bars: Whether values of x have no order.
    """

    x: str
    ys: tuple[str, ...]
    by: tuple[str, ...] = ()
    log: bool = False
    bars: bool = False


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment; `takes_data` if it can run on a file that the user has."""

    title: str
    run: Callable[[Settings], Result]
    picture: Picture
    takes_data: bool = False


_RATES = ("grubjoin", "randomdrop")
_WITH = tuple(f"with {name}" for name in selecting.ADAPTATIONS)
_TOTALS = ("atr", "ctr", "unaware", "centralised")
_DUAL = ("dual", "prob", "rand", "opt")

EXPERIMENTS: dict[str, Experiment] = {
    "grubjoin-fig2": Experiment(
        "the throttle follows rates", following.fig2, Picture("at", ("z",), ("throttle",))
    ),
    "grubjoin-fig4": Experiment(
        "an example configuration", choosing.fig4, Picture("chooser", ("optimality",), bars=True)
    ),
    "grubjoin-fig7": Experiment(
        "optimality of all choosers",
        choosing.fig7,
        Picture("z", ("lagrange", "best_delta", "best_output", "best_output_per_cost"), ("found",)),
    ),
    "grubjoin-fig8": Experiment(
        "time to choose, by slices", choosing.fig8, Picture("n", ("ms",), ("chooser", "m"), log=True)
    ),
    "grubjoin-fig9": Experiment(
        "time to choose, by throttle", choosing.fig9, Picture("z", ("ms",), ("chooser", "m"), log=True)
    ),
    "grubjoin-fig10": Experiment(
        "time of the greedy choosers", choosing.fig10, Picture("z", ("ms",), ("chooser",), log=True)
    ),
    "grubjoin-fig11": Experiment(
        "output by rate, aligned and not",
        output.fig11,
        Picture("rate", _RATES, ("streams", "policy"), log=True),
    ),
    "grubjoin-fig12": Experiment(
        "output by time correlation", output.fig12, Picture("kappa_3", _RATES, ("policy",), log=True)
    ),
    "grubjoin-fig13": Experiment(
        "gain by number of streams", output.fig13, Picture("m", ("gain",), ("streams", "policy", "b"))
    ),
    "grubjoin-fig14": Experiment(
        "output by basic window", output.fig14, Picture("b", ("grubjoin",), ("kappa_3",))
    ),
    "grubjoin-fig15": Experiment(
        "output by adaptation interval", output.fig15, Picture("adapt", ("grubjoin",), ("m",), log=True)
    ),
    "grubjoin-fig16": Experiment(
        "rows lost by buffer size", following.fig16, Picture("buffer", ("lost",), ("rate",))
    ),
    "grubjoin-table2": Experiment("gain by cost of the condition", output.table2, Picture("cost", ("gain",))),
    "grubjoin-fig17": Experiment(
        "two joins under forced shedding", output.fig17, Picture("shed", ("output",), ("window",))
    ),
    "grubjoin-lag-change": Experiment(
        "a lag that jumps", following.lag_change, Picture("at", ("gain",), ("policy",))
    ),
    "grubjoin-memory": Experiment(
        "rows in the windows", saving.memory, Picture("at", ("rows",), ("saving", "seed"))
    ),
    "grubjoin-budget": Experiment(
        "work over what was promised",
        budgets.budget,
        Picture("z", ("spent",), ("indexed", "seed")),
    ),
    "adaptive-fig2": Experiment(
        "match probability by age", partial.fig2, Picture("age", ("probability",), ("kappa",))
    ),
    "adaptive-fig3": Experiment("r follows rates", partial.fig3, Picture("at", ("r",))),
    "adaptive-fig4": Experiment(
        "partial processing beside random drop",
        partial.fig4,
        Picture("at", ("adaptive", "randomdrop", "same_work")),
    ),
    "adaptive-fig5": Experiment(
        "partial processing by skew and window",
        partial.fig5,
        Picture("kappa", ("adaptive", "same_work"), ("window",)),
    ),
    "adaptive-fig6": Experiment("shares of both windows", selecting.fig6, Picture("at", ("r_1", "r_2"))),
    "adaptive-fig7": Experiment("output by adaptations, over time", selecting.fig7, Picture("at", _WITH)),
    "adaptive-fig8": Experiment("output by adaptations and skew", selecting.fig8, Picture("kappa", _WITH)),
    "adaptive-fig9": Experiment(
        "output by basic window", selecting.fig9, Picture("b", ("adaptive",), ("indexed", "kappa"), bars=True)
    ),
    "dual-fig5": Experiment(
        "front and rear shedding, by speed", dual.fig5, Picture("speed", ("dual", "rear", "dual_sql"))
    ),
    "dual-fig6": Experiment("windows of 400 rows, by speed", dual.fig6, Picture("speed", _DUAL)),
    "dual-fig7": Experiment("windows of 800 rows, by speed", dual.fig7, Picture("speed", _DUAL)),
    "dual-fig8": Experiment("uniform values, by speed", dual.fig8, Picture("speed", _DUAL)),
    "dual-fig9": Experiment(
        "recorded values, by speed", dual.fig9, Picture("speed", _DUAL, ("data",)), takes_data=True
    ),
    "streaming-burst": Experiment("z follows bursts of input", bursts.burst, Picture("at", ("z", "seconds"))),
    "gdj-fig2.1": Experiment(
        "how soon values come again",
        locality.fig2,
        Picture("cache", ("hits", "shuffled"), ("data",)),
        takes_data=True,
    ),
    "gdj-fig3": Experiment(
        "output by initial credit",
        evicting.fig3,
        Picture("percentile", ("output",), ("data", "start")),
        takes_data=True,
    ),
    "gdj-fig4": Experiment(
        "output by buffer size", evicting.fig4, Picture("buffer", POLICIES, ("data",)), takes_data=True
    ),
    "gdj-fig5": Experiment(
        "output by window and by domain", evicting.fig5, Picture("value", POLICIES, ("varied",))
    ),
    "gdj-fig6": Experiment(
        "one buffer for two joins", general.fig6, Picture("policy", ("results",), bars=True)
    ),
    "gdj-fig7": Experiment(
        "output by streams and attributes", general.fig7, Picture("value", general.WITHOUT_AGE, ("varied",))
    ),
    "gdj-fig8": Experiment(
        "output by the skew of attributes",
        general.fig8,
        Picture("skew_2", ("gdj", "prob", "rand"), ("skew_1",)),
    ),
    "gdj-fig9": Experiment(
        "samples: output and distortion (SSE)",
        general.fig9,
        Picture("p", ("output", "sse"), ("data", "policy")),
        takes_data=True,
    ),
    "gdj-fig10": Experiment(
        "samples: output and distortion (KL)",
        general.fig10,
        Picture("p", ("output", "kl"), ("data", "policy")),
        takes_data=True,
    ),
    "gdj-joint": Experiment(
        "work and memory limited together",
        joint.joint,
        Picture("memory", tuple(joint.WAYS), ("cpu",)),
    ),
    "diffusion-fig4": Experiment(
        "throughput of ATR by the length of segments",
        figures.fig4,
        Picture("T", ("throughput",), ("join", "climbing"), log=True),
    ),
    "diffusion-fig7": Experiment("results over time, windows of 60 s", figures.fig7, Picture("at", _TOTALS)),
    "diffusion-fig8": Experiment("results over time, windows of 120 s", figures.fig8, Picture("at", _TOTALS)),
    "diffusion-fig9": Experiment(
        "time to route, windows of 60 s", timing.fig9, Picture("hosts", ("ms",), ("way",), log=True)
    ),
    "diffusion-fig10": Experiment(
        "time to route, windows of 120 s", timing.fig10, Picture("hosts", ("ms",), ("way",), log=True)
    ),
    "diffusion-fig11": Experiment(
        "throughput by hosts", figures.fig11, Picture("hosts", COMPARED, ("rows",), log=True)
    ),
    "diffusion-fig12": Experiment("network by hosts", figures.fig12, Picture("hosts", COMPARED[:-1])),
    "diffusion-fig13": Experiment(
        "throughput by streams", figures.fig13, Picture("streams", COMPARED, ("rows",), log=True)
    ),
    "diffusion-fig14": Experiment(
        "throughput by window", figures.fig14, Picture("window", COMPARED, ("rows",), log=True)
    ),
    "diffusion-fig15": Experiment(
        "throughput by selectivity", figures.fig15, Picture("selectivity", COMPARED, ("rows",), log=True)
    ),
    "diffusion-fig16": Experiment(
        "throughput by burstiness", figures.fig16, Picture("theta", COMPARED, ("rows",), log=True)
    ),
    "diffusion-balance": Experiment(
        "how even the work of hosts is",
        balance.balance,
        Picture("hosts", ("atr", "ctr", "hash"), ("kind",), bars=True),
    ),
    "diffusion-scaling": Experiment(
        "a thousand hosts, on paper",
        scaling.scaling,
        Picture("group", ("copies",), ("way", "streams"), log=True),
    ),
}
