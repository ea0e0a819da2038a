# SPDX-License-Identifier: Apache-2.0
"""What `bench.cuda_peers` measures besides the shared models: sizes that are for GPUs only."""

from __future__ import annotations

import argparse
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


def in_dtype(case: Case, dtype: torch.dtype) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    """The case's model and arguments on the host, with all floating-point numbers of that dtype."""
    args = tuple(value.to(dtype) if value.is_floating_point() else value for value in case.args)
    return case.model.eval().to(dtype).cpu(), args


def parser(description: str) -> argparse.ArgumentParser:
    """Of a bench of some cases in one dtype."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--dtype", default="float16", choices=["float16", "bfloat16", "float32"])
    return arguments
