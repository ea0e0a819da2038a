# SPDX-License-Identifier: Apache-2.0
"""On GPUs attention of few queries computes its rows, such as rotated queries and keys, itself: its results against f64.

Without a GPU engines are built.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, kernels_of, largest_error, needs_nvrtc, unaligned
from torch import nn
from torch.nn import functional

pytestmark = needs_nvrtc

_DTYPES = [torch.float16, torch.bfloat16]


class Rotated(nn.Module):
    """Rotates queries and keys, writes rows into a cache, and attends to it."""

    def __init__(self, heads: int, pairs: int, width: int, length: int, scales_values: bool) -> None:
        super().__init__()
        self.heads, self.pairs, self.width, self.scales_values = heads, pairs, width, scales_values
        self.register_buffer("keys", torch.zeros(1, pairs, length, width))
        self.register_buffer("values", torch.zeros(1, pairs, length, width))

    def _turned(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * cosines + torch.cat([-second, first], dim=-1) * sines

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cosines: torch.Tensor,
        sines: torch.Tensor,
        at: torch.Tensor,
        mask: torch.Tensor,
    ) -> torch.Tensor:
        q, k, v = (part.view(1, part.shape[1], -1, self.width).transpose(1, 2) for part in (q, k, v))
        if self.scales_values:
            v = torch.tanh(v)
        self.keys.index_copy_(2, at, self._turned(k, cosines, sines))
        self.values.index_copy_(2, at, v)
        q = self._turned(q, cosines, sines)
        return functional.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=mask, enable_gqa=True
        )


# Heads, heads of keys, rows, width, cached rows, whether values are computed.
_CASES = {
    "llama": (32, 8, 1, 64, 1024, False),
    "every_head": (12, 12, 1, 64, 300, False),
    "values": (8, 2, 1, 128, 700, True),
    "two_rows": (8, 2, 2, 32, 150, True),
    "three_rows_wide": (4, 2, 3, 128, 1100, False),
    "four_rows": (2, 2, 4, 64, 90, False),
    "widest": (8, 8, 1, 256, 130, False),
}


@pytest.mark.parametrize("level", [3, 5])
@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("case", _CASES)
def test_rotations_have_no_kernel(case: str, dtype: torch.dtype, level: int) -> None:
    if level > 3 and not HAS_GPU:
        pytest.skip("nothing to time")
    heads, pairs, rows, width, length, scales_values = _CASES[case]
    torch.manual_seed(1)
    model = Rotated(heads, pairs, width, length, scales_values).eval().to(dtype)
    parts = [torch.randn(1, rows, count * width).to(dtype) for count in (heads, pairs, pairs)]
    angles = torch.randn(rows, width)
    turns = (angles.cos().to(dtype), angles.sin().to(dtype))
    mask = torch.rand(rows, length) < 0.8
    mask[:, :3] = True  # a row of the first step is seen
    args = (*parts, *turns, torch.arange(rows), mask)
    engine = ingot.build(torch.export.export(model, args), device=DEVICE, optimization_level=level)
    kernels = kernels_of(engine)
    assert len(kernels) == 2, [step["name"] for step in kernels]  # attention, and the writes
    assert "multiply" in kernels[0]["name"]
    if not HAS_GPU:
        return
    exact = model.double().cuda()
    for first in (0, 40, length - rows, 41):
        own = [part * (1 + 0.5 * first / length) for part in parts]
        own = [value.cuda() for value in (*own, *turns, torch.arange(first, first + rows), mask)]
        wanted = exact(*(value.double() if value.is_floating_point() else value for value in own))
        if first == 41:
            own[:5] = map(unaligned, own[:5])
        assert (
            largest_error(engine(*own), wanted) < 6 * torch.finfo(dtype).eps
        )  # keys and values in the cache are rounded


class Scaled(nn.Module):
    """Queries alone are computed."""

    def forward(self, q: torch.Tensor, scale: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(torch.tanh(q) * scale, k, v)


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("rows", [1, 3, 8])
def test_queries_are_computed(rows: int, dtype: torch.dtype) -> None:
    torch.manual_seed(2)
    args = tuple(torch.randn(2, 5, count, 64).to(dtype) for count in (rows, rows, 200, 200))
    args = (args[0], args[1].abs(), *args[2:])
    engine = ingot.build(torch.export.export(Scaled().eval(), args), device=DEVICE)
    kernels = kernels_of(engine)
    assert len(kernels) == 1, [step["name"] for step in kernels]
    if HAS_GPU:
        given = tuple(value.cuda() for value in args)
        exact = Scaled()(*(value.double() for value in given))
        assert largest_error(engine(*given), exact) < 3 * torch.finfo(dtype).eps
        assert largest_error(engine(*map(unaligned, given)), exact) < 3 * torch.finfo(dtype).eps
