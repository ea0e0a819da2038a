# SPDX-License-Identifier: Apache-2.0
"""Models of which the ranks have parts of different sizes, for uneven_checks.py. `whole` has all of a weight that is divided."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn


def added(x: torch.Tensor) -> torch.Tensor:
    return funcol.all_reduce(x, "sum", dist.group.WORLD)


class Table(nn.Module):
    """31 words: 8, 8, 8 and 7 of four ranks."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.whole = {"own": torch.randn(31, 4)}
        parts = self.whole["own"].tensor_split(size)
        self.first = sum(len(part) for part in parts[:rank])
        self.own = nn.Parameter(parts[rank].clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        is_own = (ids >= self.first) & (ids < self.first + len(self.own))
        rows = nn.functional.embedding(torch.where(is_own, ids - self.first, 0), self.own)
        return added(torch.where(is_own.unsqueeze(-1), rows, 0.0))


class Perceptron(nn.Module):
    """31 hidden units: a layer by columns, one by rows."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(4)
        up, down = nn.Linear(8, 31), nn.Linear(31, 8)
        self.whole = {
            "up.weight": up.weight.detach(),
            "up.bias": up.bias.detach(),
            "down.weight": down.weight.detach(),
        }
        own = torch.arange(31).tensor_split(size)[rank]
        self.up, self.down = nn.Linear(8, len(own)), nn.Linear(len(own), 8, bias=False)
        self.bias = nn.Parameter(down.bias.detach().clone())
        with torch.no_grad():
            self.up.weight.copy_(up.weight[own])
            self.up.bias.copy_(up.bias[own])
            self.down.weight.copy_(down.weight[:, own])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return added(self.down(nn.functional.gelu(self.up(x)))) + self.bias


class Gated(nn.Module):
    """31 hidden units, which are computed of two layers, with a weight of theirs."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(9)
        self.whole = {
            "gate.weight": torch.randn(31, 8),
            "gate.bias": torch.randn(31),
            "up.weight": torch.randn(31, 8),
            "scale": torch.randn(31),
            "down.weight": torch.randn(8, 31) / 5,
        }
        own = torch.arange(31).tensor_split(size)[rank]
        self.gate, self.up = nn.Linear(8, len(own)), nn.Linear(8, len(own), bias=False)
        self.scale, self.down = nn.Parameter(torch.ones(len(own))), nn.Linear(len(own), 8, bias=False)
        parts = {
            name: value[:, own] if name == "down.weight" else value[own] for name, value in self.whole.items()
        }
        self.load_state_dict(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = nn.functional.silu(self.gate(x)) * self.up(x)
        return added(self.down(hidden * self.scale * 2.0 + x.mean(-1, keepdim=True)))


class Heads(nn.Module):
    """Seven heads: 2, 2, 2 and 1 of four ranks."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(5)
        names = ("query", "key", "value")
        self.whole = {f"{name}.weight": torch.randn(28, 28) / 5 for name in (*names, "out")}
        heads = torch.arange(7).tensor_split(size)[rank]
        own = (heads.unsqueeze(1) * 4 + torch.arange(4)).flatten()
        self.heads = len(heads)
        self.query, self.key, self.value = (nn.Linear(28, len(own), bias=False) for _ in names)
        self.out = nn.Linear(len(own), 28, bias=False)
        with torch.no_grad():
            for name in names:
                getattr(self, name).weight.copy_(self.whole[f"{name}.weight"][own])
            self.out.weight.copy_(self.whole["out.weight"][:, own])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = (self.query(x), self.key(x), self.value(x))
        heads = [part.unflatten(-1, (self.heads, 4)).transpose(1, 2) for part in parts]
        mixed = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        return added(self.out(mixed.transpose(1, 2).flatten(2)))


class Elements(nn.Module):
    """Slices, parts of splits, ranges, numbers and constants of each rank's own, of sizes of its own."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.whole: dict[str, torch.Tensor] = {}
        self.rank, self.size = rank, size
        self.register_buffer("mask", torch.arange(5) % (rank + 2) == 0)
        self.register_buffer("place", torch.tensor(rank * 3))
        self.offsets = torch.arange(5.0) * rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rank, rows = self.rank, len(x)
        parts = x.tensor_split(self.size)
        own, first = parts[rank], sum(len(part) for part in parts[:rank])
        last = first + len(own)
        counted = own * 2 + torch.arange(first, last).unsqueeze(1) + self.place
        written = torch.zeros_like(x)
        written[first:last] = counted
        padded = nn.functional.pad(own, (0, 0, first, rows - last))
        several = x[: 1 + rank].sum(0) + x[rank:].mean(0) + x[-1 - rank :].amax(0) + x[::2][rank:].sum(0)
        numbers = (
            torch.full((5,), float(rank)) + torch.full((1 + rank, 5), 0.5).sum(0) + self.mask + self.offsets
        )
        flat = (
            own.reshape(-1).sum()
            + own.reshape(len(own) * 5, 1).expand(-1, 3).sum()
            + torch.ones(len(own)).sum()
        )
        return added(written + padded + several + numbers + flat)


def cases(rank: int, size: int) -> list[tuple[nn.Module, torch.Tensor]]:
    torch.manual_seed(6)
    return [
        (Table(rank, size), torch.tensor([0, 3, 29, 9, 15])),
        (Perceptron(rank, size), torch.randn(3, 8)),
        (Gated(rank, size), torch.randn(3, 8)),
        (Heads(rank, size), torch.randn(2, 5, 28)),
        (Elements(rank, size), torch.randn(11, 5)),
    ]


class TwoAxes(nn.Module):
    """A weight whose rows and columns differ in number."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.own = nn.Parameter(torch.ones(1 + rank, 2 + rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return added(self.own.sum() + x)


class Own(nn.Module):
    """As many rows as the rank's number, and all that ranks have."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x[: self.rank] * 2
        return rows, added(rows.sum(0) + rows.shape[0])


class Sum(nn.Module):
    """Of its argument's rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return added((x * 2).sum(0))


class Changing(nn.Module):
    """A buffer of another size on each rank, that calls change."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1 + rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.sum())
        return added(x * self.seen.sum())
