"""Processes of this machine, from /proc: who started whom, and what they hold in memory."""

from __future__ import annotations

import resource
from pathlib import Path

_MEGABYTE = 1 << 20


def below(root: int) -> set[int]:
    """Processes that a process started, and those that they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
    known = {root}
    while more := {own for own, parent in parents.items() if parent in known} - known:
        known |= more
    return known - {root}


def resident(pid: int) -> float:
    """Megabytes in memory; 0 if the process has ended."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return pages * resource.getpagesize() / _MEGABYTE
