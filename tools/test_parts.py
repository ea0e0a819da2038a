# SPDX-License-Identifier: Apache-2.0
"""Many tests as parts, each in a process of its own, whose results are kept: a run goes on where an earlier one was cut off."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BINARIES = ROOT / "build/release/bin"
_NONE_RAN = 5  # of pytest's exit statuses: also if a file is skipped as a whole


@dataclass
class Part:
    """A process: its name, its command without the file of results, and variables.

    results: the option that a file of results follows, in the form that pytest and gtest share; "": the command counts as one test.
    """

    name: str
    command: list[str]
    results: str
    variables: dict[str, str] = field(default_factory=dict)
    is_alone: bool = False


@dataclass
class Result:
    name: str
    commit: str
    passed: int
    skipped: int
    failed: int
    seconds: float


def of_pytest(name: str, files: Sequence[Path], variables: dict[str, str], is_alone: bool = False) -> Part:
    command = [sys.executable, "-m", "pytest", "-q", *map(str, files)]
    return Part(name, command, "--junitxml=", variables, is_alone)


def of_gtest(program: str, tests: str, variables: dict[str, str], shards: int) -> list[Part]:
    """One part for each shard of what a program has."""
    result = []
    for shard in range(shards):
        own = {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}
        command = [str(BINARIES / program), "--gtest_brief=1", f"--gtest_filter={tests}"]
        result.append(
            Part(f"{program} {shard + 1}/{shards}", command, "--gtest_output=xml:", variables | own)
        )
    return result


def commit_of_tree() -> str:
    """With "-dirty" if files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=8"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--state", type=Path, help="file of results; what passed at this commit is not run again"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")


def counted(results: Path) -> tuple[int, int, int]:
    """Passed, skipped and failed tests of a file of results."""
    tests = list(ElementTree.parse(results).getroot().iter("testcase"))
    failed = sum(any(each.tag in ("failure", "error") for each in test) for test in tests)
    skipped = sum(any(each.tag == "skipped" for each in test) for test in tests)
    return len(tests) - failed - skipped, skipped, failed


def _run(part: Part, commit: str) -> tuple[Result, str]:
    """A result, and what the process printed. A process that ends without results counts as one failure."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        done = subprocess.run(
            [*part.command, *([f"{part.results}{results}"] if part.results else [])],
            env=os.environ | part.variables,
            cwd=ROOT,
            text=True,
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        counts = counted(results) if results.exists() else None
    skips_all = done.returncode == _NONE_RAN and counts is not None and counts[1] > 0
    ended_well = (done.returncode == 0 and (counts is not None or not part.results)) or skips_all
    counts = counts or (int(ended_well and not part.results), 0, 0)
    told_why = done.returncode == 1 and counts[2] > 0
    failed = counts[2] + (not ended_well and not told_why)
    return Result(part.name, commit, counts[0], counts[1], failed, time.monotonic() - start), done.stdout


class _Progress:
    """Lines of parts that have ended, with an estimate by what they took in earlier runs; others by the average."""

    def __init__(self, left: Sequence[Part], jobs: int, earlier: Sequence[Result]) -> None:
        self._jobs, self._lock = jobs, threading.Lock()
        self._seconds = {row.name: row.seconds for row in earlier}
        self._left = {part.name for part in left}
        self._count = len(left)

    def tell(self, result: Result, printed: str) -> None:
        with self._lock:
            self._seconds[result.name] = result.seconds
            self._left.discard(result.name)
            average = sum(self._seconds.values()) / len(self._seconds)
            seconds = sum(self._seconds.get(name, average) for name in self._left) / self._jobs
            print(
                f"[{self._count - len(self._left)}/{self._count}, about {seconds / 60:.0f} min left] {result.name}: "
                f"{result.passed} passed, {result.skipped} skipped, {result.failed} failed, {result.seconds:.0f} s",
                flush=True,
            )
            if result.failed:
                print(printed[-20_000:], flush=True)


def _rows(state: Path | None) -> list[Result]:
    if state is None or not state.exists():
        return []
    rows = []
    for line in state.read_text().splitlines():
        try:
            rows.append(Result(**json.loads(line)))
        except ValueError:  # an empty line, or the one that a killed process was writing
            continue
    return rows


def run_all(wanted: Sequence[Part], commit: str, jobs: int, state: Path | None) -> list[Result]:
    """The results of all parts: of this run, and of earlier ones that passed at the same commit."""
    earlier = _rows(state)
    is_clean = not commit.endswith("-dirty")
    passed = {row.name: row for row in earlier if is_clean and row.commit == commit and row.failed == 0}
    results = [passed[part.name] for part in wanted if part.name in passed]
    left = [part for part in wanted if part.name not in passed]
    progress = _Progress(left, jobs, earlier)

    def one(part: Part) -> Result:
        result, printed = _run(part, commit)
        if state is not None:
            with state.open("a") as file:
                file.write(
                    "\n" + json.dumps(asdict(result))
                )  # a line of its own, also after one that was cut off
        progress.tell(result, printed)
        return result

    with ThreadPoolExecutor(jobs) as pool:
        try:
            results += list(pool.map(one, [part for part in left if not part.is_alone]))
        except KeyboardInterrupt:  # which the processes get, too
            pool.shutdown(cancel_futures=True)
            raise
    return results + [one(part) for part in left if part.is_alone]


def totals(results: Sequence[Result]) -> str:
    """ "12 passed, 3 skipped, 0 failed": of all parts."""
    sums = {name: sum(getattr(row, name) for row in results) for name in ("passed", "skipped", "failed")}
    return ", ".join(f"{count} {name}" for name, count in sums.items())


def exit_status(results: Sequence[Result]) -> int:
    return 1 if not results or any(row.failed for row in results) else 0
