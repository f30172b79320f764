"""The hosts of a streaming join: the routing with the least to do for the busiest one, and the reasons."""

from __future__ import annotations

import pytest

from planning.build import band, equal, plan
from sparkshed.planner.assumptions import assumed
from sparkshed.planner.diffusion.plan import coordinated_plan
from sparkshed.planner.hosting import MOST_ORDERS, choose_hosts, orders_of
from sparkshed.planner.layout import Resources
from sparkshed.planner.logical import ShedJoin
from sparkshed.planner.planner import plan_join
from sparkshed.planner.streaming import Hosts, StreamingPlan
from sparkshed.sql.errors import PlanError
from sparkshed.sql.hint import Diffusion
from sparkshed.sql.options import OPTIONS


def planned(*predicates, streams: int = 3, options=None, **known) -> ShedJoin:
    block = plan(*predicates, streams=streams, options=options).block
    if known:
        statistics = plan(*predicates, streams=streams, **known).statistics
    else:
        statistics = assumed(block)
    return plan_join(block, statistics, Resources(4), streaming=True).logical


def chosen(own: ShedJoin, cores: int, static: tuple[bool, ...] | None = None) -> tuple[Hosts, dict]:
    hosts, loads = choose_hosts(own, static or (False,) * len(own.names), Resources(cores))
    return hosts, dict(loads)


def bands(streams: int) -> list:
    return [band(i, i + 1, -1, 1) for i in range(streams - 1)]


def test_keys_are_hashed_unless_a_few_are_frequent() -> None:
    keyed = [equal(0, 1), equal(1, 2)]
    hosts, loads = chosen(planned(*keyed), 4)
    assert (hosts.routing, hosts.count) == ("hash", 4)
    assert loads["hash"] == min(loads.values())
    rare = {(0, 1): 1e-4, (1, 2): 1e-4, (0, 2): 1e-4}
    hosts, loads = chosen(planned(*keyed, selectivity=rare, top_share=0.9), 4)
    assert hosts.routing == "dealt"
    assert loads["hash"] > 1.2 * loads["dealt"]


@pytest.mark.parametrize("streams", [2, 3, 5])
def test_without_a_key_segments_are_dealt_out(streams: int) -> None:
    hosts, loads = chosen(planned(*bands(streams), streams=streams), 4)
    assert (hosts.routing, hosts.count) == ("dealt", 4)
    assert set(loads) == {"none", "dealt", "atr", "ctr"}
    assert loads["dealt"] < loads["none"] / 1.5


@pytest.mark.parametrize("streams", [2, 6])
def test_one_router_for_many_hosts_would_have_more_to_do_than_any_of_them(streams: int) -> None:
    rare = {(i, k): 1e-5 for i in range(streams) for k in range(i)}
    own = planned(*bands(streams), streams=streams, selectivity=rare, rows=(600_000,) * streams)
    for cores in (4, 32, 250):
        hosts, loads = chosen(own, cores)
        assert hosts.routing == "dealt"
        assert loads["dealt"] < min(loads["atr"], loads["ctr"])
        assert loads["dealt"] < 0.85 * loads["none"]


def test_what_is_asked_for_is_done() -> None:
    for routing in ("atr", "ctr"):
        hosts, loads = chosen(planned(*bands(3), options={"diffuse": Diffusion(routing, 7)}), 2)
        assert (hosts.routing, hosts.count, loads) == (routing, 7, {})


def test_a_table_cannot_travel() -> None:
    own = planned(*bands(3), options={"diffuse": Diffusion("ctr")})
    with pytest.raises(PlanError, match="`b` is a table"):
        chosen(own, 4, (False, True, False))
    hosts, loads = chosen(planned(*bands(3)), 4, (True, False, False))
    assert hosts.master == 1
    assert "ctr" not in loads


def test_some_orders_of_many_are_looked_at() -> None:
    own = planned(*(band(i, k, -1, 1) for i in range(6) for k in range(i)), streams=6)
    orders = orders_of(own)
    assert [len(set(found)) for found in orders] == [MOST_ORDERS] * 6
    assert tuple(found[0] for found in orders) == own.orders


def test_orders_may_change_while_a_checkpoint_is_in_use() -> None:
    predicates = [equal(0, 1), band(1, 2, -1, 1), equal(0, 2, 2)]
    marks, found = [], []
    for text in ("a:b>c; b:a>c; c:b>a", "a:c>b; b:c>a; c:a>b"):
        options = {"order": OPTIONS["order"].parse(text)}
        block = plan(*predicates, streams=3, options=options).block
        spec = plan_join(block, assumed(block), Resources(4), streaming=True).physical.spec
        found.append(spec.orders)
        marks.append(StreamingPlan(spec, Hosts(1), None, False, (False,) * 3).marks)
    assert found == [((1, 2), (0, 2), (1, 0)), ((2, 1), (2, 0), (0, 1))]
    assert marks[0] == marks[1]


def mark_of(*orders: tuple[int, ...]) -> str:
    return Hosts(4, router=coordinated_plan(10, tuple((order,) for order in orders))).mark


def test_orders_of_travelling_rows_may_change_where_rows_are_kept_for_the_same_hops() -> None:
    one, same = mark_of((1, 2), (2, 0), (0, 1)), mark_of((2, 1), (0, 2), (1, 0))
    assert one == same
    assert one.startswith("ctr:4 ")
    # Here rows of the first stream are kept for the first hop only.
    assert mark_of((1, 2), (0, 2), (0, 1)) != one
