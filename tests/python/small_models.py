# SPDX-License-Identifier: Apache-2.0
"""Models of a few nodes that the tests of the Python package share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from lacking import negated
from torch import nn


def mlp() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


class Function(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


class Counter(nn.Module):
    """Adds what it has seen so far: a call changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.mean(0))
        return self.linear(x) + self.total


class InParts(nn.Module):
    """Two engines around an operator that torch runs; may change a buffer."""

    def __init__(self, counts: bool = True) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.counts = counts
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.counts:
            self.calls.add_(1)
        values = negated(self.linear(x).relu())
        return (values * 2 + self.calls).sum(-1)


def tiny_bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
                        max_position_embeddings=64)  # fmt: skip
    return BertModel(config, add_pooling_layer=False).eval()


class Around(nn.Module):
    """A model with a compiled one inside."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x * 2) + 1
