# SPDX-License-Identifier: Apache-2.0
"""Runs torch's operator database through Ingot, in child processes: a crash costs one sample, and is reported with it.

    python tests/python/run_operators.py [--all] [--dtypes float32,int64] [--jobs N] [--output FILE [--continue]] [--seconds S]
                                         [--shard K/N] [--pin] [NAME ...]

Writes one JSON line per sample; wrong results go to standard error at once. With --continue, samples that FILE has are left out, so
that a run that was cut off, or that --seconds ended (exit status 3), continues. It needs torch, numpy, and Ingot, and no other package.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import sys
from collections import defaultdict, deque
from collections.abc import Iterable

os.environ["CUDA_VISIBLE_DEVICES"] = ""  # children are forked: CUDA cannot be used in them

import torch
from child_processes import STOPPED, whole_rows
from operator_database import DTYPES, LONG_DTYPES, SLICE_DTYPES, Outcome, operators
from operator_workers import Piece, Work, report, run


def _dtypes(text: str) -> tuple[torch.dtype, ...]:
    if unknown := [name for name in text.split(",") if name not in DTYPES]:
        raise argparse.ArgumentTypeError(
            f"unknown dtypes {', '.join(unknown)}; known are {', '.join(DTYPES)}"
        )
    return tuple(DTYPES[name] for name in text.split(","))


def _shard(text: str) -> slice:
    """Every N-th operator from the K-th: neighbours in the list, which are alike, are in different shards."""
    part, _, whole = text.partition("/")
    if not (part.isdigit() and whole.isdigit() and 1 <= int(part) <= int(whole)):
        raise argparse.ArgumentTypeError(f"a shard is K/N with K from 1 to N, not {text}")
    return slice(int(part) - 1, None, int(whole))


def _done(path: str) -> dict[tuple[str, str], set[str]]:
    """The samples that a file has, by operator and dtype."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in whole_rows(path):
        found[row["name"], row["dtype"]].add(row["sample"])
    return found


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="operators; all of them if left out")
    parser.add_argument("--all", action="store_true", help="all samples and dtypes, not the slice")
    parser.add_argument("--dtypes", type=_dtypes, help="other dtypes, with commas between")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--output", help="a file instead of standard output")
    parser.add_argument(
        "--continue", dest="goes_on", action="store_true", help="run what FILE does not have, and append"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that long")
    parser.add_argument("--shard", type=_shard, default=slice(None), help="K/N: the K-th of N parts")
    parser.add_argument("--pin", action="store_true", help="each child on a processor of its own")
    return parser


def main() -> None:
    parser = _arguments()
    chosen = parser.parse_args()
    known = sorted(operators())
    if unknown := set(chosen.names) - set(known):
        parser.error(
            f"the database has no {', '.join(sorted(unknown))}; its names carry their variant (div.floor_rounding)"
        )
    if chosen.goes_on and not chosen.output:
        parser.error("--continue needs --output")
    done = _done(chosen.output) if chosen.goes_on else {}
    dtypes = [
        str(d).removeprefix("torch.") for d in chosen.dtypes or (LONG_DTYPES if chosen.all else SLICE_DTYPES)
    ]
    pieces = deque(
        Piece(name, dtype, skipped=frozenset(done.get((name, dtype), ())))
        for name in (chosen.names or known)[chosen.shard]
        for dtype in dtypes
    )
    mode = "a" if chosen.goes_on else "w"
    with open(chosen.output, mode) if chosen.output else contextlib.nullcontext(sys.stdout) as out:

        def write(rows: Iterable[Outcome]) -> None:
            for row in rows:
                print(json.dumps(dataclasses.asdict(row)), file=out)
            out.flush()
            report(rows)

        complete = run(Work(pieces, chosen.all, write), chosen.jobs, chosen.seconds, chosen.pin)
    sys.exit(0 if complete else STOPPED)


if __name__ == "__main__":
    main()
