# SPDX-License-Identifier: Apache-2.0
"""Runs pieces of the operator database in child processes: a crash costs one sample, and is reported with it.

A piece is the samples of an operator and dtype from one number to another. A child works on a piece for a few seconds; the parent
divides what remains among all children, so that no operator with many samples is left to one child at the end.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from child_processes import run as run_in_children
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


@dataclass
class _Progress:
    """What a child told of its piece."""

    sample: str = ""  # the one that it is at
    outcomes: list[Outcome] = field(default_factory=list)


@dataclass
class Work:
    """What is not yet done, and where outcomes go."""

    pieces: deque[Piece]
    everything: bool
    write: Callable[[Iterable[Outcome]], None]
    limit_s: float = field(default_factory=lambda: _SECONDS_PER_SAMPLE)
    has_fresh_children = False  # they would import again what operators need
    progress: dict[Piece, _Progress] = field(default_factory=dict)

    def run(self, piece: Piece, tell: Callable[[Any], None]) -> None:
        """Tells outcomes, and then the range of numbers that the time for a piece did not suffice for."""
        op = operators()[piece.name]
        own = [sample for sample in samples(op, DTYPES[piece.dtype], self.everything) if piece.holds(sample)]
        end = time.monotonic() + _SECONDS_PER_PIECE
        done = 0
        for done, sample in enumerate(own, 1):
            tell(sample.label)
            tell(run_sample(op, DTYPES[piece.dtype], sample))
            if time.monotonic() > end and not (done < len(own) and own[done].number == sample.number):
                break
        tell((sorted({sample.number for sample in own[done:]}), done))

    def take(self, piece: Piece, row: Any) -> None:
        progress = self.progress.setdefault(piece, _Progress())
        if isinstance(row, str):
            progress.sample = row
        elif isinstance(row, Outcome):
            progress.outcomes.append(row)
        else:
            self._divide(piece, *row)

    def _divide(self, piece: Piece, remaining: list[int], done: int) -> None:
        """Puts what remains of a piece in front, in parts of as many samples as were done."""
        size = max(1, done)
        for start in range(0, len(remaining), size):
            part = remaining[start : start + size]
            self.pieces.appendleft(dataclasses.replace(piece, first=part[0], stop=part[-1] + 1))

    def end(self, piece: Piece) -> None:
        self.write(self.progress.pop(piece, _Progress()).outcomes)

    def crash(self, piece: Piece, how: str) -> None:
        """Blames the sample that the child was at, and puts what remains of the piece in front."""
        progress = self.progress.pop(piece, _Progress())
        progress.outcomes.append(Outcome(piece.name, piece.dtype, progress.sample, "error", f"crash ({how})"))
        if progress.sample:
            done = piece.skipped | {row.sample for row in progress.outcomes}
            self.pieces.appendleft(dataclasses.replace(piece, skipped=done))
        self.write(progress.outcomes)


def run(work: Work, jobs: int, seconds: float = float("inf"), pin: bool = False) -> bool:
    return run_in_children(work, jobs, seconds, pin)


def report(rows: Iterable[Outcome]) -> None:
    """Wrong results and errors go to standard error at once."""
    for row in rows:
        if row.kind in ("wrong", "error"):
            print(json.dumps(dataclasses.asdict(row)), file=sys.stderr, flush=True)
