"""What is seen of a running join: in notebooks, by EXPLAIN, by another process, and in the demo."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

import sparkshed
from sparkshed.cli import main
from sparkshed.view.journal import journals_of, read_story
from streaming.feeds import as_streams, copied

TEXT = (
    "SELECT {} a.id i, b.id j FROM a JOIN b ON abs(a.x - b.x) <= 2 AND abs(a.ts - b.ts) <= INTERVAL 4 SECONDS"
)
SHEDS = "/*+ SHED(grubjoin, 'budget=0.3', 'adapt=1 ms', 'seed=3') */"


@pytest.fixture
def ended(enabled, four_files, tmp_path):
    """A query that has ended, and its checkpoint."""
    copied(four_files, tmp_path, range(4))
    as_streams(enabled, tmp_path, ["a", "b"])
    checkpoint = tmp_path / "checkpoint"
    writer = enabled.sql(TEXT.format(SHEDS)).writeStream.format("noop").queryName("pairs")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    return query, checkpoint


def test_the_journal_says_what_the_history_says(ended, tmp_path, capsys):
    query, checkpoint = ended
    # The history waits for the last figures, which come a little after the end of the query.
    history = sparkshed.history(query)
    story = read_story(*journals_of(checkpoint))
    assert [own["results"] for own in story.batches] == history["results"].tolist()
    assert story.plan["name"] == "pairs"
    assert story.plan["streams"][1]["window"] == 4.0
    assert story.decisions and story.decision["strips"][0]["path"] == ["a", "b"]
    assert main.main(["report", str(checkpoint), "--out", str(tmp_path / "page.html")]) == 0
    assert "a probes b" in (tmp_path / "page.html").read_text()
    assert main.main(["monitor", str(checkpoint), "--once"]) == 0
    assert f"batch {history['batch'].iloc[-1]}" in capsys.readouterr().out


def test_explain_says_what_a_query_does_now(ended):
    query, _ = ended
    text = sparkshed.explain(query)
    assert text.startswith("== Shed Plan ==\nShedJoinExec: strategy=grubjoin, work=0.3")
    assert "== Running ==\n  Batch: " in text
    assert "Harvest: shred=" in text and "a > b  0." in text
    assert "  a.arrived: " in sparkshed.explain(query, mode="formatted")
    with pytest.raises(sparkshed.StatementError, match="explain mode 'long'"):
        sparkshed.explain(query, mode="long")
    assert "<pre" in text._repr_html_()


def test_notebooks_show_plans_and_charts(ended, enabled, tmp_path):
    query, _ = ended
    frame = enabled.sql(TEXT.format("/*+ SHED(exact) */"))
    assert "ShedJoinExec: strategy=exact" in frame._repr_html_()
    assert "bigint" in frame._repr_html_()
    drawing = sparkshed.history(query).draw()
    assert "Results, per second" in drawing._repr_html_()
    drawing.save(tmp_path / "charts.html")
    assert (tmp_path / "charts.html").read_text().count("<svg") == 8
    # What pandas makes of it is no history any more.
    assert type(sparkshed.history(query).head(1)).__name__ == "DataFrame"


def test_the_demo_tells_what_both_joins_found(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sparkshed.cli.main",
        "demo",
        "--seconds=9",
        "--rate=60",
        "--out=it.html",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for word in ("SHED(grubjoin)", "grubjoin: batch", "randomdrop: batch", "reported", "report: "):
        assert word in done.stdout, word
    assert (
        "c1 probes c2" in (tmp_path / "it.html").read_text()
        or "Results, per second" in (tmp_path / "it.html").read_text()
    )


def test_the_demo_ends_cleanly_by_control_c(tmp_path):
    command = [
        sys.executable,
        "-m",
        "sparkshed.cli.main",
        "demo",
        "--plain",
        "--seconds=300",
        "--out=it.html",
    ]
    pipe = subprocess.PIPE
    # In a group of its own, all of which gets the signal, as from a terminal.
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as child:
        try:
            lines = []
            for line in child.stdout:
                lines.append(line)
                if ": batch" in line and sum(": batch" in own for own in lines) == 5:
                    os.killpg(child.pid, signal.SIGINT)
            errors = child.stderr.read()
        finally:
            if child.poll() is None and len(lines) < 5:
                os.killpg(child.pid, signal.SIGKILL)
    assert child.returncode == 0, errors
    assert "Traceback" not in errors
    assert "report: " in lines[-1] and (tmp_path / "it-cut-short.html").exists()
