"""Cameras along a road: each sees the same objects pass, with a lag and some noise.

The value of stream i follows the clock,

    X_i(t) = ((D / eta) * (t + tau_i) + kappa_i * N(0, 1)) mod D

so rows of two streams match most often when they are `tau_i - tau_k` seconds apart. `kappa` sets
how sharp that is: 2 keeps the streams in step, 50 spreads a match over several seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sparkshed.workloads.streams import (
    EPOCH,
    TIMESTAMP,
    Floats,
    WindowForm,
    join_sql,
    stream_table,
    uniform_times,
)

__all__ = [
    "EPOCH",
    "SCHEMA",
    "CameraStream",
    "Cameras",
    "Phase",
    "aligned",
    "camera_phases",
    "camera_sql",
    "camera_streams",
    "camera_table",
    "nonaligned",
]

#: Schema of one camera's table.
SCHEMA = pa.schema([("ts", TIMESTAMP), ("x", pa.float64()), ("id", pa.int64())])

# The first three lags and deviations are the published ones; the others continue them, with all
# lags inside a 20 second window.
_TAU = (0.0, 5.0, 15.0, 10.0, 18.0, 8.0)
_KAPPA = (2.0, 2.0, 50.0, 50.0, 50.0, 50.0)


@dataclass(frozen=True, slots=True)
class Cameras:
    """Lags `tau` (seconds) and deviations `kappa` of a set of streams, one entry per stream."""

    tau: tuple[float, ...]
    kappa: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.tau) != len(self.kappa):
            msg = f"tau has {len(self.tau)} entries and kappa has {len(self.kappa)}; give one per stream"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class Phase:
    """A time in which nothing changes: its length, rows per second, and lags and deviations.

    `rate` is one number for all streams, or one for each; a stream with rate 0 is silent.
    """

    seconds: float
    rate: float | tuple[float, ...]
    cameras: Cameras

    @property
    def rates(self) -> tuple[float, ...]:
        """Rows per second of each stream.

        >>> Phase(5, 100, Cameras((0, 5), (2, 2))).rates
        (100, 100)
        """
        each = self.rate if isinstance(self.rate, tuple) else (self.rate,) * len(self.cameras.tau)
        if len(each) != len(self.cameras.tau) or min(each) < 0:
            msg = f"rate = {self.rate}: give one number, or one for each of {len(self.cameras.tau)} streams"
            raise ValueError(msg)
        return each


@dataclass(frozen=True, slots=True)
class CameraStream:
    """One generated stream: `t` in seconds from the start, ascending, and the value `x` in [0, D)."""

    t: Floats
    x: Floats


def _first(m: int) -> int:
    if not 2 <= m <= len(_TAU):
        msg = f"m = {m}: presets exist for 2 to {len(_TAU)} streams; for more, write Cameras(tau, kappa)"
        raise ValueError(msg)
    return m


def aligned(m: int = 3) -> Cameras:
    """Streams without lags.

    >>> aligned(3)
    Cameras(tau=(0.0, 0.0, 0.0), kappa=(2.0, 2.0, 50.0))
    """
    return Cameras((0.0,) * _first(m), _KAPPA[:m])


def nonaligned(m: int = 3) -> Cameras:
    """Streams with a lag each.

    >>> nonaligned(3)
    Cameras(tau=(0.0, 5.0, 15.0), kappa=(2.0, 2.0, 50.0))
    """
    return Cameras(_TAU[: _first(m)], _KAPPA[:m])


def camera_streams(
    rate: float,
    seconds: float,
    tau: Sequence[float] = (0, 5, 15),
    kappa: Sequence[float] = (2, 2, 50),
    D: float = 1000,
    eta: float = 50,
    seeds: Sequence[int] = (0, 1, 2),
) -> tuple[CameraStream, ...]:
    """Generate the streams. Equal arguments give equal streams.

    Args:
        rate: Rows per second of each stream.
        seconds: Length of the streams.
        tau: Lag of each stream, in seconds.
        kappa: Deviation of each stream, in units of the value.
        D: Size of the value domain.
        eta: Seconds in which the value runs once through its domain.
        seeds: Seed of each stream.

    Returns:
        One stream per entry of `tau`, each of `int(rate * seconds)` rows.

    Raises:
        ValueError: If `tau`, `kappa` and `seeds` differ in length, or a size is not positive.
    """
    if not len(tau) == len(kappa) == len(seeds):
        found = f"{len(tau)}, {len(kappa)} and {len(seeds)}"
        msg = f"tau, kappa and seeds need one entry per stream; found {found}"
        raise ValueError(msg)
    for name, value in (("D", D), ("eta", eta)):
        if not value > 0:
            msg = f"{name} = {value}: must be positive"
            raise ValueError(msg)
    streams = []
    for lag, deviation, seed in zip(tau, kappa, seeds, strict=True):
        rng = np.random.default_rng(seed)
        t = uniform_times(rng, rate, seconds)
        x = ((D / eta) * (t + lag) + deviation * rng.standard_normal(len(t))) % D
        streams.append(CameraStream(t, x))
    return tuple(streams)


def camera_phases(
    phases: Sequence[Phase],
    D: float = 1000,
    eta: float = 50,
    seeds: Sequence[int] | None = None,
) -> tuple[CameraStream, ...]:
    """Generate streams whose rates or lags change. Equal arguments give equal streams.

    Args:
        phases: One after the other; all with the same number of streams.
        D: Size of the value domain.
        eta: Seconds in which the value runs once through its domain.
        seeds: Seed of each stream; their numbers by default.

    >>> still, moved = Cameras((0, 5), (2, 2)), Cameras((0, 15), (2, 2))
    >>> [len(s.t) for s in camera_phases([Phase(2, 10, still), Phase(2, (5, 0), moved)])]
    [30, 20]
    """
    count = len(phases[0].cameras.tau)
    if any(len(phase.cameras.tau) != count for phase in phases):
        msg = "all phases need the same number of streams"
        raise ValueError(msg)
    streams = []
    for number, seed in enumerate(range(count) if seeds is None else seeds):
        rng = np.random.default_rng(seed)
        t, x, start = [np.empty(0)], [np.empty(0)], 0.0
        for phase in phases:
            rows, cameras = int(phase.rates[number] * phase.seconds), phase.cameras
            own = start + np.sort(rng.uniform(0, phase.seconds, rows))
            noise = cameras.kappa[number] * rng.standard_normal(rows)
            t.append(own)
            x.append(((D / eta) * (own + cameras.tau[number]) + noise) % D)
            start += phase.seconds
        streams.append(CameraStream(np.concatenate(t), np.concatenate(x)))
    return tuple(streams)


def camera_table(stream: CameraStream) -> pa.Table:
    """The stream as an Arrow table with columns `ts`, `x` and `id`; `id` counts rows from 0."""
    return stream_table(stream.t, "x", pa.array(stream.x))


def camera_sql(
    m: int = 3,
    window_seconds: float = 20,
    eps: float = 1,
    hint: str | None = None,
    form: WindowForm = "compact",
) -> str:
    """The m-way join over the views `cam1` to `cam<m>`: one window, all values pairwise within `eps`.

    Args:
        m: Number of streams, two or more.
        window_seconds: Length of the window that holds all rows of a result.
        eps: Largest difference between two values of a result.
        hint: What goes between `/*+` and `*/`; None leaves the hint out.
        form: How the window is written.

    >>> print(camera_sql(2, hint="SHED(exact)"))
    SELECT /*+ SHED(exact) */ c1.id AS id1, c2.id AS id2
    FROM cam1 c1
    JOIN cam2 c2 ON abs(c1.x - c2.x) <= 1
    WHERE greatest(c1.ts, c2.ts) <= least(c1.ts + INTERVAL 20 SECONDS, c2.ts + INTERVAL 20 SECONDS)
    """
    return join_sql("cam", m, lambda a, b: f"abs({a}.x - {b}.x) <= {eps:g}", window_seconds, hint, form=form)
