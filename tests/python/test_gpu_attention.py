# SPDX-License-Identifier: Apache-2.0
"""Attention of many queries with masks of bools on GPUs, against f64.

Without a GPU engines are built.
"""

from __future__ import annotations

import ingot
import pytest
import torch
from gpu_targets import DEVICE, HAS_GPU, needs_nvrtc
from torch import nn

pytestmark = needs_nvrtc

# Heads, heads of keys, queries, keys, width, and the mask's shape. Rows of 16 bytes are read 16 keys at a time.
_CASES = {
    "of_a_cache": (32, 8, 512, 1024, 64, (512, 1024)),
    "last_rows_and_keys": (48, 48, 197, 208, 64, (1, 1, 197, 208)),
    "of_each_batch": (64, 16, 130, 96, 128, (2, 1, 130, 96)),
    "of_each_head": (40, 40, 100, 80, 32, (40, 100, 80)),
    "of_all_queries": (32, 32, 256, 256, 64, (2, 1, 1, 256)),
    "odd_rows": (32, 32, 256, 250, 64, (256, 250)),
}


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


def _arguments(case: str) -> tuple[torch.Tensor, ...]:
    heads, key_heads, queries, keys, width, mask = _CASES[case]
    torch.manual_seed(3)
    sizes = ((heads, queries), (key_heads, keys), (key_heads, keys))
    tensors = [torch.randn(2, count, rows, width, dtype=torch.float16) for count, rows in sizes]
    seen = torch.rand(mask) < 0.5
    seen[..., 0] = True
    seen[..., 5:, 16:48] = False  # whole chunks
    return (*tensors, seen)


@pytest.mark.parametrize("case", list(_CASES))
def test_masks_of_bools(case: str) -> None:
    args = _arguments(case)
    engine = ingot.build(torch.export.export(Attention(), args), device=DEVICE)
    if not HAS_GPU:
        return
    q, k, v, mask = (value.cuda() for value in args)
    exact = Attention()(q.double(), k.double(), v.double(), mask)
    beside = torch.empty(mask.numel() + 1, dtype=torch.bool, device="cuda")[1:].view(mask.shape).copy_(mask)
    for seen in (mask, beside):
        assert float((engine(q, k, v, seen).double() - exact).abs().max()) < 4e-3
