"""Measures of two vectors, for many pairs at once, with every rounding where Spark has it.

Spark sums the `vector_*` functions in doubles and in blocks of eight: the terms of a block are added
from left to right, then the block to the sum; the last, incomplete block is added term by term. Sums
over arrays of doubles are plain left-to-right sums.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from sparkshed.engine.arrays import AnyArray, Bools, Ints, Vector, both_valid
from sparkshed.engine.errors import EvaluationError
from sparkshed.engine.lists import Doubles, Lists
from sparkshed.engine.partials import distinct

_UNROLLED = 8
#: Pairs are worked on in blocks with about this many elements, so that temporaries stay in cache.
_BLOCK = 1 << 16
_LEAST_PAIRS = 256
_FLOATS = ("inner_product", "cosine_similarity", "l2_distance")


def measure(op: str, left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Vector:
    """A measure of :data:`sparkshed.sql.expr.COLLECTIVE` for each pair of rows."""
    valid = both_valid(_flags(left.valid, left_rows), _flags(right.valid, right_rows))
    lengths = _lengths(left, left_rows)
    others = _lengths(right, right_rows)
    matched = lengths == others
    if not matched.all():
        if op in _FLOATS:
            _refuse_mismatch(op, lengths, others, matched, valid)
        valid = both_valid(valid, matched)
    for side, rows in ((left, left_rows), (right, right_rows)):
        if side.holes is not None:
            valid = both_valid(valid, ~side.holes.take(rows))
    alive = None if valid is None else np.flatnonzero(valid)
    if alive is not None:
        left_rows, right_rows = left_rows.take(alive), right_rows.take(alive)
    with np.errstate(all="ignore"):
        found = _measure(op, left, left_rows, right, right_rows)
    return found if alive is None else _spread(found, alive, len(lengths))


def _flags(flags: Bools | None, rows: Ints) -> Bools | None:
    return None if flags is None else flags.take(rows)


def _lengths(lists: Lists, rows: Ints) -> Ints:
    return lists.offsets.take(rows + 1) - lists.offsets.take(rows)


def _refuse_mismatch(op: str, lengths: Ints, others: Ints, matched: Bools, valid: Bools | None) -> None:
    """Fail on the first pair of arrays, neither NULL, whose lengths differ."""
    wrong = np.flatnonzero(~matched if valid is None else valid & ~matched)
    if len(wrong):
        msg = (
            f"[VECTOR_DIMENSION_MISMATCH] Vectors passed to `vector_{op}` must have the same dimension, "
            f"but got {lengths[wrong[0]]} and {others[wrong[0]]}."
        )
        raise EvaluationError(msg)


def _spread(found: Vector, alive: Ints, size: int) -> Vector:
    """Results of the pairs that are not NULL among those that are."""
    values = np.zeros(size, found.values.dtype)
    valid = np.zeros(size, np.bool_)
    values[alive] = found.values
    valid[alive] = True if found.valid is None else found.valid
    return Vector(values, valid)


def _measure(op: str, left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Vector:
    sums = _sums(op, left, left_rows, right, right_rows)
    if op not in _FLOATS:
        return Vector(sums, None)
    valid: Bools | None = None
    if op == "l2_distance":
        sums = np.sqrt(sums)
    elif op == "cosine_similarity":
        norms = np.sqrt(_norms(left, left_rows) * _norms(right, right_rows))
        valid = norms != 0.0
        sums = sums / norms
        valid = None if valid.all() else valid
    return Vector(sums.astype(np.float32), valid)


def _norms(lists: Lists, rows: Ints) -> Doubles:
    """Sums of squares, once per distinct row."""
    if not len(rows):
        return np.zeros(0)
    rows, of = distinct(rows)
    norms = squared_norms(lists, rows)
    return norms if of is None else norms.take(of)


def squared_norms(lists: Lists, rows: Ints) -> Doubles:
    """The sum of squares that cosine similarity divides by, for each row."""
    return _sums("inner_product", lists, rows, lists, rows)


def _sums(op: str, left: Lists, left_rows: Ints, right: Lists, right_rows: Ints) -> Doubles:
    """Sums of products, or of squared differences; lists of a pair are equally long."""
    sums = np.zeros(len(left_rows))
    add = _add_unrolled if op in _FLOATS else _add
    squares = left is right and left_rows is right_rows
    for pairs, length in _groups(_lengths(left, left_rows)):
        xs, ys = left_rows.take(pairs), right_rows.take(pairs)
        step = max(_LEAST_PAIRS, _BLOCK // length)
        for begin in range(0, len(pairs), step):
            block = slice(begin, begin + step)
            terms = _gather(left, xs[block], length)
            other = terms if squares else _gather(right, ys[block], length)
            if op in ("l2_distance", "squared_distance"):
                terms -= other
                terms *= terms
            else:
                terms *= other
            sums[pairs[block]] = add(terms)
    return sums


def _groups(lengths: Ints) -> Iterator[tuple[Ints, int]]:
    """Pairs of equal length, except those of length 0, whose sum is 0."""
    if not len(lengths):
        return
    if lengths.min() == lengths.max():
        if lengths[0]:
            yield np.arange(len(lengths)), int(lengths[0])
        return
    order = lengths.argsort(kind="stable")
    found, starts = np.unique(lengths.take(order), return_index=True)
    for length, pairs in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if length:
            yield pairs, length


def _gather(lists: Lists, rows: Ints, length: int) -> Doubles:
    """Elements as doubles, one line per position: vector operations then run along the pairs."""
    rows_of: AnyArray = sliding_window_view(lists.values, length)[lists.offsets.take(rows)]
    return rows_of.T.astype(np.float64, order="C")


def _add(terms: Doubles) -> Doubles:
    """Sum over the positions from left to right.

    A loop, because numpy's own sum may add in another order.
    """
    sums = np.zeros(terms.shape[1])
    for term in terms:
        sums += term
    return sums


def _add_unrolled(terms: Doubles) -> Doubles:
    """Sum over the positions in blocks of eight."""
    length, size = terms.shape
    whole = length // _UNROLLED
    blocks = terms[: whole * _UNROLLED].reshape(whole, _UNROLLED, size)
    partial = blocks[:, 0].copy()
    for i in range(1, _UNROLLED):
        partial += blocks[:, i]
    sums = _add(partial)
    for term in terms[whole * _UNROLLED :]:
        sums += term
    return sums
