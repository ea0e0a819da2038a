# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_attention`: attention of f16 by Ingot and by torch, in a CUDA graph, on the first GPU.

What one adds to a chain of them, in microseconds, the median of calls in turns; and the largest difference of Ingot's result from
that of f32, relative to the largest element. `--level`: the optimization level of Ingot's engines.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable

import ingot
import torch
from ingot.devices import architecture
from torch import nn
from torch.nn import functional

from bench.cuda_graphs import graph_of
from bench.cuda_peers import call_us

SHORT, LONG, ROUNDS = 1, 9, 3
# Batch, heads, queries, keys, width, and what is hidden.
CASES = (
    (32, 12, 197, 197, 64, ""),
    (32, 12, 128, 128, 64, "mask"),
    (32, 12, 128, 128, 32, "mask"),
    (1, 12, 197, 197, 64, ""),
    (1, 6, 1500, 1500, 64, ""),
    (1, 16, 512, 512, 64, ""),
    (1, 32, 512, 1024, 64, ""),
    (1, 16, 1024, 1024, 64, "causal"),
    (1, 12, 2048, 2048, 64, ""),
    (1, 12, 4096, 4096, 64, ""),
    (1, 32, 2048, 2048, 128, ""),
)


class Chain(nn.Module):
    """Attention, each of whose results is the query of the next."""

    def __init__(self, length: int, is_causal: bool) -> None:
        super().__init__()
        self.length, self.is_causal = length, is_causal

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for _ in range(self.length):
            q = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.is_causal)
        return q


def inputs_of(case: tuple) -> tuple[torch.Tensor, ...]:
    batch, heads, queries, keys, width, hidden = case
    torch.manual_seed(0)
    rows = [torch.randn(batch, heads, count, width).half().cuda() for count in (queries, keys, keys)]
    return (*rows, torch.rand(batch, 1, 1, keys, device="cuda") > 0.1) if hidden == "mask" else tuple(rows)


def measure(case: tuple, level: int) -> str:
    inputs, is_causal = inputs_of(case), case[-1] == "causal"
    exact = Chain(SHORT, is_causal)(*(v.float() if v.is_floating_point() else v for v in inputs))
    calls: dict[tuple[str, int], Callable[[], object]] = {}
    for length in (SHORT, LONG):
        chain = Chain(length, is_causal)
        program = torch.export.export(chain, tuple(value.cpu() for value in inputs))
        engine = ingot.build(program, device=f"cuda:{architecture()}", optimization_level=level)
        calls["ingot", length] = lambda engine=engine: engine(*inputs)
        calls["torch", length] = graph_of(lambda chain=chain: chain(*inputs))
        if length == SHORT:
            tactic = next(s["kernel"] for s in engine.inspect()["main"]["steps"] if s["kind"] == "kernel")
            difference = (engine(*inputs).float() - exact).abs().max() / exact.abs().max()
    times: dict[tuple[str, int], list[float]] = {key: [] for key in calls}
    for _ in range(ROUNDS):
        for key, call in calls.items():
            times[key] += call_us(lambda _, call=call: call())
    added = {
        name: (statistics.median(times[name, LONG]) - statistics.median(times[name, SHORT])) / (LONG - SHORT)
        for name in ("ingot", "torch")
    }
    return f"{added['ingot']:8.1f} us, torch {added['torch']:8.1f}, difference {difference:.0e}  {tactic}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", type=int, default=3, choices=range(6))
    level = parser.parse_args().level
    with torch.no_grad():
        for case in CASES:
            print(*case, measure(case, level), flush=True)


if __name__ == "__main__":
    main()
