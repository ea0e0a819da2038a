# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.reuse [MODEL ...]`: what builds save where structure repeats.

A build's time is that from import to plan, kernels included; capture, the init program's run and the writing of weights do not
count. Four builds of each model take turns, in one process each round:

  nothing   every use of a kernel is compiled
  engine    equal kernels of one engine are compiled once; other engines compile theirs
  session   equal kernels of all engines of the model are compiled once
  warm      in another process, after a build that kept its kernels on disk

Medians, and ratios to the first.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

OTHER_PHASES = ("read", "prepare weights", "write")


class Clock:
    """A progress callback that adds up the seconds of each phase of all builds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._phase, self._start = "read", time.perf_counter()

    def __call__(self, phase: str, _done: int, _total: int, _remaining: float) -> bool:
        if phase != self._phase:
            now = time.perf_counter()
            self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._start
            self._phase, self._start = phase, now
        return True

    def build(self) -> float:
        return sum(seconds for phase, seconds in self.seconds.items() if phase not in OTHER_PHASES)


def build(name: str, options: dict[str, Any]) -> Clock:
    import torch
    from ingot.torch_backend import backend

    from bench.repeated_models import MODELS

    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    model, args = MODELS[name]()
    clock = Clock()
    torch._dynamo.reset()
    torch.compile(model, backend=backend, options={"progress": clock, **options})(*args)
    return clock


def run_one(name: str, way: str, folder: str) -> None:
    """Builds once and prints the phases. A small build before it starts LLVM and torch."""
    import ingot
    import torch

    ingot.compile(torch.nn.Linear(3, 3), inputs=[torch.randn(1, 3)])
    with ingot.Session(cache_bytes=0 if way in ("nothing", "engine") else 256 << 20) as session:
        options = {"engine_cache_dir": folder if way == "warm" else "off", "share_kernels": way != "nothing"}
        clock = build(name, options)
        stats = session.cache_stats()
    row = {"build": clock.build(), "phases": clock.seconds, "made": stats["made"]}
    print("bench:" + json.dumps(row | {"found": stats["from_memory"] + stats["from_disk"]}))


def measure(name: str, way: str, folder: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.reuse", "--one", way, "--folder", folder, name],
        cwd=ROOT, env={**os.environ, "INGOT_ENGINE_CACHE_DIR": "off"}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    line = next(line for line in done.stdout.splitlines() if line.startswith("bench:"))
    return json.loads(line.removeprefix("bench:"))


def compare(name: str, rounds: int) -> dict[str, dict[str, Any]]:
    taken: dict[str, list[dict[str, Any]]] = {"nothing": [], "engine": [], "session": [], "warm": []}
    with tempfile.TemporaryDirectory() as folder:
        measure(name, "warm", f"{folder}/cache")  # fills it
        for _ in range(rounds):
            for way, rows in taken.items():
                rows.append(measure(name, way, f"{folder}/cache"))
    return {
        way: {
            "build_s": statistics.median(row["build"] for row in rows),
            "made": rows[-1]["made"],
            "found": rows[-1]["found"],
            "phases": rows[-1]["phases"],
        }
        for way, rows in taken.items()
    }


def main() -> None:
    from bench.repeated_models import MODELS

    parser = argparse.ArgumentParser(prog="bench.reuse", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", default="build/bench_reuse.json")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.models[0], arguments.one, arguments.folder)
        return
    results = {}
    for name in arguments.models:
        results[name] = rows = compare(name, arguments.rounds)
        for way, row in rows.items():
            ratio = row["build_s"] / rows["nothing"]["build_s"]
            print(f"{name:16} {way:8} build {row['build_s'] * 1e3:8.1f} ms  {ratio:5.2f} of the first  "
                  f"{row['made']:4} kernels made, {row['found']:4} found", flush=True)  # fmt: skip
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
