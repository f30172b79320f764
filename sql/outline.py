"""Find the hinted SELECT blocks of a statement, and where their clauses stand.

Only tokens are looked at, so anything may surround a block: Spark's grammar is larger than any
parser's but its own, and what surrounds a block reaches Spark as it was written.

    WITH x AS (…) SELECT /*+ SHED(exact) */ a.v FROM a JOIN b ON … LATERAL VIEW … WHERE … GROUP BY …
    └── ctes ───┘        └─── hint ───┘     └v┘      └── from ───┘                   └w┘   └ tail
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import Token, TokenType

from sparkshed.sql.dialect import tokenize
from sparkshed.sql.errors import StatementError
from sparkshed.sql.hint import ShedHint, parse_hint, two_hints

_OPEN = (TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE)
_CLOSE = (TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE)

_BLOCK_ENDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "|>")
_TAILS = (
    "GROUP BY",
    "HAVING",
    "QUALIFY",
    "WINDOW",
    "ORDER BY",
    "SORT BY",
    "CLUSTER BY",
    "DISTRIBUTE BY",
    "LIMIT",
    "OFFSET",
)

#: After these a name follows, never a clause.
_BEFORE_OPERAND = frozenset(
    {
        TokenType.WHERE,
        TokenType.ON,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.BETWEEN,
        TokenType.LIKE,
        TokenType.CASE,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.NULLSAFE_EQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.STAR,
        TokenType.SLASH,
        TokenType.MOD,
        TokenType.DIV,
        TokenType.DPIPE,
        TokenType.COMMA,
        TokenType.DOT,
        TokenType.SELECT,
        TokenType.GROUP_BY,
        TokenType.ORDER_BY,
        TokenType.SORT_BY,
        TokenType.CLUSTER_BY,
        TokenType.DISTRIBUTE_BY,
        TokenType.PARTITION_BY,
        TokenType.HAVING,
    }
)

#: Of a SELECT that follows a set operator, these belong to the whole query and not to it.
_OF_THE_WHOLE = ("ORDER BY", "SORT BY", "CLUSTER BY", "DISTRIBUTE BY", "LIMIT", "OFFSET")
_AFTER_SET_OPERATOR = ("ALL", "DISTINCT", "UNION", "EXCEPT", "INTERSECT", "MINUS")

_MODIFIERS = ("OR", "REPLACE", "GLOBAL", "TEMP", "TEMPORARY")


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the statement: from `start` to before `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Branch:
    """A SELECT as a branch of UNION ALL, in a query that has no other set operators.

    Attributes:
        union: Tells one such query of a statement from another one.
        span: The SELECT with the brackets around it.
        operator: The UNION ALL in front of it; None for the first branch.
    """

    union: int
    span: Span
    operator: Span | None


@dataclass(frozen=True, slots=True)
class Block:
    """One hinted SELECT.

    Attributes:
        hint: The checked SHED hint.
        hint_span: Where the hint comment stands.
        other_hints: The comment without SHED, to put in its place.
        span: From SELECT to the end of the block.
        select: The select list.
        from_: What follows FROM, up to the next clause.
        where: The condition after WHERE, if any.
        where_clause: WHERE with its condition.
        ctes: Common table expressions that the block can see, outermost first.
        branch: Which branch of UNION ALL it is, if it is one.
    """

    hint: ShedHint
    hint_span: Span
    other_hints: str
    span: Span
    select: Span
    from_: Span
    where: Span | None
    where_clause: Span | None
    ctes: tuple[Span, ...]
    branch: Branch | None


@dataclass(frozen=True, slots=True)
class Outline:
    """A statement with at least one hinted block.

    `kind` is `query`, `command` (Spark runs it at once: INSERT, CREATE TABLE … AS) or `temp view`;
    `body` is the statement without EXPLAIN or CREATE VIEW in front of it.
    """

    text: str
    kind: str
    body: Span
    blocks: tuple[Block, ...]
    explain: str | None = None
    view: ViewHead | None = None


@dataclass(frozen=True, slots=True)
class ViewHead:
    """`CREATE [OR REPLACE] [GLOBAL] TEMP VIEW name [(column [COMMENT 'text'], …)] …`."""

    name: str
    replace: bool
    is_global: bool
    columns: tuple[tuple[str, str | None], ...] = field(default=())


def outline(text: str) -> Outline | None:
    """The outline of a statement, or None when it has no SHED hint and is all Spark's.

    >>> outline("SELECT 1") is None
    True
    >>> outline("SELECT /*+ SHED(exact) */ 1 FROM a JOIN b ON a.k = b.k").kind
    'query'
    """
    if "/*+" not in text:
        return None
    tokens = tokenize(text)
    hints = []
    for at, token in enumerate(tokens):
        if token.token_type == TokenType.HINT:
            hint, rest = parse_hint(text[token.start : token.end + 1])
            if hint is not None:
                hints.append((at, hint, rest))
    if not hints:
        return None
    partners = _partners(tokens)
    blocks = [_block(text, tokens, partners, at, hint, rest) for at, hint, rest in hints]
    if len({block.span for block in blocks}) < len(blocks):
        raise two_hints()
    blocks.sort(key=lambda block: block.span.end)
    return _statement(text, tokens, partners, tuple(blocks))


def word(token: Token) -> str:
    """A token's text in capitals, with single spaces."""
    return " ".join(token.text.upper().split())


