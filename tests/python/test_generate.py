# SPDX-License-Identifier: Apache-2.0
"""`generate` of transformers over a forward that torch.compile(backend="ingot") compiled: eager's tokens, few compilations."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ingot.torch_backend import backend
from models.sequence import initialize
from test_dynamic_cache import small_gpt2, small_llama

WAYS = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "top_k": 10, "temperature": 0.8},
    "beams": {"do_sample": False, "num_beams": 3},
}
QUICK = (
    ("small_gpt2", "greedy", None),
    ("small_llama", "sampling", None),
    ("small_llama", "greedy", "static"),
)
MOST_COMPILATIONS = 2  # the prompt, and the steps


def _tokens(model: torch.nn.Module, options: dict[str, Any]) -> torch.Tensor:
    torch.manual_seed(5)
    return model.generate(
        torch.arange(7)[None] + 1, max_new_tokens=10, min_new_tokens=10, pad_token_id=0, **options
    )


def _cases() -> list:
    for make in (small_gpt2, small_llama):
        for way in WAYS:
            for cache in (None, "static"):
                is_quick = (make.__name__, way, cache) in QUICK
                yield pytest.param(make, way, cache, marks=() if is_quick else pytest.mark.long)


@pytest.mark.parametrize(("make", "way", "cache"), _cases())
def test_tokens_are_those_of_eager(make: Callable, way: str, cache: str | None) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = initialize(make()).eval()
    options = WAYS[way] if cache is None else {**WAYS[way], "cache_implementation": cache}
    compiled, graphs = copy.deepcopy(model), []

    def counted(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        call = backend(graph, inputs)  # raises if Dynamo has to trace once more
        graphs.append(graph)
        return call

    compiled.forward = torch.compile(compiled.forward, backend=counted, dynamic=True)
    assert torch.equal(_tokens(compiled, options), _tokens(model, options))
    assert 1 <= len(graphs) <= MOST_COMPILATIONS
    again = len(graphs)
    assert torch.equal(_tokens(compiled, options), _tokens(model, options))
    assert len(graphs) == again
