"""The documentation says what the code does."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import messages
import pytest

import sparkshed
from sparkshed.bench.cases import CASES
from sparkshed.cli.bench import BENCHES
from sparkshed.cli.main import COMMANDS, build_parser
from sparkshed.experiments.catalogue import EXPERIMENTS
from sparkshed.experiments.joins import camera_join
from sparkshed.planner.completeness import Completeness
from sparkshed.planner.diffusion.plan import aligned_plan
from sparkshed.planner.harvest.tally import Tally
from sparkshed.planner.streaming import Hosts, Report, StreamingPlan
from sparkshed.predicates import forget_predicate, registered
from sparkshed.spark.streaming.figures import routing_of
from sparkshed.spark.streaming.listening import Batch
from sparkshed.spark.streaming.runs import Run
from sparkshed.sql.errors import HintError
from sparkshed.sql.hint import parse_hint
from sparkshed.sql.options import OPTIONS, STRATEGIES
from sparkshed.workloads.cameras import camera_sql, camera_streams, camera_table

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
START, END = "<!-- options: made from the definitions by pytest --regen -->", "<!-- end of options -->"


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text()


def code_of(text: str) -> str:
    """What a page has as code: blocks, indented lines, and spans."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)
    rest = re.sub(r"^```\w*\n.*?^```", "", text, flags=re.M | re.S)
    lines = re.findall(r"^    (.*)$", rest, re.M)
    spans = [own for pair in re.findall(r"`` (.*?) ``|`([^`\n]+)`", rest) for own in pair if own]
    return "\n".join([*blocks, *lines, *spans])


def section(text: str, title: str) -> str:
    """What stands under a title, down to the next one of any level."""
    return re.split(r"^#+ ", text.split(f"{title}\n", 1)[1], maxsplit=1, flags=re.M)[0]


def option_table() -> str:
    lines = ["| option | default | takes | meaning | for |", "|---|---|---|---|---|"]
    for option in OPTIONS.values():
        for_ = "all" if option.strategies == STRATEGIES else ", ".join(f"`{s}`" for s in option.strategies)
        cells = (f"`{option.name}`", option.default, option.allowed, option.meaning, for_)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_hint_reference_lists_every_option_as_defined(regen):
    path = ROOT / "docs" / "hint.md"
    before, rest = path.read_text().split(START)
    table, after = rest.split(END)
    if regen:
        path.write_text(f"{before}{START}\n{option_table()}\n{END}{after}")
    else:
        assert table.strip() == option_table()


def test_the_hint_reference_lists_every_strategy():
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|$", page("hint.md"), re.M)
    said = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert said >= set(STRATEGIES)


def test_choosing_speaks_of_every_strategy():
    said = set(re.findall(r"\b\w+\b", code_of(page("choosing.md"))))
    assert said >= set(STRATEGIES)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_hints_in_the_documentation_can_be_written_like_that(path):
    """Those with an ellipsis are not whole, and a strategy alone can stand for any options."""
    bad = []
    for inner in re.findall(r"SHED\(([^()]*)\)", code_of(path.read_text())):
        if "=" in inner and "…" not in inner and "option=" not in inner:
            try:
                parse_hint(f"/*+ SHED({inner}) */")
            except HintError as error:
                bad.append((inner, str(error)))
        elif re.fullmatch(r"\w+", inner) and inner not in (*STRATEGIES, "exakt"):
            bad.append((inner, "unknown"))
    assert bad == []


def test_options_in_the_documentation_exist():
    said = {
        name
        for path in PAGES
        for name in re.findall(r"'([a-z]+)=[^'\n]*'", code_of(path.read_text()))
        if name not in ("option", "name")
    }
    assert "budget" in said
    assert said <= set(OPTIONS)


def figure_names() -> set[str]:
    """All names that `progress` can have, for a stream `a`."""
    spec = camera_join(3).spec
    own = StreamingPlan(spec, Hosts(2), None, False, (False,) * 3)
    counts = dict.fromkeys(("arrived", "joined", "late", "null_time", "shed", "expired", "evicted"), 0.0)
    routing = {"sent": 2, "table": 1, "seconds": 0.1, "master": 0, "length": 1}
    tally, share = Tally.empty(3, 0), Completeness()
    report = Report(0, 0, 1.0, [counts] * 3, [0] * 3, 0.0, share, tally, routing=routing)
    run = Run(own, None, 1.2, {})
    run.progress(Batch("r", 0, "2026-01-01T00:00:00.000Z", 1.0, (json.dumps(report.to_json()),)))
    routed = replace(own, hosts=Hosts(2, router=aligned_plan(spec.bounds, spec.basic, 2)))
    first, *others = (stream.name for stream in spec.streams)
    names = {re.sub(rf"^{first}\.", "a.", name) for name in {*run.history[-1], *routing_of(routed, [report])}}
    return {name for name in names if not name.startswith(tuple(f"{own}." for own in others))}


def test_every_figure_is_described_and_no_other():
    tables = section(page("streaming.md"), "## Figures") + section(page("diffusion.md"), "## Figures")
    rows = "\n".join(re.findall(r"^\| (`[^|]*) \|", tables, re.M))
    described = set(re.findall(r"`([a-z_.]+)`", rows))
    named = set(re.findall(r"`([a-z_.]+)`", tables))
    assert figure_names() - named == set()
    assert described - figure_names() == set()


def test_figures_to_watch_exist():
    rows = re.findall(r"^\| ([^|]*) \|", section(page("operating.md"), "## What to watch"), re.M)
    said = {
        name
        for row in rows
        for span in re.findall(r"`([^`]*)`", row)
        for name in re.findall(r"[a-z_.]{4,}|z", span)
    }
    assert said >= {"z", "beta", "completeness_low", "a.late"}
    assert said - figure_names() - {"sources"} == set()