def _is_word(token: Token, *words: str) -> bool:
    quoted = (TokenType.IDENTIFIER, TokenType.STRING, TokenType.RAW_STRING)
    return token.token_type not in quoted and word(token) in words


def _partners(tokens: list[Token]) -> dict[int, int]:
    """For every opening bracket its closing one, and the other way round."""
    stack, partners = [], {}
    for at, token in enumerate(tokens):
        if token.token_type in _OPEN:
            stack.append(at)
        elif token.token_type in _CLOSE and stack:
            partners[at] = stack.pop()
            partners[partners[at]] = at
    return partners


def _block(
    text: str, tokens: list[Token], partners: dict[int, int], at: int, hint: ShedHint, rest: str
) -> Block:
    start = at - 1
    while start > 0 and tokens[start].token_type == TokenType.HINT:
        start -= 1
    if start < 0 or not _is_word(tokens[start], "SELECT"):
        msg = "a SHED hint must follow the SELECT of the join: SELECT /*+ SHED(exact) */ … FROM a JOIN b ON …"
        raise StatementError(msg)
    in_union = start > 0 and _is_word(tokens[start - 1], *_AFTER_SET_OPERATOR)
    marks = _clauses(tokens, partners, at + 1, in_union=in_union)
    end = marks["end"]

    def chars(first: int, last: int) -> Span:
        """Characters from token `first` to before token `last`."""
        return Span(tokens[first].start, tokens[last - 1].end + 1)

    if "from" not in marks:
        msg = (
            f"SHED hint on a SELECT without FROM: `{_short(text, chars(start, end))}`. "
            f"It needs a join of two or more relations."
        )
        raise StatementError(msg)
    after_from = min(marks[key] for key in ("lateral", "where", "tail", "end") if key in marks)
    where = where_clause = None
    if "where" in marks:
        after_where = marks.get("tail", end)
        where = chars(marks["where"] + 1, after_where)
        where_clause = chars(marks["where"], after_where)
    return Block(
        hint=hint,
        hint_span=chars(at, at + 1),
        other_hints=rest,
        span=chars(start, end),
        select=chars(at + 1, marks["from"]),
        from_=chars(marks["from"] + 1, after_from),
        where=where,
        where_clause=where_clause,
        ctes=_visible_ctes(tokens, partners, start),
        branch=_branch(tokens, partners, start, end),
    )


def _branch(tokens: list[Token], partners: dict[int, int], first: int, after: int) -> Branch | None:
    """The branch of UNION ALL that tokens from `first` to before `after` are, brackets around them aside."""
    while first and tokens[first - 1].token_type == TokenType.L_PAREN and partners.get(first - 1) == after:
        first, after = first - 1, after + 1
    begin = max((o + 1 for o, c in partners.items() if o < first < c), default=0)
    level = list(_level(tokens, partners, begin))
    operators = [at for at in level if _is_word(tokens[at], *_BLOCK_ENDS) and not _is_star_except(tokens, at)]
    if not operators or not all(_is_union_all(tokens, at) for at in operators):
        return None
    operator = None
    if first - 2 in operators:
        operator = Span(tokens[first - 2].start, tokens[first - 1].end + 1)
    elif any(_is_word(tokens[at], "SELECT", "FROM", "VALUES") for at in level if at < first):
        # It is a relation of a branch, or one of its sub-queries.
        return None
    if after in level and after not in operators and tail_word(tokens, after) not in _OF_THE_WHOLE:
        return None
    return Branch(begin, Span(tokens[first].start, tokens[after - 1].end + 1), operator)


def _level(tokens: list[Token], partners: dict[int, int], at: int) -> Iterator[int]:
    """Numbers of the tokens from `at` to the end of its query, of brackets only the opening ones."""
    while at < len(tokens):
        if tokens[at].token_type in _CLOSE or tokens[at].token_type == TokenType.SEMICOLON:
            return
        yield at
        at = partners.get(at, at) + 1 if tokens[at].token_type in _OPEN else at + 1


