"""Put the operator's output where the join block stood; Spark runs everything around it.

    FROM a JOIN b ON … WHERE residual      becomes
    FROM view, LATERAL (SELECT view.c0 AS x) AS a, LATERAL (SELECT view.c1 AS y) AS b WHERE residual

In streaming the view has one array of one struct for each stream, and `LATERAL VIEW inline` opens it.

Every name outside the join block then means what it meant before, and Spark's optimiser turns the
lateral sub-queries into a plain projection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from sparkshed.sql.block import JOIN, JoinBlock
from sparkshed.sql.catalog import Field
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.dialect import tokenize
from sparkshed.sql.errors import StatementError
from sparkshed.sql.outline import Block, Span, tail_word
from sparkshed.sql.scope import Scope, column_parts, columns_in, quoted

_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
_OPERAND_ENDS = (
    TokenType.IDENTIFIER,
    TokenType.VAR,
    TokenType.NUMBER,
    TokenType.STRING,
    TokenType.NULL,
    TokenType.TRUE,
    TokenType.FALSE,
    TokenType.END,
    *_CLOSING,
)

#: Clauses in which a name is a column of the join before it is one of the select list.
_COLUMNS_FIRST = ("GROUP BY", "WINDOW", "QUALIFY")

_STAR_BEFORE = (TokenType.SELECT, TokenType.HINT, TokenType.COMMA, TokenType.L_PAREN, TokenType.DISTINCT)


class Edit:
    """A text with replacements at positions of the original."""

    def __init__(self, text: str) -> None:
        """Start with the text unchanged."""
        self.text = text
        self._changes: list[tuple[Span, str]] = []

    def replace(self, span: Span, new: str) -> None:
        """Put `new` in place of the span and of anything replaced within it."""
        inside = [c for c in self._changes if span.start <= c[0].start and c[0].end <= span.end]
        for change in inside:
            self._changes.remove(change)
        self._changes.append((span, new))

    def render(self, span: Span) -> str:
        """The span with all replacements inside it."""
        pieces, at = [], span.start
        for change, new in sorted(self._changes, key=lambda c: (c[0].start, c[0].end)):
            if span.start <= change.start and change.end <= span.end:
                pieces += [self.text[at : change.start], new]
                at = change.end
        return "".join([*pieces, self.text[at : span.end]])

    def render_without(self, span: Span, gone: Span) -> str:
        """The span, leaving one part out."""
        return self.render(Span(span.start, gone.start)) + self.render(Span(gone.end, span.end))


def needed_columns(
    block: Block, edit: Edit, scope: Scope, residual: Sequence[Conjunct]
) -> list[tuple[Field, ...]]:
    """Columns of each relation that the rest of the query can possibly read."""
    words: set[str] = set()
    stars: set[str | None] = set()
    for span in _outside(block):
        tokens = tokenize(edit.render(span))
        words |= {token.text.lower() for token in tokens}
        stars |= {owner for _, owner in _stars(tokens)}
    for conjunct in residual:
        for column in columns_in(conjunct.node, scope.fold):
            words |= {part.lower() for part in column_parts(column)}
        if conjunct.streams() is None:
            words |= {token.text.lower() for token in tokenize(conjunct.fragment.cut(conjunct.node))}
    needed = []
    for relation in scope.relations:
        whole = None in stars or any(owner and scope.same(owner, relation.name) for owner in stars)
        needed.append(tuple(f for f in relation.fields if whole or f.name.lower() in words))
    return needed


def _outside(block: Block) -> list[Span]:
    """Parts of the block that are not its join: select list, lateral views, what follows WHERE."""
    after_where = block.where_clause.end if block.where_clause else block.from_.end
    before_where = block.where_clause.start if block.where_clause else block.from_.end
    return [block.select, Span(block.from_.end, before_where), Span(after_where, block.span.end)]


def _stars(tokens: list[Token]) -> list[tuple[int, str | None]]:
    """Positions of `*` that stand for columns, with the relation they name, if any."""
    found: list[tuple[int, str | None]] = []
    for at, token in enumerate(tokens):
        if token.token_type != TokenType.STAR:
            continue
        previous = tokens[at - 1] if at else None
        if previous is None or previous.token_type in _STAR_BEFORE or previous.text.upper() == "ALL":
            opening = previous is not None and previous.token_type == TokenType.L_PAREN
            if opening and at >= 2 and tokens[at - 2].text.upper() == "COUNT":
                continue
            found.append((at, None))
        elif previous.token_type == TokenType.DOT and at >= 2:
            found.append((at, tokens[at - 2].text))
    return found


@dataclass(frozen=True, slots=True)
class Source:
    """What a block reads instead of its join.

    Attributes:
        name: Its name, in front of its columns.
        text: What stands in FROM for it.
        number: That of the join, if the results of others are there, too. They pass, and those of the join
            get a column with what the block selects.
        streaming: Whether there is one array of one struct for each stream.
    """

    name: str
    text: str
    number: int | None = None
    streaming: bool = False

    def selected(self, items: str) -> str:
        """The select list."""
        if self.number is None:
            return items
        own = f"CASE WHEN {self.name}.{JOIN} = {self.number} THEN array(struct({items})) END"
        return f" {self.name}.*, {own} AS {selected_name(self.number)} "

    def condition(self, residual: Sequence[str]) -> str:
        """What results must pass that the operator did not check."""
        together = " AND ".join(f"({text})" for text in residual)
        if self.number is None or not together:
            return together
        return f"{self.name}.{JOIN} <> {self.number} OR ({together})"


def rewrite_block(block: Block, edit: Edit, joined: JoinBlock, scope: Scope, source: Source) -> None:
    """Replace the join block in the statement by the operator's output."""
    edit.replace(block.hint_span, block.other_hints)
    select = edit.render(block.select)
    shown = _output_names(select)
    edit.replace(block.select, source.selected(_rewrite_names(select, scope)))
    edit.replace(block.from_, _inlined(joined, source) if source.streaming else _from_clause(joined, source))
    condition = source.condition(joined.residual)
    after = block.from_.end
    if block.where_clause is not None:
        views = Span(after, block.where_clause.start)
        edit.replace(views, _rewrite_names(edit.render(views), scope))
        edit.replace(block.where_clause, f"WHERE {condition}" if condition else "")
        after = block.where_clause.end
    rest = Span(after, block.span.end)
    text = _rewrite_names(edit.render(rest), scope, shown)
    if condition and block.where_clause is None:
        cut = _tail_start(text)
        text = f"{text[:cut]} WHERE {condition} {text[cut:]}"
    edit.replace(rest, text)


