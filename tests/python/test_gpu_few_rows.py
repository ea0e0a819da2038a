# SPDX-License-Identifier: Apache-2.0
"""What decoding is made of on GPUs, against f64: linear layers of few rows that compute these themselves, and attention of few queries.

Without a GPU engines are built.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, kernels_of, largest_error, needs_nvrtc, require_right, unaligned
from torch import nn
from torch.nn import functional

pytestmark = needs_nvrtc

_DTYPES = [torch.float16, torch.bfloat16, torch.float32]


class Gated(nn.Module):
    """The rows of `down` are computed from one tensor, and of `again` are what `down` gives too."""

    def __init__(self, inner: int) -> None:
        super().__init__()
        self.down = nn.Linear(inner, 40)
        self.again = nn.Linear(40, 24, bias=False)

    def forward(self, both: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        gate, up = both.chunk(2, -1)
        x = self.down(functional.silu(gate) * up + scale)
        return self.again(torch.tanh(x[..., :40])) + x[..., :24]


@pytest.mark.parametrize("dtype", _DTYPES, ids=str)
@pytest.mark.parametrize("rows", [(1,), (1, 1), (3,), (2, 2)], ids=str)
def test_rows_are_computed(rows: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    inner = 1048
    model = Gated(inner).eval().requires_grad_(False).to(dtype)
    args = (torch.randn(*rows, 2 * inner).to(dtype), torch.randn(inner).to(dtype))
    engine = ingot.build(torch.export.export(model, args), device=DEVICE)
    kernels = [step["name"] for step in kernels_of(engine)]
    assert any("silu" in name and "linear" in name for name in kernels), kernels
    if HAS_GPU:
        require_right(engine, model, args)


# Heads, heads of keys, queries, keys, width.
_ATTENTION = {
    "one_query": (12, 12, 1, 1024, 64),
    "grouped": (32, 8, 1, 1000, 64),
    "eight_rows": (16, 2, 1, 300, 128),
    "two_queries": (8, 2, 2, 77, 96),
    "three_of_short": (6, 6, 3, 5, 32),
    "wide": (4, 4, 1, 513, 256),
}


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


@pytest.mark.parametrize("level", [3, 4])
@pytest.mark.parametrize("dtype", _DTYPES[:2], ids=str)
@pytest.mark.parametrize("case", list(_ATTENTION))
def test_few_queries(case: str, dtype: torch.dtype, level: int) -> None:
    heads, key_heads, queries, keys, width = _ATTENTION[case]
    torch.manual_seed(3)
    sizes = ((heads, queries), (key_heads, keys), (key_heads, keys))
    tensors = [torch.randn(2, count, rows, width).to(dtype) for count, rows in sizes]
    seen = torch.rand(2, 1, queries, keys) < 0.6
    seen[..., 0] = True
    args = (*tensors, seen)
    engine = ingot.build(torch.export.export(Attention(), args), device=DEVICE, optimization_level=level)
    if not HAS_GPU:
        return
    q, k, v, mask = (value.cuda() for value in args)
    exact = Attention()(q.double(), k.double(), v.double(), mask)
    limit = 4 * torch.finfo(dtype).eps
    assert largest_error(engine(q, k, v, mask), exact) < limit
    assert largest_error(engine(*map(unaligned, (q, k, v)), mask), exact) < limit


class Cache(nn.Module):
    """Writes rows into a cache, of which the queries then see all up to their own."""

    def __init__(self, heads: int, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(1, heads, length, width))
        self.register_buffer("values", torch.zeros(1, heads, length, width))

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, at, k)
        self.values.index_copy_(2, at, v)
        seen = torch.arange(self.keys.shape[2], device=q.device) <= at.unsqueeze(1)
        return functional.scaled_dot_product_attention(
            q, self.keys, self.values, attn_mask=seen, enable_gqa=True
        )


@pytest.mark.parametrize("sizes", [(8, 2, 1, 200, 64), (4, 4, 3, 130, 32), (4, 2, 2, 40, 128)], ids=str)
def test_new_rows_are_seen(sizes: tuple[int, ...]) -> None:
    heads, key_heads, rows, length, width = sizes
    torch.manual_seed(4)
    steps = [
        tuple(torch.randn(1, count, rows, width).half() for count in (heads, key_heads, key_heads))
        for _ in range(4)
    ]
    at = [torch.arange(first, first + rows) for first in (0, 17, length - rows, 17)]
    engine = ingot.build(
        torch.export.export(Cache(key_heads, length, width).half(), (*steps[0], at[0])), device=DEVICE
    )
    if not HAS_GPU:
        return
    exact = Cache(key_heads, length, width).double().cuda()
    for step, places in zip(steps, at, strict=True):
        given = tuple(value.cuda() for value in step)
        expected = exact(*(value.double() for value in given), places.cuda())
        assert largest_error(engine(*given, places.cuda()), expected) < 4e-3
