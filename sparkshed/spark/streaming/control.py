"""The way of decisions from the driver to the hosts: a stream whose offset is the decision.

Spark writes the offsets of each micro-batch into its log before the batch starts, so a batch that is
replayed follows the decision that it followed before.

    driver ──▶ decision.json ──▶ ControlReader (a process of its own) ──▶ one row for each host
    driver ◀── resumed.json ◀── what the log of an earlier run says

Both files are in a folder that only the user of the driver can read or write.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from sparkshed.engine.kinds import DECISION

SOURCE = "sparkshed_control"
#: Schema of everything that goes to the hosts.
PACKED = "host int, stream int, blob binary"

_DECISION, _RESUMED = "decision.json", "resumed.json"


class Channel:
    """The driver's end: a private folder."""

    def __init__(self) -> None:
        """Think of a name that nobody guesses; the folder is made when a query starts."""
        self.path = str(Path(tempfile.gettempdir()) / f"sparkshed-{secrets.token_hex(16)}")

    def open(self) -> None:
        """Make the folder, for this user only."""
        self.close()
        Path(self.path).mkdir(mode=0o700)

    def publish(self, offset: dict[str, Any]) -> None:
        """Hand a decision, with what is needed to go on from it, to the hosts."""
        _write(Path(self.path) / _DECISION, offset)

    def resumed(self) -> dict[str, Any] | None:
        """The decision that an earlier run left in Spark's log, once; None if there is none."""
        path = Path(self.path) / _RESUMED
        found = _read(path)
        path.unlink(missing_ok=True)
        return found

    def close(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self.path, ignore_errors=True)


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write a file for this user only, all of it at once."""
    draft = path.with_suffix(f".{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(data, file, separators=(",", ":"))
    draft.replace(path)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found


class ControlReader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    """The hosts' end; offsets are `{}` or `{"version": …, "decision": …, "routing": …, "remembered": …}`.

    There is a decision or routing or both: what hosts do, and what a router does.
    """

    def __init__(self, path: str, hosts: list[int]) -> None:
        """Take the folder and the keys of the hosts."""
        self._path = Path(path)
        self._hosts = hosts
        self._told = self._began = False

    def initialOffset(self) -> dict[str, Any]:
        """Nothing was decided."""
        return {}

    def prepareForTriggerAvailableNow(self) -> None:
        """New decisions may come while the rows that are there are joined."""

    def read(self, start: dict[str, Any]) -> tuple[Iterator[tuple[Any, ...]], dict[str, Any]]:
        """The newest decision, if it is newer than the last one."""
        if not self._told:
            self._tell(start)
        newest, last = self._newest(), start.get("version", 0)
        if newest is not None and newest["version"] == 0 and not self._began:
            # This run begins with a decision of its own, whatever the last one left.
            former = (start.get("decision") or {"version": 0})["version"]
            decision = {**newest["decision"], "version": former + 1}
            newest = {**newest, "version": last + 1, "decision": decision, "routing": start.get("routing")}
        if newest is None or newest["version"] <= last:
            return iter(()), start
        self._began = True
        return self._rows(newest), newest

    def readBetweenOffsets(self, start: dict[str, Any], end: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        """The decision of a micro-batch that is replayed."""
        return iter(()) if end.get("version", 0) <= start.get("version", 0) else self._rows(end)

    def commit(self, end: dict[str, Any]) -> None:
        """Nothing is kept."""

    def _rows(self, offset: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
        blob = json.dumps({"decision": offset["decision"], "routing": offset.get("routing")}).encode()
        return iter([(host, DECISION, blob) for host in self._hosts])

    def _newest(self) -> dict[str, Any] | None:
        self._check()
        return _read(self._path / _DECISION)

    def _tell(self, start: dict[str, Any]) -> None:
        """Let the driver know where the log says that an earlier run was."""
        self._told = True
        if start and self._path.is_dir():
            self._check()
            _write(self._path / _RESUMED, start)

    def _check(self) -> None:
        """Refuse a folder that others can write to."""
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return
        if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
            msg = (
                f"the folder {self._path}, by which the driver tells the join what to shed, belongs to "
                "somebody else or can be changed by others. Set TMPDIR to a folder that keeps permissions."
            )
            raise PermissionError(msg)


class ControlSource(DataSource):
    """The data source of decisions."""

    @classmethod
    def name(cls) -> str:
        """The name that it is registered by."""
        return SOURCE

    def schema(self) -> str | StructType:
        """That of everything that goes to the hosts."""
        return PACKED

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """The reader of the folder that the options name."""
        return ControlReader(self.options["path"], json.loads(self.options["hosts"]))
