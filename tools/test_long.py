#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every test in the long mode with one command, and a row of its result for docs/long-tests.md.

test_long.py [--shard K/N] [--state FILE] [--jobs N]: the C++ tests, the Python tests, lint and the fuzz targets, in parts of some minutes,
each a process of its own. `--state`: parts that passed before, at the same commit, are not run again; where the run was cut off, the
same command goes on. `--shard K/N`: every N-th part from the K-th, for N machines.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from datetime import date
from pathlib import Path

import test_parts
from test_parts import BINARIES, ROOT, Part

_IS_LONG = re.compile(r"mark\.long|INGOT_LONG")
TESTS_PER_SHARD, MOST_SHARDS = 100, 16  # of a C++ program
FILES_PER_PART = 8  # of Python, where each process imports torch
_VARIABLES = {
    "INGOT_LONG": "1",
    "PYTEST_TIMEOUT": str(4 * 3600),
}  # some tests take hours, where others would hang


def python_files() -> list[Path]:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    found = {
        path
        for folder in options["testpaths"]
        for pattern in options["python_files"]
        for path in (ROOT / folder).rglob(pattern)
    }
    return sorted(found)


def _python_parts(files: Iterable[Path]) -> list[Part]:
    """Files with long tests alone, and the servers', which make environments; others of a folder together."""
    result: list[Part] = []
    together: dict[Path, list[Path]] = {}
    for path in files:
        name = str(path.relative_to(ROOT))
        if _IS_LONG.search(path.read_text()) or path.parent.name == "serving":
            result.append(test_parts.of_pytest(name, [path], _VARIABLES))
        else:
            together.setdefault(path.parent, []).append(path)
    for folder, each in together.items():
        for first in range(0, len(each), FILES_PER_PART):
            own = each[first : first + FILES_PER_PART]
            name = f"{folder.relative_to(ROOT)}: {own[0].stem} to {own[-1].stem}"
            result.append(test_parts.of_pytest(name, own, _VARIABLES))
    return result


def _programs() -> list[Part]:
    result = []
    for path in sorted(BINARIES.glob("ingot_test_*")):
        command = [path, "--gtest_list_tests"]
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        count = sum(line.startswith("  ") for line in listed.splitlines())
        shards = min(MOST_SHARDS, -(-count // TESTS_PER_SHARD))
        result += test_parts.of_gtest(path.name, "*", _VARIABLES, shards)
    return result


def parts() -> list[Part]:
    others = {
        "other tests of ctest": ["ctest", "--test-dir", "build/release", "-E", "[.]", "--output-on-failure"],
        "lint": ["make", "--no-print-directory", "lint"],
        "fuzz targets": ["tools/fuzz.sh", "60"],
    }
    result = _python_parts(python_files()) + _programs()  # long tests first
    return result + [Part(name, command, "", _VARIABLES, True) for name, command in others.items()]


def shard_of(text: str) -> slice:
    number, _, count = text.partition("/")
    if not number.isdecimal() or not count.isdecimal() or not 1 <= int(number) <= int(count):
        raise argparse.ArgumentTypeError(f"expected K/N with 1 <= K <= N, got {text!r}")
    return slice(int(number) - 1, None, int(count))


def processor() -> str:
    rows = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    name = next((value.strip() for key, _, value in rows if key.strip() == "model name"), platform.machine())
    return f"{name}, {os.cpu_count()} cores"


def main() -> int:
    parser = argparse.ArgumentParser(description="All tests in the long mode.")
    parser.add_argument(
        "--shard", type=shard_of, default=slice(None), help="K/N: every N-th part from the K-th"
    )
    test_parts.add_options(parser)
    options = parser.parse_args()
    commit, start = test_parts.commit_of_tree(), time.monotonic()
    wanted = parts()[options.shard]
    results = test_parts.run_all(wanted, commit, options.jobs, options.state)
    hours = sum(row.seconds for row in results) / 3600
    for row in results:
        if row.failed:
            print(f"failed: {row.name}")
    print(f"{len(results)} parts, {(time.monotonic() - start) / 60:.0f} min in this run")
    print(f"| {processor()}, {date.today()} | {commit} | {hours:.1f} | {test_parts.totals(results)} |")
    return test_parts.exit_status(results)


if __name__ == "__main__":
    sys.exit(main())
