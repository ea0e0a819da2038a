# SPDX-License-Identifier: Apache-2.0
"""Sessions: whose cache builds use. What was compiled once is found again, by models that share a kernel, too."""

from __future__ import annotations

import atexit
import json
import threading
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from ingot import _core
from ingot.durations import seconds

_PATIENCE_AT_EXIT = 30.0  # seconds

_entered: ContextVar[tuple[Session, ...]] = ContextVar("ingot_sessions", default=())


class Session:
    """A cache for the builds within a `with` block, and for those only; leaving the block empties it.

        with ingot.Session(cache_bytes=256 << 20) as session:
            first, second = ingot.compile(a, inputs=x), ingot.compile(b, inputs=x)
            print(session.cache_stats())

    Builds outside share the cache of the process (64 MiB). `cache_bytes=0` finds nothing: everything is compiled.
    """

    def __init__(self, cache_bytes: int = 64 << 20) -> None:
        self._core = _core.CacheSession(cache_bytes)
        self._entries = 0  # `with` blocks, of all threads, that have not been left
        self._lock = threading.Lock()

    def cache_stats(self) -> dict[str, Any]:
        """As `ingot.cache_stats`, of this session."""
        return json.loads(_core.cache_stats(self._core))

    def __enter__(self) -> Session:
        _entered.set((*_entered.get(), self))
        with self._lock:
            self._entries += 1
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _entered.set(_entered.get()[:-1])
        with self._lock:
            self._entries -= 1
            if self._entries == 0:
                _core.cache_clear(self._core)


def current() -> Any:
    """The innermost session of this thread or task, for `_core`; None for the process's."""
    entered = _entered.get()
    return entered[-1]._core if entered else None


def cache_stats() -> dict[str, Any]:
    """Of the current session's cache, or else the process's: how many kernels were made, and found where, and its size."""
    return json.loads(_core.cache_stats(current()))


def cache_flush(timeout: float = _PATIENCE_AT_EXIT) -> bool:
    """Waits, at most for so many seconds, until the entries are kept that are written in the background: prepared weights, and what
    builds with `cache_write_policy="back"` made. False if some are not. Called when the process ends, which loses the others.
    """
    return _core.cache_wait(round(seconds(timeout) * 1000)) != 0


atexit.register(cache_flush)
