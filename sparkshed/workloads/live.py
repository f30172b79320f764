"""Cameras that see things now: a thread that writes files as time passes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sparkshed.workloads.cameras import SCHEMA, Cameras
from sparkshed.workloads.streams import Floats

_SECOND = 1_000_000
_DOMAIN, _PERIOD = 1000.0, 50.0


class LiveCameras:
    """Writes the rows of each camera, every few moments, into a folder of its own.

    What was written is remembered, so that the true answer can be found afterwards.
    """

    def __init__(
        self,
        folder: Path,
        cameras: Cameras,
        rate: Callable[[float], float],
        *,
        every: float = 0.5,
        seed: int = 1,
        remember: bool = True,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Write nothing yet.

        Args:
            folder: Camera n writes into the folder `camn` in it.
            cameras: Lags and deviations.
            rate: Rows per second of each camera, by the seconds since the start.
            every: Seconds between files.
            seed: Of times and values.
            remember: Whether the true answer will be asked for.
            clock: Seconds of the epoch.
        """
        self.folders = [folder / f"cam{number + 1}" for number, _ in enumerate(cameras.tau)]
        for own in self.folders:
            own.mkdir(parents=True)
        self.rows = 0
        self.times: list[list[np.ndarray]] = [[] for _ in cameras.tau]
        self.values: list[list[Floats]] = [[] for _ in cameras.tau]
        self._cameras = cameras
        self._rate = rate
        self._every = every
        self._clock = clock
        self._remember = remember
        self._generator = np.random.default_rng(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._written = 0

    def __enter__(self) -> LiveCameras:
        self.write(0.0, 0.0, 0.0)
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Write no more."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        began, last = self._clock(), 0.0
        while not self._stopped.wait(self._every):
            now = self._clock() - began
            self.write(began + last, began + now, self._rate(now))
            last = now

    def write(self, start: float, end: float, rate: float) -> None:
        """One file of each camera, with the rows of a stretch of time, in seconds of the epoch."""
        count = round(rate * (end - start))
        for number, folder in enumerate(self.folders):
            times = np.sort(self._generator.uniform(start, end, count))
            noise = self._generator.normal(0, self._cameras.kappa[number], count)
            values = (_DOMAIN / _PERIOD * (times + self._cameras.tau[number]) + noise) % _DOMAIN
            micros = (times * _SECOND).astype(np.int64)
            if self._remember:
                self.times[number].append(micros)
                self.values[number].append(values)
            ids = np.arange(self.rows, self.rows + count)
            columns = [pa.array(micros).cast(SCHEMA.field("ts").type), pa.array(values), pa.array(ids)]
            draft = folder / f"_{self._written:06}.parquet"
            pq.write_table(pa.table(columns, schema=SCHEMA), draft)
            os.rename(draft, folder / f"{self._written:06}.parquet")
        self._written += 1
        self.rows += count

    def true_results(
        self, window: float, distance: float, sample: int, rows: Sequence[int], seed: int = 0
    ) -> float:
        """Results of the join of the first rows that were written, from a sample of the first camera's.

        Args:
            window: Seconds that rows of a result may be apart.
            distance: How far apart their values may be.
            sample: Rows of the first camera that are looked at.
            rows: How many rows of each camera are joined.
            seed: Of the sample.
        """
        times = [np.concatenate(own)[:count] for own, count in zip(self.times, rows, strict=True)]
        values = [np.concatenate(own)[:count] for own, count in zip(self.values, rows, strict=True)]
        generator = np.random.default_rng(seed)
        chosen = generator.choice(len(times[0]), min(sample, len(times[0])), replace=False)
        reach = round(window * _SECOND)
        found = sum(self._matches(times, values, int(row), reach, distance) for row in chosen)
        return found * len(times[0]) / max(1, len(chosen))

    @staticmethod
    def _matches(times: list[np.ndarray], values: list[Floats], row: int, reach: int, distance: float) -> int:
        """Combinations of rows of the other cameras that match one row and each other."""
        at, value = times[0][row], values[0][row]
        near = []
        for own, seen in zip(times[1:], values[1:], strict=True):
            low, high = np.searchsorted(own, [at - reach, at + reach + 1])
            close = np.flatnonzero(np.abs(seen[low:high] - value) <= distance) + low
            near.append((own[close], seen[close]))
        if len(near) == 1:
            return len(near[0][0])
        (one_times, one), (other_times, other) = near
        together = np.abs(one_times[:, None] - other_times) <= reach
        return int((together & (np.abs(one[:, None] - other) <= distance)).sum())