def _is_union_all(tokens: list[Token], at: int) -> bool:
    return _is_word(tokens[at], "UNION") and at + 1 < len(tokens) and _is_word(tokens[at + 1], "ALL")


def _short(text: str, span: Span) -> str:
    piece = " ".join(text[span.start : span.end].split())
    return piece if len(piece) <= 80 else piece[:77] + "..."


def _clauses(
    tokens: list[Token], partners: dict[int, int], at: int, *, in_union: bool = False
) -> dict[str, int]:
    """Token numbers at which the block's clauses start: from, lateral, where, tail, end."""
    marks: dict[str, int] = {}
    while at < len(tokens):
        token = tokens[at]
        if token.token_type in _OPEN:
            at = partners.get(at, len(tokens)) + 1
            continue
        if token.token_type in _CLOSE or token.token_type == TokenType.SEMICOLON:
            break
        if tokens[at - 1].token_type == TokenType.DOT:
            at += 1
            continue
        if _is_word(token, *_BLOCK_ENDS) and not _is_star_except(tokens, at):
            break
        if "from" not in marks:
            if _is_word(token, "FROM") and not _is_word(tokens[at - 1], "DISTINCT"):
                marks["from"] = at
        elif "tail" not in marks:
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            if in_union and tail_word(tokens, at) in _OF_THE_WHOLE:
                break
            if tail_word(tokens, at):
                marks["tail"] = at
            elif "where" not in marks and _is_word(token, "WHERE"):
                marks["where"] = at
            elif "where" not in marks and "lateral" not in marks:
                if _is_word(token, "LATERAL") and following and _is_word(following, "VIEW"):
                    marks["lateral"] = at
        at += 1
    marks["end"] = at
    return marks


def tail_word(tokens: list[Token], at: int) -> str:
    """The clause after WHERE that starts at a token, such as `GROUP BY`; nothing when none does.

    Some of the words are also fine names for columns: `WHERE offset > 3`.
    """
    if at and tokens[at - 1].token_type in _BEFORE_OPERAND:
        return ""
    if _is_word(tokens[at], *_TAILS):
        return word(tokens[at])
    # A comment between two words keeps them apart: GROUP /* … */ BY.
    both = " ".join(word(token) for token in tokens[at : at + 2])
    return both if both in _TAILS and tokens[at].token_type != TokenType.IDENTIFIER else ""


def _is_star_except(tokens: list[Token], at: int) -> bool:
    """Whether EXCEPT belongs to `* EXCEPT (…)` and is no set operation."""
    return _is_word(tokens[at], "EXCEPT") and tokens[at - 1].token_type == TokenType.STAR


def _visible_ctes(tokens: list[Token], partners: dict[int, int], at: int) -> tuple[Span, ...]:
    """Common table expressions in scope at token `at`, outermost first; an inner name hides an outer one."""
    enclosing = [-1, *sorted(o for o, c in partners.items() if o < at < c)]
    names = {token.start: token.text.lower() for token in tokens}
    visible: dict[str, Span] = {}
    for opening in enclosing:
        closing = partners.get(opening, len(tokens))
        for span in _level_ctes(tokens, partners, opening + 1, closing, at):
            visible.pop(names[span.start], None)
            visible[names[span.start]] = span
    return tuple(visible.values())


def _level_ctes(tokens: list[Token], partners: dict[int, int], first: int, last: int, at: int) -> list[Span]:
    """Items of the WITH list that stands directly between tokens `first` and `last`, if any."""
    spans: list[Span] = []
    here = first
    while here < min(last, at):
        if tokens[here].token_type in _OPEN:
            here = partners.get(here, last) + 1
            continue
        if _is_word(tokens[here], "WITH"):
            item = here + 1
            if _is_word(tokens[item], "RECURSIVE"):
                msg = (
                    "a recursive WITH around a hinted SELECT is not supported. "
                    "Put the recursive part in a temp view."
                )
                raise StatementError(msg)
            while item < last:
                body = _cte_body(tokens, partners, item)
                if body is None:
                    break
                if body < at < partners[body]:
                    return spans
                spans.append(Span(tokens[item].start, tokens[partners[body]].end + 1))
                item = partners[body] + 1
                if item >= last or tokens[item].token_type != TokenType.COMMA:
                    break
                item += 1
            here = item
            continue
        here += 1
    return spans


