# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.compiled_calls`: what a call of torch.compile(backend="ingot") costs the host, with 1 and with 200 weights.

Beside it, in turns in one process: a backend that returns a result that it has already, where torch's own guards and wrappers are left,
and one that calls a single operator of torch, which shows how much slower guards are after any work between them. Each has a model of its
own; where its objects lie in memory changes what its guards take, so that the best of several models counts. Microseconds.
"""

from __future__ import annotations

import argparse
import time
import types
from collections.abc import Callable
from typing import Any

import torch

CALLS = 20  # per measurement
MODELS = 3  # per backend


class Sums(torch.nn.Module):
    """x times the sum of its weights, which the init program computes: a call runs one small kernel."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.randn(8) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.stack(list(self.weights)).sum(0)


def does_nothing(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    results = module(*example_inputs)
    return lambda *arguments: results


def multiplies(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    first, *others = module(*example_inputs)
    return lambda *arguments: [first * first, *others]


def compiled(count: int, backend: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    # Code of its own: what is compiled for one code object waits in one list, which each call searches.
    function = types.FunctionType(Sums.forward.__code__.replace(), globals())
    return torch.compile(type("Sums", (Sums,), {"forward": function})(count).eval(), backend=backend)


def call_us(function: Callable[[torch.Tensor], Any], x: torch.Tensor) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        function(x)
    return (time.perf_counter() - start) / CALLS * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.compiled_calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    x = torch.randn(8)
    for count in (1, 200):
        ways = {"ingot": "ingot", "does nothing": does_nothing, "one operator": multiplies}
        calls = [(name, compiled(count, way)) for _ in range(MODELS) for name, way in ways.items()]
        least = dict.fromkeys(ways, float("inf"))
        with torch.no_grad():
            for _ in range(rounds):
                for name, call in calls:
                    least[name] = min(least[name], call_us(call, x))
        print(f"{count:3} weights: " + ", ".join(f"{name} {took:.1f}" for name, took in least.items()))


if __name__ == "__main__":
    main()
