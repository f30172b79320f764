"""From a hinted block to a :class:`JoinBlock`: resolve, split, classify, compile."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sparkshed.sql.block import JoinBlock, Payload, Stream
from sparkshed.sql.bounds import TimeBound
from sparkshed.sql.catalog import Catalog
from sparkshed.sql.collective import FUNCTIONS
from sparkshed.sql.compile import Compiler, NotCompiledError
from sparkshed.sql.conjuncts import Conjunct, chains_comparisons
from sparkshed.sql.errors import BoundError, StatementError, listing
from sparkshed.sql.expr import Call, Col, Expr, Lit
from sparkshed.sql.forms import indexed
from sparkshed.sql.inputs import Inputs
from sparkshed.sql.linear import is_compact, strip
from sparkshed.sql.outline import Block
from sparkshed.sql.pieces import pieces
from sparkshed.sql.predicate import Band, Equality, Predicate
from sparkshed.sql.relations import read_from
from sparkshed.sql.rewrite import Edit, needed_columns
from sparkshed.sql.scope import Scope
from sparkshed.sql.times import (
    Gap,
    Gaps,
    as_bounds,
    choose_times,
    read_gaps,
    streams_without_plain_bound,
)
from sparkshed.sql.types import TIMES
from sparkshed.sql.typing import Typer, is_key_type
from sparkshed.sql.unbound import refuse_unbound

#: Common functions that need no question to Spark.
_DETERMINISTIC = (
    *(exp.And, exp.Or, exp.Abs, exp.Case, exp.Cast, exp.Coalesce, exp.Greatest, exp.If, exp.Least),
    *(exp.ArrayIntersect, exp.ArraySize, exp.Reduce),
)


def analyse(block: Block, edit: Edit, catalog: Catalog) -> tuple[JoinBlock, Scope]:
    """Understand one hinted block of a statement; also gives the scope, for rewriting."""
    ctes = ", ".join(edit.render(span) for span in block.ctes)
    with_ = f"WITH {ctes} " if ctes else ""
    where = edit.render(block.where) if block.where else None
    plain = with_ + edit.render_without(block.span, block.hint_span)
    try:
        scope, conjuncts = read_from(edit.render(block.from_), where, with_, catalog)
    except StatementError:
        # Spark may refuse the block too, and knows better why.
        catalog.schema(plain)
        raise
    catalog.schema(plain)
    analysis = _Analysis(scope, conjuncts, with_, catalog, of_rows=block.hint.rows is not None)
    analysis.run()
    residual = tuple(conjunct.text() for conjunct in analysis.residual)
    payload = _payload(block, edit, scope, analysis.residual, analysis.inputs)
    streams = tuple(
        Stream(
            name=relation.name,
            relation=relation.text,
            source=relation.source,
            filters=tuple(analysis.filters[number]),
            inputs=analysis.inputs.of(number),
            time=analysis.time_columns[number],
            time_text=None if (text := analysis.times[number]) is None else text.replace("`", ""),
            strict_time=number in analysis.strict_times,
            payload=payload[number],
        )
        for number, relation in enumerate(scope.relations)
    )
    joined = JoinBlock(
        hint=block.hint,
        with_=with_,
        streams=streams,
        bounds=tuple(analysis.bounds),
        predicates=tuple(analysis.predicates),
        residual=residual,
        ansi=catalog.ansi,
    )
    return joined, scope


def _payload(
    block: Block, edit: Edit, scope: Scope, residual: Sequence[Conjunct], inputs: Inputs
) -> list[tuple[Payload, ...]]:
    """Bring the columns that the rest of the query reads."""
    payload = []
    for number, fields in enumerate(needed_columns(block, edit, scope, residual)):
        columns = []
        for field in fields:
            column = inputs.column(number, scope.qualified(number, field.name), field.type)
            columns.append(Payload(field.name, column.column))
        payload.append(tuple(columns))
    return payload


class _Analysis:
    """Sorts the conjuncts of one block into filters, bounds, predicates and residual ones."""

    def __init__(
        self, scope: Scope, conjuncts: list[Conjunct], with_: str, catalog: Catalog, *, of_rows: bool
    ) -> None:
        self._scope = scope
        self._of_rows = of_rows
        self._conjuncts = conjuncts
        self._with = with_
        self._catalog = catalog
        self._relations = ", ".join(relation.text for relation in scope.relations)
        self._typer = Typer(catalog, with_, self._relations)
        count = len(scope.relations)
        self.inputs = Inputs(count)
        self.filters: list[list[str]] = [[] for _ in range(count)]
        self.bounds: list[TimeBound] = []
        self.predicates: list[Predicate] = []
        self.residual: list[Conjunct] = []
        self.times: list[str | None] = [None] * count
        self.time_columns: list[int | None] = [None] * count
        self.strict_times: set[int] = set()

    def run(self) -> None:
        """Classify every conjunct."""
        self._refuse_changing_ctes()
        joining = []
        for conjunct in self._conjuncts:
            streams = conjunct.streams()
            if not streams or chains_comparisons(conjunct.node) or not self._is_deterministic(conjunct):
                self.residual.append(conjunct)
            elif len(streams) == 1:
                self.filters[min(streams)].append(conjunct.text())
            else:
                joining.append(conjunct)
        self._load_types(joining)
        zone, ansi = self._catalog.time_zone, self._catalog.ansi
        gaps = {id(c): read_gaps(c, self._typer, zone, ansi=ansi) for c in joining}
        timed = [found for c in joining if (found := gaps[id(c)]) is not None and found.is_time]
        self._choose_times(timed)
        for conjunct in joining:
            self._classify(conjunct, gaps[id(conjunct)])
        if not self._of_rows:
            refuse_unbound(self._scope, self.bounds, self.times, joining)

    def _refuse_changing_ctes(self) -> None:
        """A WITH query that changes from run to run would give each stream other rows."""
        for relation in self._scope.relations if self._with else ():
            if not self._catalog.deterministic(f"{self._with}SELECT * FROM {relation.text}"):
                msg = (
                    f"relation `{relation.name}` reads from a WITH clause and is not deterministic, so it "
                    f"could differ between the parts of the statement. Write it to a table first."
                )
                raise StatementError(msg)

    def _is_deterministic(self, conjunct: Conjunct) -> bool:
        """Ask Spark about functions whose nature the tree does not tell."""
        if all(map(self._is_known, conjunct.node.find_all(exp.Func))):
            return True
        query = f"{self._with}SELECT ({conjunct.text()}) AS c FROM {self._relations}"
        return self._catalog.deterministic(query)

    def _is_known(self, function: exp.Func) -> bool:
        """Whether the function is deterministic without asking."""
        if not isinstance(function, exp.Anonymous):
            return isinstance(function, _DETERMINISTIC)
        name = function.name
        return name.lower() in FUNCTIONS or self._catalog.predicate(name) is not None

    def _load_types(self, joining: list[Conjunct]) -> None:
        texts, constants = [], []
        for conjunct in joining:
            for node in pieces(conjunct, conjunct.node, self._catalog.predicate):
                texts.append(conjunct.text(node))
                if conjunct.streams(node) == frozenset():
                    constants.append(texts[-1])
        self._typer.load(texts)
        self._typer.load_constants(constants)

    def _choose_times(self, timed: list[Gaps]) -> None:
        count = len(self._scope.relations)
        self.times = choose_times(timed, count)
        if self._of_rows:
            self.times = [text or self._only_time(number) for number, text in enumerate(self.times)]
        for number, text in enumerate(self.times):
            if text is not None:
                column = self.inputs.column(number, text, self._typer.type_of(text))
                self.time_columns[number] = column.column
        usable = [found for found in timed if as_bounds(found, self.times) is not None]
        # Rows have an order by their times; those without one have no place in windows of rows.
        self.strict_times = set() if self._of_rows else streams_without_plain_bound(usable, count)

    def _only_time(self, number: int) -> str:
        """The time column of a relation without time bounds; there must be just one."""
        relation = self._scope.relations[number]
        found = [field.name for field in relation.fields if field.type in TIMES]
        if len(found) != 1:
            which = f"{listing(found)} are" if found else "none is"
            msg = (
                f"the last rows of `{relation.name}` are those with the latest times, so it needs one column "
                f"of type TIMESTAMP or DATE, and {which} there. Leave one in a sub-query, or name the one to "
                f"use in a time bound."
            )
            raise BoundError(msg)
        return self._scope.qualified(number, found[0])

    def _classify(self, conjunct: Conjunct, gaps: Gaps | None) -> None:
        sizes = self.inputs.sizes()
        equality = self._equality(conjunct)
        bounds = as_bounds(gaps, self.times) if gaps is not None and gaps.is_time else None
        if gaps is not None and bounds is not None:
            self.bounds += bounds
            if gaps.widened:
                self.residual.append(conjunct)
            if equality is not None:
                self.predicates.append(equality)
            return
        if equality is not None:
            self.predicates.append(equality)
            return
        try:
            self.predicates.append(self._predicate(conjunct, gaps))
            if gaps is not None and gaps.widened:
                self.residual.append(conjunct)
        except NotCompiledError:
            self.inputs.shrink(sizes)
            self.residual.append(conjunct)

    def _equality(self, conjunct: Conjunct) -> Predicate | None:
        """`a.k = b.k` as a key, when Spark's equality is also the key's."""
        node = strip(conjunct.node)
        if not isinstance(node, (exp.EQ, exp.NullSafeEQ)):
            return None
        sides = [strip(node.this), strip(node.expression)]
        reads = [conjunct.streams(side) for side in sides]
        if any(streams is None or len(streams) != 1 for streams in reads) or reads[0] == reads[1]:
            return None
        common = self._typer.common_type(*(conjunct.text(side) for side in sides))
        if common is None or not is_key_type(common):
            return None
        compiler = self._compiler(conjunct)
        left, right = (compiler.leaf(side, cast=common) for side in sides)
        null_safe = isinstance(node, exp.NullSafeEQ)
        expr = Call("<=>" if null_safe else "=", (left, right), "boolean")
        return Predicate(conjunct.plain_text(), expr, Equality(left, right, null_safe))

    def _compiler(self, conjunct: Conjunct, *, split_sums: bool = False) -> Compiler:
        return Compiler(conjunct, self._typer, self.inputs, self._catalog, split_sums=split_sums)

    def _predicate(self, conjunct: Conjunct, gaps: Gaps | None) -> Predicate:
        usable = gaps is not None and not is_compact(conjunct)
        if gaps is None or not usable:
            return Predicate(conjunct.plain_text(), *indexed(self._compiler(conjunct).compile()))
        band = self._band(gaps)
        if gaps.is_time:
            return Predicate(conjunct.plain_text(), _time_expr(band), band)
        expr = self._compiler(conjunct, split_sums=True).compile()
        return Predicate(conjunct.plain_text(), expr, band)

    def _band(self, gaps: Gaps) -> Band:
        """All gaps of the conjunct as one range of `left - right`."""
        first = gaps.gaps[0]
        left = self._gap_column(first.left_stream, first.left)
        right = self._gap_column(first.right_stream, first.right)
        low: float | int | None = None
        high: float | int | None = None
        for gap in gaps.gaps:
            if (gap.left_stream, gap.left) == (first.left_stream, first.left):
                high = gap.high if high is None else min(high, gap.high)
            else:
                low = -gap.high if low is None else max(low, -gap.high)
        scale = max(gap.scale for gap in gaps.gaps)
        return Band(left, right, low, high, exact=_all_exact(gaps.gaps), scale=scale)

    def _gap_column(self, stream: int, text: str) -> Col:
        return self.inputs.column(stream, text, self._typer.type_of(text))


def _all_exact(gaps: Sequence[Gap]) -> bool:
    return all(gap.exact for gap in gaps)


def _time_expr(band: Band) -> Expr:
    """A band on times as an expression over their physical values."""
    parts: list[Expr] = []
    for op, bound in (("<=", band.high), (">=", band.low)):
        if bound is not None:
            shifted = Call("+", (band.right, Lit(bound, band.left.type, str(bound))), band.left.type)
            parts.append(Call(op, (band.left, shifted), "boolean"))
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), "boolean")
