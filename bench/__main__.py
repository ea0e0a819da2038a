# SPDX-License-Identifier: Apache-2.0
"""`python -m bench [MODEL ...]`: models at batch 1 by Ingot and its peers, interleaved; prints medians and ratios.

Absolute times drift on a shared machine: only ratios of one run count. A ratio above 1 means that Ingot is faster. With one thread,
processor time is measured. --int8: statically quantized, by each engine's own tool (bench/quantized_engines.py), with sequences of 128
tokens.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from models import MODELS  # noqa: E402

from bench import engines, quantized_engines  # noqa: E402

ROUNDS = 8
BURST_MS = 150  # each turn runs about so long


class Worker:
    """One engine in a process of its own, with compiler caches that start empty."""

    def __init__(self, model: str, engine: str, threads: int, is_int8: bool) -> None:
        self.engine = engine
        self.cache = tempfile.TemporaryDirectory()
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": self.cache.name,
            "OMP_NUM_THREADS": str(threads),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker", model, engine, str(threads), *["int8"] * is_int8],
            cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        ready = self._answer()
        if "reason" in ready:
            raise RuntimeError(ready["reason"].strip().splitlines()[0])
        self.facts = ready
        self.times: list[float] = []
        self.burst = max(1, int(BURST_MS / max(statistics.median(self._run(3)), 1e-3)))

    def _answer(self) -> object:
        for line in self.process.stdout:
            if line.startswith("bench:"):
                return json.loads(line.removeprefix("bench:"))
        raise RuntimeError(f"ended with status {self.process.wait()}")

    def _run(self, count: int) -> list[float]:
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self._answer()

    def turn(self) -> None:
        self.times += self._run(self.burst)

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.cache.cleanup()


def start_workers(model: str, names: list[str], threads: int, is_int8: bool) -> list[Worker]:
    workers = []
    for engine in names:
        try:
            workers.append(Worker(model, engine, threads, is_int8))
        except RuntimeError as error:
            print(f"{model:15} {engine:12} left out: {error}", flush=True)
    return workers


def compare(model: str, names: list[str], threads: int, is_int8: bool) -> dict[str, dict[str, float]]:
    workers = start_workers(model, names, threads, is_int8)
    for _ in range(ROUNDS):
        for worker in workers:
            worker.turn()
    rows = {
        worker.engine: {
            "median_ms": statistics.median(worker.times),
            "least_ms": min(worker.times),
            **worker.facts,
        }
        for worker in workers
    }
    for worker in workers:
        worker.close()
    return rows


def show(model: str, rows: dict[str, dict[str, float]]) -> None:
    ours = rows.get("ingot", {}).get("median_ms", math.nan)
    for engine, row in rows.items():
        print(f"{model:15} {engine:12} {row['median_ms']:10.3f} ms  ratio {row['median_ms'] / ours:6.2f}  least {row['least_ms']:8.3f}  "
              f"error {row['error']:.2g}  build {row['build_s']:7.2f} s  peak {row['rss_mb']:7.0f} MB", flush=True)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--engines", help="separated by commas")
    parser.add_argument("--int8", action="store_true", help="statically quantized models")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", default="build/bench.json")
    arguments = parser.parse_args()
    known = quantized_engines.ENGINES if arguments.int8 else engines.ENGINES
    names = arguments.engines.split(",") if arguments.engines else list(known)
    results = {}
    for model in arguments.models:
        if model not in MODELS:
            parser.error(f'there is no model "{model}"; there are {", ".join(MODELS)}')
        results[model] = compare(model, names, arguments.threads, arguments.int8)
        show(model, results[model])
    for peer in names:
        ratios = [
            rows[peer]["median_ms"] / rows["ingot"]["median_ms"]
            for rows in results.values()
            if {peer, "ingot"} <= set(rows)
        ]
        if ratios and peer != "ingot":
            print(
                f"geometric mean of {peer} / ingot over {len(ratios)} models: {statistics.geometric_mean(ratios):.2f}"
            )
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
