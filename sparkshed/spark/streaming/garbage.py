"""Garbage of Python workers.

PySpark collects all garbage after every task, and looks at all objects for that: some hundred thousand,
nearly all of them of modules that were imported. That takes longer than the task, where a micro-batch has
few rows.
"""

from __future__ import annotations

import gc

_left_out: set[str] = set()


def leave_out_modules(task: str) -> None:
    """Leave what is in memory out of later collections, the first time that the process has such a task.

    To be called before rows are read: only modules should be there by then.

    >>> from sparkshed.spark.streaming.garbage import leave_out_modules
    >>> leave_out_modules("doctest")
    >>> gc.get_freeze_count() > 1000
    True
    >>> gc.unfreeze()
    """
    if task not in _left_out:
        _left_out.add(task)
        gc.freeze()
