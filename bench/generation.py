# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.generation [--model gpt2 | llama] [--tokens 48]`: `generate` of transformers per token: eager, inductor, Ingot.

Only the model's forward is compiled (dynamic=True); caches, sampling and beams are transformers' own Python, the same for all.
Weights are random, f32; prompts of 32 tokens. Ways: greedy, sampling and beams, each with a cache that grows and with a static one.
A first call of each compiles; then all go round in turns. Prints the milliseconds per token (with one thread of the process's own
time), the smallest of the turns, and how often Ingot's graph was compiled; stops if tokens differ from eager's. A way that a peer
cannot run has no figure.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable
from typing import Any

import torch
from ingot.torch_backend import backend
from torch import nn

PROMPT = 32
WAYS: dict[str, dict[str, Any]] = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 40, "temperature": 0.8},
    "4 beams": {"do_sample": False, "num_beams": 4},
}
ENGINES = ("eager", "inductor", "ingot")
CACHES: dict[str, dict[str, Any]] = {"growing": {}, "static": {"cache_implementation": "static"}}


def gpt2() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    return GPT2LMHeadModel(GPT2Config())


def llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    return LlamaForCausalLM(
        LlamaConfig(
            hidden_size=768,
            intermediate_size=2048,
            num_hidden_layers=12,
            num_attention_heads=12,
            num_key_value_heads=4,
        )
    )


MODELS = {"gpt2": gpt2, "llama": llama}


class Way:
    """The model with its forward as one of the engines runs it."""

    def __init__(self, name: str, model: nn.Module) -> None:
        self.name, self.graphs = name, 0
        self.model = model if name == "eager" else copy.deepcopy(model)
        if name == "inductor":
            self.model.forward = torch.compile(self.model.forward, dynamic=True)
        if name == "ingot":
            self.model.forward = torch.compile(self.model.forward, backend=self._counted, dynamic=True)
        self.times: list[float] = []
        self.tokens: torch.Tensor | None = None

    def _counted(self, graph: torch.fx.GraphModule, inputs: Any) -> Any:
        call = backend(graph, inputs)  # raises if Dynamo has to trace once more
        self.graphs += 1
        return call

    def generate(self, count: int, options: dict[str, Any], clock: Callable[[], float]) -> None:
        torch.manual_seed(5)
        prompt = torch.arange(PROMPT)[None] + 100
        start = clock()
        self.tokens = self.model.generate(
            prompt, max_new_tokens=count, min_new_tokens=count, pad_token_id=0, **options
        )
        self.times.append(1e3 * (clock() - start) / count)


def measure(model: nn.Module, options: dict[str, Any], chosen: argparse.Namespace) -> list[Way]:
    clock = time.process_time if chosen.threads == 1 else time.perf_counter
    torch._dynamo.reset()
    ways = []
    for name in ENGINES:
        way = Way(name, model)
        try:
            way.generate(chosen.tokens, options, clock)
        except Exception as error:  # of a peer
            if name != "inductor":
                raise
            print(f"inductor: {str(error).splitlines()[0]}")
            continue
        way.times.clear()
        ways.append(way)
    for _ in range(chosen.rounds):
        for way in ways:
            way.generate(chosen.tokens, options, clock)
            assert way.name == "inductor" or torch.equal(way.tokens, ways[0].tokens), way.name
    return ways


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", choices=[*MODELS], default="gpt2")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    model = MODELS[chosen.model]().eval()
    for name, way in WAYS.items():
        for cache, more in CACHES.items():
            ways = measure(model, {**way, **more}, chosen)
            best = {each.name: min(each.times) for each in ways}
            figures = ", ".join(f"{engine} {time:.2f}" for engine, time in best.items())
            ratio = best["eager"] / best["ingot"]
            print(
                f"{chosen.model}, {name}, {cache} cache: ms per token: {figures}; eager / ingot {ratio:.2f}; {ways[-1].graphs} graphs",
                flush=True,
            )


if __name__ == "__main__":
    with torch.no_grad():
        main()
