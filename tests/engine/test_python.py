"""Calling Python predicates: what they get, what they may return, how they fail."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.python import PredicateFailedError, apply_predicate
from sparkshed.sql.expr import PythonPredicate


def given_to(*arrays: pa.Array) -> tuple[Any, ...]:
    """What a predicate receives for the arrays."""
    seen: list[tuple[Any, ...]] = []

    def keep(*arguments: Any) -> Any:
        seen.append(arguments)
        return np.ones(len(arguments[0]), bool)

    apply_predicate(PythonPredicate("keep", keep), arrays)
    return seen[0]


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (pa.array([True, False]), "bool"),
        (pa.array([1, 2], pa.int8()), "int8"),
        (pa.array([1, 2], pa.int16()), "int16"),
        (pa.array([1, 2], pa.int32()), "int32"),
        (pa.array([1, 2], pa.int64()), "int64"),
        (pa.array([1, 2], pa.float32()), "float32"),
        (pa.array([1, 2], pa.float64()), "float64"),
        (pa.array([1, 2], pa.timestamp("us", "Europe/Paris")), "datetime64[us]"),
        (pa.array([1, 2], pa.timestamp("ms")), "datetime64[us]"),
        (pa.array([1, 2], pa.date32()), "datetime64[D]"),
        (pa.array([1, 2], pa.duration("us")), "timedelta64[us]"),
    ],
)
def test_numbers_and_times_come_as_numpy(array: pa.Array, dtype: str) -> None:
    (values,) = given_to(array)
    assert values.dtype == np.dtype(dtype)
    assert not values.flags.writeable
    assert len(values) == 2


def test_times_are_what_they_were() -> None:
    day = datetime.date(2024, 3, 31)
    instant = datetime.datetime(2024, 3, 31, 1, 30, tzinfo=datetime.timezone.utc)
    dates, instants, local, lengths = given_to(
        pa.array([day]),
        pa.array([instant], pa.timestamp("us", "Europe/Paris")),
        pa.array([instant.replace(tzinfo=None)], pa.timestamp("us")),
        pa.array([datetime.timedelta(seconds=3)], pa.duration("us")),
    )
    assert dates[0] == np.datetime64("2024-03-31")
    assert instants[0] == local[0] == np.datetime64("2024-03-31T01:30")
    assert lengths[0] == np.timedelta64(3, "s")


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["a", "b"]),
        pa.array([b"a", b"b"]),
        pa.array([Decimal("1.5"), Decimal("2.5")]),
        pa.array([[1, None], []]),
        pa.array([{"u": 1}, {"u": None}]),
        pa.array([[("a", 1.0)], []], pa.map_(pa.string(), pa.float64())),
    ],
)
def test_everything_else_comes_as_arrow(array: pa.Array) -> None:
    (values,) = given_to(array)
    assert values.equals(array)


def test_instants_inside_other_values_are_in_utc() -> None:
    here = pa.timestamp("us", "Europe/Paris")
    (values, structs) = given_to(
        pa.array([[1]], pa.list_(here)), pa.array([{"m": [(1, 2)]}], pa.struct({"m": pa.map_(here, here)}))
    )
    utc = pa.timestamp("us", "UTC")
    assert values.type == pa.list_(utc)
    assert structs.type == pa.struct({"m": pa.map_(utc, utc)})


def test_rows_with_a_null_are_not_passed() -> None:
    seen = []

    def less(x: Any, y: Any) -> Any:
        seen.append((x.tolist(), y.tolist()))
        return x < y

    values, valid = apply_predicate(
        PythonPredicate("less", less), [pa.array([1, None, 3, 4]), pa.array([2.0, 2.0, None, 1.0])]
    )
    assert seen == [([1, 4], [2.0, 1.0])]
    assert values.tolist() == [True, False, False, False]
    assert valid is not None
    assert valid.tolist() == [True, False, False, True]


def test_it_is_not_called_without_rows() -> None:
    def never(x: Any) -> Any:
        raise AssertionError

    predicate = PythonPredicate("never", never)
    assert len(apply_predicate(predicate, [pa.array([], pa.int32())]).values) == 0
    values, valid = apply_predicate(predicate, [pa.array([None, None], pa.int32())])
    assert (values.tolist(), valid.tolist() if valid is not None else None) == ([False] * 2, [False] * 2)
    assert apply_predicate(predicate, [pa.nulls(2)]).values.tolist() == [False, False]


def test_it_may_return_null() -> None:
    answers = [pa.array([True, None]), pa.chunked_array([[True], [None]], pa.bool_())]
    for answer in answers:
        values, valid = apply_predicate(
            PythonPredicate("maybe", lambda x, answer=answer: answer), [pa.array([1, 2])]
        )
        assert values.tolist() == [True, False]
        assert valid is not None
        assert valid.tolist() == [True, False]
    values, valid = apply_predicate(
        PythonPredicate("maybe", lambda x: pa.array([True, None])), [pa.array([1, None, 2])]
    )
    assert valid is not None
    assert (values.tolist(), valid.tolist()) == ([True, False, False], [True, False, False])


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (None, "a value of type builtins.NoneType"),
        (True, "a value of type builtins.bool"),
        ([True, True], "a value of type builtins.list"),
        (np.bool_(True), "a value of type numpy.bool"),
        (np.array([1, 0]), r"a numpy array of type int64 and shape \(2,\)"),
        (np.array([True]), r"a numpy array of type bool and shape \(1,\)"),
        (np.array([[True], [True]]), r"a numpy array of type bool and shape \(2, 1\)"),
        (np.ma.masked_array([True, False], [True, False]), "a masked numpy array"),
        (pa.array([1, 0]), r"a pyarrow array of 2 int64 value\(s\)"),
        (pa.array([True]), r"a pyarrow array of 1 bool value\(s\)"),
    ],
)
def test_any_other_answer_is_an_error_with_its_name(answer: Any, found: str) -> None:
    predicate = PythonPredicate("near", lambda x: answer)
    with pytest.raises(PredicateFailedError, match=f"predicate `near` returned {found}"):
        apply_predicate(predicate, [pa.array([1, 2])])


def test_an_exception_is_an_error_with_its_name_and_message() -> None:
    def broken(x: Any) -> Any:
        msg = "colour"
        raise KeyError(msg)

    with pytest.raises(EvaluationError, match="predicate `near` failed: KeyError: 'colour'") as caught:
        apply_predicate(PythonPredicate("near", broken), [pa.array([1])])
    assert isinstance(caught.value.__cause__, KeyError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_nan_is_data_and_no_warning() -> None:
    values = pa.array([math.inf, math.nan, 1.0])
    answer = apply_predicate(PythonPredicate("near", lambda x, y: abs(x - y) < 1), [values, values])
    assert answer.values.tolist() == [False, False, True]


def test_wrong_number_of_arguments() -> None:
    with pytest.raises(PredicateFailedError, match="predicate `one` failed: TypeError: .*positional"):
        apply_predicate(PythonPredicate("one", lambda x: x > 0), [pa.array([1]), pa.array([2])])
