# SPDX-License-Identifier: Apache-2.0
"""Files that torch writes, whole or not at all."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from ingot import _core


class _Stream(io.RawIOBase):
    """A file being written, in the form that torch accepts. torch writes archives sequentially, and rewinds at the end."""

    def __init__(self, file: _core.FileWriter) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return offset

    def write(self, data: Any) -> int:
        self._file.write(data)
        return memoryview(data).nbytes


def write_whole(path: str, write: Callable[[Any], None]) -> None:
    """Writes atomically; nothing half-written is left behind."""
    file = _core.FileWriter(path)
    try:
        write(_Stream(file))
        file.finish()
    finally:
        file.drop()
