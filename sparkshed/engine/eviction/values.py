"""How often values came lately, and how often for longer."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkshed.engine.arrays import Floats, Ints
from sparkshed.engine.eviction.keys import NOTHING, Keys

#: So many times the rows of the buffer are the values that are remembered at least, and at most.
_FEWEST, _MOST = 4, 8


class Values:
    """Arrivals of each value on each side of each link, of which the older ones count less, in several ways.

    Counts are brought up to date from time to time only: arrivals since then wait in a list.
    """

    def __init__(self, keys: Keys, decays: Floats, rows: int) -> None:
        """Start with no value; the buffer has room for so many rows."""
        self.keys = keys
        self._decays = decays
        self._rows = rows
        self.codes: list[dict[int, int]] = [{} for _ in keys.links]
        self._counts: list[Floats] = [np.zeros((2, len(decays), 64)) for _ in keys.links]
        self._waiting: list[list[Ints]] = [[] for _ in keys.links]

    def arrive(self, number: int, streams: Ints, keys: Ints, seq: int) -> Ints:
        """Rows arrive, the first of them with the given number; returns the codes of their values."""
        codes = self.codes[number]
        found = np.array([codes.setdefault(key, len(codes)) for key in keys.tolist()], np.int64)
        found[keys == NOTHING] = NOTHING
        known = np.flatnonzero(keys != NOTHING)
        sides = streams.take(known) == self.keys.links[number].streams[1]
        self._waiting[number].append(np.array([sides, found.take(known), seq + known]))
        return found

    def fold(self, seq: int, since: int) -> None:
        """Bring all counts up to date."""
        for number, waiting in enumerate(self._waiting):
            counts = self._counts[number]
            if counts.shape[2] < len(self.codes[number]):
                grown = np.zeros((2, len(self._decays), 2 * len(self.codes[number])))
                grown[:, :, : counts.shape[2]] = counts
                counts = self._counts[number] = grown
            counts *= np.exp(-self._decays * (seq - since))[:, None]
            if waiting:
                sides, codes, seqs = np.concatenate(waiting, axis=1)
                for kernel, decay in enumerate(self._decays):
                    np.add.at(counts[:, kernel], (sides, codes), np.exp(decay * (seqs - seq)))
                waiting.clear()

    def offered(self, streams: Ints, codes: list[Ints]) -> Floats:
        """How often the values of rows came in the streams that these are joined with by equality."""
        found: Floats = np.zeros((len(self._decays), len(streams)))
        for link, own, counts in zip(self.keys.links, codes, self._counts, strict=True):
            for side, stream in enumerate(link.streams):
                rows = np.flatnonzero((streams == stream) & (own != NOTHING) & (own < counts.shape[2]))
                found[:, rows] += counts[1 - side].take(own.take(rows), axis=1)
        return found

    def known(self, number: int, keys: Ints) -> Ints:
        """The codes of keys; `NOTHING` for those that never came."""
        get = self.codes[number].get
        return np.array([get(key, NOTHING) for key in keys.tolist()], np.int64)

    def trim(self, number: int, used: Ints) -> Ints | None:
        """Forget rare values if there are too many; returns the new codes of all, if they change."""
        codes, counts = self.codes[number], self._counts[number]
        if len(codes) <= _MOST * self._rows:
            return None
        total = counts[:, -1, : len(codes)].sum(axis=0)
        total[used[used != NOTHING]] = np.inf
        kept = np.sort(np.argsort(-total, kind="stable")[: max(_FEWEST * self._rows, len(used))])
        renamed = np.full(len(codes), NOTHING)
        renamed[kept] = np.arange(len(kept))
        self.codes[number] = {key: int(renamed[code]) for key, code in codes.items() if renamed[code] >= 0}
        self._counts[number] = np.ascontiguousarray(counts[:, :, kept])
        return renamed

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        sizes = [len(own) for own in self.codes]
        counts = [own[:, :, :size] for own, size in zip(self._counts, sizes, strict=True)]
        return {"codes": self.codes, "counts": counts, "waiting": self._waiting}

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.codes = [dict(own) for own in notes["codes"]]
        self._counts = [own.copy() for own in notes["counts"]]
        self._waiting = [list(own) for own in notes["waiting"]]
