# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.calls`: the overhead of a call: relu of 4x8 floats, the ways interleaved in one process.

From C++ (the command-line program's `bench`, which calls the C++ API) the whole call counts, the operator's own time with it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import ingot
import torch

ROUNDS = 40
CALLS = 2000


class Relu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def call_us(function: Callable[[torch.Tensor], object], x: torch.Tensor) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        function(x)
    return (time.perf_counter() - start) / CALLS * 1e6


def find_program() -> Path | None:
    root = Path(__file__).resolve().parents[1]
    found = [Path(sys.executable).with_name("ingot"), *root.glob("build/*/bin/ingot")]
    return next((path for path in found if path.exists()), None)


def main() -> None:
    x = torch.randn(4, 8)
    module = ingot.compile(Relu().eval(), inputs=[x])
    ways = {"torch.relu": torch.relu, "module": module, "Engine.__call__": module.engine}
    times: dict[str, list[float]] = {name: [] for name in ways}
    with torch.no_grad():
        for _ in range(ROUNDS):
            for name, way in ways.items():
                times[name].append(call_us(way, x))
    own = statistics.median(times["torch.relu"])
    for name, taken in times.items():
        median = statistics.median(taken)
        print(f"{name:18} {median:6.2f} us a call, {median - own:+6.2f} us over torch.relu")
    program = find_program()
    if program is None:
        raise SystemExit("the program `ingot` is not built: run `make build`")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "relu.ingot"
        module.engine.save(path)
        done = subprocess.run([program, "bench", path, "--json"], capture_output=True, text=True, check=True)
    print(f"{'C++ Context::run':18} {json.loads(done.stdout)['median_ms'] * 1e3:6.2f} us a call, all told")


if __name__ == "__main__":
    main()
