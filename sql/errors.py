"""Every error a user can meet: what was found, what is allowed, and how to write it."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class ShedError(Exception):
    """Base of all errors that sparkshed raises about a query."""


class HintError(ShedError):
    """The SHED hint itself is wrong: strategy, option or value."""


class StatementError(ShedError):
    """The hint stands where it cannot work: the wrong statement, or a SELECT without a join."""


class JoinError(ShedError):
    """The join block has a shape that a windowed stream join cannot have."""


class BoundError(ShedError):
    """A time bound is missing, or contradicts another."""


class PredicateError(ShedError):
    """A join condition links nothing, or cannot be used."""


class PlanError(ShedError):
    """The plan cannot run; the message names the fix."""


def suggest(word: str, known: Iterable[str]) -> str:
    """A sentence with the closest known word, or nothing.

    >>> suggest("grubjion", ["grubjoin", "exact"])
    ' Did you mean `grubjoin`?'
    >>> suggest("zzz", ["grubjoin", "exact"])
    ''
    """
    close = difflib.get_close_matches(word.lower(), list(known), n=1, cutoff=0.6)
    return f" Did you mean `{close[0]}`?" if close else ""


def listing(words: Iterable[str]) -> str:
    """Words in backquotes, separated by commas.

    >>> listing(["a", "b"])
    '`a`, `b`'
    """
    return ", ".join(f"`{word}`" for word in words)
