# SPDX-License-Identifier: Apache-2.0
"""The thread of the process in which staged builds go on while their modules are called."""

from __future__ import annotations

import atexit
import contextlib
import heapq
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Protocol

from ingot.traffic import Traffic

_log = logging.getLogger("ingot")
_LOWEST_PRIORITY = 19
_PATIENCE_OF_FORK = 2.0  # seconds
_PATIENCE_AT_EXIT = 30.0  # seconds until a build that is cancelled looks at its progress
_PATIENCE_BESIDE = 1.0  # seconds until the threads beside it have ended


class Job(Protocol):
    """Has to know that its thread is gone."""

    def forget_threads(self) -> None: ...  # a forked child has none: nobody holds its locks

    def lose_thread(self, reason: str) -> None: ...


class Worker:
    """Runs tasks one after another, the lowest rank first; its thread ends when there are none."""

    def __init__(self) -> None:
        self._jobs: weakref.WeakSet[Job] = weakref.WeakSet()
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._tasks: list[tuple[int, int, Callable[[], None]]] = []
        self._submitted = 0
        self._thread: threading.Thread | None = None
        self._beside: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
        self.is_stopped = False

    def watch(self, job: Job) -> None:
        """The job is told when there is no thread for it any more."""
        self._jobs.add(job)

    def submit(self, rank: int, task: Callable[[], None]) -> None:
        with self._lock:
            if self.is_stopped:
                return
            heapq.heappush(self._tasks, (rank, self._submitted, task))
            self._submitted += 1
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="ingot-staged", daemon=True)
                thread.start()
                self._thread = thread

    def start_beside(self, name: str, task: Callable[[], None]) -> None:
        """A thread for what waits for others; it has to end soon once its job has lost its thread."""
        thread = threading.Thread(target=task, name=name, daemon=True)
        self._beside.add(thread)
        thread.start()

    def _run(self) -> None:
        _lower_priority()
        while True:
            with self._lock:
                if not self._tasks or self.is_stopped:
                    self._thread = None
                    return
                task = heapq.heappop(self._tasks)[2]
            try:
                task()
            except BaseException:  # a SystemExit of a user's cache ends neither the thread nor the process
                _log.exception("staged build: a task has failed; the next ones go on")
            del task  # a module that is waited for by nobody can go

    def stop(self) -> None:
        """At exit: what is under way ends at its next look, and has changed nothing."""
        with self._lock:
            self.is_stopped = True
            thread = self._thread
        for job in list(self._jobs):
            job.lose_thread("the process ends")
        if thread is not None and thread is not threading.current_thread():
            thread.join(_PATIENCE_AT_EXIT)
        end = time.monotonic() + _PATIENCE_BESIDE
        for beside in list(self._beside):  # after the thread that starts them
            beside.join(max(0.0, end - time.monotonic()))

    def forget_threads(self) -> None:
        """In a forked child."""
        jobs = list(self._jobs)
        self._reset()
        for job in jobs:
            job.forget_threads()
            job.lose_thread("the process was forked, and only the parent has the thread of the build")


def _lower_priority() -> None:
    """Of this thread: on Linux each has a priority of its own."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST_PRIORITY)


class Exchange:
    """Held while the engines of a module are replaced: a fork waits, so that the child has those of one stage."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forking: int | None = None  # the thread that holds it for that

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_error: object) -> None:
        self._lock.release()

    def before_fork(self) -> None:
        # An exchange that takes longer waits for a call, maybe for one that forks.
        if self._lock.acquire(timeout=_PATIENCE_OF_FORK):
            self._forking = threading.get_ident()

    def after_fork(self) -> None:
        if self._forking == threading.get_ident():
            self._forking = None
            self._lock.release()

    def forget_threads(self) -> None:
        self.__init__()


TRAFFIC = Traffic()
WORKER = Worker()
EXCHANGE = Exchange()


def _after_fork() -> None:
    EXCHANGE.forget_threads()
    TRAFFIC.forget_threads()
    WORKER.forget_threads()


atexit.register(WORKER.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=EXCHANGE.before_fork, after_in_parent=EXCHANGE.after_fork, after_in_child=_after_fork
    )
