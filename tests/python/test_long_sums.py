# SPDX-License-Identifier: Apache-2.0
"""Rounding errors of products must not grow with the length of their sums beyond eager's."""

from __future__ import annotations

from collections.abc import Sequence

import ingot
import pytest
import torch
from accuracy import golden
from torch import nn


class Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def error(result: torch.Tensor, exact: torch.Tensor) -> float:
    """RMS of the difference, relative to the RMS of the result."""
    return ((result - exact).square().mean() / exact.square().mean()).sqrt().item()


@pytest.mark.parametrize(
    ("model", "shapes"),
    [
        (nn.Linear(8192, 96), [(16, 8192)]),
        (nn.Linear(16384, 40), [(1, 16384)]),
        (nn.Linear(3001, 50), [(7, 3001)]),
        (Product(), [(3, 40, 6000), (3, 6000, 50)]),
        (nn.Conv2d(512, 64, 3, padding=1), [(1, 512, 9, 9)]),
        (nn.Conv2d(4096, 64, 1), [(1, 4096, 5, 5)]),
        (nn.Conv2d(2000, 32, 2), [(1, 2000, 5, 5)]),
    ],
)
def test_long_sums(model: nn.Module, shapes: Sequence[tuple[int, ...]]) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    with torch.no_grad():
        ours, eager = ingot.compile(model, inputs=inputs)(*inputs), model(*inputs)
    exact = golden(model, inputs)
    assert error(ours, exact) <= 2 * error(eager, exact)
