# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.compiled_calls`: what a call of torch.compile(backend="ingot") costs the host, with many weights, and with many inputs.

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


class Weights(torch.nn.Module):
    """x times the sum of its weights, which the init program computes: a call runs one small kernel."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.randn(8) for _ in range(count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.stack(list(self.weights)).sum(0)


class Reads(torch.nn.Module):
    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        return x * torch.stack(others).sum(0)


class Writes(torch.nn.Module):
    """As a decoder writes the caches that it is passed."""

    def forward(self, x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        for each in others:
            each.mul_(0.5)
        return x * 2


def does_nothing(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    results = module(*example_inputs)
    return lambda *arguments: results


def multiplies(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    first, *others = module(*example_inputs)
    return lambda *arguments: [first * first, *others]


def compiled(model: torch.nn.Module, backend: Any) -> Callable[..., torch.Tensor]:
    # Code of its own: what is compiled for one code object waits in one list, which each call searches.
    kind = type(model)
    function = types.FunctionType(kind.forward.__code__.replace(), globals())
    model.__class__ = type(kind.__name__, (kind,), {"forward": function})
    return torch.compile(model.eval(), backend=backend)


def call_us(function: Callable[..., Any], inputs: list[torch.Tensor]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        function(*inputs)
    return (time.perf_counter() - start) / CALLS * 1e6


CASES: dict[str, tuple[Callable[[], torch.nn.Module], int]] = {  # models, and their numbers of inputs
    "1 weight": (lambda: Weights(1), 1),
    "200 weights": (lambda: Weights(200), 1),
    "32 more inputs, read": (Reads, 33),
    "32 more inputs, written": (Writes, 33),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.compiled_calls", description=__doc__)
    parser.add_argument("--rounds", type=int, default=500)
    rounds = parser.parse_args().rounds
    for case, (make, count) in CASES.items():
        inputs = [torch.randn(8) for _ in range(count)]
        ways = {"ingot": "ingot", "does nothing": does_nothing, "one operator": multiplies}
        calls = [(name, compiled(make(), way)) for _ in range(MODELS) for name, way in ways.items()]
        least = dict.fromkeys(ways, float("inf"))
        with torch.no_grad():
            for _ in range(rounds):
                for name, call in calls:
                    least[name] = min(least[name], call_us(call, inputs))
        print(f"{case}: " + ", ".join(f"{name} {took:.1f}" for name, took in least.items()), flush=True)


if __name__ == "__main__":
    main()
