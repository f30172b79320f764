"""Hosts with different amounts of CPU, memory and bandwidth, and what rows cost them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparkshed.engine.arrays import Floats

#: The ranges of the paper: million instructions per second, megabytes, megabits per second.
MIPS, MEMORY, BANDWIDTH = (1000.0, 5000.0), (500.0, 1000.0), (100.0, 1000.0)


@dataclass(frozen=True, slots=True)
class Costs:
    """What rows cost.

    Times are those of a host with `mips`, the mean one.

    Attributes:
        receive: Seconds that a row or partial result takes which comes from the network.
        send: Seconds of one that is sent.
        probe: Seconds of a probe of `window` rows; fewer or more rows take less or more in proportion.
        window: Rows of the mean window of the paper's scaling experiment, 30 s of 12.5 rows a second.
        row: Megabytes of a row in memory; the paper does not say.
        wire: Megabytes of a row on the network, likewise.
        partial: Megabytes of a partial result or a result, likewise.
        mips: Of the host for which times are meant.
        queue: Seconds of work that can wait at a host.
    """

    receive: float = 1e-3
    send: float = 1e-3
    probe: float = 10e-3
    window: float = 375.0
    row: float = 1.5
    wire: float = 0.25
    partial: float = 0.01
    mips: float = 3000.0
    queue: float = 20.0

    @property
    def comparison(self) -> float:
        """Seconds for each row that is probed."""
        return self.probe / self.window


@dataclass(frozen=True, slots=True)
class Hosts:
    """What hosts have.

    Attributes:
        cpu: Seconds of the mean host's work that each does in a second.
        memory: Megabytes.
        bandwidth: Megabytes in a second.
    """

    cpu: Floats
    memory: Floats
    bandwidth: Floats

    def __len__(self) -> int:
        return len(self.cpu)

    @staticmethod
    def drawn(count: int, rng: np.random.Generator, costs: Costs) -> Hosts:
        """Hosts from the ranges of the paper; more hosts are the same ones and others."""
        ranges = np.array([MIPS, MEMORY, BANDWIDTH])
        found = rng.uniform(ranges[:, 0], ranges[:, 1], (count, 3))
        return Hosts(found[:, 0] / costs.mips, found[:, 1], found[:, 2] / 8)

    @staticmethod
    def alike(count: int, cpu: float = 1.0, memory: float = 750.0, bandwidth: float = 125.0) -> Hosts:
        """Hosts that are all the same."""
        return Hosts(np.full(count, cpu), np.full(count, memory), np.full(count, bandwidth))
