# SPDX-License-Identifier: Apache-2.0
"""Models whose traces differ between ranks, and one program for all of them, for rank_checks.py."""

from pathlib import Path

import ingot
import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn


class Table(nn.Module):
    """A vocabulary that is divided among the ranks: which ids are this rank's is a number in its trace."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first = rank * 8
        self.own = nn.Parameter(torch.randn(8 * size, 4)[self.first : self.first + 8].clone())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        is_own = (ids >= self.first) & (ids < self.first + 8)
        rows = nn.functional.embedding(torch.where(is_own, ids - self.first, 0), self.own)
        return funcol.all_reduce(torch.where(is_own.unsqueeze(-1), rows, 0.0), "sum", dist.group.WORLD)


class Slices(nn.Module):
    """Each rank takes other rows."""

    def __init__(self, rank: int) -> None:
        super().__init__()
        self.first = 2 * rank

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return funcol.all_reduce(x[self.first : self.first + 2] * 1, "sum", dist.group.WORLD)


def check(folder: Path, rank: int, size: int) -> None:
    """Of the traces of all ranks: numbers that differ are constants per rank, and what differs otherwise is refused by name."""
    table = Table(rank, size).eval()
    ids = torch.tensor([0, 3, 8 * size - 1, 9, 5])
    eager = table(ids)
    options = {"require_full_compilation": True, "strip_engine_weights": True}
    module = ingot.compile(table, inputs=[ids], rank="all", **options)
    module.engine.save(folder / f"table{rank}.ingot")
    dist.barrier()
    files = [(folder / f"table{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files)
    engine = ingot.Engine.load(folder / "table0.ingot", weights=dict(table.named_parameters()))
    torch.testing.assert_close(engine(ids), eager, rtol=0, atol=0)
    torch.compiler.reset()
    compiled = torch.compile(
        table, backend="ingot", options={"rank": "all", "require_full_compilation": True}
    )
    torch.testing.assert_close(compiled(ids), eager, rtol=0, atol=0)
    with pytest.raises(
        ingot.UserError, match=r"the program depends on the rank .* a size or position is 0, 2"
    ) as info:
        ingot.compile(
            Slices(rank), inputs=[torch.ones(2 * size, 3)], rank="all", require_full_compilation=True
        )
    assert (info.value.code, info.value.node) == ("INGOT-U359", "slice_1")
    assert "one_program_checks.py" in info.value.source
    equal = ingot.compile(
        Slices(0), inputs=[torch.ones(2 * size, 3)], rank="all", require_full_compilation=True
    )
    assert equal.engine(torch.ones(2 * size, 3)).sum() == 6 * size
