# SPDX-License-Identifier: Apache-2.0
"""Quantized models whose weights and inputs are vectors, empty, or of more dims than usual."""

from __future__ import annotations

from typing import Any

import ingot
import pytest
import torch
from ingot.quantization.ranges import METHODS
from torch import nn


class _Layers(nn.Module):
    """A layer whose weight is a vector or empty, which stays f32, and one that is quantized."""

    def __init__(self, *shape: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.odd, self.usual = nn.Parameter(torch.randn(shape)), nn.Linear(64, 3)

    def forward(self, x: torch.Tensor) -> Any:
        return nn.functional.linear(x, self.odd), self.usual(x)


_WEIGHTS_ALONE = ({"weights": "int4"}, {"weights": "float8"})
_WITH_DATA = (
    *({"method": method} for method in METHODS),
    {"smoothing_share": 0.5},
    {"weights": "per_tensor"},
    {"weights": "float8", "activations": "float8"},
)


@pytest.mark.parametrize("options", [*_WEIGHTS_ALONE, *_WITH_DATA], ids=str)
@pytest.mark.parametrize("shape", [(64,), (0, 64), (1, 64)], ids=str)
def test_layers_and_inputs_of_any_rank(shape: tuple[int, ...], options: dict[str, Any]) -> None:
    model = _Layers(*shape).eval()
    for x in (torch.randn(64), torch.randn(5, 64), torch.randn(2, 3, 64), torch.zeros(2, 64)):
        given: dict[str, Any] = {"inputs": [x]} if options in _WEIGHTS_ALONE else {"calibration_data": [(x,)]}
        program = ingot.quantize(model, **given, **options)
        for actual, expected in zip(ingot.compile(program, inputs=[x])(x), program(x), strict=True):
            torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"smoothing_share": 0.5}], ids=str)
def test_batches_without_elements_are_rejected(options: dict[str, Any]) -> None:
    with pytest.raises(ingot.UserError, match="no batch gives x a finite number"):
        ingot.quantize(_Layers(4, 64).eval(), [(torch.zeros(0, 64),)], **options)
