"""Spark's dialect for sqlglot, with `STREAM t`, `WATERMARK … DELAY OF …`, and text positions.

Nothing is generated back from the tree: whatever Spark has to run is cut from the user's own text.
Therefore every expression and relation remembers where it stands (see :func:`span_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from sparkshed.sql.errors import StatementError

#: Parser methods that return one expression or relation, whose extent is worth knowing.
_SPANNED = (
    "_parse_disjunction",
    "_parse_conjunction",
    "_parse_equality",
    "_parse_comparison",
    "_parse_range",
    "_parse_bitwise",
    "_parse_term",
    "_parse_factor",
    "_parse_unary",
    "_parse_type",
    "_parse_atom",
    "_parse_at_time_zone",
    "_parse_interval",
    "_parse_column",
    "_parse_function",
    "_parse_primary",
    "_parse_paren",
    "_parse_table",
)


def no_predicate(name: str) -> bool:
    """Where no Python predicates are known."""
    return False


class StreamSparkParser(SparkParser):
    """Spark's parser plus streaming relations; a join without ON stays without."""

    ADD_JOIN_ON_TRUE = False

    #: Whether a name is a Python predicate's, and not that of a function in some other dialect.
    is_predicate: Callable[[str], bool] = staticmethod(no_predicate)

    def _parse_function_call(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr and self.is_predicate(self._curr.text):
            kwargs["anonymous"] = True
        return super()._parse_function_call(*args, **kwargs)

    def _parse_table(self, *args: Any, **kwargs: Any) -> Any:
        if self._curr.text.upper() == "STREAM" and self._next:
            if self._next.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
                self._advance()
                return self._streaming(super()._parse_table(*args, **kwargs))
            if self._next.token_type == TokenType.L_PAREN:
                self._advance(2)
                table: Any = self._parse_table_parts()
                self._match_r_paren()
                alias = self._parse_table_alias()
                if alias:
                    table.set("alias", alias)
                return self._streaming(table)
        return super()._parse_table(*args, **kwargs)

    def _streaming(self, table: Any) -> Any:
        self._parse_watermark()
        table.meta["stream"] = True
        return table

    def _parse_table_alias(self, alias_tokens: Collection[TokenType] | None = None) -> Any:
        self._parse_watermark()
        return super()._parse_table_alias(alias_tokens)

    def _parse_watermark(self) -> None:
        """Consume `WATERMARK time DELAY OF interval`; Spark itself acts on it."""
        if self._curr.text.upper() != "WATERMARK" or not self._next:
            return
        if self._next.token_type not in (TokenType.VAR, TokenType.IDENTIFIER, *self.ID_VAR_TOKENS):
            return
        self._advance()
        self._parse_bitwise()
        if not self._match_text_seq("DELAY", "OF"):
            self.raise_error("Expected DELAY OF after WATERMARK")
        self._parse_interval()


def _spanned(name: str) -> Callable[..., Any]:
    inherited = getattr(StreamSparkParser, name)

    def parse(self: Any, *args: Any, **kwargs: Any) -> Any:
        first = self._index
        node = inherited(self, *args, **kwargs)
        if not isinstance(node, exp.Expr) or self._index == first:
            return node
        start, end = self._tokens[first].start, self._tokens[self._index - 1].end + 1
        if args and isinstance(args[0], exp.Expr):
            start = min(start, span_of(args[0])[0])
        known = node.meta.get("span", (start, end))
        node.meta["span"] = (min(start, known[0]), max(end, known[1]))
        return node

    parse.__name__ = name
    return parse


ShedSparkParser: type[SparkParser] = type(
    "ShedSparkParser",
    (StreamSparkParser,),
    {
        "__doc__": "The parser that also records the extent of what it parses.",
        **{name: _spanned(name) for name in _SPANNED},
    },
)


class ShedSpark(Spark):
    """The dialect sparkshed reads."""

    class Tokenizer(Spark.Tokenizer):
        """Reads EXPLAIN and the like token by token, and a hint as one wherever it stands."""

        COMMANDS: ClassVar[set[TokenType]] = set()
        TOKENS_PRECEDING_HINT: ClassVar[set[TokenType]] = set(TokenType)

    Parser = ShedSparkParser


def tokenize(text: str) -> list[Token]:
    """Tokens of a statement with their positions."""
    try:
        return ShedSpark().tokenize(text)
    except TokenError as error:
        msg = f"the statement cannot be read: {error}. A string, a quoted name or a comment may be left open."
        raise StatementError(msg) from error


def parse_fragment(text: str, is_predicate: Callable[[str], bool] = no_predicate) -> exp.Select:
    """Parse a `SELECT … FROM … WHERE …` fragment."""
    dialect = ShedSpark()
    parser: Any = dialect.parser()
    parser.is_predicate = is_predicate
    try:
        trees = parser.parse(dialect.tokenize(text), text)
    except (ParseError, TokenError) as error:
        detail = error.errors[0]["description"] if isinstance(error, ParseError) and error.errors else error
        msg = f"the join block of the hinted SELECT cannot be read: {detail}. In: {text}"
        raise StatementError(msg) from error
    tree = trees[0] if trees else None
    if not isinstance(tree, exp.Select):
        msg = f"the join block of the hinted SELECT cannot be read: {text}"
        raise StatementError(msg)
    return tree


def span_of(node: exp.Expr) -> tuple[int, int]:
    """Where the node stands in the parsed text: from its first to after its last character."""
    span = node.meta.get("span")
    if span is not None:
        return (span[0], span[1])
    spans = [span_of(child) for child in node.iter_expressions()]
    if not spans:
        own = node.meta
        if "start" in own:
            return (own["start"], own["end"] + 1)
        msg = f"no position is known for {node.sql()}"
        raise StatementError(msg)
    return (min(start for start, _ in spans), max(end for _, end in spans))
