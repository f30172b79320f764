"""Windows with a limit: references, distortion, data sets, and every experiment in its quick form."""

from __future__ import annotations

import json
from functools import cache
from itertools import combinations
from random import Random

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from sparkshed.cli import main
from sparkshed.experiments.catalogue import EXPERIMENTS
from sparkshed.experiments.distortion import kl, sse
from sparkshed.experiments.evicting import ahead
from sparkshed.experiments.locality import stack_distances
from sparkshed.experiments.offline import best_output, matches_of
from sparkshed.experiments.result import Contradiction, Settings
from sparkshed.experiments.windowed import POLICIES, Data, Trials, compared, lead, limit_of, run
from sparkshed.workloads.bursty import renewal_tables, value_table


def tried(streams, matches, places, unified):
    """The best output by trying everything that can be held after each arrival."""
    known = set(matches)

    @cache
    def best(now, held):
        if now == len(streams):
            return 0
        there = [*held, now]
        choices = [
            keep
            for size in range(len(there) + 1)
            for keep in combinations(there, size)
            if (len(keep) <= places)
            and (unified or all(sum(streams[r] == s for r in keep) <= places // 2 for s in (0, 1)))
        ]
        return sum((row, now) in known for row in held) + max(best(now + 1, keep) for keep in choices)

    return best(0, ())


@pytest.mark.parametrize("unified", [True, False])
def test_the_optimum_is_what_trying_everything_finds(unified):
    rng = Random(5)
    for _ in range(60):
        times = sorted(rng.randint(0, 9) for _ in range(rng.randint(2, 8)))
        keys = [rng.randint(0, 2) for _ in times]
        owners = [rng.randint(0, 1) for _ in times]
        tables = [
            value_table(*(np.array([a[i] for i, o in enumerate(owners) if o == s], t) for a, t in columns))
            for s in (0, 1)
            for columns in [((times, float), (keys, int))]
        ]
        streams, matches = matches_of(tables, rng.randint(1, 6))
        places = rng.randint(0, 4)
        assert best_output(streams, matches, places, unified=unified) == tried(
            streams, matches, places, unified
        )


def test_the_optimum_with_room_for_all_is_the_join():
    tables = renewal_tables((0, 1), 300, 60.0, values=10)
    streams, matches = matches_of(tables, 10.0)
    assert len(matches) == run(Data("small", tables, 10.0)).results > 1000
    assert best_output(streams, matches, 600, unified=True) == len(matches)
    few = [best_output(streams, matches, places, unified=True) for places in (0, 4, 16, 64)]
    assert few[0] == 0 and few == sorted(few) and few[-1] < len(matches)


def test_nobody_is_above_the_optimum_and_a_large_buffer_misses_nothing():
    data = Data("small", renewal_tables((0, 1), 300, 60.0, values=10), 10.0)
    full = run(data)
    limit = limit_of(data, 0.2)
    best = best_output(*matches_of(data.tables, data.window), limit.limit, unified=True)
    for policy in POLICIES:
        few = run(data, limit.__class__(policy, rows=limit.limit, unified=False, reserve=0.0))
        assert 0 < few.results <= best < full.results
        assert np.array_equal(run(data, limit.__class__(policy, rows=600)).values, full.values)


def test_trials_are_compared_by_their_means():
    runs = [
        Data("small", renewal_tables((2 * k, 2 * k + 1), 300, 60.0, values=10), 10.0, seed=k) for k in (0, 1)
    ]
    trials = Trials(runs)
    each = trials.each(0.2, POLICIES)
    for own, data, full in zip(each, runs, trials.fulls, strict=True):
        limit = limit_of(data, 0.2).__class__("rand", limit_of(data, 0.2).rows, unified=False, reserve=0.0)
        assert own["rand"] == run(data, limit, data.seed).results / full.results
    row = compared(each)
    assert row["gdj"] == pytest.approx((each[0]["gdj"] + each[1]["gdj"]) / 2, abs=1e-4)
    assert row["least"] == min(lead(own, ("prob", "age", "fifo", "rand", "lru")) for own in each)
    mean = {name: (each[0][name] + each[1][name]) / 2 for name in each[0]}
    assert row["lead"] <= row["lead_of_five"] == lead(mean, ("prob", "age", "fifo", "rand", "lru"))
    assert row["runs"] == 2


def test_being_behind_is_no_result():
    row = {"lead": 0.99, "lead_of_five": 0.999, "least": 0.9}
    assert ahead([row], Settings(quick=True))["gdj_lead_min_of_five"] == 0.999
    with pytest.raises(Contradiction, match="gdj should be ahead of prob, age"):
        ahead([row], Settings())


def test_a_quick_run_has_one_seed():
    assert [own.seed for own in Settings(seed=4).repeats(3)] == [4, 5, 6]
    assert Settings(seed=4, quick=True).repeats(3) == [Settings(seed=4, quick=True)]


def test_distortion():
    exact = np.array([8, 4, 2, 2, 0])
    assert sse(exact * 100, exact) == 0
    assert kl(exact * 1000, exact) == pytest.approx(0, abs=1e-3)
    biased = np.array([16, 0, 0, 0, 0])
    assert sse(biased, exact) == pytest.approx(0.25 + 0.0625 + 2 * 0.015625)
    half = (exact + biased) // 2
    assert kl(biased, exact) > kl(half, exact) > 0
    with pytest.raises(ValueError, match="no distribution"):
        sse(np.zeros(3), exact[:3])


def test_stack_distances_are_counted_in_other_values():
    values = np.random.default_rng(0).integers(0, 6, 60)
    expected = []
    for place, value in enumerate(values):
        before = np.flatnonzero(values[:place] == value)
        if len(before):
            expected.append(len(set(values[before[-1] + 1 : place].tolist())))
    assert stack_distances(values).tolist() == expected


def test_a_lead_is_over_the_best_that_is_there():
    assert lead({"gdj": 0.6, "prob": 0.5, "rand": 0.3}) == 1.2
    assert lead({"gdj": 0.6, "prob": 0.5, "rand": 0.3}, ["rand"]) == 2.0


@pytest.mark.parametrize(
    "name",
    # The runs of fig10 are those of fig9.
    [*(f"fig{n}" for n in ("2.1", *range(3, 10))), pytest.param("fig10", marks=pytest.mark.long), "joint"],
)
def test_quick_experiments(name, tmp_path, capsys):
    assert main.main(["experiment", f"gdj-{name}", "--quick", "--json", "--out", str(tmp_path)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["name"] == f"gdj-{name}" and result["rows"]
    assert (tmp_path / f"gdj-{name}.png").read_bytes().startswith(b"\x89PNG")
    drawn = EXPERIMENTS[f"gdj-{name}"].picture
    assert {drawn.x, *drawn.ys, *drawn.by} <= set(result["rows"][0])
    assert all(0 <= value < 100 for value in result["headline"].values())


def test_a_file_of_the_user(tmp_path, capsys):
    tables = renewal_tables((3, 4), 400, 100.0, values=20)
    parts = [
        pa.table({"stream": [name] * t.num_rows, "ts": t["ts"], "v": t["k"].cast(pa.float64())})
        for name, t in zip("ab", tables, strict=True)
    ]
    path = tmp_path / "mine.parquet"
    pq.write_table(pa.concat_tables(parts), path)
    arguments = ["experiment", "gdj-fig3", "--quick", "--json", "--out", str(tmp_path), "--data", str(path)]
    assert main.main(arguments) == 0
    result = json.loads(capsys.readouterr().out)
    assert {row["data"] for row in result["rows"]} == {"mine"}
    assert main.main([*arguments, "--key", "w"]) == 2
    assert "has no column `w`; it has stream, ts, v" in capsys.readouterr().err
    assert main.main([*arguments, "--streams", "a,c"]) == 2
    assert "has no stream `c`; it has a, b" in capsys.readouterr().err
    assert main.main(["experiment", "gdj-fig6", "--data", str(path)]) == 2
    assert (
        "gdj-fig6 has streams of its own; --data is for `dual-fig9`, `gdj-fig2.1`" in capsys.readouterr().err
    )
