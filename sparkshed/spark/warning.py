"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pyspark

import sparkshed
import sparkshed.planner
import sparkshed.sql

#: Folders of code that is not the user's.
_INNER = tuple(
    f"{Path(str(package.__file__)).parent}/"
    for package in (sparkshed, sparkshed.sql, sparkshed.planner, pyspark)
)


def warn_user(message: str) -> None:
    """Warn about the first line outside of sparkshed and PySpark that led here."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INNER):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
