# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.models [MODEL ...]`: what becomes of each model of tests/models/architectures.toml and tests/models/plain.

Each model and way, by torch.compile or ahead of time, runs in a process of its own, on one thread: outcome by the accuracy rule, graph
breaks, engines, the share of nodes in engines, build time, and time beside eager, interleaved. Rows go to a state file at once; a later
run continues with what has none, also after --seconds ended it (exit status 3), and `--write` makes the page of all rows. It needs
torch, transformers, scipy, and Ingot.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import functools
import importlib
import json
import os
import platform
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/python")]

from child_processes import STOPPED, run, whole_rows  # noqa: E402

WAYS = ("jit", "aot")
_LIMIT_S = 900
# What most models import; processes are forked from one that has done so.
_IMPORTED_ONCE = (
    "ingot", "models.outcomes", "transformers.modeling_utils", "transformers.generation", "transformers.masking_utils",
    "torch._dynamo.backends.common", "torch._inductor.decomposition", "torch._functorch.aot_autograd", "torch.export",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Piece:
    """A model, compiled in one way."""

    name: str
    way: str
    dtype: str


class Work:
    """Models that have no row yet; each row goes to the state file at once."""

    limit_s: float = _LIMIT_S
    has_fresh_children = True

    def __init__(self, pieces: list[Piece], state: Path) -> None:
        self.pieces = deque(pieces)
        self._state = state
        self._whole = len(pieces)
        self._start = time.monotonic()
        self._done = 0

    def run(self, piece: Piece, tell: Callable[[Any], None]) -> None:
        import torch
        from models.breadth import build
        from models.outcomes import ahead_of_time, in_dtype, just_in_time

        torch.set_grad_enabled(False)
        outcome = (just_in_time if piece.way == "jit" else ahead_of_time)(
            in_dtype(build(piece.name), piece.dtype)
        )
        tell(dataclasses.asdict(piece) | dataclasses.asdict(outcome) | where())

    def take(self, piece: Piece, row: dict[str, Any]) -> None:
        with self._state.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self._done += 1
        left = (time.monotonic() - self._start) / self._done * (self._whole - self._done)
        print(
            f"{self._done}/{self._whole} {piece.name}: {summary(row)} (about {left / 60:.0f} min left)",
            flush=True,
        )

    def end(self, piece: Piece) -> None:
        """Nothing remains of a piece that has its row."""

    def crash(self, piece: Piece, how: str) -> None:
        self.take(piece, dataclasses.asdict(piece) | {"kind": "crashed", "message": how} | where())


@functools.cache
def where() -> dict[str, str]:
    """What the page says of the machine and the versions that rows come from."""
    import torch
    import transformers

    return {
        "processor": processor(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": str(datetime.date.today()),
    }


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def read_rows(state: Path) -> dict[str, list[dict[str, Any]]]:
    """By model; later rows replace earlier ones of the same way and dtype."""
    rows: dict[str, dict[tuple[str, str], dict]] = {}
    for row in whole_rows(state):
        rows.setdefault(row["name"], {})[row["way"], row["dtype"]] = row
    return {name: list(each.values()) for name, each in rows.items()}


def summary(row: dict[str, Any]) -> str:
    text = f"{row['way']} {row['dtype']} {row['kind']}"
    if row["message"]:
        return f"{text}: {row['message']}"
    text += f", {row['in_engines']} of {row['nodes']} nodes in {row['engines']} engines"
    return text + (f", {len(row['breaks'])} breaks" if row["breaks"] else "")


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="bench.models", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="only these, again; default: all without a row"
    )
    parser.add_argument("--ways", default="jit,aot", help="jit, aot or both")
    parser.add_argument("--dtypes", default="f32", help="f32, bf16 or both")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pin", action="store_true", help="each process on a processor of its own")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that long")
    parser.add_argument("--state", type=Path, default=ROOT / "build/models.jsonl")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="writes the page of all rows; runs nothing"
    )
    arguments = parser.parse_args(words)
    from models.breadth import NAMES

    if arguments.write:
        from bench.models_page import page

        arguments.write.write_text(page(read_rows(arguments.state), NAMES))
        return
    if unknown := set(arguments.models) - set(NAMES):
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    ways, dtypes = arguments.ways.split(","), arguments.dtypes.split(",")
    again = [Piece(name, way, dtype) for name in arguments.models for dtype in dtypes for way in ways]
    sys.exit(
        0 if run_all(arguments, again or without_rows(arguments.state, NAMES, ways, dtypes)) else STOPPED
    )


def without_rows(state: Path, names: list[str], ways: list[str], dtypes: list[str]) -> list[Piece]:
    """What a run has to continue with."""
    done = {(row["name"], row["way"], row["dtype"]) for rows in read_rows(state).values() for row in rows}
    wanted = [Piece(name, way, dtype) for name in names for dtype in dtypes for way in ways]
    return [piece for piece in wanted if dataclasses.astuple(piece) not in done]


def run_all(arguments: argparse.Namespace, pieces: list[Piece]) -> bool:
    """Whether all pieces were run in time."""
    os.environ["INGOT_ENGINE_CACHE_DIR"] = "off"
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # processes are forked: CUDA cannot be used in them
    for module in _IMPORTED_ONCE:
        importlib.import_module(module)
    arguments.state.parent.mkdir(parents=True, exist_ok=True)
    return run(Work(pieces, arguments.state), arguments.jobs, arguments.seconds, arguments.pin)


if __name__ == "__main__":
    main()
