"""`sparkshed experiment`: names, JSON, pictures, errors."""

from __future__ import annotations

import json
import sys

import pytest
from test_packaging import PROJECT

from sparkshed.cli import main
from sparkshed.experiments import budgets
from sparkshed.experiments.catalogue import EXPERIMENTS, Experiment, Picture
from sparkshed.experiments.result import Contradiction, Result, Settings, require

NAMES = {
    *(f"grubjoin-fig{n}" for n in (2, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17)),
    "grubjoin-table2",
    "grubjoin-lag-change",
    "grubjoin-memory",
    "grubjoin-budget",
    *(f"adaptive-fig{n}" for n in range(2, 10)),
    *(f"dual-fig{n}" for n in range(5, 10)),
    "streaming-burst",
    *(f"gdj-fig{n}" for n in ("2.1", 3, 4, 5, 6, 7, 8, 9, 10)),
    "gdj-joint",
    *(f"diffusion-fig{n}" for n in (4, *range(7, 17))),
    "diffusion-balance",
    "diffusion-scaling",
}


def test_the_catalogue_is_complete(capsys):
    assert set(EXPERIMENTS) == NAMES
    assert main.main(["experiment"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == list(EXPERIMENTS)


@pytest.mark.long
def test_front_shedding_keeps_the_output_where_rear_shedding_alone_loses_it():
    headline = EXPERIMENTS["dual-fig5"].run(Settings(quick=True)).headline
    assert headline["flat_ratio"] > 0.9


def test_dual_windows_are_near_the_best_choice():
    headline = EXPERIMENTS["dual-fig8"].run(Settings(quick=True)).headline
    assert headline["opt_share_min"] > 0.9 and headline["over_rand_max"] > 1.1


def test_a_misspelt_name_is_corrected(capsys):
    assert main.main(["experiment", "grubjoin-fg11"]) == 2
    error = capsys.readouterr().err
    assert "there is no experiment `grubjoin-fg11`. Did you mean `grubjoin-fig11`?" in error
    assert "`grubjoin-lag-change`" in error


@pytest.mark.parametrize("name", ["fig4", "fig7", "fig8", "fig10"])
def test_json_is_all_there_is_on_stdout(name, tmp_path, capsys):
    folder = tmp_path / "new"
    arguments = ["experiment", f"grubjoin-{name}", "--quick", "--json", "--out", str(folder), "--seed", "1"]
    assert main.main(arguments) == 0
    captured = capsys.readouterr()
    result = json.loads(captured.out)
    assert list(result) == ["name", "params", "rows", "headline"]
    assert result["name"] == f"grubjoin-{name}"
    assert result["rows"] and result["headline"] and result["params"]
    picture = folder / f"grubjoin-{name}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in captured.err
    drawn = EXPERIMENTS[f"grubjoin-{name}"].picture
    assert {drawn.x, *drawn.ys, *drawn.by} <= set(result["rows"][0])


def test_choosers_on_random_joins():
    result = EXPERIMENTS["grubjoin-fig7"].run(Settings(quick=True, seed=2))
    assert result.headline["lagrange_min"] >= 1 - 1e-9
    assert 0.9 <= result.headline["best_delta_mean_min"] <= 1
    assert {row["z"] for row in result.rows} >= {0.1, 0.4}


def test_matches_of_drifting_sets_have_a_peak():
    result = EXPERIMENTS["adaptive-fig2"].run(Settings(quick=True, seed=1))
    assert abs(result.headline["peak_age_kappa_0.8"] - 14.5) <= 1
    assert result.headline["peak_over_mean_kappa_0.8"] > 3
    assert len(result.rows) == 20


def test_the_less_useful_window_is_shed_first():
    result = EXPERIMENTS["adaptive-fig6"].run(Settings(quick=True))
    assert result.headline["mean_r_1_loaded"] < 0.1 < result.headline["mean_r_2_loaded"]
    assert {row["rate"] for row in result.rows} == {100.0, 300.0, 500.0}


def test_two_joins_under_forced_shedding():
    result = EXPERIMENTS["grubjoin-fig17"].run(Settings(quick=True))
    for row in result.rows:
        assert row["work"] == pytest.approx(1 - row["shed"], abs=0.06)
        assert row["output"] >= (0.99 if row["shed"] < 0.5 else 0.8)


def test_budgets_that_are_not_kept_are_no_result(monkeypatch):
    result = EXPERIMENTS["grubjoin-budget"].run(Settings(quick=True, seed=1))
    assert 0.95 <= result.headline["least_spent"] <= result.headline["most_spent"] <= 1.05
    assert {row["indexed"] for row in result.rows} == {False, True}
    monkeypatch.setattr(budgets, "spent_and_found", lambda *policy, **where: (1.06, 0.5))
    with pytest.raises(Contradiction, match="within 5 %"):
        EXPERIMENTS["grubjoin-budget"].run(Settings(quick=True))


def fake(run):
    return Experiment("a fake one", run, Picture("x", ("y",)))


def test_a_table_a_headline_and_a_picture(tmp_path, capsys, monkeypatch):
    told = []

    def run(settings):
        settings.progress(0, 2, "half")
        told.append((settings.quick, settings.seed))
        return Result("fake", {}, [{"x": 1, "y": 2.5}, {"x": 2, "y": 3.5}], {"most": 3.5})

    monkeypatch.setitem(EXPERIMENTS, "fake", fake(run))
    assert main.main(["experiment", "fake", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["x", "y"]
    assert "most  3.5" in lines
    assert lines[-1] == f"picture: {tmp_path / 'fake.png'}"
    assert told == [(False, 0)]


def test_a_contradiction_fails_the_command(capsys, monkeypatch, tmp_path):
    def run(settings):
        require(False, "two and two are five")

    monkeypatch.setitem(EXPERIMENTS, "fake", fake(run))
    assert main.main(["experiment", "fake", "--json", "--out", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "two and two are five" in captured.err
    with pytest.raises(Contradiction):
        run(Settings())


def test_without_matplotlib_and_rich_the_rows_are_there_and_the_extra_is_named(capsys, monkeypatch, tmp_path):
    for module in ("matplotlib", "matplotlib.backends.backend_agg", "rich", "rich.console"):
        monkeypatch.setitem(sys.modules, module, None)
    rows = [{"x": 1, "y": 2.5}]
    monkeypatch.setitem(EXPERIMENTS, "fake", fake(lambda settings: Result("fake", {}, rows, {"most": 2.5})))
    assert main.main(["experiment", "fake", "--json", "--out", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert json.loads(captured.out)["rows"] == rows
    assert "matplotlib is needed to draw the picture: pip install 'sparkshed[experiments]'" in captured.err
    assert {"matplotlib", "rich>=13"} == set(PROJECT["project"]["optional-dependencies"]["experiments"])


def test_a_folder_that_cannot_be_made_is_refused_first(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main.main(["experiment", "grubjoin-fig4", "--quick", "--out", str(tmp_path / "file")]) == 2
    assert "Name another folder with --out" in capsys.readouterr().err
