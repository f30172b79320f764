"""Put the operator's output where the join block stood; Spark runs everything around it.

    FROM a JOIN b ON … WHERE residual      becomes
    FROM view, LATERAL (SELECT view.c0 AS x) AS a, LATERAL (SELECT view.c1 AS y) AS b WHERE residual

Every name outside the join block then means what it meant before, and Spark's optimiser turns the
lateral sub-queries into a plain projection.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokens import Token, TokenType

from sparkshed.sql.block import JoinBlock
from sparkshed.sql.catalog import Field
from sparkshed.sql.conjuncts import Conjunct
from sparkshed.sql.dialect import tokenize
from sparkshed.sql.errors import StatementError
from sparkshed.sql.outline import Block, Span
from sparkshed.sql.scope import Scope, column_parts, columns_in, quoted

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
        for column in columns_in(conjunct.node):
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


def rewrite_block(block: Block, edit: Edit, joined: JoinBlock, scope: Scope, view: str) -> None:
    """Replace the join block in the statement by the view of the operator's output."""
    edit.replace(block.hint_span, block.other_hints)
    edit.replace(block.select, _rewrite_names(edit.render(block.select), scope, ()))
    edit.replace(block.from_, _from_clause(joined, view))
    condition = " AND ".join(f"({text})" for text in joined.residual)
    if block.where_clause is not None:
        edit.replace(block.where_clause, f"WHERE {condition}" if condition else "")
        after = block.where_clause.end
    else:
        after = block.from_.end
        if condition:
            lateral = edit.render(Span(after, block.span.end))
            cut = _tail_start(lateral)
            edit.replace(
                Span(after, block.span.end), f"{lateral[:cut]} WHERE {condition} {lateral[cut:]}"
            )
            return
    if scope.using:
        tail = Span(after, block.span.end)
        aliases = _aliases(edit.text[block.select.start : block.select.end])
        edit.replace(tail, _rewrite_names(edit.render(tail), scope, aliases))


def _tail_start(text: str) -> int:
    """Where GROUP BY, ORDER BY and the like begin after lateral views."""
    depth = 0
    for token in tokenize(text):
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        starts = ("GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET")
        if depth == 0 and token.text.upper().split()[0] in starts:
            return int(token.start)
    return len(text)


def _from_clause(joined: JoinBlock, view: str) -> str:
    parts = [view]
    for number, stream in enumerate(joined.streams):
        if stream.payload:
            columns = ", ".join(
                f"{view}.{output_name(number, column.column)} AS {quoted(column.name)}"
                for column in stream.payload
            )
            parts.append(f"LATERAL (SELECT {columns}) AS {quoted(stream.name)}")
    return ", ".join(parts)


def output_name(stream: int, column: int) -> str:
    """Name of an output column of the operator."""
    return f"__shed_{stream}_{column}"


def _aliases(select: str) -> tuple[str, ...]:
    """Names given with AS in a select list."""
    tokens = tokenize(select)
    return tuple(b.text.lower() for a, b in zip(tokens, tokens[1:], strict=False) if a.text.upper() == "AS")


def _rewrite_names(text: str, scope: Scope, shadowed: Sequence[str]) -> str:
    """Spell out `*`, and give USING columns the relation they are taken from."""
    tokens = tokenize(text)
    edit = Edit(text)
    for at, owner in _stars(tokens):
        if owner is None:
            end, excluded = _excluded(tokens, at, text)
            edit.replace(Span(tokens[at].start, end), _star_list(scope, excluded))
    for at, token in enumerate(tokens):
        name = token.text.lower()
        relation = next((r for u, r in scope.using.items() if u.lower() == name), None)
        if relation is None or token.token_type == TokenType.STRING or name in shadowed:
            continue
        before = tokens[at - 1].text.upper() if at else ""
        after = tokens[at + 1].token_type if at + 1 < len(tokens) else None
        if before not in (".", "AS") and after != TokenType.L_PAREN and not _in_subquery(tokens, at):
            edit.replace(Span(token.start, token.end + 1), scope.qualified(relation, token.text))
    return edit.render(Span(0, len(text)))


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


def _star_list(scope: Scope, excluded: Sequence[str]) -> str:
    """All columns as `*` lists them, less those of EXCEPT."""
    columns = []
    for number, field in scope.star():
        name = field.name.lower()
        if name not in excluded and f"{scope.relations[number].name.lower()}.{name}" not in excluded:
            columns.append(scope.qualified(number, field.name))
    return ", ".join(columns)