def _tail_start(text: str) -> int:
    """Where GROUP BY, ORDER BY and the like begin after lateral views."""
    tokens = tokenize(text)
    starts = [at for at, depth in enumerate(_depths(tokens)) if depth == 0 and tail_word(tokens, at)]
    return int(tokens[starts[0]].start) if starts else len(text)


def _from_clause(joined: JoinBlock, source: Source) -> str:
    parts, view = [source.text], source.name
    for number, stream in enumerate(joined.streams):
        if stream.payload:
            columns = ", ".join(
                f"{view}.{output_name(number, column.column)} AS {quoted(column.name)}"
                for column in stream.payload
            )
            parts.append(f"LATERAL (SELECT {columns}) AS {quoted(stream.name)}")
    return ", ".join(parts)


def _inlined(joined: JoinBlock, source: Source) -> str:
    """The same from arrays of one struct: unlike lateral sub-queries they keep the watermarks of times."""
    parts = [source.text]
    for number, stream in enumerate(joined.streams):
        if stream.payload:
            columns = ", ".join(quoted(column.name) for column in stream.payload)
            array = f"{source.name}.{struct_name(number)}"
            parts.append(f"LATERAL VIEW inline({array}) {quoted(stream.name)} AS {columns}")
    return " ".join(parts)


def struct_name(stream: int) -> str:
    """Name of the array that holds the columns of one stream, in streaming."""
    return f"__shed_{stream}"


def selected_name(join: int) -> str:
    """Name of the array that holds what one of several joins selects."""
    return f"__shed_selected_{join}"


def output_name(stream: int, column: int) -> str:
    """Name of an output column of the operator."""
    return f"__shed_{stream}_{column}"


# Names outside the join -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chain:
    """A dotted name, tokens `first` to `last`; `*` may be its last part."""

    first: int
    last: int
    parts: tuple[str, ...]


def _output_names(select: str) -> frozenset[str]:
    """Names that the select list gives to its columns, `*` among them."""
    tokens = tokenize(select)
    names = set()
    for at, depth in enumerate(_depths(tokens)):
        ends = at + 1 == len(tokens) or tokens[at + 1].token_type == TokenType.COMMA
        if ends and depth == 0:
            names.add(tokens[at].text.lower())
    return frozenset(names)


def _depths(tokens: list[Token]) -> list[int]:
    """In how many brackets each token stands; a bracket itself stands outside."""
    depths, depth = [], 0
    for token in tokens:
        depth -= token.token_type in _CLOSING
        depths.append(depth)
        depth += token.token_type in _OPENING
    return depths


def _rewrite_names(text: str, scope: Scope, shown: frozenset[str] = frozenset()) -> str:
    """Spell out what means something else over the operator's output than it did over the join.

    `*` would list the operator's columns, `t.*` forgets what USING does to the order of columns,
    `database.t.x` has lost its database, and a USING column is no longer one column but one of each
    relation. Names that the select list has `shown` stay as they are where these come first.
    """
    tokens = tokenize(text)
    edit = Edit(text)
    columns_first, depths = True, _depths(tokens)
    for chain in _chains(tokens):
        tail = tail_word(tokens, chain.first)
        if tail and depths[chain.first] == 0:
            columns_first = tail in _COLUMNS_FIRST
        if tail or _in_subquery(tokens, chain.first):
            continue
        start, end = tokens[chain.first].start, tokens[chain.last].end + 1
        shadowed = not columns_first and bool(shown & {chain.parts[0].lower(), "*"})
        if chain.parts[-1] == "*":
            end, excluded = _excluded(tokens, chain.last, text)
            columns = _starred(scope, chain.parts[:-1], excluded)
            if columns is not None:
                edit.replace(Span(start, end), ", ".join(columns))
        elif (name := _new_name(scope, chain.parts, shadowed=shadowed)) is not None:
            edit.replace(Span(start, end), name)
    return edit.render(Span(0, len(text)))


