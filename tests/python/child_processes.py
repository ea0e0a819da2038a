# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of work in child processes: a crash costs what its child was at, and is reported with it.

Children are forked from a process that has no threads yet, each with one thread; they tell rows, and the parent keeps time.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

P = TypeVar("P")

STOPPED = 3  # the exit status of a command whose time ended before its work


class Work(Protocol[P]):
    """What is not yet done, and what becomes of it."""

    pieces: deque[P]
    limit_s: float  # between two rows
    has_fresh_children: bool  # whether each piece gets a child of its own

    def run(self, piece: P, tell: Callable[[Any], None]) -> None:
        """In a child: does a piece, and tells rows."""

    def take(self, piece: P, row: Any) -> None:
        """A row of a piece."""

    def end(self, piece: P) -> None:
        """The piece told all that it has to, or the time of the whole run has ended."""

    def crash(self, piece: P, how: str) -> None:
        """The child of a piece died."""


def whole_rows(path: str | Path) -> list[Any]:
    """The rows of a file of JSON lines, none if there is no file; a line that was cut off is removed from it."""
    if not os.path.exists(path):
        return []
    with open(path, "r+") as file:
        text = file.read()
        file.truncate(len(text[: text.rfind("\n") + 1].encode()))
    return [json.loads(line) for line in text.splitlines()[: text.count("\n")]]


def _use_one_thread() -> None:
    import ingot
    import torch

    torch.set_num_threads(1)
    ingot.set_threads(1)


def _child(work: Work[Any], orders: Connection, others: list[Connection], processor: int | None) -> None:
    for other in others:  # a pipe ends when the last process that writes to it does
        other.close()
    if processor is not None:
        os.sched_setaffinity(0, {processor})  # Ingot then plans engines for one thread, too
    _use_one_thread()
    while True:
        try:
            piece = orders.recv()
        except EOFError:
            return
        work.run(piece, lambda row: orders.send((row,)))
        orders.send(())


@dataclass
class _Worker(Generic[P]):
    """A child, and the piece that it works on."""

    work: Work[P]
    processor: int | None = None
    process: BaseProcess | None = None
    pipe: Connection | None = None
    deadline: float = 0.0
    late: bool = False  # killed, since its row took too long
    piece: P | None = None

    def start(self, workers: Iterable[_Worker[P]]) -> None:
        self.pipe, theirs = get_context("fork").Pipe()
        pipes = [worker.pipe for worker in workers if worker.pipe]
        arguments = (self.work, theirs, pipes, self.processor)
        self.process = get_context("fork").Process(target=_child, args=arguments, daemon=True)
        self.process.start()
        theirs.close()
        self.late = False
        self.give()

    def stop(self) -> None:
        self.process.kill()
        self.clear()

    def clear(self) -> str:
        """After the child's end: how it ended."""
        self.process.join()
        self.pipe.close()
        self.pipe = None
        if self.late:
            return f"took more than {self.work.limit_s:g} s"
        code = self.process.exitcode
        return f"exit status {code}" if code >= 0 else signal.Signals(-code).name

    def give(self) -> None:
        """Gives the child the next piece. Without one it waits, until it gets one or is stopped."""
        self.deadline = time.monotonic() + self.work.limit_s
        self.piece = None
        if self.work.pieces:
            self.piece = self.work.pieces.popleft()
            self.pipe.send(self.piece)

    def read(self, workers: Iterable[_Worker[P]]) -> None:
        """Takes what the child told; another one replaces it when it died, or did what it was for."""
        try:
            row = self.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._replace(workers)
            return
        self.deadline = time.monotonic() + self.work.limit_s
        if row:
            self.work.take(self.piece, *row)
            return
        self.work.end(self.piece)
        self.piece = None
        if self.work.has_fresh_children:
            self.stop()
            self.start(workers)
        else:
            self.give()

    def _replace(self, workers: Iterable[_Worker[P]]) -> None:
        piece, how = self.piece, self.clear()
        if piece is None:
            raise RuntimeError(f"a child ended before it was given work: {how}")
        self.work.crash(piece, how)
        self.start(workers)

    def keep_time(self) -> None:
        if self.piece is None:
            self.give()
        elif time.monotonic() > self.deadline and not self.late:
            self.late = True
            self.process.kill()


def run(work: Work[P], jobs: int, seconds: float = float("inf"), pin: bool = False) -> bool:
    """Whether all pieces were done in time; what was done until then is reported in any case."""
    end = time.monotonic() + seconds
    processors = sorted(os.sched_getaffinity(0)) if pin else [None]
    workers = [_Worker(work, processors[k % len(processors)]) for k in range(jobs)]
    for worker in workers:
        worker.start(workers)
    while any(worker.piece is not None for worker in workers) and time.monotonic() < end:
        ready = wait([worker.pipe for worker in workers], 0.5)
        for worker in workers:
            if worker.pipe in ready:
                worker.read(workers)
            else:
                worker.keep_time()
    left = [worker.piece for worker in workers if worker.piece is not None]
    for worker in workers:
        worker.stop()
    for piece in left:
        work.end(piece)
    return not left
