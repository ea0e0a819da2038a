# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.reuse [MODEL ...]`: what builds save where structure repeats.

A build's time is that from import to plan, kernels included; capture, the init program's run and the writing of weights do not
count. Four builds of each model take turns, in one process each round:

  nothing   every use of a kernel is compiled
  engine    equal kernels of one engine are compiled once; other engines compile theirs
  session   equal kernels of all engines of the model are compiled once, and so are engines of equal structure
  warm      in another process, after a build that kept its engines on disk

Medians, and ratios to the first: of the wall time, and of the processor time of all threads, which other work on the machine
disturbs less. A model that torch.compile makes one graph of is one engine: there `session` has nothing more to share than `engine`.
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
    """A progress callback that adds up the seconds of each phase of all builds, and of the process's threads meanwhile."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._phase, self._start = "read", (time.perf_counter(), time.process_time())

    def __call__(self, phase: str, _done: int, _total: int, _remaining: float) -> bool:
        if phase != self._phase:
            now = time.perf_counter(), time.process_time()
            for total, start, end in zip((self.seconds, self.processor), self._start, now, strict=True):
                total[self._phase] = total.get(self._phase, 0.0) + end - start
            self._phase, self._start = phase, now
        return True

    def build(self) -> float:
        return self._of_builds(self.seconds)

    def build_processor(self) -> float:
        return self._of_builds(self.processor)

    @staticmethod
    def _of_builds(seconds: dict[str, float]) -> float:
        return sum(taken for phase, taken in seconds.items() if phase not in OTHER_PHASES)


def build(name: str, options: dict[str, Any]) -> Clock:
    import torch
    from ingot.torch_backend import backend

    from bench.repeated_models import MODELS

    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    model, calls = MODELS[name]()
    clock = Clock()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, options={"progress": clock, **options})
    for args in calls:
        compiled(*args)
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
    row = {"build": clock.build(), "processor": clock.build_processor(), "phases": clock.seconds,
           "made": stats["made"]}  # fmt: skip
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
            "processor_s": statistics.median(row["processor"] for row in rows),
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
    unknown = sorted(set(arguments.models) - set(MODELS))
    if unknown:
        parser.error(f"there is no model {unknown[0]!r}; known are {', '.join(MODELS)}")
    if arguments.one:
        run_one(arguments.models[0], arguments.one, arguments.folder)
        return
    results = {}
    for name in arguments.models:
        results[name] = rows = compare(name, arguments.rounds)
        for way, row in rows.items():
            ratios = [row[key] / rows["nothing"][key] for key in ("build_s", "processor_s")]
            print(f"{name:17} {way:8} build {row['build_s'] * 1e3:8.1f} ms ({ratios[0]:4.2f} of the first), processor "
                  f"{row['processor_s'] * 1e3:8.1f} ms ({ratios[1]:4.2f})  {row['made']:4} kernels made, {row['found']:4} found",
                  flush=True)  # fmt: skip
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
