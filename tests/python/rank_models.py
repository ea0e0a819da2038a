# SPDX-License-Identifier: Apache-2.0
"""A transformer block, whole, divided by a plan of torch's, and by hand."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel


class Perceptron(nn.Module):
    def __init__(self, width: int = 32, hidden: int = 64) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.gate = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x))


class Attention(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.head = width // heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        split = (self.query(x), self.key(x), self.value(x))
        heads = [part.unflatten(-1, (-1, self.head)).transpose(1, 2) for part in split]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.norm = nn.LayerNorm(32), nn.LayerNorm(32)
        self.attention, self.perceptron = Attention(), Perceptron()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x))
        return x + self.perceptron(self.norm(x))


PLAN = {
    "attention.query": ColwiseParallel(), "attention.key": ColwiseParallel(), "attention.value": ColwiseParallel(),
    "attention.out": RowwiseParallel(), "perceptron.up": ColwiseParallel(), "perceptron.gate": ColwiseParallel(),
    "perceptron.down": RowwiseParallel(),
}  # fmt: skip


def whole_block() -> tuple[Block, torch.Tensor]:
    torch.manual_seed(7)
    return Block().eval(), torch.randn(2, 6, 32)


class Shard(nn.Module):
    """The block with this rank's part of its weights, and its collectives written by hand."""

    def __init__(self, whole: Block, rank: int, size: int) -> None:
        super().__init__()
        self.attention_norm, self.norm = whole.attention_norm, whole.norm
        self.attention, self.perceptron = Attention(), Perceptron()
        for name, module in whole.named_modules():
            if name in PLAN:
                axis = 0 if isinstance(PLAN[name], ColwiseParallel) else 1
                weight = nn.Parameter(module.weight.detach().chunk(size, axis)[rank].clone())
                own = self.get_submodule(name)
                own.weight = weight
                own.bias = nn.Parameter(module.bias.detach().chunk(size)[rank].clone()) if axis == 0 else None
        self.bias = nn.Parameter(whole.attention.out.bias.detach().clone())
        self.last_bias = nn.Parameter(whole.perceptron.down.bias.detach().clone())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = funcol.all_reduce(self.attention(self.attention_norm(x)), "sum", dist.group.WORLD)
        x = x + mixed + self.bias
        return x + funcol.all_reduce(self.perceptron(self.norm(x)), "sum", dist.group.WORLD) + self.last_bias
