"""Windows written down, so that a host can be restored: a manifest, and blobs of rows.

    manifest   token, sequence, decision, list of pieces
    pieces     (stream, basic window, part) ──▶ blob

A micro-batch adds one part to each basic window that it touched; whole windows go when they expire. A
window that was thinned out is written anew. Pieces are read when rows may probe their window.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from sparkshed.engine.arrays import INT64_MAX, Ints
from sparkshed.engine.holding import Holder
from sparkshed.engine.lazy import Unread
from sparkshed.engine.wire import from_blob, to_blob

#: Number of a basic window, of a stream, and of one of its parts.
PieceKey = tuple[int, int, int]
#: A window in more parts than this is written anew, in one.
_MOST_PARTS = 32
#: Micro-batches after which rows in memory are too old to be brought up to date.
_REMEMBERED = 16
#: In the place of a stream, in the key of the notes of a strategy.
_NOTES = -1


class Piece(NamedTuple):
    """Rows and bytes of a piece, and the time of its last row, if that was noted."""

    rows: int
    size: int
    last: int = INT64_MAX


Pieces = dict[PieceKey, Piece]


class Store(Protocol):
    """Where a host keeps what it must not forget."""

    def load(self) -> bytes | None:
        """The manifest, None before the first one."""

    def save(self, manifest: bytes) -> None:
        """Replace the manifest."""

    def get(self, key: PieceKey) -> bytes:
        """A piece."""

    def put(self, key: PieceKey, blob: bytes) -> None:
        """Add or replace a piece."""

    def remove(self, key: PieceKey) -> None:
        """Remove a piece."""


class MemoryStore:
    """A store in memory, for hosts that need not outlive their process; it counts what is read."""

    def __init__(self) -> None:
        """Hold nothing."""
        self.manifest: bytes | None = None
        self.pieces: dict[PieceKey, bytes] = {}
        self.reads = 0

    def load(self) -> bytes | None:
        """The manifest, None before the first one."""
        return self.manifest

    def save(self, manifest: bytes) -> None:
        """Replace the manifest."""
        self.manifest = manifest

    def get(self, key: PieceKey) -> bytes:
        """A piece."""
        self.reads += 1
        return self.pieces[key]

    def put(self, key: PieceKey, blob: bytes) -> None:
        """Add or replace a piece."""
        self.pieces[key] = blob

    def remove(self, key: PieceKey) -> None:
        """Remove a piece."""
        del self.pieces[key]


@dataclass(slots=True)
class Manifest:
    """What a host knows between micro-batches, besides its rows.

    Attributes:
        marks: Of the plan that wrote it.
        token: Changes with every micro-batch, so that nobody takes older rows in memory for these.
        former: The tokens before it, the last few.
        sequence: Micro-batches so far.
        watermark: Spark's last one, in microseconds.
        expired: The last one of the join, by which rows expired.
        seed: Of random choices.
        decision: The last decision of the driver, as it came.
        own: The configuration that the host chose for itself.
        adapted: What led to it, where a batch that is repeated must be shed alike.
        effort: What a row of each stream cost in the last batch, see :mod:`sparkshed.engine.pacing`.
        pieces: What each piece holds.
        thinned: Windows that were thinned out, by stream.
        next_part: Number of the next part; never used twice, so that a key says what is in its piece.
        notes: Where the notes of the strategy are, and their size.
    """

    marks: dict[str, str]
    token: str = ""
    former: list[str] = field(default_factory=list)
    sequence: int = 0
    watermark: int | None = None
    expired: int | None = None
    seed: int | None = None
    decision: dict[str, Any] | None = None
    own: dict[str, Any] | None = None
    adapted: dict[str, Any] | None = None
    effort: list[float] = field(default_factory=list)
    pieces: Pieces = field(default_factory=dict)
    thinned: list[list[int]] = field(default_factory=list)
    next_part: int = 0
    notes: list[int] | None = None

    @property
    def size(self) -> int:
        """Bytes of all pieces."""
        return sum(piece.size for piece in self.pieces.values()) + (self.notes[1] if self.notes else 0)

    def renew(self, token: str) -> None:
        """One more micro-batch."""
        self.former = [*self.former, self.token][-_REMEMBERED:]
        self.token = token
        self.sequence += 1

    def to_bytes(self) -> bytes:
        """As JSON."""
        data = {
            "marks": self.marks,
            "token": self.token,
            "former": self.former,
            "sequence": self.sequence,
            "watermark": self.watermark,
            "expired": self.expired,
            "seed": self.seed,
            "decision": self.decision,
            "own": self.own,
            "adapted": self.adapted,
            "effort": self.effort,
            "pieces": [[*key, *value] for key, value in self.pieces.items()],
            "thinned": self.thinned,
            "next_part": self.next_part,
            "notes": self.notes,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @staticmethod
    def from_bytes(blob: bytes) -> Manifest:
        """The manifest again."""
        data = json.loads(blob)
        # It was one number for all streams once.
        data["effort"] = data["effort"] if isinstance(data["effort"], list) else []
        data["pieces"] = {tuple(row[:3]): Piece(*row[3:]) for row in data["pieces"]}
        return Manifest(**data)


@dataclass(slots=True)
class Keeper:
    """Keeps the store in step with the windows of an operator, and counts what it reads."""

    store: Store
    manifest: Manifest
    clock: Callable[[], float]
    reads: int = 0
    read_bytes: int = 0
    read_seconds: float = 0.0

    def catch_up(self, operator: Holder, pieces: Pieces) -> None:
        """Tell an operator of what was written since, by others; nothing is read yet.

        Args:
            operator: With the rows of an earlier micro-batch, or none.
            pieces: The pieces of that batch.
        """
        now = self.manifest.pieces
        # Pieces go with their window. Where it is still there, it was written anew, or came back.
        gone = {(stream, window) for stream, window, _ in pieces.keys() - now.keys()}
        operator.drop(gone)
        for key in sorted(key for key in now if key not in pieces or key[:2] in gone):
            operator.leave(*key[:2], Unread(key, now[key].rows, now[key].last))
        for stream, numbers in enumerate(self.manifest.thinned):
            operator.held(stream)[1].thinned = set(numbers)

    def fetch(self, key: PieceKey) -> pa.Table:
        """The rows of a piece."""
        began = self.clock()
        blob = self.store.get(key)
        self.reads += 1
        self.read_bytes += len(blob)
        self.read_seconds += self.clock() - began
        return from_blob(blob)

    def add(self, operator: Holder, entered: Sequence[Ints]) -> None:
        """Write down the rows of a micro-batch.

        Args:
            operator: That has them in its windows.
            entered: The rows of each stream, in the order of their times.
        """
        for stream, rows in enumerate(entered):
            rows_store, windows = operator.held(stream)
            numbers = windows.numbers_of(rows_store.times.take(rows))
            for window in sorted(set(numbers.tolist()) - operator.thinner[stream]):
                self._append(operator, stream, window, rows[numbers == window])

    def note(self, operator: Holder) -> None:
        """Write anew what lost rows, and write down what the strategy knows of those that are left."""
        for stream, numbers in enumerate(operator.thinner):
            live = operator.held(stream)[1].numbers
            for window in sorted(numbers):
                self._forget(stream, window)
                if window in live:
                    self._put(stream, window, operator, operator.held(stream)[1].rows_of(window))
            numbers.clear()
        notes = operator.notes()
        if notes is not None:
            if self.manifest.notes is not None:
                self.store.remove((_NOTES, 0, self.manifest.notes[0]))
            self.manifest.notes = [self.manifest.next_part, len(notes)]
            self.store.put((_NOTES, 0, self.manifest.next_part), notes)
            self.manifest.next_part += 1

    def recall(self, operator: Holder) -> None:
        """Give a new operator all rows, and its strategy what was noted of them."""
        if self.manifest.notes is not None:
            notes = self.store.get((_NOTES, 0, self.manifest.notes[0]))
            self.reads += 1
            self.read_bytes += len(notes)
            operator.recall(notes)

    def _append(self, operator: Holder, stream: int, window: int, rows: Ints) -> None:
        if sum(key[:2] == (stream, window) for key in self.manifest.pieces) >= _MOST_PARTS:
            self._rewrite(operator, stream, window)
        else:
            self._put(stream, window, operator, rows)

    def _put(self, stream: int, window: int, operator: Holder, rows: Ints) -> None:
        key = (stream, window, self.manifest.next_part)
        self.manifest.next_part += 1
        own, _ = operator.held(stream)
        blob = to_blob(own.snapshot(rows))
        self.store.put(key, blob)
        self.manifest.pieces[key] = Piece(len(rows), len(blob), int(own.times[rows[-1]]))

    def _rewrite(self, operator: Holder, stream: int, window: int) -> None:
        operator.read(stream, window)
        self._forget(stream, window)
        self._put(stream, window, operator, operator.held(stream)[1].rows_of(window))

    def _forget(self, stream: int, window: int) -> None:
        for key in [key for key in self.manifest.pieces if key[:2] == (stream, window)]:
            self.store.remove(key)
            del self.manifest.pieces[key]

    def follow(self, operator: Holder, streams: int) -> None:
        """Remove what expired, and write anew what was thinned out."""
        known: list[set[int]] = [set() for _ in range(streams)]
        for stream, window, _ in self.manifest.pieces:
            known[stream].add(window)
        before = self.manifest.thinned or [[] for _ in range(streams)]
        for stream, written in enumerate(known):
            _, windows = operator.held(stream)
            live = windows.numbers
            for window in written - live:
                self._forget(stream, window)
            for window in sorted((windows.thinned - set(before[stream])) & live):
                self._rewrite(operator, stream, window)
        self.manifest.thinned = [sorted(operator.held(stream)[1].thinned) for stream in range(streams)]
