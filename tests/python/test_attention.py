# SPDX-License-Identifier: Apache-2.0
"""Attention that a model spells out: one operator of ours, with torch's results for queries without any key."""

from __future__ import annotations

import math

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
def test_hidden_values_reach_every_query(length: int, position: int) -> None:
    """0 * NaN, although blocks of keys are skipped; also after a call without NaN, and before one."""
    position = min(position, length - 1)
    torch.manual_seed(0)
    args = [torch.randn(2, 3, length, 16) for _ in range(3)]
    compiled, expected = ingot.compile(Causal(), inputs=args), Causal()(*args)
    finite = args[2].clone()
    args[2][1, 1, position, 3] = float("nan")
    result = compiled(*args)
    undefined = torch.zeros(result.shape, dtype=torch.bool)
    undefined[1, 1, :, 3] = True
    assert torch.equal(result.isnan(), undefined)
    assert torch.allclose(result[~undefined], expected[~undefined], atol=1e-5)
    args[2] = finite
    assert torch.allclose(compiled(*args), expected, atol=1e-5)


MASKS = ("none", "causal", "added by query", "added by key")
# Few queries do not read the keys that a bool mask hides.
SITES = [(2, kind) for kind in MASKS] + [(60, kind) for kind in (*MASKS, "by query", "by key")]
SPECIAL = dict.fromkeys(("query", "key", "value"), (math.nan, math.inf, -math.inf, 1e30))


def mask_of(kind: str, queries: int, keys: int) -> torch.Tensor | None:
    if kind in ("none", "causal"):
        return None
    mask = torch.arange(keys)[None] != 12
    if kind.endswith("by query"):
        mask = torch.ones(queries, keys, dtype=torch.bool).tril()
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf) if kind.startswith("added") else mask


class Attention(nn.Module):
    def __init__(self, is_causal: bool) -> None:
        super().__init__()
        self.is_causal = is_causal

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=self.is_causal
        )


@pytest.mark.parametrize("dims", [3, 4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("queries", "kind"), SITES)
def test_special_values_as_in_eager(dims: int, dtype: torch.dtype, queries: int, kind: str) -> None:
    """In the key that masks hide from some queries. Eager in f32: torch's fused method of bf16 loses infinite scores."""
    keys = max(17, queries)
    generator = torch.Generator().manual_seed(0)
    rows = {
        name: torch.randn(count, 8, generator=generator).to(dtype)
        for name, count in (("query", queries), ("key", keys), ("value", keys))
    }
    model, mask = Attention(kind == "causal"), mask_of(kind, queries, keys)
    masks = [] if mask is None else [mask.to(dtype) if mask.is_floating_point() else mask]
    compiled = None
    for operand, values in SPECIAL.items():
        for value in values:
            changed = {name: row.clone() for name, row in rows.items()}
            changed[operand][min(12, len(rows[operand]) - 1), 1] = value
            args = [row.view((1,) * (dims - 2) + row.shape) for row in changed.values()] + masks
            compiled = compiled or ingot.compile(model, inputs=args, require_full_compilation=True)
            expected = model(*(arg.float() if arg.is_floating_point() else arg for arg in args))
            tolerance = 1e-4 if dtype == torch.float32 else 3e-2
            torch.testing.assert_close(
                compiled(*args).float(),
                expected.to(dtype).float(),
                rtol=tolerance,
                atol=tolerance,
                equal_nan=True,
                msg=lambda text, name=operand, number=value: f"{number} in the {name}: {text}",
            )


@pytest.mark.parametrize("queries", [1, 17])
@pytest.mark.parametrize("score", [-70.0, -82.0, -88.0, -95.0, -101.0, -106.0, -200.0])
def test_infinite_values_of_small_powers(queries: int, score: float) -> None:
    """Infinity down to where the power is 0; beyond that NaN."""
    query, key, value = torch.zeros(1, 1, queries, 4), torch.zeros(1, 1, 9, 4), torch.zeros(1, 1, 9, 4)
    query[..., 0], key[..., 3, 0], value[..., 3, :] = 2, score, math.inf  # the scale is a half
    expected = nn.functional.scaled_dot_product_attention(query, key, value)
    compiled = ingot.compile(Attention(False), inputs=[query, key, value])
    assert torch.equal(compiled(query, key, value), expected) or score < -103
    assert torch.equal(compiled(query, key, value).isnan(), expected.isnan())
