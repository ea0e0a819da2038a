# SPDX-License-Identifier: Apache-2.0
"""Runs torch's operator database through Ingot, in child processes: a crash costs one operator and is told by its name.

    python tests/python/run_operators.py [--all] [--jobs N] [--output FILE] [NAME ...]

Writes one JSON line per sample; wrong results go to standard error at once. Children are forked from a process that has no threads yet.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass, field

import torch
from operator_database import LONG_DTYPES, SLICE_DTYPES, Outcome, operators, outcomes

_SECONDS_A_SAMPLE = 120


def _child(names: list[str], queue: int, everything: bool, pipe: int) -> None:
    torch.set_num_threads(1)
    known = operators()
    with os.fdopen(pipe, "w") as out:
        while position := os.read(queue, _POSITION_BYTES):
            name = names[int.from_bytes(position, "big")]
            print(json.dumps({"begin": name}), file=out, flush=True)
            for outcome in outcomes(known[name], LONG_DTYPES if everything else SLICE_DTYPES, everything):
                print(json.dumps(dataclasses.asdict(outcome)), file=out, flush=True)
            print(json.dumps({"end": name}), file=out, flush=True)


_POSITION_BYTES = 2


def _queue(length: int) -> int:
    """A pipe that holds the positions of a list: whoever reads the next one takes it."""
    read, write = os.pipe()
    os.write(write, b"".join(position.to_bytes(_POSITION_BYTES, "big") for position in range(length)))
    os.close(write)
    return read


@dataclass
class Worker:
    """A child that takes operators from the queue, and its outcomes so far."""

    process: int = 0
    pipe: int = -1
    rest: bytes = b""
    deadline: float = 0.0
    running: str = ""  # the operator that the child is at
    outcomes: list[Outcome] = field(default_factory=list)

    def start(self, names: list[str], queue: int, everything: bool) -> None:
        self.pipe, write = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            status = 1
            try:
                _child(names, queue, everything, write)
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        self.rest = b""
        self.deadline = time.monotonic() + _SECONDS_A_SAMPLE

    def read(self) -> bool:
        """Takes what the child wrote; False when it has ended."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            row = json.loads(line)
            self.deadline = time.monotonic() + _SECONDS_A_SAMPLE
            if "begin" in row:
                self.running = row["begin"]
            elif "end" in row:
                self.running = ""
            else:
                self.outcomes.append(Outcome(**row))
                if row["kind"] in ("wrong", "error"):
                    print(line.decode(), file=sys.stderr, flush=True)
        return bool(data)

    def end(self) -> bool:
        """Whether the child crashed; then its current operator gets the blame."""
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        if status == 0:
            return False
        code = os.waitstatus_to_exitcode(status)
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        if not self.running:
            raise RuntimeError(f"a child ended before it ran an operator: {how}")
        done = [row for row in self.outcomes if row.name == self.running]
        where = f"after {len(done)} samples" + (
            f", the last {done[-1].dtype} {done[-1].sample}" if done else ""
        )
        crash = Outcome(self.running, "", "", "error", f"crash ({how}) {where}")
        self.outcomes.append(crash)
        print(json.dumps(dataclasses.asdict(crash)), file=sys.stderr, flush=True)
        self.running = ""
        return True


def run(names: list[str], everything: bool, jobs: int) -> list[Outcome]:
    """All outcomes, in the order of the names."""
    queue = _queue(len(names))
    workers = [Worker() for _ in range(min(jobs, len(names)))]
    waiting = list(workers)
    for worker in workers:
        worker.start(names, queue, everything)
    while waiting:
        ready, _, _ = select.select([worker.pipe for worker in waiting], [], [], 1.0)
        for worker in list(waiting):
            if worker.pipe in ready and not worker.read():
                if worker.end():
                    worker.start(names, queue, everything)
                else:
                    waiting.remove(worker)
            elif time.monotonic() > worker.deadline:
                os.kill(worker.process, signal.SIGKILL)
    os.close(queue)
    order = {name: position for position, name in enumerate(names)}
    return sorted((row for worker in workers for row in worker.outcomes), key=lambda row: order[row.name])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="operators; all of them if left out")
    parser.add_argument("--all", action="store_true", help="all samples and dtypes, not the slice")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", help="a file instead of standard output")
    chosen = parser.parse_args()
    known = sorted(operators())
    if unknown := set(chosen.names) - set(known):
        parser.error(
            f"the database has no {', '.join(sorted(unknown))}; its names carry their variant (div.floor_rounding)"
        )
    with open(chosen.output, "w") if chosen.output else sys.stdout as out:
        for row in run(chosen.names or known, chosen.all, chosen.jobs):
            print(json.dumps(dataclasses.asdict(row)), file=out)


if __name__ == "__main__":
    main()
