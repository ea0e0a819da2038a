# SPDX-License-Identifier: Apache-2.0
"""Objects whose memory the library uses until it says that it no longer does, from whichever thread."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from ingot._ctypes.structs import RELEASE


class Kept:
    """`release` is the callback of the C API; its `owner` is what `add` returned."""

    def __init__(self) -> None:
        self._objects: dict[int, Any] = {}
        self._numbers = itertools.count(1)
        self.release = RELEASE(self._drop)
        # The library may call it while the interpreter ends, when modules are empty: it lives as long as the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.release))

    def add(self, value: Any) -> int:
        number = next(self._numbers)
        self._objects[number] = value
        return number

    def _drop(self, owner: int) -> None:
        self._objects.pop(owner, None)


KEPT = Kept()
