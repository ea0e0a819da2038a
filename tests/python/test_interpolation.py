# SPDX-License-Identifier: Apache-2.0
"""Images of other sizes, at sampled positions and pooled, whose channels fill vectors or do not, against eager."""

from __future__ import annotations

from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate
from torch.nn import functional

_CHANNELS = (3, 8, 17, 24, 37)


class _Images(torch.nn.Module):
    def forward(self, grid: torch.Tensor, *images: torch.Tensor) -> Any:
        results = []
        for x in images:
            height, width = x.shape[2] + 4, x.shape[3] * 2
            results += [
                functional.interpolate(x, size=(height, width), mode="bilinear"),
                functional.interpolate(x, size=(height, width - 3), mode="bilinear", align_corners=True) * 2,
                functional.interpolate(x + 1, scale_factor=0.5, mode="bilinear"),
                functional.interpolate(x, size=(height, width - 1), mode="nearest"),
                functional.grid_sample(x, grid, align_corners=False),
            ]
        return tuple(results)


def _calls(dtype: torch.dtype, size: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(size)
    grid = torch.rand(2, 5, 3, 2, generator=generator) * 2.4 - 1.2
    images = [torch.randn(2, channels, size, 6, generator=generator) for channels in _CHANNELS]
    return tuple(x.to(dtype) for x in (grid, *images))


@pytest.mark.parametrize("level", ["native", "x86-64-v3"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dynamic", [False, True])
def test_images(dtype: torch.dtype, level: str, dynamic: bool) -> None:
    module, args = _Images().eval(), _calls(dtype, 8)
    shapes = None
    if dynamic:
        height = torch.export.Dim("height", min=4, max=40)
        shapes = {"grid": None, "images": tuple({2: height} for _ in _CHANNELS)}
    program = torch.export.export(module, args, dynamic_shapes=shapes)
    compiled = ingot.dynamo.compile(program, require_full_compilation=True, cpu=level)
    for size in (8, 11, 30) if dynamic else (8,):
        args = _calls(dtype, size)
        exact = module(*(x.double() for x in args))
        for actual, eager, wanted in zip(compiled(*args), module(*args), exact, strict=True):
            assert_accurate(actual, eager, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_conversions_to_channels_last_are_steps_of_their_own(dtype: torch.dtype) -> None:
    """Fused, each neighbour of an element would be loaded across the channels."""

    class Resized(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return functional.interpolate(x, size=(21, 30), mode="bilinear")

    compiled = ingot.compile(Resized().eval(), inputs=[torch.randn(1, 32, 16, 16).to(dtype)])
    names = [step["name"] for step in compiled.engine.inspect()["main"]["steps"]]
    assert not [name for name in names if "relayout" in name and "resize" in name], names
