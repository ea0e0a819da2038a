# SPDX-License-Identifier: Apache-2.0
"""Attention that a model spells out: one operator of ours, with torch's results for queries without any key."""

from __future__ import annotations

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from torch import nn


class SpelledOut(nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor
    ) -> torch.Tensor:
        scores = query @ key.transpose(-1, -2) / 4 + mask
        return torch.softmax(scores, -1) @ value


@pytest.mark.parametrize(("queries", "keys"), [(1, 7), (3, 40), (33, 70)])
def test_spelled_out(queries: int, keys: int) -> None:
    torch.manual_seed(0)
    mask = torch.where(torch.rand(queries, keys) < 0.3, float("-inf"), torch.randn(queries, keys))
    mask[-1] = float("-inf")  # a softmax of nothing is NaN
    args = (torch.randn(2, 3, queries, 16), torch.randn(2, 3, keys, 16), torch.randn(2, 3, keys, 24), mask)
    model = SpelledOut()
    compiled = ingot.dynamo.compile(torch.export.export(model, args), require_full_compilation=True)
    assert_accurate(compiled(*args), model(*args), golden(model, args))
    assert compiled(*args)[..., -1, :].isnan().all()


class Causal(nn.Module):
    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)


@pytest.mark.parametrize("length", [8, 100, 256, 700])
@pytest.mark.parametrize("position", [0, 5, 70, 600])
def test_masked_values_reach_earlier_queries_at_most_within_a_block(length: int, position: int) -> None:
    """0 * NaN: torch's methods differ in how many masked keys they multiply, and so in which earlier queries are NaN."""
    position = min(position, length - 1)
    torch.manual_seed(0)
    args = [torch.randn(1, 2, length, 16) for _ in range(3)]
    compiled, expected = ingot.compile(Causal(), inputs=args), Causal()(*args)
    args[2][..., position, :] = float("nan")
    undefined = compiled(*args).isnan().all(-1)[0, 0]
    first = int(undefined.nonzero()[0])
    assert undefined[first:].all()
    assert position - 64 < first <= position
    assert torch.allclose(compiled(*args)[..., :first, :], expected[..., :first, :], atol=1e-5)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert Causal()(*args).isnan().all()
