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
import subprocess
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
    device: str = "cpu"


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
        from models.outcomes import ahead_of_time, in_dtype, just_in_time, on_device

        torch.set_grad_enabled(False)
        torch.backends.cudnn.allow_tf32 = False  # eager's results are what the rule compares with
        case = on_device(in_dtype(build(piece.name), piece.dtype), piece.device)
        outcome = just_in_time(case) if piece.way == "jit" else ahead_of_time(case, piece.device == "cpu")
        tell(dataclasses.asdict(piece) | dataclasses.asdict(outcome) | where(piece.device))

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
        self.take(
            piece, dataclasses.asdict(piece) | {"kind": "crashed", "message": how} | where(piece.device)
        )


@functools.cache
def where(device: str) -> dict[str, str]:
    """What the page says of the machine and the versions that rows come from."""
    import torch
    import transformers

    return {
        "processor": processor() if device == "cpu" else gpu(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": str(datetime.date.today()),
    }


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    return next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


def gpu() -> str:
    """The first one's name, asked for without CUDA, which no process can use that is forked after it was started."""
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[0]


def read_rows(state: Path) -> dict[str, list[dict[str, Any]]]:
    """By model; later rows replace earlier ones of the same way and dtype. A file is of one device."""
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
    parser.add_argument("--dtypes", default="f32", help="of f32, bf16 and f16")
    parser.add_argument(
        "--device", default="cpu", choices=["cpu", "cuda"], help="where models and engines are"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--pin", action="store_true", help="each process on a processor of its own")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after that long")
    parser.add_argument("--state", type=Path, help="default: build/models.jsonl, build/models_cuda.jsonl")
    parser.add_argument(
        "--write", type=Path, metavar="PAGE", help="writes the page of all rows; runs nothing"
    )
    arguments = parser.parse_args(words)
    device = arguments.device
    arguments.state = arguments.state or ROOT / f"build/models{'' if device == 'cpu' else f'_{device}'}.jsonl"
    from models.breadth import CAUSES, NAMES

    if arguments.write:
        from bench.models_page import page

        arguments.write.write_text(page(read_rows(arguments.state), NAMES, CAUSES, device))
        return
    if unknown := set(arguments.models) - set(NAMES):
        parser.error(f"there is no model {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    ways, dtypes = arguments.ways.split(","), arguments.dtypes.split(",")
    wanted = [
        Piece(name, way, dtype, device)
        for name in arguments.models or NAMES
        for dtype in dtypes
        for way in ways
    ]
    left = wanted if arguments.models else without_rows(arguments.state, wanted)
    sys.exit(0 if run_all(arguments, left) else STOPPED)


def without_rows(state: Path, wanted: list[Piece]) -> list[Piece]:
    """What a run has to continue with."""
    done = {(row["name"], row["way"], row["dtype"]) for rows in read_rows(state).values() for row in rows}
    return [piece for piece in wanted if (piece.name, piece.way, piece.dtype) not in done]


def run_all(arguments: argparse.Namespace, pieces: list[Piece]) -> bool:
    """Whether all pieces were run in time."""
    os.environ["INGOT_ENGINE_CACHE_DIR"] = "off"
    _import_once()
    if arguments.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    arguments.state.parent.mkdir(parents=True, exist_ok=True)
    return run(Work(pieces, arguments.state), arguments.jobs, arguments.seconds, arguments.pin)


def _import_once() -> None:
    """Without starting CUDA, which no child could use then."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
    for module in _IMPORTED_ONCE:
        importlib.import_module(module)
    del os.environ["CUDA_VISIBLE_DEVICES"]
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible


if __name__ == "__main__":
    main()
