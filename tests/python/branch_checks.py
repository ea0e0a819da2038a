# SPDX-License-Identifier: Apache-2.0
"""One program for all ranks with numbers, positions, sizes and collectives of the rank inside of branches, for rank_checks.py."""

from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn

WHOLE = {"rank": "all", "require_full_compilation": True}


def added(x: torch.Tensor) -> torch.Tensor:
    return funcol.all_reduce(x, "sum", dist.group.WORLD) + 0


class Numbers(nn.Module):
    """A factor and an integer."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.factor, self.shift = 1.0 + rank, rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return added(torch.cond(x.sum() > 0, lambda x: x * self.factor, lambda x: x - self.shift, (x,)))


class Rows(nn.Module):
    """As many rows as the rank has, beginning at its first: in a branch, and in a branch within it."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.first, self.rows = rank, 1 + rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def inner(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(
                x.max() > 5, lambda x: x[self.first] * 2, lambda x: x[: self.rows].sum(0) * self.rows, (x,)
            )

        return added(
            torch.cond(x.sum() > 0, inner, lambda x: x[self.first : self.first + self.rows].sum(0), (x,))
        )


class Results(nn.Module):
    """Branches whose results have the size of the rank."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rows = 1 + rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.rows
        taken = torch.cond(x.sum() > 0, lambda x: x[:rows] * rows, lambda x: x[-rows:] + 1, (x,))
        return added(taken.sum(0))


class Meeting(nn.Module):
    """Collectives of what each rank computes in its branch."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.rows = 1 + rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def first(x: torch.Tensor) -> torch.Tensor:
            return added(x[: self.rows].sum(0))

        def second(x: torch.Tensor) -> torch.Tensor:
            return funcol.all_reduce(x.sum(0) * self.rows, "max", dist.group.WORLD) + 0

        return torch.cond(x.sum() > 0, first, second, (x,)) * 2


class Loop(nn.Module):
    """A loop with a number of the rank, which no program for all ranks has."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.factor = 1.0 + rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch._higher_order_ops.while_loop import while_loop

        (x,) = while_loop(lambda x: x.sum() < 100, lambda x: (x * self.factor + 1,), (x,))
        return added(x)


MODELS: tuple[Callable[[int], nn.Module], ...] = (Numbers, Rows, Results, Meeting)


def check(folder: Path, rank: int, size: int) -> None:
    torch.manual_seed(5)
    x = torch.rand(size + 2, 3)
    for make in MODELS:
        model = make(rank).eval()
        module = ingot.compile(model, inputs=[x], **WHOLE)
        path = folder / f"branch_{make.__name__}{rank}.ingot"
        module.engine.save(path)
        dist.barrier()
        files = [path.with_name(f"branch_{make.__name__}{other}.ingot").read_bytes() for other in range(size)]
        assert all(file == files[0] for file in files), make
        loaded = ingot.Engine.load(path.with_name(f"branch_{make.__name__}0.ingot"))
        torch.compiler.reset()
        compiled = torch.compile(model, backend="ingot", options=WHOLE)
        for given in (x, -x, x + 6):
            for call in (module, loaded, compiled):
                torch.testing.assert_close(call(given), model(given))
    with pytest.raises(ingot.UserError, match=r"the value is \w+ on rank 0 and \w+ on rank 1") as info:
        ingot.compile(Loop(rank), inputs=[x], **WHOLE)
    assert info.value.code == "INGOT-U359"
