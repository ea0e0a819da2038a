# SPDX-License-Identifier: Apache-2.0
"""Operators that round as quantization does, and histograms: eager's values, also at limits and for NaN, and eager's masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from small_models import Function

aten = torch.ops.aten
SPECIAL = torch.tensor([0.0, -0.0, 0.05, 0.15, 0.25, -0.35, 12.65, -12.85, 1e10, -1e10, 1e20, -1e20,
                        float("inf"), -float("inf"), float("nan"), 1e-40])  # fmt: skip
X = torch.cat([SPECIAL, torch.randn(80, generator=torch.Generator().manual_seed(0)) * 8]).reshape(8, 12)
SCALES = torch.linspace(0.03, 0.4, 12)
ZEROS = torch.arange(-6, 6, dtype=torch.int32)
SCALE, ZERO = torch.tensor(0.1), torch.tensor([3], dtype=torch.int32)


def assert_runs_as_eager(function: Callable, *values: torch.Tensor, exact: bool = True) -> None:
    """Ahead of time and just in time, with no node in torch, which traces these operators for sizes that are known alone."""
    expected = function(*values)
    program = torch.export.export(Function(function), values)
    torch.compiler.reset()
    options = {"require_full_compilation": True}
    just_in_time = torch.compile(function, backend="ingot", fullgraph=True, options=options)
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    for call in (ingot.build(program), just_in_time):
        torch.testing.assert_close(call(*values), expected, equal_nan=True, **tolerance)


CALLS = {
    "tensor": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, -128, 127),
    "unsigned": lambda x: torch.fake_quantize_per_tensor_affine(x, 0.07, 0, 0, 255),
    "four bits": lambda x: torch.fake_quantize_per_tensor_affine(x, 1.3, -2, -8, 7),
    "tensor mask": lambda x: aten.fake_quantize_per_tensor_affine_cachemask(x, 0.1, 3, -128, 127),
    "fused": lambda x: torch.fake_quantize_per_tensor_affine(x * 2 + 1, 0.1, 3, -128, 127).relu(),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CALLS)
def test_of_tensors(name: str, dtype: torch.dtype) -> None:
    assert_runs_as_eager(CALLS[name], X.to(dtype))


CALLS_OF_PARAMETERS = {
    "tensor": (lambda x, s, z: torch.fake_quantize_per_tensor_affine(x, s, z, -128, 127), SCALE, ZERO),
    "channels": (
        lambda x, s, z: torch.fake_quantize_per_channel_affine(x, s, z, 1, -128, 127),
        SCALES,
        ZEROS,
    ),
    "mask": (
        lambda x, s, z: aten.fake_quantize_per_channel_affine_cachemask(x, s, z, 1, 0, 15),
        SCALES,
        ZEROS + 6,
    ),
}


@pytest.mark.parametrize("name", CALLS_OF_PARAMETERS)
def test_of_parameters(name: str) -> None:
    function, scale, zero = CALLS_OF_PARAMETERS[name]
    assert_runs_as_eager(function, X, scale, zero)


@pytest.mark.parametrize("is_on", [0, 1])
def test_of_parameters_that_are_turned_off(is_on: int) -> None:
    def function(x: torch.Tensor, on: torch.Tensor) -> Any:
        call = aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams
        return call(x, SCALE, ZERO, on, -128, 127)

    assert_runs_as_eager(function, X, torch.tensor([is_on]))


EDGES = torch.tensor([-2.0, -0.5, 0.25, 0.25, 3.0])
HISTOGRAMS = {
    "bins": lambda x: torch.histogram(x, 5),
    "range": lambda x: torch.histogram(x, 7, range=(-1.5, 2.0)),
    "point": lambda x: torch.histogram(x, 3, range=(0.5, 0.5)),
    "density": lambda x: torch.histogram(x, 6, range=(-3.0, 3.0), density=True),
    "weights": lambda x: torch.histogram(x, 6, weight=x.abs() + 0.5),
    "edges": lambda x: torch.histogram(x, EDGES),
    "edges, weights, density": lambda x: torch.histogram(x, EDGES[[0, 1, 2, 4]], weight=x * x, density=True),
    "equal": lambda x: torch.histogram(x * 0, 4),
}


@pytest.mark.parametrize("name", HISTOGRAMS)
def test_histograms(name: str) -> None:
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
    x[3:5] = torch.tensor([-2.0, 0.25, 3.0])
    assert_runs_as_eager(lambda x: tuple(HISTOGRAMS[name](x)), x, exact=False)
