"""How many threads numeric libraries use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_limit = ExitStack()
_users = 0


@cache
def _libraries() -> ThreadpoolController:
    """Looking for the loaded libraries takes a few milliseconds, so it is done once."""
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep matrix products on the calling thread.

    The products of the engine are small. Where other processes use all cores, waiting for helping threads
    takes many times as long as the product itself. The setting is one of the process: the first user makes
    it, and the last one takes it back.
    """
    global _users
    with _lock:
        if _users == 0:
            _limit.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limit.close()
