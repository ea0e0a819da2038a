# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_watch`: what noticing writes to weights on a GPU costs a call of `ingot.MutableModule`, by `check_weights`.

A hundred linear layers of 768, f32 (200 weights, 236 MB), 128 rows: microseconds of a call, medians; alone (the host
waits for each result) and in a row of fifty.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch


def timed(call: Callable[[], Any], calls: int, rounds: int = 20) -> float:
    taken = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - start) / calls * 1e6)
    return statistics.median(taken)


def main() -> None:
    import ingot

    model = torch.nn.Sequential(*(torch.nn.Linear(768, 768, device="cuda") for _ in range(100))).eval()
    x = torch.randn(128, 768, device="cuda")
    for check in ("fast", "thorough", "full"):
        torch._dynamo.reset()
        module = ingot.MutableModule(model, check_weights=check)
        for _ in range(20):
            module(x)
        alone, row = timed(lambda m=module: m(x), 1), timed(lambda m=module: m(x), 50)
        print(f"{check:9} {alone:7.0f} us alone, {row:7.0f} us in a row", flush=True)


if __name__ == "__main__":
    main()
