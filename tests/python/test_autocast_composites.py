# SPDX-License-Identifier: Apache-2.0
"""Composites under torch.autocast, which chooses dtypes for the calls that they consist of: results have eager's dtypes."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from torch import nn

F = nn.functional
CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "einsum, products": lambda x: torch.einsum("abij,abjk->abik", x, x),
    "einsum, sums": lambda x: torch.einsum("abij,abij->ab", x, x),
    "einsum, permutation": lambda x: torch.einsum("abij->abji", x),
    "reflection": lambda x: F.pad(x, (1, 1, 1, 1), mode="reflect"),
    "replication": lambda x: F.pad(x, (1, 1, 1, 1), mode="replicate"),
    "zeros": lambda x: F.pad(x, (1, 1)),
    "linear": lambda x: F.linear(x, x[0, 0]),
    "attention": lambda x: F.scaled_dot_product_attention(x, x, x),
    "layer norm": lambda x: F.layer_norm(x, (8,)),
    "group norm": lambda x: F.group_norm(x, 3),
    "rms norm": lambda x: F.rms_norm(x, (8,)),
    "softmax": lambda x: x.softmax(-1),
    "bilinear": lambda x: F.bilinear(x[0, 0], x[0, 1], torch.ones(4, 8, 8, dtype=x.dtype)),
    "interpolation": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    "convolution": lambda x: F.conv2d(x, x, padding="same"),
    "matmul": lambda x: torch.linalg.matmul(x, x),
    "outer": lambda x: torch.outer(x[0, 0, 0], x[0, 0, 1]),
    "standard deviation": lambda x: x.std(-1),
}


class Inside(nn.Module):
    """The region is a part of the model."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = self.function(x)
        return y * 2


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize(
    ("dtype", "way"),
    [
        (torch.float32, "around"),
        (torch.bfloat16, "around"),
        (torch.float32, "inference"),
        (torch.float32, "inside"),
    ],
)
def test_dtypes_are_those_of_eager(name: str, dtype: torch.dtype, way: str) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).to(dtype)
    function = Inside(CASES[name]) if way == "inside" else CASES[name]
    guard = torch.inference_mode() if way == "inference" else torch.no_grad()
    with guard, torch.autocast("cpu", torch.bfloat16, enabled=way != "inside"):
        expected = function(x)
        found = torch.compile(function, backend="ingot")(x)
    assert found.dtype == expected.dtype
    torch.testing.assert_close(found, expected, rtol=5e-2, atol=5e-2)


def test_composites_stay_whole_without_autocast() -> None:
    torch.compiler.reset()
    compiled = torch.compile(CASES["einsum, products"], backend="ingot")
    with torch.no_grad():
        compiled(torch.randn(2, 3, 8, 8))
    names = [node.op for segment in ingot.report(compiled).segments for node in segment.nodes]
    assert names == ["aten.einsum.default"]
