# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.quantized`: layers of BERT-base in f32 and quantized by torchao, in eager mode, inductor and Ingot, on one thread.

Prints milliseconds of the process's own time per call, the smallest of the turns, in which all ways go round, and the largest
difference of each engine's result to eager's.
"""

from __future__ import annotations

import argparse
import copy
import logging
import time
from collections.abc import Callable
from typing import Any

import ingot
import torch
from torch import nn
from torchao.quantization import Int8DynamicActivationInt8WeightConfig, Int8WeightOnlyConfig, quantize_

CONFIGS = {"f32": None, "weights": Int8WeightOnlyConfig, "dynamic": Int8DynamicActivationInt8WeightConfig}
Ways = dict[str, Callable[[], Any]]


def encoder(layers: int) -> nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    return BertModel(BertConfig(num_hidden_layers=layers), add_pooling_layer=False).eval()


def ways_of(model: nn.Module, name: str, tokens: torch.Tensor) -> Ways:
    if (config := CONFIGS[name]) is not None:
        model = copy.deepcopy(model)
        quantize_(model, config())
    torch._dynamo.reset()
    inductor = torch.compile(model)
    engine = ingot.compile(model, inputs=[tokens], require_full_compilation=True)
    difference = (engine(tokens)[0] - model(tokens)[0]).abs().max().item()
    print(f"{name}: engine differs from eager by at most {difference:.2g}", flush=True)
    return {
        f"{name} eager": lambda: model(tokens),
        f"{name} inductor": lambda: inductor(tokens),
        f"{name} ingot": lambda: engine(tokens),
    }


def smallest(ways: Ways, rounds: int) -> dict[str, float]:
    times = dict.fromkeys(ways, float("inf"))
    for way in ways.values():
        way()
    for _ in range(rounds):
        for name, way in ways.items():
            start = time.process_time()
            way()
            times[name] = min(times[name], time.process_time() - start)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.quantized", description=__doc__)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--tokens", type=int, nargs="+", default=[128, 1])
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    logging.getLogger("ingot").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    ingot.set_threads(1)
    model = encoder(arguments.layers)
    with torch.no_grad():
        for count in arguments.tokens:
            tokens = torch.randint(0, 1000, (1, count))
            ways: Ways = {}
            for name in CONFIGS:
                ways |= ways_of(model, name, tokens)
            for name, seconds in smallest(ways, arguments.rounds).items():
                print(f"{count:4} tokens  {name:18} {seconds * 1e3:8.2f} ms", flush=True)


if __name__ == "__main__":
    main()
