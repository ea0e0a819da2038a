# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.loading [MODEL]`: loading an engine file, and checking all of it compared with the hash alone.

The file is in the page cache. The hash is XXH3-128 of the `xxhash` package over the file, mapped anew each time as an engine
maps it, in this process and interleaved, on one thread; `verify="full"` uses two.
"""

from __future__ import annotations

import argparse
import mmap
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ingot
import torch
import xxhash

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models import MODELS, build

ROUNDS = 15


def hash_file(path: Path) -> bytes:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return xxhash.xxh3_128_digest(content)


def median_ms(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            kept = way()
            times[name].append((time.perf_counter() - start) * 1e3)
            del kept
            time.sleep(0.05)  # a lazy load checks the weights in the background
    return {name: statistics.median(taken) for name, taken in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.loading", description=__doc__)
    parser.add_argument("model", nargs="?", default="resnet50", choices=list(MODELS))
    case = build(parser.parse_args().model)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = Path(folder) / "model.ingot"
        ingot.build(torch.export.export(case.model, case.args)).save(path)
        size = path.stat().st_size
        rows = median_ms({
            "load, lazy": lambda: ingot.Engine.load(path),
            "load, verify=full": lambda: ingot.Engine.load(path, verify="full"),
            "load and first run": lambda: ingot.Engine.load(path)(*case.args),
            "XXH3-128 alone": lambda: hash_file(path),
        })  # fmt: skip
    for name, taken in rows.items():
        print(f"{name:20} {taken:8.2f} ms  {size / taken / 1e6:8.2f} GB/s  of {size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
