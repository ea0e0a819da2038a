# SPDX-License-Identifier: Apache-2.0
"""Integers that calls choose in programs of ranks (number_models.py), for rank_checks.py."""

import ingot
import pytest
import torch
from number_models import Summing, X, assert_calls, program_of


def check(rank: int, size: int) -> None:
    """As a module and as an engine, refitted, in stages, and by torch.compile; the model's own calls are torch's collectives."""
    x = X + rank
    program = program_of(Summing(), x)
    module = ingot.compile(program, staged=True, staged_first_level=1, optimization_level=3)
    assert_calls(module, Summing().eval(), x)
    assert module.wait_until_tuned(120)
    assert_calls(module, Summing().eval(), x)
    module.refit(Summing(seed=2))
    assert_calls(module, Summing(seed=2).eval(), x)
    assert_calls(ingot.build(program), Summing().eval(), x)
    torch.compiler.reset()
    compiled = torch.compile(Summing().eval(), backend="ingot", dynamic=True)
    assert_calls(compiled, Summing().eval(), x, [(7, 3), (9, 4), (12, 5)])
    check_own_numbers(ingot.build(program), x, rank, size)


def check_own_numbers(engine: ingot.Engine, x: torch.Tensor, rank: int, size: int) -> None:
    """Each rank chooses its own: the sum is over what all of them made of theirs."""
    own = (3 + rank, rank - 1)
    assert_calls(engine, Summing().eval(), x, [own])
    with pytest.raises(ingot.UserError, match="INGOT-U302"):
        engine(x, 2.5, 1)
