"""Equality codes of all kinds of keys against the values themselves."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.build import lit
from sparkshed.engine import codes as codes_module
from sparkshed.engine.codes import Codebook
from sparkshed.engine.words import Words
from sparkshed.sql.expr import Call, Col

TEXT = st.sampled_from(["", "a", "ab", "\0", "ä", "a much longer word"])
MOMENTS = [datetime.datetime(2000, 1, 1, second=second) for second in (0, 1)]
BIG = Decimal(10) ** 30
LEAVES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int": (pa.int32(), st.integers(-2, 2)),
    "bigint": (pa.int64(), st.sampled_from([0, 1, -(1 << 63)])),
    "boolean": (pa.bool_(), st.booleans()),
    "string": (pa.string(), TEXT),
    "binary": (pa.binary(), st.sampled_from([b"", b"\xff", b"a"])),
    "double": (pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan])),
    "date": (pa.date32(), st.sampled_from([datetime.date(1970, 1, 1), datetime.date(2000, 1, 1)])),
    "timestamp_ntz": (pa.timestamp("us"), st.sampled_from(MOMENTS)),
    "decimal(10,2)": (pa.decimal128(10, 2), st.sampled_from([Decimal("0.25"), Decimal("-1")])),
    "decimal(38,2)": (pa.decimal128(38, 2), st.sampled_from([Decimal("0.25"), BIG, -BIG])),
}


@st.composite
def typed(draw: st.DrawFn, depth: int = 3) -> tuple[str, pa.DataType, st.SearchStrategy[Any]]:
    """A Spark type, its Arrow type, and values of it."""
    kind = draw(st.sampled_from(["leaf", "struct", "array"])) if depth else "leaf"
    if kind == "leaf":
        name = draw(st.sampled_from(sorted(LEAVES)))
        return name, *LEAVES[name]
    parts = [draw(typed(depth - 1)) for _ in range(1 if kind == "array" else draw(st.integers(1, 3)))]
    if kind == "array":
        ((name, arrow, values),) = parts
        arrays = [pa.list_(arrow), pa.large_list(arrow)]
        return f"array<{name}>", draw(st.sampled_from(arrays)), st.lists(st.none() | values, max_size=3)
    fields = [(f"f{i}", part) for i, part in enumerate(parts)]
    return (
        f"struct<{','.join(f'{name}:{part[0]}' for name, part in fields)}>",
        pa.struct([(name, part[1]) for name, part in fields]),
        st.fixed_dictionaries({name: st.none() | part[2] for name, part in fields}),
    )


def frozen(value: Any) -> Any:
    """Equal if and only if Spark calls the values equal; NULL is equal to NULL inside a value."""
    if isinstance(value, dict):
        return tuple(frozen(value[name]) for name in sorted(value))
    if isinstance(value, list):
        return ("list", *map(frozen, value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return None if value is None else (type(value).__name__, value)


@given(st.data(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_equal_codes_are_equal_values(data: st.DataObject, collide: bool) -> None:
    name, arrow, values = data.draw(typed())
    batch_of = st.lists(st.none() | values, min_size=1, max_size=6)
    batches = data.draw(st.lists(batch_of, min_size=1, max_size=3))
    codebook = Codebook()
    if collide:
        codebook._keys = Words(lambda offsets, data: np.zeros(len(offsets) - 1, np.uint64))
    seen: dict[int, Any] = {}
    known: dict[Any, int] = {}
    for batch in batches:
        # A slice shares the children of the whole.
        array = pa.array([batch[0], *batch, batch[-1]], arrow).slice(1, len(batch))
        codes, valid = codebook.encode(array, name)
        assert codes.dtype == np.int64
        present = [True] * len(batch) if valid is None else valid.tolist()
        assert present == [value is not None for value in batch]
        for code, value in zip(codes.tolist(), batch, strict=True):
            if value is not None:
                assert seen.setdefault(code, frozen(value)) == frozen(value)
                assert known.setdefault(frozen(value), code) == code


@given(st.data())
@settings(max_examples=100, deadline=None)
def test_items_are_dense(data: st.DataObject) -> None:
    name, arrow, values = data.draw(typed(1))
    codebook, known = Codebook(), dict[Any, int]()
    for batch in data.draw(st.lists(st.lists(st.none() | values, max_size=6), max_size=3)):
        expected = [known.setdefault(frozen(value), len(known)) for value in batch]
        found = codebook.items(pa.array(batch, arrow), name)
        assert found.dtype == np.int32 and found.tolist() == expected


def test_nested_null_rows_hide_their_children() -> None:
    children = [pa.array([1, 2, 2]), pa.array(["a", "b", "b"])]
    array = pa.StructArray.from_arrays(children, ["i", "s"], mask=pa.array([False, True, False]))
    codes, valid = Codebook().encode(array, "struct<i:bigint,s:string>")
    assert valid is not None and valid.tolist() == [True, False, True]
    assert codes[0] != codes[2]


def test_producers_of_nested_values_may_encode_differently() -> None:
    codebook, type_ = Codebook(), "struct<t:timestamp,s:string,c:time(6)>"
    moment, clock = datetime.datetime(2000, 1, 1), datetime.time(1, 2, 3)
    fields = {"t": pa.timestamp("us"), "s": pa.string(), "c": pa.time64("us")}
    plain = pa.array([{"t": moment, "s": "a", "c": clock}], pa.struct(list(fields.items())))
    parts = [
        pa.array([moment]).cast(pa.timestamp("ms")),
        pa.array(["a"]).dictionary_encode(),
        pa.array([clock], pa.time64("ns")),
    ]
    other = pa.StructArray.from_arrays(parts, ["t", "s", "c"])
    assert codebook.encode(plain, type_).values.tolist() == codebook.encode(other, type_).values.tolist()


def test_maps_are_no_keys() -> None:
    with pytest.raises(TypeError, match="cannot be compared"):
        Codebook().encode(pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())), "map<string,bigint>")


S = Col(0, 1, "string", "s")


def test_constants_keep_their_place_when_codes_are_forgotten() -> None:
    ordered = Call("<", (S, lit("m", "string")), "boolean")
    codebook = Codebook([ordered, Call("=", (S, lit("m", "string")), "boolean")])
    for words in (["z", "a"], ["b", "c", "y"]):
        column = codebook.values(pa.array(words), "string")
        below = codebook.ranked(column.values) < codebook.literal(lit("m", "string"))
        assert below.tolist() == [word < "m" for word in words]
        codebook.clear()
    assert len(codebook) == 1


def test_an_unknown_constant_is_an_error() -> None:
    """It would change the ranks of the words that are being compared."""
    with pytest.raises(KeyError):
        Codebook().literal(lit("m", "string"))


def test_words_are_sorted_only_for_conditions_that_need_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Words) -> None:
        raise AssertionError

    monkeypatch.setattr(codes_module.Words, "_sort", refuse)
    equal = Codebook([Call("=", (S, lit("m", "string")), "boolean")])
    column = equal.values(pa.array(["m", "a"]), "string")
    assert (equal.ranked(column.values) == equal.literal(lit("m", "string"))).tolist() == [True, False]
    less = Codebook([Call("not", (Call("<", (S, S), "boolean"),), "boolean")])
    with pytest.raises(AssertionError):
        less.ranked(less.values(pa.array(["m", "a"]), "string").values)