def _chains(tokens: list[Token]) -> Iterator[_Chain]:
    """Dotted names of a text, function names and aliases left out."""
    stars = {at for at, _ in _stars(tokens)}
    at = 0
    while at < len(tokens):
        if not (at in stars or _is_name(tokens[at])):
            at += 1
            continue
        last = at
        while last + 2 < len(tokens) and tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        called = last + 1 < len(tokens) and tokens[last + 1].token_type == TokenType.L_PAREN
        if tail_word(tokens, at) or not (called or _is_alias(tokens, at)):
            yield _Chain(at, last, tuple(token.text for token in tokens[at : last + 1 : 2]))
        at = last + 1


def _is_name(token: Token) -> bool:
    plain = token.token_type not in (TokenType.STRING, TokenType.RAW_STRING, TokenType.NUMBER, TokenType.HINT)
    return token.token_type == TokenType.IDENTIFIER or (plain and token.text.replace("_", "a")[:1].isalpha())


def _is_alias(tokens: list[Token], at: int) -> bool:
    """Whether the token names the expression before it, with or without AS."""
    if not at:
        return False
    before = tokens[at - 1]
    if before.token_type == TokenType.ALIAS:
        return True
    follows_dot = at >= 2 and tokens[at - 2].token_type == TokenType.DOT
    return follows_dot or (before.token_type in _OPERAND_ENDS and before.text.upper() != "BY")


def _new_name(scope: Scope, parts: Sequence[str], *, shadowed: bool) -> str | None:
    """What to write instead of a dotted name, if it has to change."""
    for number, relation in enumerate(scope.relations):
        for length in range(min(len(relation.qualifier), len(parts) - 1), 1, -1):
            if all(map(scope.same, relation.qualifier[-length:], parts)):
                return ".".join([scope.qualified(number, parts[length]), *map(quoted, parts[length + 1 :])])
    if len(parts) > 1 and any(scope.same(relation.name, parts[0]) for relation in scope.relations):
        return None
    owner = next((r for name, r in scope.using.items() if scope.same(name, parts[0])), None)
    if owner is None or shadowed:
        return None
    return ".".join([scope.qualified(owner, parts[0]), *map(quoted, parts[1:])])


def _starred(scope: Scope, qualifier: Sequence[str], excluded: Sequence[str]) -> list[str] | None:
    """The columns of `*` or `relation.*` less those of EXCEPT; None when it can stay as it is."""
    if not qualifier:
        listed = scope.star()
    else:
        found = [
            number
            for number, relation in enumerate(scope.relations)
            if len(qualifier) <= len(relation.qualifier)
            and all(map(scope.same, relation.qualifier[-len(qualifier) :], qualifier))
        ]
        if len(found) != 1 or not (scope.using or len(qualifier) > 1):
            return None
        listed = [(found[0], field) for field in scope.relation_star(found[0])]
    columns = []
    for number, field in listed:
        name = field.name.lower()
        if name not in excluded and f"{scope.relations[number].name.lower()}.{name}" not in excluded:
            columns.append(scope.qualified(number, field.name))
    return columns


def _in_subquery(tokens: list[Token], at: int) -> bool:
    """Whether the token stands inside a bracket that opens a SELECT."""
    depth = 0
    for here in range(at, 0, -1):
        kind = tokens[here - 1].token_type
        if kind == TokenType.R_PAREN:
            depth += 1
        elif kind == TokenType.L_PAREN:
            if depth == 0 and tokens[here].text.upper() in ("SELECT", "WITH"):
                return True
            depth = max(0, depth - 1)
    return False


def _excluded(tokens: list[Token], at: int, text: str) -> tuple[int, tuple[str, ...]]:
    """Names of `* EXCEPT (a, b.c)` and where it ends."""
    end = tokens[at].end + 1
    if at + 2 >= len(tokens) or tokens[at + 1].text.upper() != "EXCEPT":
        return end, ()
    names, here, current = [], at + 3, ""
    while here < len(tokens) and tokens[here].token_type != TokenType.R_PAREN:
        token = tokens[here]
        if token.token_type == TokenType.COMMA:
            names.append(current)
            current = ""
        elif token.token_type == TokenType.L_PAREN:
            msg = f"`{text[tokens[at].start :]}` cannot be read. List plain column names in EXCEPT."
            raise StatementError(msg)
        else:
            current += token.text.lower()
        here += 1
    return tokens[here].end + 1, (*names, current)
