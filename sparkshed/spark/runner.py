"""The road of one hinted statement: outline, analyse, plan, execute, hand the rest to Spark."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyspark.sql.functions as F
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.sql_formatter import SQLStringFormatter
from pyspark.sql.types import StructType
from sqlglot.tokens import TokenType

from sparkshed.planner.explain import explain_text
from sparkshed.planner.layout import Resources
from sparkshed.planner.planner import Planned, plan_join
from sparkshed.planner.rules.close_bounds import closed_bounds
from sparkshed.planner.sharing import in_one
from sparkshed.spark.batch import execute
from sparkshed.spark.catalog import SparkCatalog
from sparkshed.spark.inputs import Inputs, read_inputs
from sparkshed.spark.shedding import plan_rows, plan_shedding
from sparkshed.spark.statistics import gather, refine
from sparkshed.spark.streaming.execution import execute_streaming
from sparkshed.spark.streaming.planning import plan_streaming
from sparkshed.spark.workers import check_sources, check_workers
from sparkshed.sql.analyse import analyse
from sparkshed.sql.block import JoinBlock
from sparkshed.sql.dialect import tokenize
from sparkshed.sql.errors import ShedError, StatementError
from sparkshed.sql.merge import Part, rewrite_parts
from sparkshed.sql.outline import Block, Outline, Span, ViewHead, outline
from sparkshed.sql.rewrite import Edit
from sparkshed.sql.sharing import Sharing, aligned, obstacle, share, unions
from sparkshed.view.notebook import shown

PlainSql = Callable[..., DataFrame]


@dataclass(frozen=True)
class Statement:
    """A statement as the user gave it to `spark.sql`."""

    session: SparkSession
    text: str
    args: Any
    kwargs: dict[str, Any]
    plain_sql: PlainSql

    def run(self) -> DataFrame:
        """What `spark.sql` returns for it."""
        if "/*+" not in self.text:
            return self.plain_sql(self.text, self.args, **self.kwargs)
        return self._formatted(_run)

    def explain(self, mode: str) -> str:
        """The shed plans of the statement."""
        return self._formatted(lambda formatted: _explain(formatted, mode))

    def _formatted(self, action: Callable[[Statement], Any]) -> Any:
        """Do something with the text once `{df}` and the like are filled in, as Spark does."""
        if not self.kwargs:
            return action(self)
        formatter = SQLStringFormatter(self.session)
        try:
            text = formatter.format(self.text, **self.kwargs)
            return action(Statement(self.session, text, self.args, {}, self.plain_sql))
        finally:
            formatter.clear()


def _run(statement: Statement) -> DataFrame:
    found = _outline_of(statement)
    if found is None:
        return statement.plain_sql(statement.text, statement.args)
    if found.explain is not None:
        text = _explain(statement, found.explain)
        return statement.session.createDataFrame([(text,)], "plan string")
    with _where_the_user_wrote_it(statement, found), _Road(statement, found) as road:
        plans = road.plan_blocks()
        if found.kind == "temp view":
            assert found.view is not None
            _create_view(road.run_query(), found.view)
            return statement.session.createDataFrame([], StructType([]))
        return shown(road.run_statement(), explain_text(plans, "simple"))


def _outline_of(statement: Statement) -> Outline | None:
    """The outline of a statement that Spark can parse."""
    try:
        found = outline(statement.text)
    except (IndexError, KeyError) as error:
        # It ends too early, or brackets do not match, and Spark says where.
        _parse(statement)
        msg = (
            "the statement cannot be read, though Spark can. Please report it, and remove the hint meanwhile."
        )
        raise StatementError(msg) from error
    # Values of parameters are filled in before Spark parses a text.
    if found is not None and not statement.args:
        _parse(statement)
    return found


def _parse(statement: Statement) -> None:
    """Let Spark's own parser refuse the whole text."""
    statement.session._jsparkSession.sessionState().sqlParser().parsePlan(statement.text)


