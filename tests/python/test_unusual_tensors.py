# SPDX-License-Identifier: Apache-2.0
"""torch.compile with tensors whose rows have sizes of their own, and with tensors that have no values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn


def nested(*lengths: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(lengths))
    rows = [torch.randn(length, 8, generator=generator) for length in lengths]
    return torch.nested.nested_tensor(rows, layout=torch.jagged)


def attention(layer: nn.Module, rows: torch.Tensor) -> torch.Tensor:
    heads = layer(rows).unflatten(-1, [2, 4]).transpose(1, 2)
    return nn.functional.scaled_dot_product_attention(heads, heads, heads).transpose(1, 2).flatten(-2)


NESTED: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "elementwise": lambda layer, rows: torch.relu(rows) * 2,
    "linear": lambda layer, rows: layer(rows) + rows,
    "sum": lambda layer, rows: layer(rows).sum(),
    "mean of each": lambda layer, rows: layer(rows).mean(1),
    "values": lambda layer, rows: torch.relu(rows.values()) + 1,
    "offsets": lambda layer, rows: rows.offsets() * 2,
    "padded": lambda layer, rows: torch.nested.to_padded_tensor(layer(rows), 0.0) * 2,
    "attention": attention,
}


@pytest.mark.parametrize("name", NESTED)
def test_nested_tensors(name: str) -> None:
    torch.manual_seed(0)
    layer, function = nn.Linear(8, 8).eval(), NESTED[name]
    compiled = torch.compile(lambda rows: function(layer, rows), backend="ingot")
    with torch.no_grad():
        for lengths in ((2, 4), (3, 1, 5), (4, 2), (1,)):
            rows = nested(*lengths)
            found, expected = compiled(rows), function(layer, rows)
            assert found.is_nested == expected.is_nested
            if found.is_nested:
                assert torch.equal(found.offsets(), expected.offsets())
                found, expected = found.values(), expected.values()
            torch.testing.assert_close(found, expected)


def _on_meta(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x, device="meta").view(-1) * 2


META: dict[str, tuple[Callable[..., Any], str]] = {
    "function": (lambda x: x * 2, "meta"),
    "module": (nn.Linear(4, 4, device="meta"), "meta"),
    "norm with buffers": (nn.BatchNorm1d(4, device="meta").eval(), "meta"),
    "values from sizes": (lambda x: torch.ones(x.shape) + 1, "meta"),
    "both": (lambda x: (torch.relu(x), _on_meta(x)), "cpu"),
}


@pytest.mark.parametrize("name", META)
@pytest.mark.parametrize("with_grad", [False, True])
def test_tensors_without_values(name: str, with_grad: bool) -> None:
    function, device = META[name]
    x = torch.ones(3, 4, device=device)
    with torch.set_grad_enabled(with_grad):
        found, expected = torch.compile(function, backend="ingot")(x), function(x)
    pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
    for mine, eager in pairs:
        assert (mine.device, mine.shape, mine.dtype) == (eager.device, eager.shape, eager.dtype)
        assert mine.is_meta or torch.equal(mine, eager)
