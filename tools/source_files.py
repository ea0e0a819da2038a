#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The source files, for the checks in this folder. As a program: prints those with given suffixes."""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUTPUTS = {"build", ".venv", ".git", "__pycache__"}


def tracked_files(root: Path, *suffixes: str) -> list[Path]:
    """Tracked and new (not ignored) files of the tree with one of the suffixes, relative to root."""
    command = ["git", "-C", str(root), "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, check=False, capture_output=True, text=True)
    if listing.returncode == 0:
        files = {Path(name) for name in listing.stdout.splitlines()}
    else:  # not a git checkout, such as an unpacked archive
        files = {path.relative_to(root) for path in root.rglob("*")}
    wanted = (file for file in files if file.name.endswith(suffixes) and not OUTPUTS & set(file.parts))
    return sorted(file for file in wanted if (root / file).is_file())


def report(problems: Sequence[object]) -> int:
    """Prints what a check found; its exit status."""
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def root_argument(description: str | None) -> Path:
    """The tree that a check reads: --root, or this one."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--root", type=Path, default=ROOT)
    return parser.parse_args().root.resolve()


if __name__ == "__main__":
    for file in tracked_files(ROOT, *sys.argv[1:]):
        print(file)
