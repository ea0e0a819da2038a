# SPDX-License-Identifier: Apache-2.0
"""torch.logcumsumexp: lines of all lengths, known or not, in blocks whose sums are carried on."""

from __future__ import annotations

import math

import ingot
import pytest
import torch
from accuracy import assert_accurate
from small_models import Function

LENGTHS = (1, 2, 14, 15, 16, 62, 63, 64, 65, 225, 226, 300, 3376)


def _lines(length: int, dtype: torch.dtype) -> torch.Tensor:
    """Numbers of all sizes; infinities at the start, in the middle and in whole blocks, and NaN."""
    x = torch.randn(7, length, generator=torch.Generator().manual_seed(length)) * 4
    x[1] *= 1000 if dtype is not torch.float16 else 100
    x[2, : length // 2] = -math.inf
    x[3, length // 3 :] = -math.inf
    x[4, length // 2 :] = math.inf
    x[5, length // 2] = math.nan
    x[6] = -math.inf
    return x.to(dtype)


def _check(run: torch.nn.Module, model: torch.nn.Module, x: torch.Tensor) -> None:
    result = run(x)
    assert result.dtype is x.dtype
    assert_accurate(result, model(x), model(x.double()))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("dim", [1, -2])
def test_lines_of_known_and_of_any_length(dtype: torch.dtype, dim: int) -> None:
    model = Function(lambda x: torch.logcumsumexp(x if dim == 1 else x.mT, dim))
    dynamic = torch.export.export(
        model, (_lines(9, dtype),), dynamic_shapes=(({1: torch.export.Dim.DYNAMIC},),)
    )
    of_any = ingot.compile(dynamic, require_full_compilation=True)
    for length in LENGTHS:
        x = _lines(length, dtype)
        _check(of_any, model, x)
        if length in (16, 63, 64, 226):
            _check(ingot.compile(model, inputs=[x], require_full_compilation=True), model, x)


def test_numbers_and_empty_lines() -> None:
    model = Function(lambda x: torch.logcumsumexp(x, -1))
    for x in (torch.tensor(2.5), torch.zeros(3, 0), torch.zeros(0, 3), torch.zeros(0, 70)):
        torch._dynamo.reset()
        result = torch.compile(model, backend="ingot", options={"require_full_compilation": True})(x)
        assert torch.equal(result, model(x))
        assert result.shape == x.shape


def test_a_single_engine_of_any_length() -> None:
    model, x = Function(lambda x: torch.logcumsumexp(x, 0) * 2), torch.randn(500, 3)
    lengths = ({0: torch.export.Dim("n", min=1, max=100_000)},)
    engine = ingot.build(torch.export.export(model, (x,), dynamic_shapes=(lengths,)))
    for length in (1, 64, 500, 20_000):
        x = torch.randn(length, 3)
        torch.testing.assert_close(engine(x), model(x))
