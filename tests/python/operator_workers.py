# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of the operator database in child processes: a crash costs one sample, and is reported with it.

A piece is the samples of an operator and dtype from one number to another. A child works on a piece for a few seconds; the parent
divides what remains among all children, so that no operator with many samples is left to one child at the end. Children are forked
from a process that has no threads yet.
"""

from __future__ import annotations

import dataclasses
import json
import os
import select
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import ingot
import torch
from operator_database import DTYPES, Outcome, Sample, operators, run_sample, samples

_SECONDS_PER_SAMPLE = 120
_SECONDS_PER_PIECE = 5.0


@dataclass(frozen=True)
class Piece:
    """Samples of an operator and dtype, by their numbers."""

    name: str
    dtype: str
    first: int = 0
    stop: int | None = None  # None: to the last one
    skipped: frozenset[str] = frozenset()  # samples that an earlier run has outcomes of

    def holds(self, sample: Sample) -> bool:
        inside = self.first <= sample.number and (self.stop is None or sample.number < self.stop)
        return inside and sample.label not in self.skipped

    def text(self) -> str:
        return json.dumps([self.name, self.dtype, self.first, self.stop, sorted(self.skipped)])

    @staticmethod
    def parse(text: str) -> Piece:
        name, dtype, first, stop, skipped = json.loads(text)
        return Piece(name, dtype, first, stop, frozenset(skipped))


def _work_on(piece: Piece, everything: bool, tell: Callable[[Any], None]) -> None:
    """Reports outcomes, and then the range of numbers that the time for a piece did not suffice for."""
    op = operators()[piece.name]
    own = [sample for sample in samples(op, DTYPES[piece.dtype], everything) if piece.holds(sample)]
    end = time.monotonic() + _SECONDS_PER_PIECE
    done = 0
    for done, sample in enumerate(own, 1):
        tell({"at": sample.label})
        tell(dataclasses.asdict(run_sample(op, DTYPES[piece.dtype], sample)))
        if time.monotonic() > end and not (done < len(own) and own[done].number == sample.number):
            break
    tell({"remain": sorted({sample.number for sample in own[done:]}), "done": done})


def _child(everything: bool, pieces: int, results: int, processor: int | None) -> None:
    if processor is not None:
        os.sched_setaffinity(0, {processor})  # Ingot then plans engines for one thread, too
    torch.set_num_threads(1)
    ingot.set_threads(1)
    with os.fdopen(pieces) as orders, os.fdopen(results, "w") as out:

        def tell(row: Any) -> None:
            print(json.dumps(row), file=out, flush=True)

        for order in orders:
            _work_on(Piece.parse(order), everything, tell)


@dataclass
class Work:
    """What is not yet done, and where outcomes go."""

    pieces: deque[Piece]
    everything: bool
    write: Callable[[Iterable[Outcome]], None]

    def divide(self, piece: Piece, remaining: list[int], done: int) -> None:
        """Puts what remains of a piece in front, in parts of as many samples as were done."""
        size = max(1, done)
        for start in range(0, len(remaining), size):
            part = remaining[start : start + size]
            self.pieces.appendleft(dataclasses.replace(piece, first=part[0], stop=part[-1] + 1))


@dataclass
class Worker:
    """A child, the piece that it works on, and the outcomes of that piece so far."""

    work: Work
    processor: int | None = None
    process: int = 0
    orders: int = -1
    results: int = -1
    rest: bytes = b""
    deadline: float = 0.0
    late: bool = False  # killed, since its sample took too long
    piece: Piece | None = None
    sample: str = ""
    outcomes: list[Outcome] = field(default_factory=list)

    def start(self, others: Iterable[Worker]) -> None:
        read, self.orders = os.pipe()
        self.results, write = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            status = 1
            try:
                for other in others:  # a pipe ends when the last process that writes to it does
                    other.close()
                _child(self.work.everything, read, write, self.processor)
                status = 0
            finally:
                os._exit(status)
        os.close(read)
        os.close(write)
        self.rest, self.late, self.piece, self.sample = b"", False, None, ""
        self.give()

    def close(self) -> None:
        for pipe in (self.orders, self.results):
            if pipe >= 0:
                os.close(pipe)
        self.orders = self.results = -1

    def give(self) -> None:
        """Gives the child the next piece. Without one it waits, until it gets one or is stopped."""
        self.deadline = time.monotonic() + _SECONDS_PER_SAMPLE
        self.piece, self.sample = None, ""
        if self.work.pieces:
            self.piece = self.work.pieces.popleft()
            os.write(self.orders, self.piece.text().encode() + b"\n")

    def read(self) -> bool:
        """Takes what the child wrote; False when it has ended."""
        data = os.read(self.results, 1 << 16)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            self._take(json.loads(line))
        return bool(data)

    def _take(self, row: dict[str, Any]) -> None:
        self.deadline = time.monotonic() + _SECONDS_PER_SAMPLE
        if "at" in row:
            self.sample = row["at"]
        elif "remain" in row:
            assert self.piece is not None
            self.finish()
            self.work.divide(self.piece, row["remain"], row["done"])
            self.give()
        else:
            self.outcomes.append(Outcome(**row))

    def finish(self) -> None:
        """Passes the outcomes on, also of a piece that is not done."""
        self.work.write(self.outcomes)
        self.outcomes = []

    def crash(self) -> None:
        """Blames the sample that the child was at, and puts what remains of the piece in front."""
        _, status = os.waitpid(self.process, 0)
        code = os.waitstatus_to_exitcode(status)
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        if self.piece is None:
            raise RuntimeError(f"a child ended before it ran a sample: {how}")
        if self.late:
            how = f"took more than {_SECONDS_PER_SAMPLE} s"
        self.outcomes.append(
            Outcome(self.piece.name, self.piece.dtype, self.sample, "error", f"crash ({how})")
        )
        if self.sample:
            done = self.piece.skipped | {row.sample for row in self.outcomes}
            self.work.pieces.appendleft(dataclasses.replace(self.piece, skipped=done))
        self.finish()


def run(work: Work, jobs: int, seconds: float = float("inf"), pin: bool = False) -> bool:
    """Whether all pieces were done in time; what was done until then is written in any case."""
    end = time.monotonic() + seconds
    processors = sorted(os.sched_getaffinity(0)) if pin else [None]
    workers = [Worker(work, processors[k % len(processors)]) for k in range(jobs)]
    for worker in workers:
        worker.start(workers)
    while any(worker.piece for worker in workers) and time.monotonic() < end:
        ready, _, _ = select.select([worker.results for worker in workers], [], [], 0.5)
        for worker in workers:
            if worker.results in ready and not worker.read():
                worker.crash()
                worker.close()
                worker.start(workers)
            elif worker.piece is None:
                worker.give()
            elif time.monotonic() > worker.deadline and not worker.late:
                worker.late = True
                os.kill(worker.process, signal.SIGKILL)
    complete = not any(worker.piece for worker in workers)
    for worker in workers:
        worker.finish()
        worker.close()
        os.kill(worker.process, signal.SIGKILL)
        os.waitpid(worker.process, 0)
    return complete


def report(rows: Iterable[Outcome]) -> None:
    """Wrong results and errors go to standard error at once."""
    for row in rows:
        if row.kind in ("wrong", "error"):
            print(json.dumps(dataclasses.asdict(row)), file=sys.stderr, flush=True)
