# SPDX-License-Identifier: Apache-2.0
"""Files that are written atomically, and files of weights."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np

from ingot._ctypes.arrays import copy_of, is_torch
from ingot._ctypes.library import Handle, check, lib
from ingot._ctypes.without_compiler import fail_without_compiler

_ARCHIVE = b"PK"  # how a .pt2 begins


class _File(Handle, free="file_free"):
    pass


class _Tensors(Handle, free="tensors_free"):
    pass


class FileWriter:
    """As ingot_file: it appears under its name when it is finished."""

    def __init__(self, path: str) -> None:
        self._handle: _File | None = _File.made(lib.file_create, os.fsencode(path))

    def write(self, data: Any) -> int:
        content = np.frombuffer(data, np.uint8)
        check(lib.file_write(self._handle, content.ctypes.data, content.size))
        return content.size

    def flush(self) -> None:
        pass

    def finish(self) -> None:
        check(lib.file_finish(self._handle))

    def drop(self) -> None:
        self._handle = None


class TensorFile:
    """The tensors of a .safetensors file. A .pt2 is read by the compiler."""

    def __init__(self, path: str) -> None:
        if _is_archive(path):
            fail_without_compiler()
        self._handle = _Tensors.made(lib.open_tensors, os.fsencode(path))
        count = lib.tensors_count(self._handle)
        self.tensors = {
            lib.tensors_name(self._handle, k).decode(): lib.tensors_value(self._handle, k).contents
            for k in range(count)
        }

    def names(self) -> list[str]:
        return list(self.tensors)

    def copy(self, name: str, like: Any) -> Any:
        """As an array of the framework of `like`."""
        return copy_of(self.tensors[name], is_torch(like))


def _is_archive(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(len(_ARCHIVE)) == _ARCHIVE
    except OSError:
        return False  # the library says why


def pointers_to(texts: list[str]) -> ctypes.Array:
    """An array of strings, as the C API takes names."""
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))
