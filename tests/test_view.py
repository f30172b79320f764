"""Journals are read while they are written, and shown in lines, in a terminal and on a page."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from sparkshed.cli import main, monitor
from sparkshed.spark.streaming import journal
from sparkshed.spark.streaming.journal import Journal
from sparkshed.view import charts
from sparkshed.view.figures import REASONS, began, headline, instant, left_out, lost
from sparkshed.view.journal import Follower, NoJournal, journals_of, read_story
from sparkshed.view.page import page_of
from sparkshed.view.terminal import panel, plain_line

PLAN: dict[str, Any] = {
    "query": "q",
    "run": "r1",
    "name": "cars",
    "started": 1_700_000_000.0,
    "strategy": "grubjoin",
    "options": {},
    "follows": True,
    "streams": [
        {"name": name, "from": f"cam{name}", "time": f"{name}.ts", "window": 20.0, "table": name == "b"}
        for name in "ab"
    ],
    "orders": [["a", "b"], ["b", "a"]],
    "conditions": ["abs(a.x - b.x) <= 1 AND a.s < 'x'"],
    "bounds": ["a.ts <= b.ts + INTERVAL 20 SECONDS"],
    "hosts": 2,
    "routing": "dealt",
    "rows": None,
    "text": "== Shed Plan ==",
}
DECISION: dict[str, Any] = {
    "version": 3,
    "z": 0.25,
    "keep": {"a": 1.0, "b": 1.0},
    "orders": [["a", "b"], ["b", "a"]],
    "strips": [
        {"path": ["a", "b"], "shares": [0.0, 1.0, 0.5, 0.0], "earliest": -20.0, "latest": 20.0},
        {"path": ["b", "a"], "shares": [0.0, 0.0, 0.0, 1.0], "earliest": -20.0, "latest": 20.0},
    ],
}


def batch(number: int, **more: Any) -> dict[str, Any]:
    own: dict[str, Any] = {
        "batch": number,
        "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z",
        "seconds": 0.5,
        "lasted": 1.0,
        "z": 0.25,
        "results": 1000,
        "work": 5000,
        "completeness": 0.6,
        "completeness_low": 0.5,
        "completeness_high": 0.7,
        "total_completeness": 0.65,
        "total_completeness_low": 0.6,
        "total_completeness_high": 0.7,
        "state_bytes": 1 << 20,
        "window_rows": 400,
    }
    for name in "ab":
        own |= {f"{name}.{kind}": 0 for kind in REASONS} | {f"{name}.arrived": 200, f"{name}.skipped": 100.0}
    return own | more


@pytest.fixture
def written(tmp_path) -> Path:
    """The checkpoint of a join with some micro-batches."""
    own = Journal(f"file:{tmp_path}", 1, PLAN)
    for number in range(5):
        own.write("batch", batch(number, **{"a.late": 3, "b.shed": 20 * number}))
        own.decide(DECISION | {"version": 1 + number // 3})
    return tmp_path


def test_a_journal_is_read_as_it_was_written(written):
    (path,) = journals_of(written)
    story = read_story(path)
    assert story.plan == PLAN
    assert [own["batch"] for own in story.batches] == list(range(5))
    # Only decisions that differ are written.
    assert [(place, own["version"]) for place, own in story.decisions] == [(1, 1), (4, 2)]
    assert lost(story.batches, story.names)["b"] == {"late": 0, "shed": 200, "evicted": 0, "null_time": 0}
    numbers = headline(story)
    assert numbers["rows"] == "2,000"
    assert numbers["of the true answer (60–70 %)"] == "65 %"


def test_a_reader_follows_what_is_written_and_waits_for_the_end_of_a_line(written):
    (path,) = journals_of(written)
    own = Follower(path)
    assert own.read()
    assert not own.read()
    whole = json.dumps({"batch": batch(5)})
    with path.open("a") as file:
        file.write(whole[:40])
    own.read()
    assert len(own.story.batches) == 5
    with path.open("a") as file:
        file.write(whole[40:] + "\nnot json\n")
    own.read()
    assert len(own.story.batches) == 6
    Journal(str(written), 1, PLAN | {"run": "r2"})
    own.read()
    assert own.story.runs == [0, 6]


def test_a_long_journal_begins_anew_and_the_last_one_stays(written, monkeypatch):
    monkeypatch.setattr(journal, "MOST_BYTES", 4000)
    own = Journal(str(written), 1, PLAN)
    own.decide(DECISION)
    (path,) = journals_of(written)
    follower = Follower(path)
    follower.read()
    for number in range(5, 40):
        own.write("batch", batch(number))
        follower.read()
    assert [own["batch"] for own in follower.story.batches][-35:] == list(range(5, 40))
    assert path.stat().st_size < 8000
    # Whoever comes later sees the plan and the decision, and the batches of two files.
    story = read_story(path)
    assert story.plan == PLAN
    assert story.decision == DECISION
    assert 3 < len(story.batches) < 20


def test_what_cannot_be_written_harms_nobody(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    own = Journal(str(tmp_path / "file"), 1, PLAN)
    own.write("batch", batch(1))
    assert caplog.text.count("cannot be written") == 1
    assert journal.local_path("hdfs://host/a") is None
    Journal("hdfs://host/a", 1, PLAN).write("batch", batch(1))


def test_the_page_needs_nothing_else(written):
    page = page_of(read_story(journals_of(written)[0]), "Cars & vans")
    assert "Cars &amp; vans" in page
    assert not re.search(r"(?:src|href)=|<script|url\(http|@import", page)
    pictures = re.findall(r"<svg.*?</svg>", page, re.S)
    # Eight charts, a heat map for each of two directions, and the plan.
    assert len(pictures) == 11
    for picture in pictures:
        ElementTree.fromstring(picture)
    assert "abs(a.x - b.x) &lt;= 1" in page
    assert '<td class="n">200</td>' in page
    assert "a probes b" in page and "b probes a" in page


def test_decisions_are_shown_from_the_micro_batch_that_follows_them(written):
    story = read_story(journals_of(written)[0])
    first = instant(story.batches[0])
    assert [began(story, place) - first for place in (0, 1, 4, 5)] == [0.0, 1.0, 4.0, 4.0]
    page = page_of(story, "cars")
    assert '<td class="n">0:01</td><td class="n">1</td><td class="n">0.25</td>' in page
    # The heat maps have the time axis of all charts, of which five micro-batches take four seconds.
    assert {page.count(f">0:0{second}</text>") for second in range(5)} == {10}
    # Two decisions of equal shares are one column: the slice that half of the rows probe is one rectangle.
    assert page.count("<title>50% of rows</title>") == 1


@pytest.mark.parametrize(
    ("keep", "shares", "told"),
    [
        (1.0, [0.5, 1.0], "b\N{NO-BREAK SPACE}75\N{NO-BREAK SPACE}%"),
        (0.3, [1.0, 1.0], "30 % of them: b\N{NO-BREAK SPACE}100\N{NO-BREAK SPACE}%"),
        (0.0, [1.0, 1.0], "nothing"),
        (1.0, [0.0, 0.0], "nothing"),
    ],
)
def test_what_rows_of_a_stream_probe_is_told_in_words(written, keep, shares, told):
    strips = [DECISION["strips"][0] | {"shares": shares}]
    own = DECISION | {"version": 9, "keep": {"a": keep, "b": 1.0}, "strips": strips}
    story = read_story(journals_of(written)[0])
    story.decisions = [(2, own)]
    assert f">{told}</td>" in page_of(story, "cars")


def test_nothing_is_left_out_while_everything_is_done():
    assert left_out(batch(1), ["a", "b"]) == 200.0
    assert left_out(batch(1, z=1.0), ["a", "b"]) == 0.0


def test_a_run_without_decisions_has_a_page(tmp_path):
    own = Journal(str(tmp_path), 1, PLAN)
    for number in range(3):
        own.write("batch", batch(number))
    page = page_of(read_story(journals_of(tmp_path)[0]), "exact")
    assert "Results, per second" in page and "What is harvested" not in page


def test_a_run_without_rows_has_a_page(tmp_path):
    Journal(str(tmp_path), 1, PLAN)
    page = page_of(read_story(journals_of(tmp_path)[0]), "empty")
    assert "none with rows yet" in page and "== Shed Plan ==" in page


def test_the_terminal_shows_rates_shares_and_harvest(written):
    story = read_story(journals_of(written)[0])
    console = Console(file=io.StringIO(), width=100, record=True)
    console.print(panel(story, "cars"))
    text = console.export_text()
    for word in ("grubjoin", "1 k", "60 %", "(50–70 %)", "a > b", "15 late", "200 shed", "-20 s", "+20 s"):
        assert word in text, word
    assert "·█|▒·" in text
    assert "waiting" in plain_line(Follower(written / "none").story, "x")
    line = plain_line(story, "cars")
    assert "200/s" in line and "1 k results/s" in line and "z 0.25" in line


def test_lines_for_every_micro_batch(written, capsys):
    (path,) = journals_of(written)
    turns = iter([False, False, True])

    def wait() -> None:
        with path.open("a") as file:
            file.write(json.dumps({"batch": batch(9)}) + "\n")

    monitor.watch_plainly({"join-1": Follower(path)}, wait, lambda: next(turns))
    assert capsys.readouterr().out.count("join-1: batch 9") == 2


def test_the_commands(written, tmp_path, capsys):
    assert main.main(["monitor", str(written), "--once"]) == 0
    assert "batch 4" in capsys.readouterr().out
    out = tmp_path / "deep" / "page.html"
    assert main.main(["report", str(written), "--out", str(out)]) == 0
    assert "cars" in out.read_text()
    assert main.main(["report", str(journals_of(written)[0]), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main.main(["report", str(written), "--join", "2"]) == 2
    assert "has 1 join(s)" in capsys.readouterr().err
    assert main.main(["report", str(written), "--out", "/proc/nothing/page.html"]) == 2
    assert "cannot go to" in capsys.readouterr().err


def test_where_there_is_no_journal(written, tmp_path):
    with pytest.raises(NoJournal, match="does not exist"):
        journals_of(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(NoJournal, match="has no journal"):
        journals_of(tmp_path / "empty")
    Journal(str(tmp_path / "deep" / "checkpoint"), 1, PLAN)
    with pytest.raises(NoJournal, match="folders of it: `checkpoint`"):
        journals_of(tmp_path / "deep")


def test_charts_of_few_points_and_many():
    one = charts.lines("one", [0.0], [charts.Line("x", [2.0])])
    many = charts.lines("many", list(map(float, range(5000))), [charts.Line("x", [1.0] * 5000)])
    assert "<polyline" in one
    assert max(len(points.split()) for points in re.findall(r'points="([^"]*)"', many)) <= 601
    above = charts.stacked("sum", [0.0, 1.0], [charts.Line("a", [1.0, 1.0]), charts.Line("b", [2.0, 0.0])])
    assert above.count("<polygon") == 2
