"""The simulated cluster: what routers send is the join, and hosts keep to what they have."""

from __future__ import annotations

import json

import numpy as np
import pytest

from sparkshed.cli import main
from sparkshed.experiments.catalogue import EXPERIMENTS
from sparkshed.experiments.diffusion import figures, scaling
from sparkshed.experiments.diffusion.aligned import Aligned
from sparkshed.experiments.diffusion.arrivals import bursty, poisson
from sparkshed.experiments.diffusion.cluster import Cluster, Query, simulate
from sparkshed.experiments.diffusion.hosts import Costs, Hosts
from sparkshed.experiments.diffusion.runs import WAYS, Case, run, streams_of
from sparkshed.experiments.diffusion.sheet import Sheet, Store
from sparkshed.experiments.result import Contradiction, Settings

PLENTY = Hosts.alike(9, cpu=1e9, memory=1e9, bandwidth=1e9)
WEAK = Hosts.alike(9, cpu=0.02)


def reported(name, hosts, streams=3, seed=0, **changes):
    query = Query(streams, 12, 0.1, (6.0, 9.0, 4.0, 5.0)[:streams])
    arrivals = poisson(query.rates, 120, 1.0, np.random.default_rng(seed))
    return simulate(
        query, arrivals, hosts, WAYS[name](query, hosts, seed), Costs(**changes), interval=4, warm_up=40
    )


@pytest.mark.parametrize("name", ["atr", "ctr", "atr_unoptimised", "ctr_unoptimised", "centralised"])
@pytest.mark.parametrize("streams", [2, 3, 4])
def test_hosts_with_plenty_of_everything_find_each_result_once(name, streams):
    assert reported(name, PLENTY, streams).share == pytest.approx(1, abs=1e-9)


def test_rivals_find_what_meets():
    # Partial results of the left are known once per interval, so a little late.
    assert reported("operators", PLENTY, 4).share == pytest.approx(1, abs=0.1)
    assert 0 < reported("unaware", PLENTY).share < 0.1


def test_a_change_of_the_master_loses_nothing():
    query = Query(3, 12, 0.1, (6.0, 9.0, 4.0))
    arrivals = poisson(query.rates, 200, 1.0, np.random.default_rng(0))
    way = Aligned(query, 9, 5, adapts=False)
    masters = []

    def elect(ticks, seen):
        way._router.switch(len(masters) % 3)
        masters.append(way._router.master)

    way.adapt = elect
    report = simulate(query, arrivals, PLENTY, way, Costs(), warm_up=40)
    assert set(masters) == {0, 1, 2}
    assert report.share == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", WAYS)
def test_hosts_do_no_more_than_they_can(name):
    report = reported(name, WEAK)
    queued = Costs().queue / report.seconds
    assert 0 < report.share < 1
    assert report.work.max() <= 1 + queued + 1e-9
    if name != "unaware":
        # It finds what happens to meet, which is more if all are busy alike.
        assert report.results < reported(name, PLENTY).results


def test_short_memory_and_network_cost_results():
    full = reported("atr", Hosts.alike(9))
    assert full.share == pytest.approx(1, abs=1e-6)
    assert reported("atr", Hosts.alike(9, memory=100.0)).share < 0.6
    narrow = reported("atr", Hosts.alike(9, bandwidth=1.0))
    assert narrow.share < 0.6 and narrow.lost > 0
    assert reported("atr", Hosts.alike(9, memory=100.0), row=0.1).share == pytest.approx(1, abs=1e-6)


def test_a_row_is_joined_by_all_hosts_on_its_way_or_by_none():
    hosts = Hosts.alike(2, cpu=1.0)
    costs = Costs(receive=0.0, send=0.0, probe=1.0, window=1.0, queue=0.0)
    sheet = Sheet(2)
    # Ten rows: 1 s of work for each on host 0, and 0.5 partial results of 4 s on host 1.
    sheet.chain(10.0, [([0], [1.0]), ([1], [4.0])], [0.5, 0.5])
    done = Cluster(hosts, costs).work(sheet, np.zeros(2), 10.0)
    assert done.cpu == pytest.approx([5.0, 10.0], rel=0.01)
    assert done.results == pytest.approx(5.0, rel=0.01)
    assert done.asked == pytest.approx([10.0, 20.0])


def test_partial_results_that_are_there_do_not_travel():
    sheet = Sheet(3)
    sheet.chain(2.0, [([0, 1], [3.0, 5.0]), ([1, 2], [1.0, 1.0])], [1.0, 1.0])
    done = Cluster(Hosts.alike(3, 1e9), Costs()).work(sheet, np.zeros(3), 1.0)
    # 6 + 10 partial results; those of host 0 go to two hosts, those of host 1 to the other one.
    assert done.partials == pytest.approx(2 * 6 + 10)


