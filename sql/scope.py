"""Relations of a join block and whose column a name is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparkshed.sql.catalog import Field
from sparkshed.sql.dialect import no_predicate, parse_fragment, span_of
from sparkshed.sql.errors import JoinError


@dataclass(frozen=True, slots=True)
class Relation:
    """One relation of the FROM clause: its text, the name it goes by, its columns from Spark.

    `source` is the text without the alias, the same for relations that differ in nothing else.
    """

    name: str
    text: str
    source: str
    qualifier: tuple[str, ...]
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Reference:
    """A resolved column: relation number, its field, and struct fields below it."""

    relation: int
    field: Field
    nested: tuple[str, ...] = ()


def quoted(name: str) -> str:
    """The name in backquotes.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


class Scope:
    """Resolves names the way Spark does: a qualifier first, then a column and its fields."""

    def __init__(self, relations: Sequence[Relation], *, case_sensitive: bool) -> None:
        """Take the relations of one join block, in order."""
        self.relations = tuple(relations)
        self.fold: Callable[[str], str] = (lambda name: name) if case_sensitive else str.lower
        self.using: dict[str, int] = {}
        self.using_of_join: dict[int, tuple[str, ...]] = {}
        seen: set[str] = set()
        for relation in self.relations:
            name = self.fold(relation.name)
            if name in seen:
                msg = (
                    f"two relations are named `{relation.name}`. "
                    f"Give each its own alias: {relation.name} AS {relation.name}_2."
                )
                raise JoinError(msg)
            seen.add(name)
            names = [self.fold(field.name) for field in relation.fields]
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice is not None:
                msg = (
                    f"relation `{relation.name}` has two columns named `{twice}`. "
                    f"Name them apart in a sub-query."
                )
                raise JoinError(msg)

    def same(self, left: str, right: str) -> bool:
        """Whether two names are the same to Spark."""
        return bool(self.fold(left) == self.fold(right))

    def field(self, relation: int, name: str) -> Field | None:
        """The relation's column of that name."""
        return next((f for f in self.relations[relation].fields if self.same(f.name, name)), None)

    def add_using(self, names: Sequence[str], right: int) -> list[tuple[str, str]]:
        """Columns of `JOIN … USING`: pairs of qualified names that must be equal."""
        pairs = []
        self.using_of_join[right] = tuple(names)
        for name in names:
            left = self.using.get(self.fold(name))
            if left is None:
                left = next((r for r in range(right) if self.field(r, name)), None)
            if left is None or self.field(right, name) is None:
                msg = f"USING column `{name}` is not on both sides of the join."
                raise JoinError(msg)
            self.using[self.fold(name)] = left
            pairs.append((self.qualified(left, name), self.qualified(right, name)))
        return pairs

    def natural_columns(self, right: int) -> list[str]:
        """Columns that relation `right` shares with those before it, in the order of these."""
        return [field.name for _, field in self.star(right) if self.field(right, field.name)]

    def qualified(self, relation: int, name: str) -> str:
        """A column's name with its relation's, quoted."""
        field = self.field(relation, name)
        return f"{quoted(self.relations[relation].name)}.{quoted(field.name if field else name)}"

    def star(self, relations: int | None = None) -> list[tuple[int, Field]]:
        """What `*` over the first relations, by default all, stands for.

        At every join its USING columns come first, then the rest of both sides.
        """
        columns = [(0, field) for field in self.relations[0].fields]
        for number in range(1, len(self.relations) if relations is None else relations):
            using = self.using_of_join.get(number, ())

            def is_key(field: Field, using: tuple[str, ...] = using) -> bool:
                return any(self.same(field.name, name) for name in using)

            keys = []
            for name in using:
                owner = self.using[self.fold(name)]
                keys.append(next(c for c in columns if c[0] == owner and self.same(c[1].name, name)))
            right = [(number, field) for field in self.relations[number].fields if not is_key(field)]
            columns = keys + [c for c in columns if c not in keys] + right
        return columns

    def relation_star(self, number: int) -> list[Field]:
        """What `relation.*` stands for: the columns that USING hid first, then those that `*` shows."""
        hidden = [self.field(number, name) for name in self.using_of_join.get(number, ())]
        shown = [field for owner, field in self.star() if owner == number]
        return [field for field in hidden if field is not None] + shown

    def resolve(self, parts: Sequence[str], visible: Collection[int]) -> Reference | None:
        """Whose column `parts` is among the visible relations; None when unknown or ambiguous."""
        for length in range(min(len(parts) - 1, 3), 0, -1):
            found = []
            for number in visible:
                qualifier = self.relations[number].qualifier[-length:]
                if len(qualifier) == length and all(map(self.same, qualifier, parts)):
                    field = self.field(number, parts[length])
                    if field:
                        found.append(Reference(number, field, tuple(parts[length + 1 :])))
            if found:
                return found[0] if len(found) == 1 else None
        using = self.using.get(self.fold(parts[0]))
        if using is not None and using in visible:
            field = self.field(using, parts[0])
            return Reference(using, field, tuple(parts[1:])) if field else None
        matches = [(number, field) for number in visible if (field := self.field(number, parts[0]))]
        if len(matches) != 1:
            return None
        return Reference(matches[0][0], matches[0][1], tuple(parts[1:]))


class Fragment:
    """A parsed piece of SQL and the means to cut text from it."""

    def __init__(self, text: str, is_predicate: Callable[[str], bool] = no_predicate) -> None:
        """Parse `SELECT … FROM … WHERE …`; `is_predicate` tells the names of Python predicates."""
        self.text = text
        self.tree = parse_fragment(text, is_predicate)

    def cut(self, node: exp.Expr) -> str:
        """The node's own text."""
        start, end = span_of(node)
        return self.text[start:end]


def column_parts(column: exp.Column) -> list[str]:
    """Name parts of a column reference, outermost first."""
    return [part.name for part in column.parts]


def columns_in(
    node: exp.Expr, fold: Callable[[str], str], bound: frozenset[str] = frozenset()
) -> Iterator[exp.Column]:
    """Column references in the node, sub-queries and variables of lambda functions left out.

    The parser knows a variable only where it is spelled the same; `fold` tells what is the same to Spark.
    """
    if isinstance(node, exp.Column):
        if fold(node.parts[0].name) not in bound:
            yield node
        return
    if isinstance(node, (exp.Select, exp.SetOperation)):
        return
    if isinstance(node, exp.Lambda):
        bound |= {fold(variable.name) for variable in node.expressions}
    for child in node.iter_expressions():
        yield from columns_in(child, fold, bound)
