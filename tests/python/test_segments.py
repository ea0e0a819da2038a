# SPDX-License-Identifier: Apache-2.0
"""Segments and runs against eager, where torch's database has no samples: ties, NaN, lines that differ."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from test_fourier import in_engine, seeded

NAN = float("nan")


def assert_same(function: Callable, *arguments: torch.Tensor) -> None:
    ours, eager = in_engine(function, *arguments), function(*arguments)
    torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-6, equal_nan=True)


def test_modes_of_ties() -> None:
    """The smallest of the most frequent elements, at its last index."""
    x = torch.tensor([[3, 1, 3, 1, 2], [5, 5, 5, 0, 0], [4, 3, 2, 1, 0]])
    assert_same(lambda x: tuple(torch.mode(x)), x)
    assert_same(lambda x: tuple(torch.mode(x.float(), 0, True)), x)


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
def test_segments_differ_between_lines(reduce: str) -> None:
    lengths = torch.tensor([[0, 4, 2], [6, 0, 0], [1, 2, 3]])
    assert_same(lambda x, n: torch.segment_reduce(x, reduce, lengths=n, axis=1), seeded(3, 6, 2), lengths)


def test_histograms_over_their_data() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.histc(x, 7)

    assert_same(function, seeded(50))
    assert_same(function, torch.full((5,), 2.0))
    with pytest.raises(ingot.UserError, match=r"INGOT-U313.*not finite"):
        in_engine(function, torch.tensor([1.0, NAN]))


def test_indices_of_adaptive_pools() -> None:
    x = seeded(2, 3, 7, 5)
    x[0, 1, 3, 2] = NAN
    assert_same(lambda x: torch.nn.functional.adaptive_max_pool2d(x, (3, 4), return_indices=True), x)


def test_rows_with_large_norms() -> None:
    indices = torch.tensor([[1, 4], [4, 2]])

    def function(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(i, x * 1, max_norm=1.5, norm_type=3.0)

    assert_same(function, indices, seeded(6, 4))
