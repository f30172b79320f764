"""How many threads numeric libraries use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def _libraries() -> ThreadpoolController:
    """Looking for the loaded libraries takes a few milliseconds, so it is done once."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep matrix products on the calling thread.

    The products of the engine are small. Where other processes use all cores, waiting for helping threads
    takes many times as long as the product itself.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield
