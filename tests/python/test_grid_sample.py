# SPDX-License-Identifier: Apache-2.0
"""grid_sample in every mode equals eager's: inside, at the edges, outside, and at positions that are not finite."""

from __future__ import annotations

import itertools

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional

_ODD = [float("nan"), float("inf"), -float("inf"), -1.0, 1.0, -1.5, 7.0, -30.0, 0.0, -0.0]


class Sampled(nn.Module):
    def __init__(self, mode: str, outside: str, align: bool) -> None:
        super().__init__()
        self.options = {"mode": mode, "padding_mode": outside, "align_corners": align}

    def forward(self, image: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        return functional.grid_sample(image, grid, **self.options)


def odd_grid(dims: int, shape: tuple[int, ...]) -> torch.Tensor:
    """Positions in and around the image; in the first image also each combination of two odd coordinates."""
    grid = torch.rand(*shape, dims) * 3 - 1.5
    flat = grid[0].reshape(-1, dims)
    pairs = torch.tensor(list(itertools.product(_ODD, repeat=2)))
    flat[: len(pairs), :2] = pairs
    return grid


def check(compiled: nn.Module, model: nn.Module, image: torch.Tensor, grid: torch.Tensor) -> None:
    torch.testing.assert_close(
        compiled(image, grid), model(image, grid), equal_nan=True, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_images(mode: str, outside: str) -> None:
    torch.manual_seed(0)
    for align, channels in ((False, 3), (True, 16)):  # row by row, and along the channels
        model = Sampled(mode, outside, align)
        image, grid = torch.randn(2, channels, 7, 5), odd_grid(2, (2, 13, 11))
        compiled = ingot.compile(model, inputs=[image, grid], require_full_compilation=True)
        check(compiled, model, image, grid)
        image[:, 1, 2, 3], image[:, 2, 0, 0] = torch.inf, torch.nan
        check(compiled, model, image, grid)
        if outside == "zeros":
            check(compiled, model, image, torch.full_like(grid, 1e30))


def test_single_rows() -> None:
    for align in (False, True):
        model = Sampled("bilinear", "reflection", align)
        image, grid = torch.randn(1, 2, 1, 6), odd_grid(2, (1, 12, 11))
        check(ingot.compile(model, inputs=[image, grid], require_full_compilation=True), model, image, grid)


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("outside", ["zeros", "border", "reflection"])
def test_volumes(mode: str, outside: str) -> None:
    torch.manual_seed(0)
    model = Sampled(mode, outside, outside != "border")
    image, grid = torch.randn(1, 3, 3, 4, 5), odd_grid(3, (1, 3, 6, 11))
    check(ingot.compile(model, inputs=[image, grid], require_full_compilation=True), model, image, grid)


def test_any_size_and_f64() -> None:
    torch.manual_seed(0)
    model, sizes = (
        Sampled("bilinear", "border", False),
        {2: torch.export.Dim("rows"), 3: torch.export.Dim("columns")},
    )
    example = torch.randn(1, 8, 4, 6, dtype=torch.float64), odd_grid(2, (1, 12, 11)).double()
    count = {1: torch.export.Dim("positions")}
    program = torch.export.export(model, example, dynamic_shapes=(sizes, count))
    compiled = ingot.compile(program, require_full_compilation=True)
    for rows, columns, positions in ((2, 2, 12), (9, 3, 30), (40, 50, 100)):
        image = torch.randn(1, 8, rows, columns, dtype=torch.float64)
        grid = odd_grid(2, (1, positions, 11)).double()
        check(compiled, model, image, grid)
