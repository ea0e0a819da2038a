# SPDX-License-Identifier: Apache-2.0
"""Calls that pass together, and changes of what they call."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Gate:
    """Lets calls pass together, and a change alone: a call sees all engines of a module before it, or all after it."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._inside = 0
        self._changes = 0  # that wait for calls to end, or go on

    def __deepcopy__(self, memo: dict[int, Any]) -> Gate:
        return Gate()

    @contextmanager
    def call(self) -> Iterator[None]:
        with self._condition:
            self._condition.wait_for(lambda: self._changes == 0)
            self._inside += 1
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                if self._inside == 0:
                    self._condition.notify_all()

    @contextmanager
    def change(self) -> Iterator[None]:
        with self._condition:
            self._changes += 1
            try:
                self._condition.wait_for(lambda: self._inside == 0)
                yield
            finally:
                self._changes -= 1
                self._condition.notify_all()

    def forget_threads(self) -> None:
        """In a forked child, whose only thread is inside of no call."""
        self.__init__()
