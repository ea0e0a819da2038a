#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps the entries of .def files sorted and unique: each run of lines `NAME(...)` is sorted by itself."""

import argparse
import re
import sys
from itertools import groupby
from pathlib import Path

from source_files import ROOT, tracked_files

ENTRY = re.compile(r"^[A-Z_]+\(.*\)\s*(//.*)?$")


def sorted_text(text: str) -> str:
    lines = []
    for is_entry, group in groupby(text.splitlines(), key=lambda line: bool(ENTRY.match(line))):
        run = list(group)
        lines += sorted(set(run)) if is_entry else run
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a file is not sorted")
    parser.add_argument("files", nargs="*", type=Path, help="default: every .def file of the tree")
    options = parser.parse_args()
    wrong = 0
    for file in options.files or [ROOT / name for name in tracked_files(ROOT, ".def")]:
        text = file.read_text(encoding="utf-8")
        if sorted_text(text) == text:
            continue
        wrong += 1
        if options.check:
            print(f"{file}: entries are not sorted: run tools/sort_def.py", file=sys.stderr)
        else:
            file.write_text(sorted_text(text), encoding="utf-8")
    return 1 if options.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