@contextmanager
def _where_the_user_wrote_it(statement: Statement, found: Outline) -> Iterator[None]:
    """Let errors of Spark's analyser point into the statement, and not into pieces of it."""
    try:
        yield
    except AnalysisException as error:
        if found.kind == "command":
            raise
        head, body = found.text[: found.body.start], found.text[found.body.start : found.body.end]
        try:
            # What stands in front of the query is left blank, so that places are the same.
            statement.plain_sql(re.sub(r"\S", " ", head) + body, statement.args)
        except AnalysisException as own:
            raise own from None
        raise error from None


def check_mode(mode: str) -> None:
    """Refuse what is no way to explain."""
    if mode not in ("simple", "extended", "formatted"):
        msg = f"explain mode {mode!r} is unknown. Use 'simple', 'extended' or 'formatted'."
        raise StatementError(msg)


def _explain(statement: Statement, mode: str) -> str:
    check_mode(mode)
    found = _outline_of(statement)
    if found is None:
        msg = "the statement has no SHED hint, so there is no shed plan. Use Spark's own EXPLAIN."
        raise StatementError(msg)
    with _where_the_user_wrote_it(statement, found), _Road(statement, found) as road:
        return explain_text(road.plan_blocks(), mode)


class _Road:
    """Plans the blocks one after another; holds the views that stand for them meanwhile."""

    def __init__(self, statement: Statement, found: Outline) -> None:
        text, self._args = _named_parameters(found.text, statement.args)
        # Renaming `?` moves positions, so the outline is drawn again.
        self._outline = found if text == found.text else _outlined(text)
        self.edit = Edit(text)
        self._session = statement.session
        self._plain_sql = statement.plain_sql
        self._views = ExitStack()

    def __enter__(self) -> _Road:
        self._catalog = SparkCatalog(self._session, self._run_text)
        return self

    def __exit__(self, *exception: object) -> None:
        self._views.close()

    def _run_text(self, text: str) -> DataFrame:
        return self._plain_sql(text, self._args)

    def run_statement(self) -> DataFrame:
        """Run the whole statement as it stands now."""
        return self._run_text(self.edit.render(Span(0, len(self.edit.text))))

    def run_query(self) -> DataFrame:
        """Run the statement's query alone, without CREATE VIEW in front of it."""
        return self._run_text(self.edit.render(self._outline.body))

    def plan_blocks(self) -> list[Planned]:
        """Plan and replace every hinted block, inner ones first; those that share a buffer at once."""
        check_workers(self._session)
        plans: dict[int, Planned] = {}
        for numbers in unions(self._outline.blocks):
            parts = {number: self._read(self._outline.blocks[number]) for number in numbers}
            sharing = self._sharing(parts)
            for group in sharing.groups:
                planned = self._plan([parts[number] for number in group])
                for number, own in zip(group, planned, strict=True):
                    plans[number] = replace(own, buffer=self._buffer(number, group, sharing))
        return [plans[number] for number in sorted(plans)]

    def _read(self, block: Block) -> Part:
        joined, scope = analyse(block, self.edit, self._catalog)
        return Part(block, joined, scope, self._catalog.schema(joined.with_ + self._unhinted(block)))

    def _unhinted(self, block: Block) -> str:
        return self.edit.render_without(block.span, block.hint_span)

    def _sharing(self, parts: dict[int, Part]) -> Sharing:
        """Which blocks share a buffer, of those that are branches of one UNION ALL."""
        obstacles: dict[int, str | None] = dict.fromkeys(parts)
        if len(parts) > 1:
            for number, part in parts.items():
                obstacles[number] = obstacle(part.block, part.joined, self.edit, self._catalog)
        return share({number: part.joined for number, part in parts.items()}, obstacles)

    def _buffer(self, number: int, group: tuple[int, ...], sharing: Sharing) -> str | None:
        """Words of EXPLAIN for whose buffer a join has, where there are several."""
        limited = [block.hint.memory is not None for block in self._outline.blocks]
        if not limited[number] or sum(limited) == 1:
            return None
        others = [str(other + 1) for other in group if other != number]
        if others:
            return f"shared with join{'s' if len(others) > 1 else ''} {', '.join(others)}"
        return f"its own, because {sharing.reasons[number]}"

    def _plan(self, parts: Sequence[Part]) -> list[Planned]:
        """Plan blocks that share an operator, run it, and put its output in their place."""
        joins = aligned([part.joined for part in parts])
        parts = [replace(part, joined=joined) for part, joined in zip(parts, joins, strict=True)]
        inputs = read_inputs(joins[0], self._run_text)
        plans = in_one([self._planned(joined, inputs) for joined in joins])
        if inputs.streaming:
            output = execute_streaming(plans[0], inputs, self._session)
        else:
            output = execute(plans[0].physical, inputs)
        view = f"__shed_{uuid.uuid4().hex}"
        output.createTempView(view)
        self._views.callback(self._session.catalog.dropTempView, view)
        self._replace(parts, view, streaming=inputs.streaming)
        return plans

    def _planned(self, joined: JoinBlock, inputs: Inputs) -> Planned:
        """The plan of one block."""
        resources = Resources(self._session.sparkContext.defaultParallelism)
        if inputs.streaming:
            check_sources(self._session)
            return plan_streaming(joined, inputs, resources)
        statistics, sample = gather(joined, closed_bounds(joined), inputs)
        planned = plan_join(joined, statistics, resources)
        planned = plan_join(joined, refine(planned, sample), resources)
        if planned.logical.hint.rows is not None:
            return plan_rows(planned, sample)
        return plan_shedding(planned, inputs) if planned.logical.sheds else planned

    def _replace(self, parts: Sequence[Part], view: str, *, streaming: bool) -> None:
        """Put the output of an operator in the place of the blocks that it joins for."""
        with_ = parts[0].joined.with_
        before = self._catalog.schema(with_ + " UNION ALL ".join(self._unhinted(own.block) for own in parts))
        span = rewrite_parts(parts, self.edit, view, before, streaming=streaming)
        after = self._catalog.schema(with_ + self.edit.render(span))
        if before != after:
            msg = (
                f"the hinted SELECT cannot be rewritten faithfully: Spark gives {before}, the rewritten "
                f"one {after}. Please report this statement, and remove the hint meanwhile."
            )
            raise ShedError(msg)


