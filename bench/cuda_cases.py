# SPDX-License-Identifier: Apache-2.0
"""What `bench.cuda_peers` measures besides the shared models: sizes that are for GPUs only."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from models import Case, registry
from models.sequence import FirstOutput, LlamaStep, initialize

BATCH = 32


def _minilm_s128() -> Case:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536
    )  # all-MiniLM-L6-v2, without its weights
    tokens = torch.randint(0, 30522, (1, 128), generator=torch.Generator().manual_seed(2))
    model = FirstOutput(BertModel(config, add_pooling_layer=False), ("input_ids", "attention_mask"))
    return Case(model, (tokens, torch.ones(1, 128, dtype=torch.int64)))


def _llama_1b() -> Case:
    return Case(initialize(LlamaStep()), (torch.tensor([[7]]), torch.tensor([500])), has_state=True)


CASES: dict[str, Callable[[], Case]] = {"minilm_s128": _minilm_s128, "llama_1b": _llama_1b}


def build(name: str) -> Case:
    """A shared model or one of these; "NAME_b32" is NAME on 32 times its input."""
    if name.endswith(f"_b{BATCH}"):
        case = build(name.removesuffix(f"_b{BATCH}"))
        return Case(case.model, tuple(value.repeat(BATCH, *[1] * (value.dim() - 1)) for value in case.args))
    if name not in CASES:
        return registry.build(name)
    torch.manual_seed(0)
    case = CASES[name]()
    case.model.eval().requires_grad_(False)
    return case
