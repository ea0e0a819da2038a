# SPDX-License-Identifier: Apache-2.0
"""The calls of staged modules, and timings that none of them disturbs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SLICE = 0.05  # seconds after which a wait looks whether it was stopped
_SHORTEST_SLICE = 1e-4
_FIRST_IDLE, _LONGEST_IDLE = 0.005, 1.0  # seconds without a call before a timing
_LEAST_PATIENCE_S, _PATIENCE_TIMES = 1.0, 4  # with the wait for a pause: seconds, and times its length
_PATIENCE = 40  # disturbed timings in sequence; with growing pauses before them, about half a minute


class Traffic:
    """Counts calls, as `Gate` does. `clock` and `sleep` as tests need them."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._lock = threading.Lock()
        self._inside: set[object] = set()  # one element per call
        self._clock, self._sleep = clock, sleep
        self._last_end = float("-inf")
        self.begun = 0  # calls since the process began

    @contextmanager
    def call(self) -> Iterator[None]:
        own = object()
        try:
            with self._lock:
                self.begun += 1
                self._inside.add(own)
            yield
        finally:
            try:
                self._last_end = self._clock()
            finally:
                self._inside.discard(own)

    def wait_for_idle(
        self, seconds: float, is_stopped: Callable[[], bool], most: float = float("inf")
    ) -> int | None:
        """Returns `begun` after so many seconds in which no call was under way, or -1 once it is stopped. None if there was no such
        pause for `most` seconds.
        """
        end = self._clock() + most
        while not is_stopped():
            with self._lock:
                remaining = self._last_end + seconds - self._clock()
                if not self._inside and remaining <= 0:
                    return self.begun
            if self._clock() >= end:
                return None
            slice_s = _SLICE if self._inside else min(_SLICE, remaining)
            self._sleep(max(slice_s, _SHORTEST_SLICE))
        return -1

    def forget_threads(self) -> None:
        """In a forked child, where no call is under way."""
        self._lock = threading.Lock()
        self._inside = set()


class StoppedError(Exception):
    """Nobody wants the better engine any more."""


class Quiet:
    """`quiet` of a build (include/ingot/build.h), and the same for timings of this package.

    After each disturbed timing the next one waits for a longer pause between calls: calls may come in bursts. Where pauses are all
    shorter, it begins as early in one as it can. After `patience` disturbed ones in sequence the calls leave no time, and the build is
    cancelled.
    """

    def __init__(
        self, traffic: Traffic, is_stopped: Callable[[], bool] = lambda: False, patience: int = _PATIENCE
    ) -> None:
        self._traffic, self._is_stopped, self._patience = traffic, is_stopped, patience
        self._begun = -1
        self._is_disturbed = False
        self._in_sequence = 0
        self._idle = _FIRST_IDLE
        self.discarded = 0  # timings
        self.is_too_busy = False

    def __call__(self, waits: bool) -> int:
        if self._is_stopped() or self.is_too_busy:
            return -1
        if not waits:
            self._is_disturbed = self._traffic.begun != self._begun
            if not self._is_disturbed:
                self._in_sequence, self._idle = 0, _FIRST_IDLE
            return self._traffic.begun
        self._count_last()
        if self.is_too_busy:
            return -1
        most = max(_LEAST_PATIENCE_S, _PATIENCE_TIMES * self._idle)
        begun = self._traffic.wait_for_idle(self._idle, self._is_stopped, most)
        if begun is None:
            self._idle = _FIRST_IDLE
            begun = self._traffic.wait_for_idle(self._idle, self._is_stopped)
        self._begun = -1 if begun is None else begun
        return self._begun

    def _count_last(self) -> None:
        if not self._is_disturbed:
            return
        self._is_disturbed = False
        self.discarded += 1
        self._in_sequence += 1
        self._idle = min(2 * self._idle, _LONGEST_IDLE)
        self.is_too_busy = self._in_sequence >= self._patience

    def undisturbed(self, measure: Callable[[], float]) -> float:
        """What `measure` returns, repeated until no call began meanwhile. Raises StoppedError."""
        while True:
            begun = self(True)
            if begun < 0:
                raise StoppedError
            value = measure()
            if self(False) == begun:
                return value
