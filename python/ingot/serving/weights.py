# SPDX-License-Identifier: Apache-2.0
"""A file of weights beside an engine, which is read again when it is replaced."""

from __future__ import annotations

import logging
import os
import threading

from ingot.engine import Engine
from ingot.errors import Error
from ingot.serving.counts import Counts

log = logging.getLogger("ingot.serving")


class WeightFile:
    """Refits the engine from the file now, and within `period_s` after the file was replaced.

    Every replica that names the same file ends with the same weights, whenever it began. A file that cannot be read, or does not fit
    the engine, leaves the weights as they were; the log says so.
    """

    def __init__(self, engine: Engine, path: str, counts: Counts, period_s: float = 1.0) -> None:
        self.path = path
        self._engine, self._counts, self._period_s = engine, counts, period_s
        self._lock = threading.Lock()
        self._read: tuple | None = None
        self._ended = threading.Event()
        self.refit()
        self._thread = threading.Thread(target=self._watch, name="ingot-weights", daemon=True)
        self._thread.start()

    def refit(self) -> None:
        with self._lock:
            self._read = _identity(
                self.path
            )  # before it is read: one that is replaced meanwhile is read again
            try:
                self._engine.refit(self.path)
            except Error:
                self._counts.add_refit("failed")
                raise
            self._counts.add_refit("ok")

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(self._period_s):
            if _identity(self.path) not in (self._read, None):
                try:
                    self.refit()
                except Error as error:
                    log.error("the weights in %s were not taken: %s", self.path, error)


def _identity(path: str) -> tuple | None:
    try:
        found = os.stat(path)
    except OSError:  # it is being replaced
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
