# SPDX-License-Identifier: Apache-2.0
"""Models with sizes that follow from one that varies and from the rank, for mixed_checks.py. All take [rows, 8]."""

from collections.abc import Callable

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from uneven_models import added


class Divided(nn.Module):
    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(8)
        self.rank, self.size = rank, size


class HeadsInRows(Divided):
    """Rows times heads is the dim of one product of many matrices; ranks have 2, 2, 2 and 1 heads, one of two ranks has a factor of 4."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.heads = len(torch.arange(7).tensor_split(size)[rank])
        self.query, self.out = nn.Linear(8, 4 * self.heads), nn.Linear(4 * self.heads, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        query = self.query(x).view(rows, self.heads, 2, 2).reshape(rows * self.heads, 2, 2)
        mixed = torch.softmax(query @ query.transpose(1, 2), -1) @ query
        return added(self.out(mixed.view(rows, self.heads, 4).flatten(1)))


class Parts(Divided):
    """As many rows for each rank, at positions of its own; what is left is the last rank's."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x.shape[0]
        count = rows // self.size
        first = self.rank * count
        last = rows if self.rank == self.size - 1 else first + count
        own = x[first:last] * 2 + torch.arange(first, last, device=x.device).unsqueeze(1)
        written = torch.zeros_like(x)
        written[first:last] = own
        return added(written)


class Balanced(Divided):
    """Rows as even as they can be: the first ranks have one more."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        counts = [(x.shape[0] + self.size - 1 - other) // self.size for other in range(self.size)]
        first = sum(counts[: self.rank])
        own = x[first : first + counts[self.rank]]
        return added(own.sum(0) + own.shape[0])


class Gathered(Divided):
    """The rows of all ranks, of a number of rows that they divide, again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        count = x.shape[0] // self.size
        own = x[self.rank * count : (self.rank + 1) * count]
        return funcol.all_gather_tensor(own + 1, 0, dist.group.WORLD) * 2


class Joined(Divided):
    """Behind the rows, those of the rank's own; then all in one dim."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self.own = nn.Parameter(torch.randn(2 + rank, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([x, self.own])
        repeated = x.repeat(1 + self.rank, 1)
        filled = torch.full_like(repeated, 0.5) + torch.ones(repeated.shape[0], 1, device=x.device)
        last = x[-1 - self.rank :].sum(0)
        return added(joined.flatten().sum() + (repeated * filled).sum(0) + x.shape[0] * self.rank + last)


MODELS: tuple[Callable[[int, int], Divided], ...] = (HeadsInRows, Parts, Balanced, Gathered, Joined)


class Positive(nn.Module):
    """As many rows as are positive, for each rank a multiple of them: they follow from data."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = x[x[:, 0] > 0]
        return added(rows.repeat(1 + self.rank, 1).sum(0))


class Branches(nn.Module):
    """In a branch."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def repeated(x: torch.Tensor) -> torch.Tensor:
            return x.repeat(2 + self.rank, 1).flatten().cumsum(0).sum() + x.sum(0)

        def doubled(x: torch.Tensor) -> torch.Tensor:
            return (x * 2).sum(0)

        return added(torch.cond(x.sum() > 0, repeated, doubled, (x,)))
