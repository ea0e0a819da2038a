# SPDX-License-Identifier: Apache-2.0
"""Several nodes alone read what a contraction ends with: its kernel stores their results, not what they read."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ingot
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from torch import nn
from torch.nn import functional

Function = Callable[[torch.Tensor], torch.Tensor]


def quantized(x: torch.Tensor, scale: float, zero_point: int) -> torch.Tensor:
    return torch.ops.quantized_decomposed.quantize_per_tensor(x, scale, zero_point, 0, 255, torch.uint8)


class Read(nn.Module):
    """Two quantizations of a layer's result, of which the first is used before the second is made."""

    def __init__(self, layer: nn.Module, before: Function, after: Function) -> None:
        super().__init__()
        self.layer, self.before, self.after = layer, before, after

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = self.after(self.layer(self.before(x)))
        first = quantized(y, 0.02, 100)
        used = first.float() + 1
        return used, quantized(y, 0.031, 7)


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x * 2, x + 1)


class Product(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.transpose(-1, -2)


def image(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], 32, 16, 16)


def heads(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], 4, 64, 32)


def rows(x: torch.Tensor) -> torch.Tensor:
    return x.reshape(x.shape[0], 128, 64)


LAYERS: dict[str, tuple[Callable[[], nn.Module], Function, str]] = {
    "linear": (lambda: nn.Linear(64, 40), rows, "linear"),
    "product": (Product, heads, "matmul"),
    "attention": (Attention, heads, "attention"),
    "window": (lambda: nn.Conv2d(32, 24, 3, stride=2, padding=1), image, "convolution"),
    "winograd": (lambda: nn.Conv2d(32, 48, 3, padding=1), image, "winograd_convolution"),
    "depthwise": (lambda: nn.Conv2d(32, 32, 3, padding=1, groups=32), image, "convolution"),
    "groups": (lambda: nn.Conv2d(32, 32, 3, padding=1, groups=8), image, "convolution"),
    "line": (lambda: nn.Conv1d(128, 64, 3), rows, "convolution"),
}


def made(name: str, after: Function) -> tuple[Read, torch.Tensor]:
    torch.manual_seed(3)
    layer, before, _ = LAYERS[name]
    return Read(layer(), before, after).eval(), torch.randn(2, 8192)


def step_of(compiled: nn.Module, x: torch.Tensor, op: str) -> list[str]:
    """The operators of the step that computes `op`."""
    steps = [[found for found, _, _ in step.operators] for step in ingot.profile(compiled, x, runs=1).steps]
    return next(step for step in steps if op in step)


def check(actual: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """Values halfway between two integers may be rounded to either, and those beside a limit fall on either side."""
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == other.dtype
        difference = (one.double() - other.double()).abs()
        assert difference.max() <= 1
        assert (difference > 1e-4).double().mean() < 0.01


@pytest.mark.parametrize("cpu", ["native", "x86-64-v3"])
@pytest.mark.parametrize("after", [lambda y: y, lambda y: functional.gelu(y) * 0.7], ids=["alone", "chain"])
@pytest.mark.parametrize("name", LAYERS)
def test_the_kernel_stores_what_readers_make_of_the_result(name: str, after: Function, cpu: str) -> None:
    model, x = made(name, after)
    compiled = ingot.compile(model, inputs=[x], cpu=cpu, require_full_compilation=True)
    check(compiled(x), model(x))
    assert step_of(compiled, x, LAYERS[name][2]).count("quantize") == 2


@pytest.mark.parametrize("name", ["linear", "attention", "window"])
def test_batches_of_any_size(name: str) -> None:
    model, _ = made(name, lambda y: y)
    any_size = ingot.Input(min_shape=[1, 8192], opt_shape=[2, 8192], max_shape=[5, 8192])
    compiled = ingot.compile(model, inputs=[any_size], require_full_compilation=True)
    for size in (1, 3, 5):
        x = torch.randn(size, 8192, generator=torch.Generator().manual_seed(size))
        check(compiled(x), model(x))


class Readers(nn.Module):
    """Of a linear layer's result, by functions of it and of what they made before."""

    def __init__(self, *functions: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.layer, self.functions = nn.Linear(64, 40), functions

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.tanh(self.layer(x))
        results: list[torch.Tensor] = []
        for function in self.functions:
            results.append(function(y, *results[-1:]))
        return tuple(results)


def narrow(y: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return quantized(y, 0.01, 120)


STORED = {
    "the value too": (lambda y: y, narrow, lambda y, _: quantized(y, 0.02, 3)),
    "wider results": (narrow, lambda y, _: y.double()),
    "more than it has": (narrow, *(lambda y, _, at=at: y > at / 4 for at in range(4))),
    "what another made": (narrow, lambda y, before: y < before),
    "what is made later": (narrow, lambda y, before: y > before.float().sum(-1, keepdim=True) / 5000),
}


@pytest.mark.parametrize("name", STORED)
def test_a_value_is_stored_where_that_is_no_more(name: str) -> None:
    model, x = Readers(*STORED[name]).eval(), torch.randn(33, 64)
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    check(compiled(x), model(x))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_comparisons(dtype: torch.dtype) -> None:
    model = Readers(lambda y: y > 0.25, lambda y, _: y < -0.25).eval().to(dtype)
    x = torch.randn(33, 64, dtype=dtype)
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    check(compiled(x), model(x))
