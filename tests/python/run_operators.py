# SPDX-License-Identifier: Apache-2.0
"""Runs torch's operator database through Ingot, in child processes: a crash costs one operator and is told by its name.

    python tests/python/run_operators.py [--all] [--dtypes float32,int64] [--jobs N] [--output FILE [--continue]] [--shard K/N] [NAME ...]

Writes one JSON line per sample as soon as an operator is done; wrong results go to standard error at once. With --continue, operators
that FILE has rows of are left out, so that a run that was cut off goes on. Children are forked from a process that has no threads yet.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from operator_database import LONG_DTYPES, SLICE_DTYPES, Outcome, operators, outcomes

_SECONDS_A_SAMPLE = 120


@dataclass(frozen=True)
class Choice:
    """Which samples of an operator are run."""

    dtypes: tuple[torch.dtype, ...]
    everything: bool


def _child(names: list[str], queue: int, choice: Choice, pipe: int) -> None:
    torch.set_num_threads(1)
    known = operators()
    with os.fdopen(pipe, "w") as out:
        while position := os.read(queue, _POSITION_BYTES):
            name = names[int.from_bytes(position, "big")]
            print(json.dumps({"begin": name}), file=out, flush=True)
            for outcome in outcomes(known[name], choice.dtypes, choice.everything):
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
    """A child that takes operators from the queue, and the outcomes of the one that it is at."""

    process: int = 0
    pipe: int = -1
    rest: bytes = b""
    deadline: float = 0.0
    running: str = ""  # the operator that the child is at
    outcomes: list[Outcome] = field(default_factory=list)

    def start(self, names: list[str], queue: int, choice: Choice) -> None:
        self.pipe, write = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            os.close(self.pipe)
            status = 1
            try:
                _child(names, queue, choice, write)
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        self.rest = b""
        self.deadline = time.monotonic() + _SECONDS_A_SAMPLE

    def read(self, write: Callable[[list[Outcome]], None]) -> bool:
        """Takes what the child wrote, and passes on the outcomes of operators that are done; False when it has ended."""
        data = os.read(self.pipe, 1 << 16)
        *lines, self.rest = (self.rest + data).split(b"\n")
        for line in lines:
            row = json.loads(line)
            self.deadline = time.monotonic() + _SECONDS_A_SAMPLE
            if "begin" in row:
                self.running = row["begin"]
            elif "end" in row:
                self.running = ""
                write(self.take())
            else:
                self.outcomes.append(Outcome(**row))
                if row["kind"] in ("wrong", "error"):
                    print(line.decode(), file=sys.stderr, flush=True)
        return bool(data)

    def take(self) -> list[Outcome]:
        done, self.outcomes = self.outcomes, []
        return done

    def end(self, write: Callable[[list[Outcome]], None]) -> bool:
        """Whether the child crashed; then its current operator gets the blame."""
        os.close(self.pipe)
        _, status = os.waitpid(self.process, 0)
        if status == 0:
            return False
        code = os.waitstatus_to_exitcode(status)
        how = f"exit status {code}" if code >= 0 else signal.Signals(-code).name
        if not self.running:
            raise RuntimeError(f"a child ended before it ran an operator: {how}")
        done = self.take()
        where = f"after {len(done)} samples" + (
            f", the last {done[-1].dtype} {done[-1].sample}" if done else ""
        )
        crash = Outcome(self.running, "", "", "error", f"crash ({how}) {where}")
        write([*done, crash])
        print(json.dumps(dataclasses.asdict(crash)), file=sys.stderr, flush=True)
        self.running = ""
        return True


def run(names: list[str], choice: Choice, jobs: int, write: Callable[[list[Outcome]], None]) -> None:
    """Calls `write` with all outcomes of an operator, for each in the order in which they end."""
    queue = _queue(len(names))
    workers = [Worker() for _ in range(min(jobs, len(names)))]
    waiting = list(workers)
    for worker in workers:
        worker.start(names, queue, choice)
    while waiting:
        ready, _, _ = select.select([worker.pipe for worker in waiting], [], [], 1.0)
        for worker in list(waiting):
            if worker.pipe in ready and not worker.read(write):
                if worker.end(write):
                    worker.start(names, queue, choice)
                else:
                    waiting.remove(worker)
            elif time.monotonic() > worker.deadline:
                os.kill(worker.process, signal.SIGKILL)
    os.close(queue)


def _dtypes(text: str) -> tuple[torch.dtype, ...]:
    known = {str(dtype).removeprefix("torch."): dtype for dtype in LONG_DTYPES}
    if unknown := [name for name in text.split(",") if name not in known]:
        raise argparse.ArgumentTypeError(f"unknown dtypes {', '.join(unknown)}; known are {', '.join(known)}")
    return tuple(known[name] for name in text.split(","))


def _shard(text: str) -> slice:
    """Every N-th operator from the K-th: neighbours in the list, which are alike, are in different shards."""
    part, _, whole = text.partition("/")
    if not (part.isdigit() and whole.isdigit() and 1 <= int(part) <= int(whole)):
        raise argparse.ArgumentTypeError(f"a shard is K/N with K from 1 to N, not {text}")
    return slice(int(part) - 1, None, int(whole))


def _done(path: str) -> set[str]:
    """The operators that a file has rows of; a line that was cut off is taken out of it."""
    if not os.path.exists(path):
        return set()
    with open(path, "r+") as file:
        text = file.read()
        file.truncate(len(text[: text.rfind("\n") + 1].encode()))
    return {json.loads(line)["name"] for line in text.splitlines()[: text.count("\n")]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="operators; all of them if left out")
    parser.add_argument("--all", action="store_true", help="all samples and dtypes, not the slice")
    parser.add_argument("--dtypes", type=_dtypes, help="other dtypes, with commas between")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", help="a file instead of standard output")
    parser.add_argument(
        "--continue", dest="goes_on", action="store_true", help="run what FILE has no rows of, and append"
    )
    parser.add_argument("--shard", type=_shard, default=slice(None), help="K/N: the K-th of N parts")
    chosen = parser.parse_args()
    known = sorted(operators())
    if unknown := set(chosen.names) - set(known):
        parser.error(
            f"the database has no {', '.join(sorted(unknown))}; its names carry their variant (div.floor_rounding)"
        )
    if chosen.goes_on and not chosen.output:
        parser.error("--continue needs --output")
    done = _done(chosen.output) if chosen.goes_on else set()
    names = [name for name in (chosen.names or known)[chosen.shard] if name not in done]
    choice = Choice(chosen.dtypes or (LONG_DTYPES if chosen.all else SLICE_DTYPES), chosen.all)
    mode = "a" if chosen.goes_on else "w"
    with open(chosen.output, mode) if chosen.output else contextlib.nullcontext(sys.stdout) as out:

        def write(rows: list[Outcome]) -> None:
            for row in rows:
                print(json.dumps(dataclasses.asdict(row)), file=out)
            out.flush()

        run(names, choice, chosen.jobs, write)


if __name__ == "__main__":
    main()
