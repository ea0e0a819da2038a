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


_EDGES = (torch.tensor([-2.0, -0.5, 0.25, 3.0]), torch.tensor([-1.0, 1.0]), torch.tensor([0.0, 0.5, 1.0]))
ROW_HISTOGRAMS = {
    "counts": lambda x: torch.histogramdd(x, [3, 4, 2]),
    "one count": lambda x: torch.histogramdd(x, 3),
    "range": lambda x: torch.histogramdd(x, [4, 2, 3], range=[-1.0, 1.0, 0.0, 2.0, -3.0, 0.5]),
    "density": lambda x: torch.histogramdd(x, [2, 3, 2], density=True),
    "weights": lambda x: torch.histogramdd(x, [2, 2, 2], weight=x[..., 0].abs(), density=True),
    "edges": lambda x: torch.histogramdd(x, [edges.to(x.dtype) for edges in _EDGES], weight=x[..., 1].abs()),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ROW_HISTOGRAMS)
def test_histograms_of_rows(name: str, dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        counts, edges = ROW_HISTOGRAMS[name](x)
        return counts, *edges

    on_edges = torch.tensor([[-2.0, 1.0, 0.5], [3.0, -1.0, 1.0], [0.25, 0.0, 0.0], [-0.5, 1.0, 1.0]])
    for x in (seeded(40, 3), seeded(4, 5, 3), on_edges, torch.full((5, 3), 2.0)):
        assert_same(function, x.to(dtype))
    if name in ("range", "edges"):
        assert_same(function, torch.tensor([[NAN, 0.5, 0.0], [0.5, NAN, 0.2], [0.1, 0.5, 0.25]], dtype=dtype))


def test_indices_of_adaptive_pools() -> None:
    x = seeded(2, 3, 7, 5)
    x[0, 1, 3, 2] = NAN
    assert_same(lambda x: torch.nn.functional.adaptive_max_pool2d(x, (3, 4), return_indices=True), x)


def test_rows_with_large_norms() -> None:
    indices = torch.tensor([[1, 4], [4, 2]])

    def function(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(i, x * 1, max_norm=1.5, norm_type=3.0)

    assert_same(function, indices, seeded(6, 4))