def _outlined(text: str) -> Outline:
    found = outline(text)
    assert found is not None
    return found


def _named_parameters(text: str, args: Any) -> tuple[str, Any]:
    """Give positional parameters names, because the pieces of the statement run separately."""
    if not isinstance(args, list) or not args:
        return text, args
    edit = Edit(text)
    names = {}
    for token in tokenize(text):
        if token.token_type == TokenType.PLACEHOLDER:
            name = f"__shed_{len(names)}"
            if len(names) < len(args):
                names[name] = args[len(names)]
                edit.replace(Span(token.start, token.end + 1), f":{name}")
    return edit.render(Span(0, len(text))), names


def _create_view(frame: DataFrame, head: ViewHead) -> None:
    """CREATE TEMP VIEW over a plan: stored text would lose the operator."""
    if head.columns:
        if len(head.columns) != len(frame.columns):
            msg = (
                f"view `{head.name}` names {len(head.columns)} columns, but its query has "
                f"{len(frame.columns)}. Name as many as the query returns."
            )
            raise StatementError(msg)
        frame = frame.toDF(*(name for name, _ in head.columns))
        frame = frame.select(
            *(
                F.col(f"`{name}`").alias(name, metadata={"comment": comment})
                if comment
                else F.col(f"`{name}`")
                for name, comment in head.columns
            )
        )
    if head.is_global:
        create = frame.createOrReplaceGlobalTempView if head.replace else frame.createGlobalTempView
    else:
        create = frame.createOrReplaceTempView if head.replace else frame.createTempView
    create(head.name)
