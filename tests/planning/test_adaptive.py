"""What `adaptive` chooses: slices in rank order, parts of them, and how much each direction gets."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planning.test_adaptation import SLICES, direction, tally
from sparkshed.engine.strategies.registry import LIMITED, STRATEGIES
from sparkshed.experiments.joins import camera_join
from sparkshed.planner.adaptation import Policy
from sparkshed.planner.adaptive import AdaptiveAdapter, selective
from sparkshed.planner.configuration import Configuration
from sparkshed.planner.expecting import selected
from sparkshed.planner.harvest.learning import learned_model
from sparkshed.planner.harvest.model import HopModel
from sparkshed.planner.selecting import part_of, select, share_of
from sparkshed.planner.shedding import policy_of
from sparkshed.planner.slices import Slices, Span
from sparkshed.planner.strategies import KINDS
from sparkshed.planner.wire import configuration_from_json, configuration_to_json
from sparkshed.sql.hint import parse_hint
from sparkshed.sql.options import CPU, EVICTION, LIMITABLE

B = 1_000_000
PAST = Slices.of(SLICES * B - 1, 0, B)


def adapter(*adaptations: str, slices: Slices = PAST, shred: float = 0.1, **policy) -> AdaptiveAdapter:
    join = camera_join(2, window=10, basic=1)
    start = Configuration(join.spec.orders, shred=shred)
    own = Policy(adaptations=adaptations, shred=shred, **policy)
    return AdaptiveAdapter(start, ((slices,) * 2,) * 2, join.graph, own)


def lesson(first: int = 7, second: int = 7, *, worth: float = 1.0):
    """Rows of both streams find their results in one slice; those of the first find `worth` times as many."""
    found = direction(first, origin=0, targets=(1,), found=2.0 * worth)
    found.results *= worth
    return tally(found, direction(second, origin=1, targets=(0,)))


def shares(adapting: AdaptiveAdapter, known) -> list[float]:
    """r of each direction, as the model expects it."""
    own = adapting.configuration
    learned = learned_model(known, own.orders, ((PAST,) * 2,) * 2)
    return [selective(own, learned, origin, ((PAST,) * 2,) * 2)[0] for origin in (0, 1)]


def test_every_strategy_is_registered():
    assert set(CPU) == set(KINDS) == set(STRATEGIES)
    assert set(LIMITABLE) == {*LIMITED, *EVICTION}


def test_with_time_the_slices_with_most_results_come_first_and_the_last_one_in_part():
    adapting = adapter("rate", "time")
    own = adapting.adapt(lesson(7, 3), 0.25)
    assert own.shred == pytest.approx(0.25 * 0.1)
    assert own.dear == own.cheap
    for origin, peak in ((0, 7), (1, 3)):
        (chosen,), part = own.dear[origin], own.partly[origin]
        assert peak in chosen
        number, share = share_of(PAST, part)
        assert number not in chosen and 0 < share < 1
        assert 1 <= len(chosen) <= 2
    # What rows that are processed fully cost is taken from the budget.
    assert shares(adapting, lesson(7, 3)) == pytest.approx([0.25 * 0.9 / 0.975] * 2, rel=1e-3)


def test_without_time_the_newest_slices_come_first():
    own = adapter("rate").adapt(lesson(7, 3), 0.25)
    for origin in (0, 1):
        (chosen,) = own.dear[origin]
        assert chosen == tuple(range(len(chosen))) and len(chosen) == 2
        assert own.partly[origin].start == 2 * B


def test_without_time_the_nearest_come_first_on_both_sides():
    both = Slices.of(5 * B - 1, 5 * B, B)
    own = adapter("rate", slices=both).adapt(lesson(7, 3), 0.35)
    assert own.dear[0][0] == (-1, 0, 1)
    assert -2 * B < own.partly[0].start < own.partly[0].stop == -B


def test_with_direction_the_better_one_is_filled_first():
    known = lesson(7, 7, worth=4.0)
    for z, expected in ((0.3, [0.55, 0.0]), (0.7, [1.0, 0.32])):
        adapting = adapter("rate", "time", "direction")
        own = adapting.adapt(known.copy(), z)
        found = shares(adapting, known)
        assert found == pytest.approx(expected, abs=0.03)
        full = learned_model(known, own.orders, ((PAST,) * 2,) * 2).model
        work = sum(r * model.full_cost for r, model in zip(found, full.directions, strict=True))
        # The work stays the same: r_1 C_1 + r_2 C_2 = r (C_1 + C_2), and r C in all.
        assert (1 - own.shred) * work + own.shred * full.full_cost == pytest.approx(z * full.full_cost)


def test_without_direction_or_where_neither_is_better_both_get_the_same():
    for names, worth in ((("rate", "time"), 4.0), (("rate", "time", "direction"), 1.1)):
        adapting = adapter(*names)
        known = lesson(7, 7, worth=worth)
        adapting.adapt(known.copy(), 0.3)
        first, second = shares(adapting, known)
        assert first == pytest.approx(second, rel=1e-6)


def test_rate_decides_whether_z_follows_the_load():
    for options, follows in (("", True), (", 'adaptations=time'", False), (", 'budget=0.5'", False)):
        hint, _ = parse_hint(f"/*+ SHED(adaptive{options}) */")
        assert hint.follows is follows
    hint, _ = parse_hint("/*+ SHED(adaptive, 'adaptations=direction, Rate') */")
    assert policy_of(hint).adaptations == hint.adaptations == ("rate", "direction")


def test_with_everything_allowed_everything_is_probed():
    own = adapter("rate", "time", "direction").adapt(lesson(), 1.0)
    assert own.is_exact and own.partly == (None, None)


def test_all_rows_may_be_processed_fully():
    own = adapter("time", shred=1.0).adapt(lesson(), 0.3)
    assert own.shred == pytest.approx(0.3)
    assert own.dear == own.cheap == (((),), ((),)) and own.partly == (None, None)


def test_where_a_search_takes_most_of_the_work_only_some_rows_make_it():
    hop = HopModel(cost=(1, 1, 1), partials=(0, 0, 0), share=(2, 6, 2), base=10)
    own = select(hop, [1, 0, 2], 6.5, ())
    assert own.whole == () and own.part is None
    assert own.chance * own.extra(hop) == pytest.approx(6.5)
    full = select(hop, [1, 0, 2], 13, ())
    assert full.whole == (1, 0, 2) and not full.some


def test_a_slice_without_an_end_is_probed_by_some_rows():
    endless = Slices.of(None, 0, B)
    known = tally(*(direction(3, origin=i, targets=(1 - i,), found=0.0) for i in (0, 1)))
    for own in known.directions:
        (hop,) = own.hops.values()
        for name in ("pairs", "touched", "partials"):
            counts = np.zeros(endless.count)
            counts[[0, 31]] = [1000.0, 4000.0] if name != "partials" else 0.0
            setattr(hop, name, counts)
        own.lags = {target: np.resize([1.0, 0.0], endless.count) for target in own.lags}
    adapting = adapter("rate", "time", slices=endless)
    own = adapting.adapt(known, 0.6)
    assert own.partly == (None, None)
    assert own.cheap == (((0,),), ((0,),)) and own.dear == (None, None)
    learned = learned_model(known, own.orders, ((endless,) * 2,) * 2)
    work, _ = selected(own, learned, 0, ((endless,) * 2,) * 2)
    assert work == pytest.approx(0.6, rel=0.01)


@pytest.mark.parametrize("slices", [PAST, Slices.of(25, 0, 10), Slices.of(7, 12, 5)])
def test_parts_are_ranges_of_time_within_one_slice(slices):
    for number in range(slices.first, slices.last + 1):
        for share in (0.2, 0.5, 0.99):
            for chosen in ((), (number - 1,), (number + 1,), (number - 1, number + 1)):
                part, whole = part_of(slices, number, share, chosen), slices.span(number)
                if part is None:
                    continue
                assert whole.start <= part.start < part.stop <= whole.stop
                assert part.stop - part.start == round(share * (whole.stop - whole.start))
                beside = (part.start == whole.start and number - 1 in chosen) or (
                    part.stop == whole.stop and number + 1 in chosen
                )
                assert beside or not chosen
                assert share_of(slices, part)[0] == number


def test_a_configuration_with_parts_travels():
    own = replace(Configuration(((1,), (0,)), 0.5), partly=(Span(1, 5), None))
    assert configuration_from_json(configuration_to_json(own)) == own
    old = configuration_to_json(own)
    del old["partly"]
    assert configuration_from_json(old).partly == (None, None)
