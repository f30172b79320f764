"""The documentation says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from sparkshed.sql.options import OPTIONS, STRATEGIES

ROOT = Path(__file__).parents[1]
START, END = "<!-- options: made from the definitions by pytest --regen -->", "<!-- end of options -->"


def option_table() -> str:
    lines = ["| option | default | takes | meaning | for |", "|---|---|---|---|---|"]
    for option in OPTIONS.values():
        for_ = "all" if option.strategies == STRATEGIES else ", ".join(f"`{s}`" for s in option.strategies)
        cells = (f"`{option.name}`", option.default, option.allowed, option.meaning, for_)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_hint_reference_lists_every_option_as_defined(regen):
    page = ROOT / "docs" / "hint.md"
    before, rest = page.read_text().split(START)
    table, after = rest.split(END)
    if regen:
        page.write_text(f"{before}{START}\n{option_table()}\n{END}{after}")
    else:
        assert table.strip() == option_table()


def test_the_hint_reference_lists_every_strategy():
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \|$", (ROOT / "docs" / "hint.md").read_text(), re.M)
    said = {name for names, _ in rows for name in re.findall(r"`(\w+)`", names)}
    assert said >= set(STRATEGIES)


def test_every_page_is_linked_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\((\w+\.md)\)", index))


def test_links_between_pages_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    links = [(page, target) for page in pages for target in re.findall(r"\]\(([\w./-]+)\)", page.read_text())]
    assert links
    assert not [(page.name, target) for page, target in links if not (page.parent / target).exists()]
