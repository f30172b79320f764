"""How often values came lately and for longer, and how often they will come."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparkshed.engine.arrays import Bools, Floats, Ints
from sparkshed.engine.eviction.foretelling import Foretelling
from sparkshed.engine.eviction.keys import NOTHING

#: Arrivals after which one counts for 1/e, over the rows of the buffer; the last one never fades.
FADING = (0.1, 0.5, 2.0, 16.0, np.inf)
#: What is believed at first: how much arrivals of each age in the same stream, and in the others, foretell.
_OWN, _OTHERS = (0.0, 0.1, 0.1, 0.1, 0.3), (0.0, 0.1, 0.1, 0.1, 0.0)
#: The same for how long ago the last one was, in any stream: times as above, and what they foretell.
_SINCE, _LAST = (0.1, 0.5, 2.0), (0.1, 0.1, 0.1)
#: Arrivals that every value is taken to have anyway, while the buffer fills once.
_ANYWAY = 0.01
#: A value counts for learning by what is expected of it, which is taken to be so much at least.
_RARE = 3.0
_NEVER = -(1 << 60)
_KERNELS, _FEATURES = len(FADING), 1 + 2 * len(FADING) + len(_SINCE)
#: Of the values that did not come, a look learns from so many at least, and from less than twice as many.
_TEACHERS = 256
#: Looks of which each teaches; of the later ones every other does.
_EARLY = 32
#: So many times the rows of the buffer are the values that are remembered at least, and at most.
_FEWEST, _MOST = 4, 8


class Values:
    """The values of equal columns: arrivals of each in each stream, of which older ones count less.

    Counts are brought up to date at every look only. There, what came since the last one teaches how much the
    counts foretell: for each stream, least squares over the values, in which a value counts for less the more
    often it is expected. What comes between two looks is counted as it is.

    Attributes:
        rates: What is expected of each stream and value, while the buffer fills once.
        lasting: How often each value ever came in each stream, for as long as it takes to fill the buffer.
    """

    def __init__(self, streams: int, rows: int) -> None:
        """Start with no value.

        Args:
            streams: Streams of the class.
            rows: Rows that there is room for.
        """
        self._rows = rows
        self._streams = streams
        self._decays: Floats = 1 / (rows * np.array(FADING))
        self._forgetting: Floats = 1 / (rows * np.array(_SINCE))
        believed = np.array([_ANYWAY, *_OWN, *_OTHERS, *_LAST])
        self._foretelling = [Foretelling(believed) for _ in range(streams)]
        self.codes: dict[int, int] = {}
        self._counts: Floats = np.zeros((streams, len(FADING), 64))
        self._recent: Ints = np.zeros((streams, 64), np.int64)
        self._last: Ints = np.full(64, _NEVER)
        self._waiting: list[Ints] = []
        self._since = 0
        self._looks = 0
        self.rates: Floats = np.empty((streams, 0))
        self.lasting: Floats = self.rates
        self._seen: Floats = self.rates
        self._foretell()

    def arrive(self, places: Ints, keys: Ints, seq: int) -> tuple[Ints, Floats, Floats]:
        """Rows arrive before the next look, the first of them with the given number.

        Args:
            places: The places of their streams in the class; `NOTHING` if they do not belong to it.
            keys: Their keys.
            seq: The number of the first.

        Returns:
            The codes of their values, what is expected of each stream for each, and how often each ever came.
        """
        found = self._codes_of(keys)
        if len(self.codes) > self._recent.shape[1]:
            self._grow(1 << (len(self.codes) - 1).bit_length())
        known = np.flatnonzero(keys != NOTHING)
        if len(known) < len(keys):
            found[keys == NOTHING] = NOTHING
        own, sides = found.take(known), places.take(known)
        counts = self._recent.take(own, axis=1) + earlier(own, sides, self._streams)
        expected, lasting = np.zeros((2, self._streams, len(keys)))
        expected[:, known], lasting[:, known] = self._expected(own, counts), self._lasting(own, counts)
        np.add.at(self._recent, (sides, own), 1)
        self._waiting.append(np.array([sides, own, seq + known]))
        return found, expected, lasting

    def _codes_of(self, keys: Ints) -> Ints:
        """The codes of keys; new ones are numbered in their order."""
        codes, listed = self.codes, keys.tolist()
        found = list(map(codes.get, listed))
        if None in found:
            found = [codes.setdefault(key, len(codes)) for key in listed]
        return np.array(found, np.int64)

    def _expected(self, codes: Ints, counts: Ints) -> Floats:
        """What is expected of each stream for values that came so often in each since the last look."""
        expected = self._seen.take(codes, axis=1)
        for bumps, count in zip(self._bumps, counts, strict=True):
            # Not as one product of matrices, which may round by where a row stands.
            expected += bumps[:, None] * count
        return expected

    def _lasting(self, codes: Ints, counts: Ints) -> Floats:
        """How often values ever came that came so often in each stream since the last look."""
        lasting: Floats = self.lasting.take(codes, axis=1) + self._share * counts
        return lasting

    def risen(self) -> tuple[Ints, Floats, Floats]:
        """The same as of arrivals, of the values that came since the last look."""
        codes = np.flatnonzero(self._recent.any(axis=0)) if self._waiting else np.empty(0, np.int64)
        counts = self._recent.take(codes, axis=1)
        return codes, self._expected(codes, counts), self._lasting(codes, counts)

    def _grow(self, size: int) -> None:
        """The same size at a look wherever the input was cut before."""
        more = size - self._recent.shape[1]
        self._counts = np.pad(self._counts, ((0, 0), (0, 0), (0, more)))
        self._recent = np.pad(self._recent, ((0, 0), (0, more)))
        self._last = np.pad(self._last, (0, more), constant_values=_NEVER)
        self.lasting = np.pad(self.lasting, ((0, 0), (0, more)))
        self.rates = np.concatenate([self.rates, np.repeat(self._unseen, more, axis=1)], axis=1)
        seen = self._unseen + self._latest[:, None]
        self._seen = np.concatenate([self._seen, np.repeat(seen, more, axis=1)], axis=1)

    def look(self, seq: int) -> None:
        """Learn from what came since the last look, and bring all counts up to date."""
        size, length = len(self.codes), seq - self._since
        if not size or not length:
            return
        if self._since and (self._looks < _EARLY or self._looks % 2):
            self._learn(size, length)
        self._looks += 1
        self._counts *= np.exp(-self._decays * length)[:, None]
        sides, codes, seqs = np.concatenate(self._waiting, axis=1)
        faded = np.exp(self._decays[:, None] * (seqs - seq))
        for kernel, own in enumerate(faded):
            np.add.at(self._counts[:, kernel], (sides, codes), own)
        np.maximum.at(self._last, codes, seqs)
        self._waiting.clear()
        self._recent[:] = 0
        self._since = seq
        self._foretell()

    def _learn(self, size: int, length: int) -> None:
        """What values teach: all that came, and a part of the others, which stands for the rest."""
        step = max(1, size // _TEACHERS)
        teaches: Bools = np.asarray(self._recent[:, :size].any(axis=0))
        stands_for = np.where(teaches, 1.0, step)
        teaches[self._looks // 2 % step :: step] = True
        part = np.flatnonzero(teaches)
        scaled = self._counts.take(part, axis=2) * self._scales()[:, None]
        total = scaled.sum(axis=0)
        features = np.ones((_FEATURES, len(part)))
        features[1 + 2 * _KERNELS :] = self._recency(self._last.take(part))
        weights = stands_for.take(part) / (self.rates.take(part, axis=1) + _RARE)
        yields = weights * self._recent.take(part, axis=1) * self._rows
        for stream, foretelling in enumerate(self._foretelling):
            features[1 : 1 + _KERNELS] = scaled[stream]
            features[1 + _KERNELS : 1 + 2 * _KERNELS] = total - scaled[stream]
            foretelling.learn(features, weights[stream] * length, yields[stream])

    def _recency(self, last: Ints) -> Floats:
        return np.exp(self._forgetting[:, None] * np.maximum(last - self._since, _NEVER))

    def _scales(self) -> Floats:
        """From counts to arrivals while the buffer fills once."""
        return self._rows * np.where(self._decays > 0, self._decays, 1 / max(1, self._since))

    def _foretell(self) -> None:
        """What is expected of each stream, and how much one arrival more changes that."""
        scales = self._scales()
        weights = np.array([own.weights for own in self._foretelling])
        own, others, last = np.split(weights[:, 1:], [_KERNELS, 2 * _KERNELS], axis=1)
        own, others = own * scales, others * scales
        known = np.array([more @ counts for more, counts in zip(own - others, self._counts, strict=True)])
        counted = weights[:, :1] + others @ self._counts.sum(axis=0) + known
        self._unseen: Floats = weights[:, :1]
        self._latest: Floats = last.sum(axis=1)
        self.rates = counted + last @ self._recency(self._last)
        #: What one of all arrivals counts for; the buffer is taken to have filled once.
        self._share = self._rows / max(self._rows, self._since)
        self.lasting = self._share * self._counts[:, -1]
        #: What is expected of values that come again just now.
        self._seen = counted + self._latest[:, None]
        #: By the stream in which it comes, for each stream of which it is expected.
        self._bumps: Floats = np.repeat(others.sum(axis=1)[None, :], self._streams, axis=0)
        np.fill_diagonal(self._bumps, own.sum(axis=1))

    @property
    def is_crowded(self) -> bool:
        """Whether there are too many values."""
        return len(self.codes) > _MOST * self._rows

    def trim(self, used: Ints) -> Ints:
        """Forget rare values that no row has; returns the new codes of all."""
        size = len(self.codes)
        total = self._counts[:, -1, :size].sum(axis=0)
        total[used[used != NOTHING]] = np.inf
        kept = np.sort(np.argsort(-total, kind="stable")[: max(_FEWEST * self._rows, len(used))])
        renamed = np.full(size, NOTHING)
        renamed[kept] = np.arange(len(kept))
        self.codes = {key: int(renamed[code]) for key, code in self.codes.items() if renamed[code] >= 0}
        self._counts = np.ascontiguousarray(self._counts[:, :, kept])
        self._recent = np.ascontiguousarray(self._recent[:, kept])
        self._last = self._last[kept]
        self._foretell()
        return renamed

    def notes(self) -> dict[str, Any]:
        """What must be written down."""
        size = len(self.codes)
        return {
            "codes": self.codes,
            "counts": self._counts[:, :, :size],
            "recent": self._recent[:, :size],
            "last": self._last[:size],
            "size": self._recent.shape[1],
            "waiting": self._waiting,
            "since": (self._since, self._looks),
            "foretelling": [own.notes() for own in self._foretelling],
        }

    def recall(self, notes: dict[str, Any]) -> None:
        """Go on from there."""
        self.codes = dict(notes["codes"])
        self._counts, self._recent = notes["counts"].copy(), notes["recent"].copy()
        self._last, self._waiting = notes["last"].copy(), list(notes["waiting"])
        self._since, self._looks = notes["since"]
        for own, known in zip(self._foretelling, notes["foretelling"], strict=True):
            own.recall(known)
        self._foretell()
        self._grow(notes["size"])
        self._foretell()


def earlier(codes: Ints, sides: Ints, streams: int) -> Ints:
    """Rows of each stream with the same code, up to each row and itself.

    >>> earlier(np.array([7, 5, 7, 7]), np.array([0, 1, 1, 0]), 2).tolist()
    [[1, 0, 1, 2], [0, 1, 1, 1]]
    """
    order = codes.argsort(kind="stable")
    ordered = codes.take(order)
    counted = np.cumsum(sides.take(order) == np.arange(streams)[:, None], axis=1)
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    before = np.concatenate([np.zeros((streams, 1), np.int64), counted], axis=1).take(starts, axis=1)
    lengths = np.diff(starts, append=len(codes))
    found = np.empty_like(counted)
    found[:, order] = counted - np.repeat(before, lengths, axis=1)
    return found
