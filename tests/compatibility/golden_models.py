# SPDX-License-Identifier: Apache-2.0
"""The models of the golden engines: together they use each part of the engine format and of the runtime.

Each has the sizes that vary, the calls whose results are kept, in order, and the options of its build.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ingot
import torch
import torch.distributed._functional_collectives as funcol
from torch import nn


@dataclass
class Golden:
    model: nn.Module
    calls: list[tuple[torch.Tensor, ...]]
    dynamic_shapes: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    has_exact: bool = True  # whether the model can run in f64


class Attention(nn.Module):
    """Attention over a key-value cache that calls extend, whatever the number of new positions."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.register_buffer("keys", torch.zeros(1, 2, 32, 8))
        self.register_buffer("values", torch.zeros(1, 2, 32, 8))

    def forward(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        query, key, value = self.project(x).view(1, -1, 3, 2, 8).permute(2, 0, 3, 1, 4)
        self.keys.index_copy_(2, positions, key)
        self.values.index_copy_(2, positions, value)
        mask = torch.arange(32) <= positions[:, None]
        y = nn.functional.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask)
        return self.out(y.transpose(1, 2).reshape(1, -1, 16))


class Images(nn.Module):
    """Convolutions of f32, a batch norm and a residual connection; a product of bf16 at the end."""

    def __init__(self, narrow: bool) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.norm.running_mean.normal_()
        self.inner, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 5)
        if narrow:
            self.head.to(torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = torch.relu(self.norm(self.stem(x)))
        second = torch.relu(self.inner(first) + first)
        return self.head(nn.functional.max_pool2d(second, 2).mean((2, 3)).to(self.head.weight.dtype))


class Choices(nn.Module):
    """Sizes that follow from data, a branch, and routines."""

    def forward(self, x: torch.Tensor, which: torch.Tensor) -> tuple[torch.Tensor, ...]:
        positions = torch.nonzero(x > 0)
        values, indices = torch.topk(x, 2, dim=1)
        chosen = torch.cond(which.sum() > 0, lambda t: t.sin(), lambda t: t * 2 - 1, (values,))
        return positions, indices, chosen, torch.cumsum(x, 1)


def _random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def _mlp() -> Golden:
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1))
    return Golden(model, [(_random(3, 8),), (10 * _random(3, 8),)])


def _cache() -> Golden:
    length = torch.export.Dim("length", min=1, max=16)
    calls = [
        (_random(1, n, 16), torch.arange(start, start + n)) for start, n in ((0, 5), (5, 1), (6, 16), (22, 1))
    ]
    return Golden(Attention(), calls, ({1: length}, {0: length}))


def _images() -> Golden:
    batch = torch.export.Dim("batch", min=1, max=8)
    return Golden(Images(narrow=True), [(_random(n, 3, 12, 12),) for n in (2, 1, 8)], ({0: batch},))


def _quantized() -> Golden:
    program = ingot.quantize(
        Images(narrow=False).eval(), [_random(2, 3, 12, 12 + 4 * i) for i in range(2)][:1]
    )
    # Its weights are prepared whenever it is loaded.
    return Golden(program, [(_random(2, 3, 12, 12),)], None, {"keep_original_weights": True}, has_exact=False)


def _choices() -> Golden:
    rows = torch.export.Dim("rows", min=1, max=64)
    calls = [(_random(n, 6), torch.tensor([flag])) for n, flag in ((4, 1), (7, -1))]
    return Golden(Choices(), calls, ({0: rows}, None))


def _levels() -> Golden:
    golden = _images()
    golden.options["cpu"] = ["x86-64-v3", "x86-64-v4", "aarch64"]
    return golden


class Pairs(nn.Module):
    """Takes an even number of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        pairs = self.layer(x).view(-1, 2, 4)
        return pairs.softmax(1).flatten(0, 1), pairs.sum(1)


def _pairs() -> Golden:
    pairs = torch.export.Dim("pairs", min=1, max=16)
    return Golden(Pairs(), [(_random(n, 6),) for n in (8, 2, 32)], ({0: 2 * pairs},))


class Ranked(nn.Module):
    """What one of two ranks computes: of 3 and 2 rows, by 4 and 3 hidden units, with a factor and a mask of its own."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        whole = {"up.weight": torch.randn(7, 6), "up.bias": torch.randn(7), "down.weight": torch.randn(6, 7)}
        units, self.rows = (slice(0, 4), slice(0, 3)) if rank == 0 else (slice(4, 7), slice(3, 5))
        self.whole, self.factor = whole, 1.0 + rank
        self.up, self.down = (
            nn.Linear(6, units.stop - units.start),
            nn.Linear(units.stop - units.start, 6, bias=False),
        )
        self.up.weight = nn.Parameter(whole["up.weight"][units].clone())
        self.up.bias = nn.Parameter(whole["up.bias"][units].clone())
        self.down.weight = nn.Parameter(whole["down.weight"][:, units].clone())
        self.register_buffer("mask", torch.arange(6) % 2 == rank)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        group = torch.distributed.group.WORLD
        total = funcol.all_reduce(self.down(torch.relu(self.up(x))), "sum", group)
        own = torch.where(self.mask, total[self.rows] * self.factor, total[self.rows])
        return funcol.all_reduce(own.sum(0), "sum", group)


MODELS = {"mlp": _mlp, "cache": _cache, "images": _images, "quantized": _quantized, "choices": _choices}

SEVERAL_LEVELS = {"levels": _levels}  # which have a format of their own
MULTIPLES, MULTIPLES_FORMAT = {"pairs": _pairs}, 9  # of sizes that no input has by itself
RANKS, RANKS_FORMAT = "ranks", 8  # for two ranks, which have another; its weights are beside it


def make(name: str) -> Golden:
    torch.manual_seed(0)
    golden = (MODELS | SEVERAL_LEVELS | MULTIPLES)[name]()
    if isinstance(golden.model, nn.Module) and golden.has_exact:  # exported programs are in this mode
        golden.model.eval()
    return golden
