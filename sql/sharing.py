"""Which joins share one buffer: branches of one UNION ALL that join the same streams.

    SELECT /*+ SHED(gdj, 'memory=400') */ … FROM t a JOIN q b ON a.price = b.price AND …
    UNION ALL
    SELECT /*+ SHED(gdj, 'memory=400') */ … FROM q y JOIN t x ON x.symbol = y.symbol AND …

Their streams get the same numbers and the same columns, so that one operator can hold their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot.tokenizer_core import TokenType

from sparkshed.sql.block import JoinBlock, Payload, Stream
from sparkshed.sql.catalog import Catalog
from sparkshed.sql.dialect import tokenize
from sparkshed.sql.hint import ShedHint
from sparkshed.sql.inputs import Input
from sparkshed.sql.options import EVICTION, Diffusion
from sparkshed.sql.outline import Block, Span
from sparkshed.sql.predicate import renumber
from sparkshed.sql.rewrite import Edit
from sparkshed.sql.scope import quoted

#: What may stand between the rows of a join and those of its SELECT, as Spark calls it.
_ROW_BY_ROW = ("Project", "Filter", "SubqueryAlias", "WithCTE", "ResolvedHint")
_WORDS = {
    "Aggregate": "aggregates",
    "Distinct": "DISTINCT",
    "Window": "window functions",
    "Generate": "a generator",
    "Sort": "an order of its own",
    "GlobalLimit": "a limit of its own",
    "Offset": "an offset of its own",
}


@dataclass(frozen=True, slots=True)
class Sharing:
    """Who shares a buffer.

    Attributes:
        groups: Numbers of joins that share one, or of one join alone.
        reasons: Of joins that are alone, why they are.
    """

    groups: tuple[tuple[int, ...], ...]
    reasons: Mapping[int, str]


def unions(blocks: Sequence[Block]) -> list[list[int]]:
    """Numbers of blocks with a limit that are branches of one UNION ALL; all others are by themselves."""
    found: dict[tuple[str, int], list[int]] = {}
    for number, block in enumerate(blocks):
        limited = block.hint.memory is not None and block.branch is not None
        key = ("union", block.branch.union) if limited and block.branch else ("alone", number)
        found.setdefault(key, []).append(number)
    # The last one of a union ends after all that stands within any of them.
    return sorted(found.values(), key=lambda numbers: numbers[-1])


def share(joins: Mapping[int, JoinBlock], obstacles: Mapping[int, str | None]) -> Sharing:
    """Find those that go together among the branches of a UNION ALL; obstacles keep some out."""
    groups: list[list[int]] = []
    reasons: dict[int, str] = {}
    for number, joined in joins.items():
        if (obstacle := obstacles[number]) is not None:
            reasons[number] = obstacle
            groups.append([number])
            continue
        fitting = [
            group
            for group in groups
            if group[0] not in reasons and difference(joins[group[0]], joined) is None
        ]
        if fitting:
            fitting[0].append(number)
        else:
            groups.append([number])
    for group in groups:
        if len(group) == 1 and group[0] not in reasons:
            reasons[group[0]] = _why_alone(group[0], joins, obstacles)
    return Sharing(tuple(map(tuple, groups)), reasons)


def _why_alone(number: int, joins: Mapping[int, JoinBlock], obstacles: Mapping[int, str | None]) -> str:
    others = [other for other, obstacle in obstacles.items() if other != number and obstacle is None]
    if not others:
        return "no other join that could share one is a branch of the same UNION ALL"
    return f"{difference(joins[others[0]], joins[number])} join {others[0] + 1}"


def obstacle(block: Block, joined: JoinBlock, edit: Edit, catalog: Catalog) -> str | None:
    """Why a join cannot share a buffer, whatever the others are; None if it can."""
    hint = block.hint
    if hint.strategy not in EVICTION:
        return f"`{hint.strategy}` limits the work of each join, too"
    if hint.options.get("buffers") == "proportional":
        return "`buffers=proportional` gives each stream a buffer"
    if hint.diffusion.routing == "hash":
        return "`diffuse=hash` sends rows where the key of one join says"
    if any(token.token_type == TokenType.SELECT for text in joined.residual for token in tokenize(text)):
        return "a condition has a sub-query"
    for stream in joined.streams:
        if not catalog.deterministic(f"{joined.with_}SELECT * FROM {stream.relation}"):
            return f"`{stream.name}` is not deterministic, so each join reads other rows"
    nodes = catalog.above_join(joined.with_ + edit.render_without(block.span, block.hint_span))
    more = next((node for node in nodes if node not in _ROW_BY_ROW), None)
    if more is not None:
        return f"its SELECT has {_WORDS.get(more, more)}"
    rest = edit.render(Span(block.select.end, block.span.end))
    if not catalog.resolves(f"{joined.with_}SELECT struct({edit.render(block.select)}) AS s {rest}"):
        return "its select list is not a list of expressions over the join alone"
    return None


def difference(one: JoinBlock, other: JoinBlock) -> str | None:
    """What keeps two joins from sharing a buffer, in words before the name of the first; None if nothing."""
    if _memory(one.hint) != _memory(other.hint):
        return "its strategy or options are not those of"
    if one.with_ != other.with_:
        return "its WITH clauses are not those of"
    if _sorted(one, 1) != _sorted(other, 1):
        return "its relations are not those of"
    if _sorted(one, 2) != _sorted(other, 2):
        return "its filters on single relations are not those of"
    if _sorted(one, 3) != _sorted(other, 3):
        return "its times are not those of"
    return None


def _memory(hint: ShedHint) -> tuple[str, dict[str, object]]:
    """The strategy and the options that one buffer can have; orders are those of one join."""
    return hint.strategy, {name: value for name, value in hint.options.items() if name != "order"}


def _signature(stream: Stream) -> tuple[str, tuple[str, ...], str]:
    """What a stream is: its relation, filters and time, whatever its name."""
    filters = tuple(sorted(renamed(text, stream.name, "") for text in stream.filters))
    time = "" if stream.time is None else renamed(stream.inputs[stream.time].sql, stream.name, "")
    return stream.source, filters, f"{time} {stream.strict_time}"


def _sorted(joined: JoinBlock, parts: int) -> list[tuple[object, ...]]:
    """The first parts of what the streams are, in an order that does not depend on how they are joined."""
    return sorted((_signature(stream)[:parts] for stream in joined.streams), key=repr)


def renamed(text: str, old: str, new: str) -> str:
    """An expression over a relation that goes by another name; columns have the name in front, quoted.

    >>> renamed("lower(`a`.`a`) = 'a'", "a", "b")
    "lower(`b`.`a`) = 'a'"
    """
    if old == new:
        return text
    edit, tokens = Edit(text), tokenize(text)
    for at, (token, following) in enumerate(zip(tokens, tokens[1:], strict=False)):
        named = token.token_type == TokenType.IDENTIFIER and token.text == old
        first = at == 0 or tokens[at - 1].token_type != TokenType.DOT
        if named and first and following.token_type == TokenType.DOT:
            edit.replace(Span(token.start, token.end + 1), quoted(new))
    return edit.render(Span(0, len(text)))


# One set of streams -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Move:
    """Where the streams of a join, and their columns, are in those that all joins share."""

    streams: Mapping[int, int]
    columns: Mapping[int, Sequence[int]]


def aligned(joins: Sequence[JoinBlock]) -> list[JoinBlock]:
    """The joins over streams with the same numbers and columns: those of the first, and what others add."""
    if len(joins) == 1:
        return list(joins)
    first = joins[0]
    inputs: list[dict[str, Input]] = [{own.sql: own for own in stream.inputs} for stream in first.streams]
    payload: list[dict[str, Payload]] = [{} for _ in first.streams]
    moves = [_move(first, joined, inputs, payload) for joined in joins]
    return [_moved(joined, move, inputs, payload) for joined, move in zip(joins, moves, strict=True)]


def _move(
    first: JoinBlock, joined: JoinBlock, inputs: list[dict[str, Input]], payload: list[dict[str, Payload]]
) -> _Move:
    """Find the streams of a join among those of the first one, and add the columns that are missing."""
    free = dict(enumerate(map(_signature, first.streams)))
    streams: dict[int, int] = {}
    columns: dict[int, list[int]] = {}
    for own, stream in enumerate(joined.streams):
        number = next(known for known, signature in free.items() if signature == _signature(stream))
        del free[number]
        streams[own], columns[own] = number, []
        for column in stream.inputs:
            sql = renamed(column.sql, stream.name, first.streams[number].name)
            inputs[number].setdefault(sql, Input(sql, column.type))
            columns[own].append(list(inputs[number]).index(sql))
        for field in stream.payload:
            payload[number].setdefault(field.name, Payload(field.name, columns[own][field.column]))
    return _Move(streams, columns)


def _moved(
    joined: JoinBlock, move: _Move, inputs: list[dict[str, Input]], payload: list[dict[str, Payload]]
) -> JoinBlock:
    streams: dict[int, Stream] = {}
    for own, number in move.streams.items():
        stream = joined.streams[own]
        assert stream.time is not None
        streams[number] = replace(
            stream,
            inputs=tuple(inputs[number].values()),
            time=move.columns[own][stream.time],
            payload=tuple(payload[number].values()),
        )
    alone = ShedHint(joined.hint.strategy, {**joined.hint.options, "diffuse": Diffusion("none")})
    return replace(
        joined,
        hint=alone,
        streams=tuple(streams[number] for number in sorted(streams)),
        bounds=tuple(
            replace(bound, later=move.streams[bound.later], earlier=move.streams[bound.earlier])
            for bound in joined.bounds
        ),
        predicates=tuple(renumber(own, move.streams, move.columns) for own in joined.predicates),
    )