def _cte_body(tokens: list[Token], partners: dict[int, int], item: int) -> int | None:
    """Token number of the bracket that opens the query of the CTE at `item`."""
    at = item + 1
    if at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN and at in partners:
        after = partners[at] + 1
        if after < len(tokens) and _is_word(tokens[after], "AS"):
            at = after
        else:
            return at
    if at < len(tokens) and _is_word(tokens[at], "AS"):
        at += 1
    return at if at < len(tokens) and tokens[at].token_type == TokenType.L_PAREN else None


def _statement(
    text: str, tokens: list[Token], partners: dict[int, int], blocks: tuple[Block, ...]
) -> Outline:
    at, explain = 0, None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens = tokens[:-1]
    if any(token.token_type == TokenType.SEMICOLON for token in tokens):
        msg = "several statements in one text cannot have SHED hints. Run them one by one."
        raise StatementError(msg)
    if _is_word(tokens[0], "EXPLAIN", "DESCRIBE", "DESC"):
        at, explain = 1, "simple"
        while _is_word(tokens[at], "EXTENDED", "FORMATTED", "CODEGEN", "COST", "QUERY"):
            explain = word(tokens[at]).lower()
            at += 1
        if not _is_word(tokens[0], "EXPLAIN") or explain in ("codegen", "cost", "query"):
            msg = (
                f"{word(tokens[0])} {explain.upper()} does not know shed plans. "
                f"Use EXPLAIN, EXPLAIN EXTENDED or EXPLAIN FORMATTED."
            )
            raise StatementError(msg)
    kind, view, body_at = "query", None, at
    head = tokens[at]
    if _is_word(head, "CREATE", "CACHE", "BEGIN", "DECLARE", "ALTER", "DEFINE"):
        kind, view, body_at = _definition(text, tokens, partners, at)
    elif _is_word(head, "INSERT", "MERGE", "UPDATE", "DELETE", "FROM", "SET", "EXECUTE", "REPLACE"):
        kind = "command"
    body = Span(tokens[body_at].start, tokens[-1].end + 1)
    return Outline(text, kind, body, blocks, explain, view)


def _definition(
    text: str, tokens: list[Token], partners: dict[int, int], at: int
) -> tuple[str, ViewHead | None, int]:
    modifiers = set()
    here = at + 1
    while _is_word(tokens[here], *_MODIFIERS):
        modifiers.add(word(tokens[here]))
        here += 1
    what = word(tokens[here]) if _is_word(tokens[at], "CREATE") else word(tokens[at])
    if what == "TABLE":
        return "command", None, at
    if what != "VIEW":
        statement = word(tokens[at]) if what == word(tokens[at]) else f"{word(tokens[at])} {what}"
        msg = (
            f"a SHED hint cannot be used in {statement} statements. "
            f"Use a query, CREATE TEMP VIEW … AS, CREATE TABLE … AS or INSERT … SELECT."
        )
        raise StatementError(msg)
    if not modifiers & {"TEMP", "TEMPORARY"}:
        msg = (
            "a permanent view cannot hold a SHED hint: Spark stores only the view's text, and a session "
            "without sparkshed would run it unshed. Use CREATE TEMP VIEW, or CREATE TABLE … AS."
        )
        raise StatementError(msg)
    return "temp view", *_view_head(text, tokens, partners, here + 1, modifiers)


def _view_head(
    text: str, tokens: list[Token], partners: dict[int, int], at: int, modifiers: set[str]
) -> tuple[ViewHead, int]:
    if _is_word(tokens[at], "IF"):
        msg = "CREATE TEMP VIEW IF NOT EXISTS is not allowed by Spark. Use CREATE OR REPLACE TEMP VIEW."
        raise StatementError(msg)
    name = tokens[at].text
    if tokens[at + 1].token_type == TokenType.DOT:
        msg = f"a temp view belongs to no database, but `{name}.` was found before its name. Leave it out."
        raise StatementError(msg)
    columns: list[tuple[str, str | None]] = []
    at += 1
    while at < len(tokens) and not _is_word(tokens[at], "AS"):
        if tokens[at].token_type == TokenType.L_PAREN and not columns:
            for inner in range(at + 1, partners[at]):
                previous = tokens[inner - 1]
                if inner == at + 1 or previous.token_type == TokenType.COMMA:
                    columns.append((tokens[inner].text, None))
                elif _is_word(previous, "COMMENT"):
                    columns[-1] = (columns[-1][0], tokens[inner].text)
        at = partners.get(at, at) + 1 if tokens[at].token_type in _OPEN else at + 1
    if at >= len(tokens):
        msg = "CREATE TEMP VIEW with a SHED hint needs AS and a query."
        raise StatementError(msg)
    head = ViewHead(name, "REPLACE" in modifiers, "GLOBAL" in modifiers, tuple(columns))
    return head, at + 1