def test_windows_hold_what_came_before():
    store = Store(1, 10, 2, window=3)
    for tick in range(10):
        store.keep(0, 0, tick, np.array([tick % 2]), np.array([1.0]))
        store.close(tick)
    assert store.window(0, 0, 5).tolist() == [2.0, 1.5]
    assert store.between(0, 1, 2, 5, 5) == 1.5
    assert store.between(0, 0, 0, 9, 5) == 3.0
    assert store.held(5).tolist() == [1.0, 2.0]


def test_bursts_have_the_same_mean():
    rng = np.random.default_rng(0)
    for ratio in (0.0, 0.5, 1.0):
        rows = bursty([20.0, 20.0], 20_000, 0.5, ratio, 10.0, rng)
        assert rows.mean() == pytest.approx(5, rel=0.1)
        if ratio == 1:
            assert 0.3 < (rows == 0).mean() < 0.7


def test_runs_are_the_same_for_a_seed():
    case = Case(streams=3, window=10.0, hosts=8)
    for name in ("atr", "ctr_unoptimised"):
        first = run(case, name, 3, True)
        again = run.__wrapped__(case, name, 3, True)
        assert first.delivered == again.delivered and first.work.tolist() == again.work.tolist()
        assert first.delivered != run(case, name, 4, True).delivered


def test_aligned_routing_is_ahead_for_few_streams_where_sending_rows_is_much_of_the_work():
    for streams in (2, 3):
        case = Case(streams=streams, window=2.0, small=True, overload=1.5, tick=0.25)
        query, arrivals = streams_of(case, 1, 50.0)
        able = float(case.cluster(1).cpu.sum())
        assert query.comparisons * case.costs().comparison == pytest.approx(1.5 * able)
        assert arrivals.mean() == pytest.approx(np.mean(query.rates) * 0.25, rel=0.05)
        assert run(case, "atr", 1, True).throughput > run(case, "ctr", 1, True).throughput


QUICK = {
    "fig4": "climbing_of_best_2",
    "fig7": "atr_over_ctr",
    "fig8": "least_over_others",
    "fig9": "ctr_ms_100",
    "fig10": "atr_us_per_row_100",
    "fig14": "atr_over_ctr_window_50",
    "fig15": "atr_over_ctr_selectivity_1",
    "fig16": "atr_over_ctr_theta_1",
    "balance": "ctr_most_alike",
    "scaling": "ctr_3_most_rows_M",
}


@pytest.mark.parametrize("name", QUICK)
def test_experiments_show_what_they_claim(name):
    experiment = EXPERIMENTS[f"diffusion-{name}"]
    result = experiment.run(Settings(quick=True))
    assert result.headline[QUICK[name]] > 0
    picture = experiment.picture
    assert all({picture.x, *picture.ys, *picture.by} <= set(row) for row in result.rows)


def test_throughput_and_network_by_hosts(tmp_path, capsys):
    folder = str(tmp_path)
    assert main.main(["experiment", "diffusion-fig11", "--quick", "--json", "--out", folder]) == 0
    headline = json.loads(capsys.readouterr().out)["headline"]
    assert headline["atr_30_over_10"] > 1.2 and headline["least_over_operators"] > 1
    assert main.main(["experiment", "diffusion-fig12", "--quick", "--out", folder]) == 0
    assert (tmp_path / "diffusion-fig12.png").exists()


@pytest.mark.long
def test_throughput_by_streams():
    headline = EXPERIMENTS["diffusion-fig13"].run(Settings(quick=True)).headline
    assert headline["atr_over_ctr_streams_5"] < headline["atr_over_ctr_streams_3"]


def test_a_shape_that_does_not_come_out_is_no_result(monkeypatch):
    real = figures.throughputs

    def swapped(case, names, seed, quick):
        row = real(case, names, seed, quick)
        return {**row, "atr": row["ctr"], "ctr": row["atr"]}

    monkeypatch.setattr(figures, "throughputs", swapped)
    with pytest.raises(Contradiction, match="ATR should be ahead where much matches"):
        EXPERIMENTS["diffusion-fig15"].run(Settings(quick=True))


def test_plans_add_up():
    atr, ctr = scaling.by_aligned(2, 1e6, 100), scaling.by_coordinated(2, 1e6, 100)
    # Half of the rows go to one host and half of them to all.
    assert atr.sent == pytest.approx(1e6 * (1 + 100) / 2)
    assert 5e6 < ctr.sent < atr.sent and ctr.partials == 0
    assert scaling.by_coordinated(3, 1e6, 100).partials > 1e6
    assert scaling.needed("atr", 2, 1e9) is None
    assert scaling.rows_per_second("ctr", 2, 100) > scaling.rows_per_second("atr", 2, 100)
