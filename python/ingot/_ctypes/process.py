# SPDX-License-Identifier: Apache-2.0
"""What concerns the whole process, files without an engine, and caches."""

from __future__ import annotations

import os
from ctypes import byref

from ingot._ctypes.library import Handle, check, lib, text_of
from ingot._ctypes.structs import SessionOptions


def version() -> str:
    return lib.version().decode()


def explain(code: str) -> str | None:
    page = lib.explain(code.encode())
    return None if page is None else page.decode()


def verify_file(path: str) -> None:
    check(lib.verify_file(os.fsencode(path)))


def inspect_file(path: str) -> str:
    return text_of(lib.inspect_file, os.fsencode(path)).decode()


def _int32(value: int) -> int:
    """ctypes would drop the upper bits."""
    if not isinstance(value, int) or not -(2**31) <= value < 2**31:
        raise TypeError(f"expected an integer of 32 bits, not {value!r}")
    return value


def set_threads(threads: int) -> None:
    check(lib.set_threads(_int32(threads)))


def get_threads() -> int:
    return lib.get_threads()


def set_spin(microseconds: int) -> None:
    check(lib.set_spin(_int32(microseconds)))


class _Session(Handle, free="session_free"):
    pass


class CacheSession:
    def __init__(self, cache_bytes: int) -> None:
        self.handle = _Session.made(lib.session_create, byref(SessionOptions(cache_bytes=cache_bytes)))


def _handle_of(session: CacheSession | None) -> _Session | None:
    return None if session is None else session.handle


def cache_stats(session: CacheSession | None) -> str:
    """`session`: None for the cache of the process."""
    return text_of(lib.cache_stats, _handle_of(session)).decode()


def cache_clear(session: CacheSession | None) -> None:
    check(lib.cache_clear(_handle_of(session)))


def cache_wait(milliseconds: int) -> int:
    return lib.cache_wait(milliseconds)
