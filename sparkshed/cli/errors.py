"""Errors that end a command with a message instead of a traceback."""

from __future__ import annotations


class CliError(Exception):
    """What the user asked for cannot be done; the message says why and what to do."""
