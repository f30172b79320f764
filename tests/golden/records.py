"""Reading and writing of golden files.

A file is a list of records. A record has a name, settings if it needs any, what to do, the SQL and,
below a line of dashes, what must come out:

    # missing bound
    set spark.sql.session.timeZone Europe/Paris
    error
    SELECT /*+ SHED(exact) */ 1 FROM a JOIN b ON a.k = b.k
    ----
    BoundError: no time bound links `a` and `b`. …

`equal` runs the SQL with the hint and without it, and both must give the same rows; the number of
rows is recorded. `error` must fail with the message. `plan simple|extended|formatted` compares the
text of EXPLAIN. Statements of one record are separated by a line with nothing but a semicolon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_START = re.compile(r"^# (?P<name>.+)\n(?=(?:set \S+ .+\n)*(?:equal|error|plan \w+)$)", re.MULTILINE)
_SETTING = re.compile(r"set (\S+) (.+)\n")


@dataclass(frozen=True)
class Record:
    """One case of a golden file."""

    name: str
    settings: tuple[tuple[str, str], ...]
    action: str
    sql: str
    expected: str

    @property
    def statements(self) -> list[str]:
        """The statements of the record, in order."""
        return re.split(r"\n;\n", self.sql)

    @property
    def kind(self) -> str:
        """What to do: `equal`, `error` or `plan`."""
        return self.action.split()[0]


def read(path: Path) -> tuple[str, list[Record]]:
    """The comment at the top of a golden file, and its records."""
    text = path.read_text()
    starts = list(_START.finditer(text))
    ends = [start.start() for start in starts[1:]] + [len(text)]
    records = [_record(s["name"], text[s.end() : end]) for s, end in zip(starts, ends, strict=True)]
    return text[: starts[0].start()], records


def _record(name: str, body: str) -> Record:
    settings = []
    while (match := _SETTING.match(body)) is not None:
        settings.append((match[1], match[2]))
        body = body[match.end() :]
    action, _, rest = body.partition("\n")
    sql, _, expected = rest.partition("\n----\n")
    return Record(name, tuple(settings), action, sql.strip("\n"), expected.strip("\n"))


def write(path: Path, outcomes: Mapping[str, str]) -> None:
    """Put new outcomes into a golden file, by record name."""
    head, records = read(path)
    parts = []
    for record in records:
        settings = "".join(f"set {key} {value}\n" for key, value in record.settings)
        expected = outcomes.get(record.name, record.expected)
        parts.append(f"# {record.name}\n{settings}{record.action}\n{record.sql}\n----\n{expected}\n")
    path.write_text(head + "\n".join(parts))
