#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test of GPUs with one command, and a row of its result for docs/gpu.md.

test_gpu.py [FILE ...] [--architecture compute_90] [--state FILE] [--jobs N]: the C++ tests of kernels, templates and operators' samples
(where they are built), and all Python tests that use a GPU, each in a process of its own. Without a GPU what needs one is skipped,
and kernels are compiled. `--state`: parts that passed before, at the same commit, are not run again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BINARIES = ROOT / "build/release/bin"
# gtest programs, and which of their tests.
PROGRAMS = {"ingot_test_platforms": "*Gpu*", "ingot_test_backends": "*Cuda*"}
SHARDS = 8
# These measure the GPU's free memory, or take all GPUs: nothing runs beside them.
ALONE = (
    "test_gpu_runs.py",
    "test_weight_streaming.py",
    "test_gpu_ranks.py",
    "test_gpu_failing_ranks.py",
    "test_gpu_outputs.py",
)
_USES_A_GPU = re.compile(r"gpu_targets|torch\.cuda\.(is_available|device_count)")


@dataclass
class Part:
    """A process: its name, its command without the file of results, and variables."""

    name: str
    command: list[str]
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


def python_files() -> list[Path]:
    """All test files that use a GPU where there is one."""
    found = [*ROOT.glob("tests/**/test_*.py"), *ROOT.glob("tests/**/*_test.py")]
    return sorted(
        path for path in found if _USES_A_GPU.search(path.read_text()) and path.parent.name != "tools"
    )


def parts(files: list[Path], architecture: str) -> list[Part]:
    """Those of the given files, or all."""
    variables = {"INGOT_TEST_ARCHITECTURE": architecture} if architecture else {}
    result = []
    for path in files or python_files():
        command = [sys.executable, "-m", "pytest", "-q", str(path)]
        result.append(Part(path.name, command, variables, path.name in ALONE))
    for program, tests in {} if files else PROGRAMS.items():
        if not (BINARIES / program).exists():
            print(f"{program} is not built (make tests)")
            continue
        for shard in range(SHARDS):
            own = {"GTEST_TOTAL_SHARDS": str(SHARDS), "GTEST_SHARD_INDEX": str(shard)}
            command = [str(BINARIES / program), "--gtest_brief=1", f"--gtest_filter={tests}"]
            result.append(Part(f"{program} {shard + 1}/{SHARDS}", command, variables | own))
    return result


def counted(results: Path) -> tuple[int, int, int]:
    """Passed, skipped and failed tests of a file of results, in the form that pytest and gtest share."""
    tests = list(ElementTree.parse(results).getroot().iter("testcase"))
    failed = sum(any(each.tag in ("failure", "error") for each in test) for test in tests)
    skipped = sum(any(each.tag == "skipped" for each in test) for test in tests)
    return len(tests) - failed - skipped, skipped, failed


def run(part: Part, commit: str) -> Result:
    """A process that ends without results counts as one failure."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        option = "--junitxml=" if "pytest" in part.command else "--gtest_output=xml:"
        done = subprocess.run(
            [*part.command, f"{option}{results}"],
            env=os.environ | part.variables,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        is_complete = results.exists() and done.returncode in (0, 1)
        counts = counted(results) if results.exists() else (0, 0, 0)
    crashed = not is_complete or (done.returncode == 1 and counts[2] == 0)
    result = Result(part.name, commit, counts[0], counts[1], counts[2] + crashed, time.monotonic() - start)
    print(
        f"{part.name}: {result.passed} passed, {result.skipped} skipped, {result.failed} failed, {result.seconds:.0f} s",
        flush=True,
    )
    if result.failed:
        print(done.stdout[-20_000:], flush=True)
    return result


def commit_of_tree() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "unknown"


def passed_before(state: Path | None, commit: str) -> list[Result]:
    if state is None or not state.exists():
        return []
    rows = [Result(**json.loads(line)) for line in state.read_text().splitlines()]
    return [row for row in rows if row.commit == commit and row.failed == 0]


def run_all(wanted: list[Part], commit: str, jobs: int, state: Path | None) -> list[Result]:
    known = {row.name: row for row in passed_before(state, commit)}
    results = [known[part.name] for part in wanted if part.name in known]

    def one(part: Part) -> Result:
        result = run(part, commit)
        if state is not None:
            with state.open("a") as file:
                file.write(json.dumps(asdict(result)) + "\n")
        return result

    left = [part for part in wanted if part.name not in known]
    with ThreadPoolExecutor(jobs) as pool:
        results += pool.map(one, [part for part in left if not part.is_alone])
    return results + [one(part) for part in left if part.is_alone]


def device() -> str:
    """What runs them: "NVIDIA H200"."""
    code = "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'no GPU', 'torch', torch.__version__)"
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    ).stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description="All tests of GPUs.")
    parser.add_argument("files", nargs="*", type=Path, help="test files of Python; all tests by default")
    parser.add_argument(
        "--architecture", default="", help="what kernels are built for: compute_90; the GPU's own by default"
    )
    parser.add_argument(
        "--state", type=Path, help="file of results; what passed at this commit is not run again"
    )
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = parser.parse_args()
    commit = commit_of_tree() + (f", {options.architecture}" if options.architecture else "")
    results = run_all(parts(options.files, options.architecture), commit, options.jobs, options.state)
    passed, skipped, failed = (
        sum(getattr(row, name) for row in results) for name in ("passed", "skipped", "failed")
    )
    print(
        f"| {device()}, {date.today()}, commit {commit} | `tools/test_gpu.py` | {passed} passed, {skipped} skipped, {failed} failed |"
    )
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
