# SPDX-License-Identifier: Apache-2.0
"""One program for sizes that follow from one that varies and from the rank (mixed_models.py), for rank_checks.py."""

from pathlib import Path

import ingot
import pytest
import torch
import torch.distributed as dist
from mixed_models import MODELS, Branches, Divided, Gathered, Positive
from torch import nn

WHOLE = {"rank": "all", "require_full_compilation": True}


def rows_of(count: int) -> torch.Tensor:
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(count))


def check(folder: Path, rank: int, size: int) -> None:
    for make in MODELS:
        check_model(folder, make(rank, size).eval(), rank, size)
    check_compiled(MODELS[0](rank, size).eval())
    check_branches(rank)
    check_refusals(rank)


def check_model(folder: Path, model: Divided, rank: int, size: int) -> None:
    """The same file on all ranks, for all numbers of rows."""
    name = type(model).__name__
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(2 * size, 8), max_shape=(32, 8))
    module = ingot.compile(model, inputs=[rows], strip_engine_weights=True, **WHOLE)
    module.engine.save(folder / f"mixed_{name}{rank}.ingot")
    dist.barrier()
    files = [(folder / f"mixed_{name}{other}.ingot").read_bytes() for other in range(size)]
    assert all(file == files[0] for file in files), name
    engine = ingot.Engine.load(folder / f"mixed_{name}0.ingot", weights=dict(model.named_parameters()))
    least = 2 * size  # torch.export traces a rank's part with two rows
    counts = [least, 3 * size, 32] if isinstance(model, Gathered) else [least, least + 1, 3 * size - 1, 32]
    for count in counts:
        torch.testing.assert_close(engine(rows_of(count)), model(rows_of(count)), msg=name)


def check_compiled(model: nn.Module) -> None:
    """By torch.compile, in one engine for all numbers of rows."""
    torch.compiler.reset()
    compiled = torch.compile(model, backend="ingot", options=WHOLE, dynamic=True)
    for count in (4, 5, 9):
        torch.testing.assert_close(compiled(rows_of(count)), model(rows_of(count)))
    assert len(ingot.report(compiled).engines) == 1


def check_branches(rank: int) -> None:
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(32, 8))
    module = ingot.compile(Branches(rank), inputs=[rows], **WHOLE)
    for x in (rows_of(3).abs(), -rows_of(7).abs()):
        torch.testing.assert_close(module(x), Branches(rank)(x))


def check_refusals(rank: int) -> None:
    with pytest.raises(ingot.UserError, match="of which no input has") as info:
        ingot.compile(Positive(rank), inputs=[rows_of(4)], **WHOLE)
    assert info.value.code == "INGOT-U359"
    assert info.value.node
