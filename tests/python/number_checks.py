# SPDX-License-Identifier: Apache-2.0
"""Integers that calls choose in programs of ranks (number_models.py), for rank_checks.py."""

from pathlib import Path

import ingot
import pytest
import torch
from number_models import (
    Dropped,
    DroppedFirst,
    Own,
    OwnFloat,
    OwnInBranches,
    OwnRowsInBranches,
    Summing,
    X,
    assert_calls,
    program_of,
)


def check(folder: Path, rank: int, size: int) -> None:
    check_every_way(rank)
    check_one_program(folder, rank)
    check_dropped_numbers(rank)
    for kind in (OwnInBranches, OwnRowsInBranches):  # all ranks refuse it, before they are of two minds
        with pytest.raises(ingot.UserError, match=r"INGOT-U359.*its branches are given a number that varies"):
            ingot.compile(program_of(kind(rank), X + rank), rank="all")


def check_dropped_numbers(rank: int) -> None:
    """What one rank's trace lacks, since it changes nothing there, is integers in one program, and floats that are refused by name."""
    x = X + rank
    for program, wants in (
        (program_of(Dropped(rank), x), Dropped(rank).eval()),
        (program_of(DroppedFirst(rank), x), DroppedFirst(rank).eval()),
        (program_of(OwnFloat(rank, in_tensor=True), x), OwnFloat(rank, in_tensor=True).eval()),
    ):
        assert_calls(ingot.compile(program, rank="all"), wants, x)
        assert_calls(ingot.build(program, rank="all"), wants, x)
    with pytest.raises(ingot.UserError, match=r"self.own = torch.tensor") as info:
        ingot.compile(program_of(OwnFloat(rank, in_tensor=False), x), rank="all")
    assert info.value.code == "INGOT-U359"
    assert info.value.node in ("mul", "add")
    assert "number_models.py" in info.value.source
    torch.compiler.reset()
    with pytest.raises(ingot.UserError, match=r"INGOT-U359.*placeholder(.|\n)*compile ahead of time"):
        torch.compile(DroppedFirst(rank).eval(), backend="ingot", dynamic=True, options={"rank": "all"})(
            x, 7, 3
        )


def check_every_way(rank: int) -> None:
    """As a module and as an engine, refitted, in stages, and by torch.compile; the model's own calls are torch's collectives."""
    x = X + rank
    program = program_of(Summing(), x)
    module = ingot.compile(program, staged=True, staged_first_level=1, optimization_level=3)
    assert_calls(module, Summing().eval(), x)
    assert module.wait_until_tuned(120)
    assert_calls(module, Summing().eval(), x)
    module.refit(Summing(seed=2))
    assert_calls(module, Summing(seed=2).eval(), x)
    torch.compiler.reset()
    compiled = torch.compile(Summing().eval(), backend="ingot", dynamic=True)
    assert_calls(compiled, Summing().eval(), x, [(7, 3), (9, 4), (12, 5)])
    engine = ingot.build(program)
    assert_calls(engine, Summing().eval(), x)
    assert_calls(engine, Summing().eval(), x, [(3 + rank, rank - 1)])  # each rank chooses its own
    with pytest.raises(ingot.UserError, match="INGOT-U302"):
        engine(x, 2.5, 1)


def check_one_program(folder: Path, rank: int) -> None:
    """Numbers that also depend on the rank: the one program that is made of all traces computes them in its engine."""
    x = X + rank
    module = ingot.compile(program_of(Own(rank), x), rank="all", require_full_compilation=True)
    assert_calls(module, Own(rank).eval(), x)
    module.refit(Own(rank, seed=2).state_dict())
    assert_calls(module, Own(rank, seed=2).eval(), x)
    ingot.save(module, folder / f"numbers{rank}.pt2")
    assert_calls(ingot.load(folder / f"numbers{rank}.pt2"), Own(rank, seed=2).eval(), x)
