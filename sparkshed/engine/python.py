"""How a Python predicate is called: the one convention of the engine and of Spark's UDF.

The function gets one array for each argument, all of the same length, and gives back as many truth
values. Rows in which an argument is NULL are not passed; their answer is NULL.

============================  ==============================================
Spark type                    array
============================  ==============================================
boolean, integers, floats     numpy, of the same width
timestamp, timestamp_ntz      numpy `datetime64[us]`; a timestamp is in UTC
date                          numpy `datetime64[D]`
day-time interval             numpy `timedelta64[us]`
anything else                 pyarrow; timestamps inside are in UTC
============================  ==============================================

The numpy arrays are read-only. Floating-point warnings of numpy are off: NaN and infinities are data.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkshed.engine.arrays import AnyArray, Bools, Vector
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.wire import utc_type
from sparkshed.sql.expr import PythonPredicate


class PredicateFailedError(EvaluationError):
    """A Python predicate raised an exception, or returned something else than truth values."""


def apply_predicate(predicate: PythonPredicate, arrays: Sequence[pa.Array]) -> Vector:
    """Call the predicate on columns of one length; what stands at NULLs is False.

    Raises:
        PredicateFailedError: The function raised an exception or returned something it must not.
    """
    size = len(arrays[0])
    present = _present(arrays)
    if present is None:
        return _call(predicate, arrays, size)
    values, valid = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
    rows = np.flatnonzero(present)
    if len(rows):
        mask = pa.array(present)
        answer = _call(predicate, [array.filter(mask) for array in arrays], len(rows))
        values[rows] = answer.values
        valid[rows] = True if answer.valid is None else answer.valid
    return Vector(values, valid)


def _present(arrays: Sequence[pa.Array]) -> Bools | None:
    """Rows in which no argument is NULL; None when that is all of them."""
    present: Bools | None = None
    for array in arrays:
        if array.null_count:
            valid = array.is_valid().to_numpy(zero_copy_only=False)
            present = valid if present is None else present & valid
    return present


def _call(predicate: PythonPredicate, arrays: Sequence[pa.Array], size: int) -> Vector:
    if not size:
        return Vector(np.zeros(0, np.bool_), None)
    arguments = [argument(array) for array in arrays]
    try:
        with np.errstate(all="ignore"):
            answer = predicate.function(*arguments)
    except Exception as error:
        msg = f"predicate `{predicate.name}` failed: {type(error).__name__}: {error}"
        raise PredicateFailedError(msg) from error
    return _checked(predicate, answer, size)


def argument(array: pa.Array) -> AnyArray | pa.Array:
    """A column without NULLs as the function gets it."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    values = _as_numpy(array)
    if values is None:
        type_ = utc_type(array.type)
        return array if type_.equals(array.type) else array.cast(type_)
    values.flags.writeable = False
    return values


def _as_numpy(array: pa.Array) -> AnyArray | None:
    """The column in numpy, unless only Arrow has its type."""
    kinds, type_ = pa.types, array.type
    values: AnyArray
    if kinds.is_boolean(type_) or kinds.is_integer(type_) or kinds.is_floating(type_):
        values = array.to_numpy(zero_copy_only=False)
        return values
    if kinds.is_timestamp(type_):
        values = array.cast(pa.timestamp("us", type_.tz)).view(pa.int64()).to_numpy()
        return values.view("datetime64[us]")
    if kinds.is_duration(type_):
        values = array.cast(pa.duration("us")).view(pa.int64()).to_numpy()
        return values.view("timedelta64[us]")
    if kinds.is_date(type_):
        values = array.cast(pa.date32()).view(pa.int32()).to_numpy()
        return values.astype("datetime64[D]")
    return None


def _checked(predicate: PythonPredicate, answer: object, size: int) -> Vector:
    """The function's answer, if it is one truth value for each row."""
    if isinstance(answer, pa.ChunkedArray):
        answer = answer.combine_chunks()
    if isinstance(answer, pa.Array) and pa.types.is_boolean(answer.type) and len(answer) == size:
        valid = answer.is_valid().to_numpy(zero_copy_only=False) if answer.null_count else None
        filled = pc.fill_null(answer, False) if answer.null_count else answer
        return Vector(filled.to_numpy(zero_copy_only=False), valid)
    plain = isinstance(answer, np.ndarray) and not isinstance(answer, np.ma.MaskedArray)
    if plain and isinstance(answer, np.ndarray) and answer.dtype == np.bool_ and answer.shape == (size,):
        return Vector(answer, None)
    msg = (
        f"predicate `{predicate.name}` returned {_described(answer)}, but it must return a boolean numpy or "
        f"pyarrow array with one value for each of the {size} row(s) it was given. Compute with whole "
        f"arrays, for example np.hypot(ax - bx, ay - by) < 1."
    )
    raise PredicateFailedError(msg)


def _described(answer: object) -> str:
    if isinstance(answer, pa.Array):
        return f"a pyarrow array of {len(answer)} {answer.type} value(s)"
    if isinstance(answer, np.ma.MaskedArray):
        return "a masked numpy array"
    if isinstance(answer, np.ndarray):
        return f"a numpy array of type {answer.dtype} and shape {answer.shape}"
    return f"a value of type {type(answer).__module__}.{type(answer).__qualname__}"
