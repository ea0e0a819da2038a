# SPDX-License-Identifier: Apache-2.0
"""Random modules through torch.compile, torch.export, .pt2 files and traces, against eager. What fails is shrunk and printed as Python.

    python tests/python/run_random_programs.py [--seed N] [--first K] [--count N] [--seconds S] [--way WAY] [--state FILE]

Program k of a seed is the same everywhere. Without a seed it is that of the commit. With --state the run goes on where the last one
with that file ended. Exit status: 1 if a program failed. Children run the programs: a crash costs one program and is told by its number.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_CHILD_PROGRAMS = 60  # then a fresh process: torch.compile keeps all that it compiled
_SECONDS_A_PROGRAM = 120
_WAYS = ("torch.compile", "export", "torch.compile", "pt2", "torch.compile", "export", "trace", "pt2")
_LINES_SAID = 10  # of what a process that ended wrote to its standard error


def commit_seed() -> int:
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=_ROOT, capture_output=True, text=True)
    return int(done.stdout[:12], 16) if done.returncode == 0 else 0


def program_seed(seed: int, number: int) -> int:
    return (seed * 1_000_003 + number * 7_919) % 2**40


def way_of(number: int, wanted: str | None) -> str:
    return wanted or _WAYS[number % len(_WAYS)]


def run_one(seed: int, number: int, wanted: str | None) -> dict[str, str]:
    """The outcome of one program: right, unsupported or wrong, with the reproducer."""
    import random_programs
    from program_checks import UnsupportedProgramError, check

    way = way_of(number, wanted)
    program = random_programs.draw(program_seed(seed, number))

    def failure(candidate: random_programs.Program) -> str:
        try:
            check(candidate, way)
        except UnsupportedProgramError:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    try:
        check(program, way)
        return {"kind": "right"}
    except UnsupportedProgramError as error:
        return {"kind": "unsupported", "detail": str(error).splitlines()[0]}
    except Exception as error:
        kind = type(error).__name__
        small = random_programs.shrink(program, lambda candidate: failure(candidate).startswith(kind))
        return {"kind": "wrong", "detail": reproducer(small, way, failure(small) or f"{kind}: {error}")}


def reproducer(program: object, way: str, message: str) -> str:
    from random_programs import Program

    assert isinstance(program, Program)
    leaves = "".join(f"    {leaf!r},\n" for leaf in program.leaves)
    statements = "".join(f"    {statement!r},\n" for statement in program.statements)
    lines = "".join(
        f"# {line}\n" for line in [*message.splitlines()[:12], "", *program.source().splitlines()]
    )
    return (
        f"# Run it in the repository's root.\n{lines}import sys\n\nsys.path.insert(0, 'tests/python')\n"
        "from random_programs import Leaf, Program, Statement\nfrom program_checks import check\n\n"
        f"program = Program({program.seed}, (\n{leaves}), (\n{statements}), {program.outputs!r}, {program.sizes!r}, {program.manners!r})\n"
        f"check(program, {way!r})\n"
    )


def child(chosen: argparse.Namespace) -> None:
    # Before the first program begins, so that a package that cannot be imported is not a failure of that program.
    import program_checks  # noqa: F401
    import torch

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    deadline = time.monotonic() + chosen.seconds
    for number in range(chosen.first, chosen.first + chosen.count):
        if time.monotonic() > deadline:
            break
        print(json.dumps({"begin": number}), flush=True)
        signal.alarm(_SECONDS_A_PROGRAM * 10)
        print(json.dumps({"end": number, **run_one(chosen.seed, number, chosen.way)}), flush=True)


class Run:
    """The parent: starts children one after the other, and counts."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        self.chosen = chosen
        self.next = chosen.first
        self.kinds: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.failures: list[str] = []
        self.total = 0
        if chosen.state and Path(chosen.state).exists():
            state = json.loads(Path(chosen.state).read_text())
            if state["seed"] == chosen.seed:
                self.next, self.total = state["next"], state["total"]

    def run(self) -> None:
        last, deadline = self.next + self.chosen.count, time.monotonic() + self.chosen.seconds
        while self.next < last and time.monotonic() < deadline:
            self.start_child(min(last - self.next, _CHILD_PROGRAMS), deadline - time.monotonic())
            self.save()

    def start_child(self, count: int, seconds: float) -> None:
        command = [sys.executable, __file__, "--child", f"--seed={self.chosen.seed}", f"--first={self.next}",
                   f"--count={count}", f"--seconds={seconds}"]  # fmt: skip
        if self.chosen.way:
            command.append(f"--way={self.chosen.way}")
        running = None
        with (
            tempfile.TemporaryFile("w+") as errors,
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
        ):
            for line in process.stdout or ():
                if not line.startswith('{"'):
                    continue
                row = json.loads(line)
                running = row.get("begin")
                if "end" in row:
                    self.take(row)
            status = process.wait()
            errors.seek(0)
            said = "\n".join(errors.read().splitlines()[-_LINES_SAID:])
        message = f"the process ended with status {status} and said\n{said}"
        if running is not None:
            self.take({"end": running, "kind": "wrong", "detail": self.program(running, message)})
        elif status != 0:
            raise RuntimeError(f"no program was running when a child ended: {message}")

    def program(self, number: int, message: str) -> str:
        """As it was drawn: a program that ends the process cannot be shrunk in it."""
        import random_programs

        program = random_programs.draw(program_seed(self.chosen.seed, number))
        return reproducer(program, way_of(number, self.chosen.way), message)

    def take(self, row: dict) -> None:
        self.next, self.total = row["end"] + 1, self.total + 1
        self.kinds[row["kind"]] += 1
        if row["kind"] == "unsupported":
            self.reasons[row["detail"][:100]] += 1
        if row["kind"] == "wrong":
            text = f"program {row['end']} of seed {self.chosen.seed}, by {way_of(row['end'], self.chosen.way)}:\n{row['detail']}"
            self.failures.append(text)
            print(text, flush=True)

    def save(self) -> None:
        if self.chosen.state:
            Path(self.chosen.state).parent.mkdir(parents=True, exist_ok=True)
            Path(self.chosen.state).write_text(
                json.dumps({"seed": self.chosen.seed, "next": self.next, "total": self.total})
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--way", choices=["torch.compile", "export", "pt2", "trace"])
    parser.add_argument("--state", help="where the run goes on, and how many programs ran so far")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    chosen.seed = commit_seed() if chosen.seed is None else chosen.seed
    if chosen.child:
        child(chosen)
        return 0
    run = Run(chosen)
    run.run()
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(run.kinds.items()))
    print(
        f"random programs of seed {chosen.seed}: {sum(run.kinds.values())} run, {kinds}; {run.total} in all"
    )
    for reason, count in run.reasons.most_common(8):
        print(f"  {count} unsupported: {reason}")
    return 1 if run.failures else 0


if __name__ == "__main__":
    sys.exit(main())
