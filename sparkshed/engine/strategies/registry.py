"""The strategies that shed load, by name: what joins rows for each of them."""

from __future__ import annotations

from sparkshed.engine.strategies.adaptive import Adaptive
from sparkshed.engine.strategies.dual import Dual
from sparkshed.engine.strategies.evicting import Evicting
from sparkshed.engine.strategies.grubjoin import GrubJoin
from sparkshed.engine.strategies.learning import Learning
from sparkshed.engine.strategies.limited import LimitedAdaptive, LimitedGrubJoin, LimitedRandomDrop
from sparkshed.engine.strategies.randomdrop import RandomDrop

STRATEGIES: dict[str, type[Learning]] = {
    "grubjoin": GrubJoin,
    "randomdrop": RandomDrop,
    "adaptive": Adaptive,
    "dual": Dual,
}

#: The same with a limit for their windows; what limits only these is not here.
LIMITED: dict[str, type[Evicting]] = {
    "grubjoin": LimitedGrubJoin,
    "randomdrop": LimitedRandomDrop,
    "adaptive": LimitedAdaptive,
}
