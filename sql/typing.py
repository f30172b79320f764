"""Spark's types and values for pieces of conditions, asked for in as few queries as possible."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sparkshed.sql.catalog import Catalog
from sparkshed.sql.types import decimal_of, is_evaluated, is_numeric

#: Parts of nested types whose values are equal to Spark when their bytes are not, or never equal.
_NO_KEY = re.compile(r"float|double|map<|variant|collate|interval|void")


def is_key_type(type_: str) -> bool:
    """Whether the engine takes the same values of the type for equal as Spark does."""
    if is_evaluated(type_):
        return type_ != "void"
    nested = type_.startswith(("struct<", "array<"))
    return nested and _NO_KEY.search(type_) is None


class Typer:
    """Types of expressions over the block's relations, and values of constant ones."""

    def __init__(self, catalog: Catalog, with_: str, relations: str) -> None:
        """Take the catalogue, the WITH clause and the FROM list in which texts are meaningful."""
        self._catalog = catalog
        self._with = with_
        self._relations = relations
        self._types: dict[str, str] = {}
        self._values: dict[str, object] = {}

    def load(self, texts: Iterable[str]) -> None:
        """Learn the types of all texts in one query."""
        new = [text for text in dict.fromkeys(texts) if text not in self._types]
        if not new:
            return
        items = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(new))
        fields = self._catalog.schema(f"{self._with}SELECT {items} FROM {self._relations}")
        self._types.update((text, field.type) for text, field in zip(new, fields, strict=True))

    def type_of(self, text: str) -> str:
        """Spark's type of an expression."""
        self.load([text])
        return self._types[text]

    def load_constants(self, texts: Iterable[str]) -> None:
        """Learn the values of constant texts in one query."""
        new = [
            text
            for text in dict.fromkeys(texts)
            if text not in self._values and is_evaluated(self.type_of(text))
        ]
        if new:
            items = ", ".join(f"({text}) AS c{number}" for number, text in enumerate(new))
            self._values.update(zip(new, self._catalog.constants(f"SELECT {items}"), strict=True))

    def value_of(self, text: str) -> object:
        """Physical value of a constant expression."""
        self.load_constants([text])
        return self._values[text]

    def common_type(self, left: str, right: str) -> str | None:
        """Type in which Spark compares two texts; None when it is not one the engine compares in."""
        types = (self.type_of(left), self.type_of(right))
        if types[0] == types[1]:
            return types[0]
        if "void" in types:
            return types[0] if types[1] == "void" else types[1]
        if not all(map(is_numeric, types)):
            return None
        common = self.type_of(f"coalesce({left}, {right})")
        decimal = decimal_of(common)
        return None if decimal is not None and decimal[0] >= 38 else common
