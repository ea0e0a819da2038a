# SPDX-License-Identifier: Apache-2.0
"""A queue of requests, and the threads that run them in batches."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from ingot.engine import Engine
from ingot.errors import DeviceError, Error, InternalError, UserError
from ingot.serving.axis import BatchAxis, find_axis
from ingot.serving.batches import (
    Answer,
    Tensors,
    are_independent,
    key_of,
    run_alone,
    run_together,
    shared_values,
)
from ingot.serving.counts import Counts
from ingot.serving.pace import Paces

log = logging.getLogger("ingot.serving")

_MOST_CHECKED = 1024


@dataclass
class Request:
    tensors: Tensors
    rows: int  # 0: runs alone
    key: tuple
    deadline: float  # time.monotonic()
    future: Future = field(default_factory=Future)
    arrival: float = field(default_factory=time.monotonic)


class Batcher:
    """Runs what is waiting when a thread becomes free: the oldest request, and those behind it that fit into the same call.

    How many fit is measured (`Pace`), up to what the engine accepts. Requests that were cancelled or whose deadline has passed leave the
    queue before their batch runs. The first batch of several requests has two, which also run one by one: if the results differ, the rows
    of this model depend on each other, and requests run alone from then on. Integers that requests choose may decide whether rows do:
    each of their values has such a first batch.
    """

    def __init__(
        self,
        engine: Engine,
        counts: Counts,
        largest: int | None = None,
        wait_s: float = 0.0,
        workers: int = 1,
    ) -> None:
        self.counts = counts
        self.axis = find_axis(engine, largest)
        self._engine = engine
        self._wait_s = wait_s
        axis = self.axis
        self._paces = Paces(axis.minimum, axis.maximum) if isinstance(axis, BatchAxis) else Paces(1, 1)
        self._queue: deque[Request] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._checked: set[tuple] = set()  # shared values with which rows were found to be independent
        self._running: dict[int, float] = {}  # thread -> when its batch began
        self._threads = [
            threading.Thread(target=self._work, name=f"ingot-batches-{k}", daemon=True)
            for k in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, requests: Sequence[Tensors], timeout_s: float | None = None) -> list[Future]:
        """The outputs of each in the engine's order. Requests of one call are in the queue at once. Cancelling a future takes its
        request out of the queue."""
        made = [self._request(tensors, timeout_s) for tensors in requests]
        with self._changed:
            if self._closing:
                raise draining()
            self._queue.extend(made)
            self._changed.notify()
        return [request.future for request in made]

    def _request(self, tensors: Tensors, timeout_s: float | None) -> Request:
        axis = self.axis
        rows = axis.rows(tensors) if isinstance(axis, BatchAxis) else 0
        deadline = float("inf") if timeout_s is None else time.monotonic() + timeout_s
        return Request(tensors, rows, key_of(tensors) if rows else (), deadline)

    @property
    def queued(self) -> int:
        return len(self._queue)

    def slowest(self) -> float:
        """Seconds for which the oldest running batch has run."""
        begun = list(self._running.values())
        return time.monotonic() - min(begun) if begun else 0.0

    def is_alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def close(self, timeout_s: float | None = None) -> None:
        """Accepts no more requests and waits for those that it has; what is still queued after the timeout fails."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        end = None if timeout_s is None else time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(None if end is None else max(end - time.monotonic(), 0))
        with self._changed:
            left, self._queue = list(self._queue), deque()
        for request in left:
            if request.future.set_running_or_notify_cancel():
                request.future.set_exception(draining())

    # ---- the threads ----
    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._closing:
                    self._changed.wait()
                if not self._queue:
                    return
                self._wait_for_others()
                begin = time.monotonic()
                batch = self._take()
                if self._queue:
                    self._changed.notify()  # another thread may run them meanwhile
            if batch:
                self._run(batch, begin)

    def _wait_for_others(self) -> None:
        """At most wait_s after the oldest request, and only while its batch is not full."""
        while self._queue and not self._closing and self._queue[0].rows:
            first = self._queue[0]
            left = first.arrival + self._wait_s - time.monotonic()
            if left <= 0 or _rows_of(first.key, self._queue) >= self._wanted_rows(first.key):
                return
            self._changed.wait(left)

    def _wanted_rows(self, key: tuple) -> int:
        if not isinstance(self.axis, BatchAxis):
            return 1
        return self._paces.of(key).worth_waiting_for() if self._is_checked(key) else self.axis.maximum

    def _is_checked(self, key: tuple) -> bool:
        return shared_values(key) in self._checked

    def _most_rows(self, waiting: list[Request]) -> int:
        """Of the batch that begins with the first of them."""
        if not waiting or not isinstance(self.axis, BatchAxis):
            return 1
        key = waiting[0].key
        if not self._is_checked(key):
            return self.axis.maximum
        return self._paces.of(key).limit(_rows_of(key, waiting))

    def _take(self) -> list[Request]:
        """The oldest request, and later ones of the same key while there is space; the order of the others stays."""
        waiting = [request for request in self._queue if not self._has_left(request)]
        most_rows = self._most_rows(waiting)
        most = len(waiting) if waiting and self._is_checked(waiting[0].key) else 2
        batch: list[Request] = []
        kept: deque[Request] = deque()
        rows = 0
        for request in waiting:
            fits = request.rows > 0 and rows > 0 and rows + request.rows <= most_rows and len(batch) < most
            if not batch or (fits and request.key == batch[0].key):
                batch.append(request)
                rows += request.rows
            else:
                kept.append(request)
        self._queue = kept
        return [request for request in batch if request.future.set_running_or_notify_cancel()]

    def _has_left(self, request: Request) -> bool:
        """It was cancelled, or is answered with its deadline."""
        if request.future.cancelled():
            self.counts.add_request("cancelled")
            return True
        if time.monotonic() < request.deadline:
            return False
        if request.future.set_running_or_notify_cancel():
            self.counts.add_request("expired")
            request.future.set_exception(_expired(time.monotonic() - request.arrival))
        return True

    def _run(self, batch: list[Request], begin: float) -> None:
        self._running[threading.get_ident()] = begin
        try:
            answers = self._answers(batch)
        except BaseException as error:  # a bug here must not leave requests without an answer
            answers = [InternalError(f"the batch failed: {error!r}", code="INGOT-I001")] * len(batch)
        finally:
            del self._running[threading.get_ident()]
        self.counts.add_batch(batch, answers, begin, time.monotonic())
        for request, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Error):
                request.future.set_exception(answer)
            else:
                request.future.set_result(answer)
        if self._is_checked(batch[0].key) and not any(isinstance(answer, Error) for answer in answers):
            self._measure(batch, time.monotonic() - begin)

    def _measure(self, batch: list[Request], seconds: float) -> None:
        """With what the queue and the answers cost too: where that is much, larger batches share it."""
        rows = sum(request.rows for request in batch)
        if rows:
            with self._changed:
                self._paces.of(batch[0].key).add(rows, seconds)

    def _answers(self, batch: list[Request]) -> list[Answer]:
        requests = [request.tensors for request in batch]
        together = run_together(self._engine, requests) if len(batch) > 1 else None
        key = batch[0].key
        if together is not None and self._is_checked(key):
            return together
        alone = [run_alone(self._engine, request) for request in requests]
        if together is not None and are_independent(together, alone):
            self._remember(key)
        elif together is not None:
            self.axis = "rows of one call change each other's results"
            log.warning("requests run one by one from now on: %s", self.axis)
        return alone

    def _remember(self, key: tuple) -> None:
        if len(self._checked) == _MOST_CHECKED:
            self._checked = set()
        self._checked.add(shared_values(key))


def _rows_of(key: tuple, requests: Iterable[Request]) -> int:
    return sum(request.rows for request in requests if request.key == key)


def draining() -> DeviceError:
    return DeviceError(
        "the model is being unloaded and accepts no more requests",
        code="INGOT-D360",
        advice="send the request to another replica, or again once the model is loaded",
    )


def _expired(waited_s: float) -> UserError:
    return UserError(
        f"the request's deadline passed before it ran: it waited {waited_s:.3f} s in the queue",
        code="INGOT-U317",
        advice="allow more time, or add replicas",
    )
