# SPDX-License-Identifier: Apache-2.0
"""What a program narrows to a half, or to 8 bits, is rounded where a reader shows it: comparisons, steps, and conversions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from whole_functions import in_engine

_Function = Callable[..., Any]
_HALVES = (torch.float16, torch.bfloat16)
_EIGHT_BITS = (torch.float8_e4m3fn, torch.float8_e5m2)

# Of x, which was just narrowed, and y, which holds the same values.
_STEPS: dict[str, _Function] = {
    "floor": lambda x, y: x.floor(),
    "ceil": lambda x, y: x.ceil(),
    "trunc": lambda x, y: x.trunc(),
    "round": lambda x, y: x.round(),
    "sign": lambda x, y: x.sign(),
    "long": lambda x, y: x.clamp(max=32768).long(),
    "bool": lambda x, y: x.bool(),
    "half": lambda x, y: x.half(),
    "float": lambda x, y: x.float() - y,
    "equal": lambda x, y: x == y,
    "on the left": lambda x, y: y >= x,
    "less": lambda x, y: x < y,
    "a number": lambda x, y: (x > 0.1) & (x != 3.3),
    "zero": lambda x, y: x == 0,
    "infinite": lambda x, y: x.isinf(),
    "finite": lambda x, y: x.isfinite(),
    "remainder": lambda x, y: x % 1.0,
    "fmod": lambda x, y: torch.fmod(x, 0.7),
    "floor_divide": lambda x, y: x // 0.7,
    "argmax": lambda x, y: x.view(20, -1).argmax(-1),
    "argmin": lambda x, y: x.argmin(),
    "cummax": lambda x, y: x.cummax(0)[1],
    "count": lambda x, y: x.count_nonzero(),
    "close": lambda x, y: torch.isclose(x, y, rtol=0, atol=0),
    "negated": lambda x, y: (-x).floor(),
    "absolute": lambda x, y: x.abs() == y.abs(),
    "relu": lambda x, y: x.relu() == y,
    "maximum": lambda x, y: torch.maximum(x, y) == y,
    "chosen": lambda x, y: torch.where(y > 5, x, y) == y,
    "largest": lambda x, y: x.view(20, -1).amax(-1) == y.view(20, -1).amax(-1),
    "joined": lambda x, y: torch.cat([x, y]) == torch.cat([y, y]),
    "transposed": lambda x, y: x.view(20, -1).mT.contiguous() == y.view(20, -1).mT,
}
_VALUES: dict[str, _Function] = {
    "plain": lambda: torch.rand(400) * 300,
    "near one": lambda: 3.3 + torch.rand(400) * 1e-5,
    "tiny": lambda: torch.rand(400) * 1e-8,
    "huge": lambda: torch.rand(400) * 1e6,
    "subnormal": lambda: torch.rand(400) * 1e-42,
}


@pytest.mark.parametrize("dtype", _HALVES)
@pytest.mark.parametrize("step", _STEPS)
def test_steps(step: str, dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return _STEPS[step]((x / 3.3).to(dtype), y)

    torch.manual_seed(0)
    for name, make in _VALUES.items():
        x = make()
        y = (x / 3.3).to(dtype)
        with torch.no_grad():
            ours = in_engine(function, [x, y])
        torch.testing.assert_close(ours, function(x, y), rtol=0, atol=0, equal_nan=True, msg=name)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", _HALVES)
def test_integers_that_halves_cannot_hold(dtype: torch.dtype, dynamic: bool) -> None:
    def function(n: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        narrow = (n * 7).to(dtype)
        count = torch.arange(n.shape[0], dtype=dtype)
        return narrow.long(), narrow.float(), narrow == y, n == y, count == y, count.long(), count.float()

    n = torch.arange(3000)
    given = [n, n.to(dtype)]
    for ours, eager in zip(in_engine(function, given, dynamic), function(*given), strict=True):
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("last", [*_HALVES, torch.float32])
@pytest.mark.parametrize("first", [*_HALVES, *_EIGHT_BITS])
@pytest.mark.parametrize("source", [*_HALVES, torch.float32, *_EIGHT_BITS])
def test_chains_of_conversions(source: torch.dtype, first: torch.dtype, last: torch.dtype) -> None:
    """Also between dtypes of equal size: a half may lose bits in the other one."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.to(first).to(last)

    torch.manual_seed(0)
    for scale in (1, 1e-6, 300):
        x = (torch.randn(200) * scale).to(source)
        eager = function(x)
        torch.testing.assert_close(in_engine(function, [x]), eager, rtol=0, atol=0, equal_nan=True)


def test_masks_of_what_vanishes_in_a_half() -> None:
    """A probability that f16 rounds to 0 is 0 to whoever asks."""

    class Masked(nn.Module):
        def forward(self, scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
            probabilities = scores.softmax(-1).half()
            return (
                probabilities == 0,
                probabilities.count_nonzero(-1),
                torch.where(probabilities > 0, 1.0, -1.0),
            )

    scores = torch.linspace(0, 30, 64).repeat(3, 1)
    with torch.no_grad():
        for ours, eager in zip(in_engine(Masked(), [scores]), Masked()(scores), strict=True):
            assert torch.equal(ours, eager)


# Numbers that become elements, as 0.1 of the dtype.
_STORED: dict[str, _Function] = {
    "where": lambda x: torch.where(x > 0, x, 0.1),
    "where first": lambda x: torch.where(x > 0, 0.1, x),
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.1),
    "clamp": lambda x: x.clamp(-0.3, 0.1),
    "clamp_min": lambda x: x.clamp_min(0.1),
    "hardtanh": lambda x: nn.functional.hardtanh(x, -0.3, 0.1),
    "threshold": lambda x: nn.functional.threshold(x, 0.05, 0.1),
    "pad": lambda x: nn.functional.pad(x, (1, 2), value=0.1),
    "index_fill": lambda x: x.index_fill(1, torch.tensor([1, 3]), 0.1),
    "fill": lambda x: x.clone().fill_(0.1),
    "nan_to_num": lambda x: (x / 0 * 0).nan_to_num(0.1),
    "full": lambda x: torch.full_like(x, 0.1),
}


@pytest.mark.parametrize("dtype", _HALVES)
@pytest.mark.parametrize("name", _STORED)
def test_numbers_that_are_stored_are_rounded(name: str, dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        filled = _STORED[name](x)
        return filled == y, filled == 0.1, filled.float(), filled > 0.1

    torch.manual_seed(0)
    x, y = torch.randn(4, 64).to(dtype), torch.tensor(0.1).to(dtype)
    for ours, eager in zip(in_engine(function, [x, y]), function(x, y), strict=True):
        assert torch.equal(ours, eager)
