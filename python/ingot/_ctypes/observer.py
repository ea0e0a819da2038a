# SPDX-License-Identifier: Apache-2.0
"""A function of Python that is shown what a run computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ingot._ctypes.arrays import copy_of, has_torch
from ingot._ctypes.library import lib
from ingot._ctypes.structs import OBSERVE


class Observer:
    """Its first exception ends the showing, and is raised after the run."""

    def __init__(self, callback: Callable[[int, str, Any], None]) -> None:
        self._callback = callback
        self._failure: BaseException | None = None
        self._function = OBSERVE(self._observe)

    @staticmethod
    def function_of(observer: Observer | None) -> Any:
        return OBSERVE() if observer is None else observer._function

    def _observe(self, user: int | None, step: int, name: bytes, value: Any) -> None:
        if self._failure is not None:
            return
        try:
            self._callback(step, name.decode(), copy_of(value.contents, has_torch()))
        except BaseException as error:  # Ctrl-C too: nothing may pass through the library
            self._failure = error

    def raise_failure(self, status: int | None) -> None:
        """Instead of the run's own status."""
        if self._failure is None:
            return
        failure, self._failure = self._failure, None
        lib.status_free(status)
        raise failure
