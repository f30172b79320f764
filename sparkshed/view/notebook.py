"""What notebooks show: plans as text that keeps its shape, and figures as charts."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

import pandas as pd

from sparkshed.view.journal import Story
from sparkshed.view.page import charts_page

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame


class Explanation(str):
    """The text of EXPLAIN, which a notebook shows as it is."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return preformatted(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


def preformatted(text: str) -> str:
    """Text that keeps its lines."""
    return f'<pre style="line-height: 1.3; overflow-x: auto">{escape(text)}</pre>'


class Drawing:
    """Charts of a run: a notebook shows them, and they can be saved."""

    def __init__(self, page: str) -> None:
        """Take a page that needs nothing else."""
        self._page = page

    def _repr_html_(self) -> str:
        # A frame of its own, so that the styles of page and notebook do not meet.
        page = escape(self._page, quote=True)
        return f'<iframe srcdoc="{page}" width="100%" height="900" frameborder="0"></iframe>'

    def save(self, path: str | Path) -> None:
        """Write them as an HTML page."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._page)


class History(pd.DataFrame):
    """The figures of a run, one row per micro-batch; a pandas DataFrame that can be drawn."""

    @property
    def _constructor(self) -> Any:
        # What is made of it by pandas is a plain DataFrame.
        return pd.DataFrame

    def draw(self) -> Drawing:
        """Charts of all joins of the run."""
        pages = []
        for join, rows in self.groupby("join", sort=False):
            records = [
                {key: value for key, value in own.items() if key != "join"} for own in rows.to_dict("records")
            ]
            names = [column[: -len(".arrived")] for column in rows.columns if column.endswith(".arrived")]
            plan = {"streams": [{"name": name} for name in names]}
            pages.append((str(join), Story(plan=plan, batches=records)))
        return Drawing(charts_page(pages))


def shown(frame: DataFrame, text: str) -> DataFrame:
    """Let a notebook show the plan below the columns of a DataFrame that is not shown eagerly."""
    original: Callable[[], str | None] = frame._repr_html_

    def html() -> str | None:
        return original() or f"<code>{escape(repr(frame))}</code>{preformatted(text)}"

    frame._repr_html_ = html  # type: ignore[method-assign]
    return frame
