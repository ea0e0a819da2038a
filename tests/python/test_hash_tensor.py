# SPDX-License-Identifier: Apache-2.0
"""torch.hash_tensor: eager's bits exactly, whatever the dtype, dims and memory order."""

from __future__ import annotations

import ingot
import pytest
import torch
from small_models import Function

DTYPES = (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.float16, torch.bfloat16, torch.float32, torch.float64)  # fmt: skip
DIMS = ((), 0, 1, -1, (0, 2), (2, 1), (0, 1, 2))


def _random(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    return (torch.randn(shape, generator=torch.Generator().manual_seed(len(shape))) * 50).to(dtype)


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_bits_are_eagers(dtype: torch.dtype, keepdim: bool) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(torch.hash_tensor(x, dim, keepdim=keepdim) for dim in DIMS)

    for n in (4, 1):  # torch exports no other size than the example's
        x = _random(dtype, n, 3, 5)
        compiled = ingot.compile(Function(function), inputs=[x], require_full_compilation=True)
        for given in (x, _random(dtype, 5, 3, n).permute(2, 1, 0)):
            for result, expected in zip(compiled(given), function(given), strict=True):
                assert result.dtype is torch.uint64
                assert result.shape == expected.shape
                assert result.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("value", ["0", "-0", "nan", "-nan", "inf", "-inf", "6e-8"])
def test_special_values(value: str, dtype: torch.dtype) -> None:
    x = torch.tensor([float(value)], dtype=dtype)
    compiled = ingot.compile(Function(torch.hash_tensor), inputs=[x], require_full_compilation=True)
    for given in (x, x[0].expand(1), torch.cat([x, x[:0]])):
        assert compiled(given).tolist() == torch.hash_tensor(given).tolist()


def test_scalars_and_large_tensors() -> None:
    compiled = ingot.compile(
        Function(torch.hash_tensor), inputs=[torch.tensor(2.5)], require_full_compilation=True
    )
    assert compiled(torch.tensor(-7.0)).tolist() == torch.hash_tensor(torch.tensor(-7.0)).tolist()
    x = _random(torch.float32, 300, 1000)
    torch._dynamo.reset()
    run = torch.compile(torch.hash_tensor, backend="ingot", options={"require_full_compilation": True})
    assert run(x).tolist() == torch.hash_tensor(x).tolist()
