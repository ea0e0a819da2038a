# SPDX-License-Identifier: Apache-2.0
"""Calls that pass together, and changes of what they call."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOOK = 1e-3  # seconds after which a change looks whether calls have ended


class Gate:
    """Lets calls pass together, and a change alone: a call sees all engines of a module before it, or all after it.

    Ctrl-C may come at any moment of a call. So calls are counted by a set, and locks are those that `with` takes without Python code:
    `threading.Condition` keeps its lock if Ctrl-C comes while it is entered.
    """

    def __init__(self) -> None:
        self._turn = threading.RLock()  # held during a change, also while it waits
        self._inside: set[object] = set()  # one element per call

    def __deepcopy__(self, memo: dict[int, Any]) -> Gate:
        return Gate()

    @contextmanager
    def call(self) -> Iterator[None]:
        own = object()
        try:
            with self._turn:
                self._inside.add(own)
            yield
        finally:
            self._inside.discard(own)

    @contextmanager
    def change(self) -> Iterator[None]:
        with self._turn:
            while self._inside:
                time.sleep(_LOOK)
            yield

    def forget_threads(self) -> None:
        """In a forked child, whose only thread is inside of no call."""
        self.__init__()
