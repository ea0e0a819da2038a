# SPDX-License-Identifier: Apache-2.0
"""Models with weights whose calls choose two integers, as programs of torch.export."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.export import Dim

X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
CALLS = [(7, 3), (-7, 3), (0, 0), (2, -5), (1 << 20, 1), (-3, -3)]


class Numbers(nn.Module):
    """Integers, floats and comparisons that scale, shift and choose; numbers are results too."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int, float]:
        y = self.layer(x) * (k - n) + math.floor(k / (n * n + 1)) + (k / 2 > n)
        return y.relu() + (k + 0.5) // (n * n + 1), k * 2 - n, k * 0.5


class Counting(Numbers):
    """A buffer remembers the integers of all calls."""

    def __init__(self, seed: int = 1) -> None:
        super().__init__(seed)
        self.register_buffer("total", torch.zeros(8))

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        self.total.add_(k)
        return self.layer(x) + self.total * (n % 3) + (k**2) % 7, k // 3


class Summing(Numbers):
    """Ranks add up what their numbers made; they may choose others."""

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int, int]:
        total = funcol.all_reduce(self.layer(x) * (k - n) + k // (n * n + 1), "sum", dist.group.WORLD)
        rows = funcol.all_gather_tensor(total * (k / 2 > n), 0, dist.group.WORLD)
        return rows + (k + 0.5) // (n * n + 1), k * 2 - n, rows.shape[0]


class Own(Numbers):
    """Each rank adds its own to the integers of the calls."""

    def __init__(self, rank: int, seed: int = 1) -> None:
        super().__init__(seed)
        self.rank = rank

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        own = k + self.rank
        y = self.layer(x) * (own - n)
        y = torch.where(y > 0, y + own // 2 % 5, own) * (own > n)
        y = torch.add(y.roll(own, 0).tril(k - self.rank), x, alpha=own) + torch.sym_max(own, n) ** 2
        y = torch.cond(x.sum() > 0, lambda y: y * (n - self.rank), lambda y: y - (n + self.rank), (y,))
        return funcol.all_reduce(y, "sum", dist.group.WORLD) * 1, k - n


class Dropped(Own):
    """On rank 0 nothing reads the integers: what they would change there, Python drops."""

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        y = self.layer(x) * (n * self.rank) + k % (self.rank + 1) - (k**self.rank) // 3
        y = y + torch.full((8,), k * self.rank) + y.new_full((8,), n * self.rank, dtype=torch.int64)
        return funcol.all_reduce(y, "sum", dist.group.WORLD) * 1, k


class DroppedFirst(Own):
    """On rank 0 nothing reads the first integer."""

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        y = self.layer(x) + x.new_full((8,), k * self.rank + n)
        return funcol.all_reduce(y, "sum", dist.group.WORLD) * 1, n


class OwnFloat(Own):
    """An offset of 0 on rank 0, which its trace does not have; `in_tensor`: which it has."""

    def __init__(self, rank: int, *, in_tensor: bool) -> None:
        super().__init__(rank)
        self.register_buffer("own", torch.tensor(float(rank)))
        self.in_tensor = in_tensor

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        own = self.own if self.in_tensor else self.rank
        return funcol.all_reduce(self.layer(x) * (k / 2 + own) + n, "sum", dist.group.WORLD) * 1, k


class OwnInBranches(Numbers):
    """A number that the branches do not compute themselves."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rank = rank

    def forward(self, x: torch.Tensor, k: int, n: int) -> tuple[torch.Tensor, int]:
        own = self.number(x, k) + self.rank
        y = torch.cond(x.sum() > 0, lambda x: x * own, lambda x: x - own, (self.layer(x),))
        return funcol.all_reduce(y, "sum", dist.group.WORLD) * 1, n

    def number(self, x: torch.Tensor, k: int) -> int:
        return k


class OwnRowsInBranches(OwnInBranches):
    def number(self, x: torch.Tensor, k: int) -> int:
        return x.shape[0]


def program_of(model: nn.Module, x: torch.Tensor = X) -> torch.export.ExportedProgram:
    free = Dim.DYNAMIC
    return torch.export.export(model.eval(), (x, 7, 3), dynamic_shapes=({0: free}, free, free))


def assert_calls(
    run: Any, model: nn.Module, x: torch.Tensor = X, calls: list[tuple[int, int]] = CALLS
) -> None:
    """The model has had the calls that `run` had, if it remembers them."""
    for call in calls:
        for actual, expected in zip(run(x, *call), model(x, *call), strict=True):
            assert type(actual) is type(expected)
            if isinstance(expected, torch.Tensor):
                torch.testing.assert_close(
                    actual, expected, atol=1e-6 * max(1.0, expected.abs().max().item()), rtol=1e-5
                )
            else:
                assert actual == expected
