"""Computed values as Arrow arrays: what `decode` reads, `encode` writes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkshed.engine.arrays import Vector
from sparkshed.engine.codes import Codebook
from sparkshed.engine.encode import arrow_type, encode

CASES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [-1, 2],
    "smallint": [-1, 2],
    "int": [-1, 2],
    "bigint": [-(1 << 63), 2],
    "float": [0.5, -0.0],
    "double": [0.1, float("inf")],
    "date": [0, -3],
    "timestamp": [0, -3],
    "timestamp_ntz": [0, 10**15],
    "interval day to second": [0, -3],
    "decimal(10,2)": [Decimal("1.25"), Decimal("-0.01")],
    "decimal(38,3)": [Decimal("12345678901234567890123456789.125"), Decimal("-0.001")],
    "string": ["", "ä"],
    "binary": [b"", b"\xff\x00"],
}


def arrow(values: list[Any], type_: str) -> pa.Array:
    target = arrow_type(type_)
    if pa.types.is_temporal(target):
        return pa.array(values, pa.int32() if type_ == "date" else pa.int64()).view(target)
    return pa.array(values, target)


@pytest.mark.parametrize("type_", sorted(CASES))
@pytest.mark.parametrize("null", [False, True])
def test_round_trip(type_: str, null: bool) -> None:
    array = arrow([*CASES[type_], *[None] * null], type_)
    codebook = Codebook()
    again = encode(codebook.values(array, type_), type_, len(array), codebook)
    assert again.equals(array)


def test_constants_are_repeated() -> None:
    book = Codebook()
    assert encode(Vector(np.array([2]), None), "bigint", 3, book).to_pylist() == [2, 2, 2]
    assert encode(Vector(np.array([0.0]), np.array([False])), "double", 2, book).to_pylist() == [None, None]
    assert len(encode(Vector(np.array([2]), None), "bigint", 0, book)) == 0


def test_nested_values_are_refused() -> None:
    with pytest.raises(TypeError, match="pass the columns"):
        arrow_type("array<int>")