def test_every_page_is_linked_from_the_index():
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\((\w+\.md)\)", page("index.md")))


def test_links_between_pages_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text())]
    assert links
    assert not [(page.name, target) for page, target in links if not (page.parent / target).exists()]


def anchors(path: Path) -> set[str]:
    """Of the titles of a page, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_to_sections_lead_somewhere():
    links = [
        (path, target, anchor)
        for path in PAGES
        for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", path.read_text())
    ]
    assert len(links) > 50
    lost = [
        (path.name, target, anchor)
        for path, target, anchor in links
        if anchor not in anchors(path.parent / target if target else path)
    ]
    assert lost == []


def test_every_message_is_in_troubleshooting():
    text, found = page("troubleshooting.md"), messages.messages()
    assert len(found) > 100
    assert [(own.where, own.beginning) for own in found if own.beginning not in text] == []


def test_troubleshooting_has_only_messages_that_exist():
    known = [own.text for own in messages.messages()]
    said = re.findall(r"^\| `` (.*?) `` \|", page("troubleshooting.md"), re.M)
    assert len(said) > 100
    assert [text for text in said if not any(own.startswith(text.rstrip(" .…")) for own in known)] == []


def test_every_class_of_errors_is_in_troubleshooting():
    said = set(re.findall(r"`(?:sparkshed\.)?(\w+)`", page("troubleshooting.md")))
    assert messages.error_classes() - said == set()


def test_the_reference_has_every_public_name():
    code = code_of(page("api.md"))
    assert [name for name in sparkshed.__all__ if name not in code] == []
    titles = re.findall(r"^### `(\w+)\(", page("api.md"), re.M)
    assert set(titles) <= set(sparkshed.__all__)


def options_of(command: str) -> set[str]:
    found: set[str] = set()
    for action in build_parser(command)._actions:
        if isinstance(action, argparse._SubParsersAction):
            for own in action.choices[command]._actions:
                found.update(own.option_strings)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_the_reference_has_every_option_of_a_command(command):
    text = section(page("api.md"), f"### `sparkshed {command}`")
    said = set(re.findall(r"(?<![\w-])--?[a-z]+", code_of(text)))
    assert options_of(command) - {"-h", "--help"} - said == set()
    assert said - options_of(command) == set()


def test_commands_in_the_documentation_exist():
    bad, seen = [], set()
    names = {"bench": BENCHES, "experiment": EXPERIMENTS}
    for path in PAGES:
        # Messages can begin with the name, too.
        code = code_of(re.sub(r"`` .*? ``", "", path.read_text()))
        for line in re.findall(r"^(?:source <\()?sparkshed +(.*)$", code, re.M):
            command, *words = re.split(r"#|\)|   +", line)[0].split()
            said = {word for word in words if re.match(r"--[a-z]", word)}
            if command not in COMMANDS:
                bad += [] if command in ("--version", "COMMAND") else [(path.name, line)]
                continue
            seen.add(command)
            wrong = said - options_of(command)
            if command in names and words and re.fullmatch(r"[a-z][\w.-]*", words[0]):
                wrong |= {words[0]} - set(names[command])
            bad += [(path.name, line)] if wrong else []
    assert seen == set(COMMANDS)
    assert bad == []


def test_the_reference_has_every_benchmark():
    text = section(page("api.md"), "### `sparkshed bench`")
    assert [name for name in BENCHES if f"`{name}`" not in text] == []
    assert [case.name for case in CASES if f"`{case.name}`" not in page("benchmarks.md")] == []


def blocks_of(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", path.read_text(), re.M | re.S)


WITH_PROGRAMS = [pytest.param(path, id=path.stem) for path in PAGES if blocks_of(path, "python")]
WITH_STATEMENTS = [pytest.param(path, id=path.stem) for path in PAGES if blocks_of(path, "sql")]


@pytest.fixture
def session(spark):
    """A session in which the tables of the examples exist."""
    rows = (
        "SELECT id, timestamp_seconds(id) AS ts, id % 5 AS k, id * 0.5D AS x, id * 0.5D AS y FROM range(60)"
    )
    for name in ("a", "b"):
        spark.sql(rows).createOrReplaceTempView(name)
    known = {own.name for own in registered()}
    yield sparkshed.enable(spark)
    sparkshed.disable(spark)
    for name in {own.name for own in registered()} - known:
        forget_predicate(name)
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    for view in ("a", "b", "cam1", "cam2", "cam3"):
        spark.catalog.dropTempView(view)


@pytest.mark.parametrize("path", WITH_PROGRAMS)
def test_programs_in_the_documentation_run_one_after_another(path, session, capsys):
    names = {"spark": session, "sparkshed": sparkshed, "ShedError": sparkshed.ShedError}
    for block in blocks_of(path, "python"):
        exec(compile(block, "block", "exec"), names)
        printed = capsys.readouterr().out
        assert bool(printed) == ("print(" in block or ".show(" in block)


@pytest.mark.parametrize("path", WITH_STATEMENTS)
def test_statements_in_the_documentation_have_the_same_answer(path, session):
    """They are the cameras' join, in one way or another."""
    for number, stream in enumerate(camera_streams(rate=20, seconds=40), 1):
        session.createDataFrame(camera_table(stream)).createOrReplaceTempView(f"cam{number}")
    whole = Counter(map(tuple, session.sql(camera_sql(3)).collect()))
    assert whole
    for text in blocks_of(path, "sql"):
        assert Counter(map(tuple, session.sql(text).collect())) == whole
