# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.calls`: the overhead of a call: relu of 4x8 floats, the ways interleaved in one process. ctypes is what packages
without the compiler call engines by.

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
from typing import Any

import ingot
import torch
from ingot import _ctypes

ROUNDS = 40
CALLS = 2000


class Relu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)


def call_us(function: Callable[[Any], object], x: Any) -> float:
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
    by_ctypes = ingot.Engine(_ctypes.Engine.load_memory(module.engine.to_bytes()))
    ways: dict[str, tuple[Callable[[Any], object], Any]] = {
        "torch.relu": (torch.relu, x),
        "module": (module, x),
        "Engine.__call__": (module.engine, x),
        "ctypes": (by_ctypes, x),
        "Engine, numpy": (module.engine, x.numpy()),
        "ctypes, numpy": (by_ctypes, x.numpy()),
    }
    times: dict[str, list[float]] = {name: [] for name in ways}
    with torch.no_grad():
        for _ in range(ROUNDS):
            for name, (way, argument) in ways.items():
                times[name].append(call_us(way, argument))
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
