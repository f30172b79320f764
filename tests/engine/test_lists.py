"""Arrays and maps as lists of numbers, against Python sets, dicts and lists."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sparkshed.engine.codes import Codebook
from sparkshed.engine.lists import Lists
from sparkshed.engine.store import RowStore
from sparkshed.planner.physical import StreamExec
from sparkshed.sql.types import element_of, entry_of

NAN = math.nan
ARRAYS = {
    "array<string>": pa.list_(pa.string()),
    "array<bigint>": pa.large_list(pa.int64()),
    "array<double>": pa.list_(pa.float64()),
    "array<float>": pa.list_view(pa.float32()),
    "array<boolean>": pa.list_(pa.bool_()),
    "array<array<int>>": pa.list_(pa.list_(pa.int32())),
}
ELEMENTS: dict[str, list[Any]] = {
    "array<string>": ["", "a", "ä", None],
    "array<bigint>": [-1, 0, 1 << 60, None],
    "array<double>": [0.0, -0.0, NAN, 1.5, None],
    "array<float>": [0.0, -0.0, NAN, 1.5, None],
    "array<boolean>": [True, False, None],
    "array<array<int>>": [[], [1], [None], None],
}


def new_store(type_: str, codebook: Codebook | None = None) -> RowStore:
    stream = StreamExec("s", ("ts", "x"), ("timestamp", type_), 0)
    return RowStore(stream, [1], Codebook() if codebook is None else codebook)


def append(store: RowStore, values: pa.Array | pa.ChunkedArray) -> None:
    times = pa.array(np.arange(len(values)), pa.timestamp("us", "UTC"))
    store.append(pa.table([times, values], names=["ts", "x"]))


def rows(lists: Lists, values: Any = None) -> list[Any]:
    values = lists.values if values is None else values
    bounds = lists.offsets.tolist()
    valid = [True] * (len(bounds) - 1) if lists.valid is None else lists.valid.tolist()
    cut = [values[a:b].tolist() for a, b in zip(bounds, bounds[1:], strict=False)]
    assert all(ok or not row for ok, row in zip(valid, cut, strict=True))
    return [row if ok else None for ok, row in zip(valid, cut, strict=True)]


def identity(value: Any) -> Any:
    """A stand-in that is equal where Spark calls values equal."""
    if isinstance(value, list):
        return tuple(map(identity, value))
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    return value


@given(data=st.data(), type_=st.sampled_from(sorted(ARRAYS)))
@settings(deadline=None)
def test_sets_are_the_distinct_elements(data: st.DataObject, type_: str) -> None:
    row = st.none() | st.lists(st.sampled_from(ELEMENTS[type_]), max_size=5)
    batches = data.draw(st.lists(st.lists(row, max_size=6), max_size=4))
    codebook = Codebook()
    stores = [new_store(type_, codebook), new_store(type_, codebook)]
    expected: list[list[Any]] = [[], []]
    names: dict[int, Any] = {}
    for number, batch in enumerate(batches):
        array = pa.array([[None], *batch], ARRAYS[type_]).slice(1)
        append(stores[number % 2], array)
        expected[number % 2] += batch
        for store, lists in zip(stores, expected, strict=True):
            found = rows(store.lists("sets", 1))
            assert [None if r is None else len(r) for r in found] == [
                None if r is None else len(set(map(identity, r))) for r in lists
            ]
            for codes, values in zip(found, lists, strict=True):
                assert codes is None or codes == sorted(set(codes))
                for value in values or []:
                    known = {code for code, name in names.items() if name == identity(value)}
                    if known:
                        assert known <= set(codes)
                if codes and len(codes) == 1:
                    assert names.setdefault(codes[0], identity(values[0])) == identity(values[0])
    sizes = {code for store in stores for r in rows(store.lists("sets", 1)) for code in r or []}
    assert sizes == set(range(len(sizes)))


def test_codes_of_a_column_mean_the_same_in_another() -> None:
    codebook = Codebook()
    left, right = new_store("array<double>", codebook), new_store("array<double>", codebook)
    append(left, pa.array([[1.0, NAN, None]]))
    append(right, pa.array([[None], [float("-nan")], [1.0], [-0.0], [0.0, 0.0]]))
    one, nan, null = rows(left.lists("sets", 1))[0]
    assert rows(right.lists("sets", 1)) == [[null], [nan], [one], [3], [3]]
    assert left.lists("sets", 1).values.dtype == np.int32
    assert len(codebook) == 4
    codebook.clear()
    assert len(codebook) == 0


def test_types_have_codes_of_their_own() -> None:
    codebook = Codebook()
    assert codebook.items(pa.array([7, 8]), "bigint").tolist() == [0, 1]
    assert codebook.items(pa.array(["x", None, "x"]), "string").tolist() == [0, 1, 0]
    assert codebook.items(pa.nulls(2), "void").tolist() == [0, 0]
    assert codebook.items(pa.array([8]), "bigint").tolist() == [1]


PAIRS = st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(width=32), max_size=4)


@given(st.lists(st.lists(st.none() | PAIRS, max_size=5), max_size=4))
@settings(deadline=None)
def test_maps_keep_their_order(batches: list[list[dict[str, float | None] | None]]) -> None:
    store = new_store("map<string,double>")
    names: dict[int, str] = {}
    expected: list[dict[str, float | None] | None] = []
    for batch in batches:
        items = [None if m is None else list(m.items()) for m in batch]
        append(store, pa.array([[("z", 0.0)], *items], pa.map_(pa.string(), pa.float64())).slice(1))
        expected += batch
        lists = store.lists("maps", 1)
        for codes, weights, entry in zip(rows(lists), rows(lists, lists.weights), expected, strict=True):
            if entry is None:
                assert codes is None
                continue
            present = {k: v for k, v in entry.items() if v is not None}
            assert list(map(repr, weights)) == [repr(v) for v in present.values()]
            for code, key in zip(codes, present, strict=True):
                assert names.setdefault(code, key) == key


def test_entries_below_a_null_map_do_not_count() -> None:
    whole = pa.MapArray.from_arrays(
        pa.array([0, 2, 4, 5], pa.int32()), pa.array(list("abcde")), pa.array([1.0, 2.0, 3.0, 4.0, 5.0])
    )
    entries = pa.StructArray.from_arrays(
        [whole.keys, whole.items], fields=[whole.type.key_field, whole.type.item_field]
    )
    bits = pa.py_buffer(b"\x05")
    array = pa.MapArray.from_buffers(whole.type, 3, [bits, whole.buffers()[1]], children=[entries])
    store = new_store("map<string,double>")
    append(store, array)
    append(store, array.slice(1))
    lists = store.lists("maps", 1)
    assert rows(lists, lists.weights) == [[1.0, 2.0], None, [5.0], None, [5.0]]


@pytest.mark.parametrize(("element", "dtype"), [("float", "float32"), ("double", "float64")])
def test_vectors(element: str, dtype: str) -> None:
    store = new_store(f"array<{element}>")
    assert store.lists("vectors", 1).values.dtype == dtype
    type_ = pa.list_(pa.float32() if element == "float" else pa.float64())
    append(store, pa.array([[1.0, 2.0]], type_))
    assert store.lists("vectors", 1).holes is None
    append(store, pa.chunked_array([pa.array([[], None], type_), pa.array([[0.5, None], [3.0]], type_)]))
    lists = store.lists("vectors", 1)
    assert lists.values.dtype == dtype
    assert rows(lists) == [[1.0, 2.0], [], None, [0.5, 0.0], [3.0]]
    assert np.diff(lists.offsets).tolist() == [2, 0, 0, 2, 1]
    assert lists.holes is not None and lists.holes.tolist() == [False, False, False, True, False]
    store.compact(np.array([3, 0]))
    assert rows(store.lists("vectors", 1)) == [[0.5, 0.0], [1.0, 2.0]]


def test_arrays_of_a_fixed_size() -> None:
    store = new_store("array<float>")
    append(store, pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)))
    assert rows(store.lists("vectors", 1)) == [[1.0, 2.0], None, [3.0, 4.0]]


def test_no_rows_and_only_empty_rows() -> None:
    store = new_store("array<string>")
    assert rows(store.lists("sets", 1)) == []
    append(store, pa.array([[], []], pa.list_(pa.string())))
    assert rows(store.lists("sets", 1)) == [[], []]
    append(store, pa.array([None, ["a"]], pa.list_(pa.string())))
    assert rows(store.lists("sets", 1)) == [[], [], None, [0]]


def test_nested_type_names() -> None:
    assert element_of("array<map<string,array<int>>>") == "map<string,array<int>>"
    assert entry_of("map<decimal(10,2),double>") == ("decimal(10,2)", "double")
    assert entry_of("map<array<struct<a:int,b:int>>, double>") == ("array<struct<a:int,b:int>>", "double")
    for wrong in ("int", "map<int,int>", "array"):
        with pytest.raises(ValueError, match="not an array"):
            element_of(wrong)
    with pytest.raises(ValueError, match="not a map"):
        entry_of("array<struct<a:int,b:int>>")
