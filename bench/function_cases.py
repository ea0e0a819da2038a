# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions, reductions and moves of data, each in the dtypes that it takes, at a size that stays in caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.nn import functional

from bench.operator_cases import FLOATS, Call, Case

SHAPE = (128, 3072)
DTYPES = {**FLOATS, "i64": torch.int64}
Function = Callable[..., Any]

# Functions of one tensor, by the values that they are called with.
ANY = """abs neg sign relu square reciprocal sin cos tan atan sinh cosh tanh exp exp2 expm1 sigmoid erf erfc floor ceil round
trunc frac isnan isinf sgn deg2rad nan_to_num sinc"""
POSITIVE = "sqrt rsqrt log log2 log10 log1p"
UNIT = "asin acos asinh atanh logit"
ACTIVATIONS = """gelu silu elu selu celu softplus softsign hardswish hardsigmoid hardtanh relu6 leaky_relu mish logsigmoid
tanhshrink softshrink hardshrink"""
BINARY = """add sub mul div maximum minimum fmax fmin pow atan2 hypot fmod remainder floor_divide eq lt copysign logaddexp
ldexp xlogy"""
INTEGER_UNARY = "abs neg sign square bitwise_not"
INTEGER_BINARY = """add sub mul div maximum minimum fmod remainder floor_divide eq lt bitwise_and bitwise_or bitwise_xor
bitwise_left_shift bitwise_right_shift"""
ROWS = """sum mean prod amax amin argmax argmin any all var std logsumexp norm softmax log_softmax cumsum cumprod cummax
median sort argsort"""
INTEGER_ROWS = "sum prod amax amin argmax argmin any all cumsum cumprod cummax median sort argsort"
MOVES: dict[str, Function] = {
    "cat": lambda x: torch.cat([x, x], 0),
    "cat dim 1": lambda x: torch.cat([x, x], 1),
    "stack dim -1": lambda x: torch.stack([x, x], -1),
    "roll": lambda x: torch.roll(x, 7, 1),
    "pad": lambda x: functional.pad(x, (1, 1, 1, 1)),
    "flip dim 0": lambda x: x.flip(0),
    "flip dim -1": lambda x: x.flip(-1),
    "tril": torch.tril,
    "where": lambda x: torch.where(x > 0, x, 3),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1),
    "clamp": lambda x: x.clamp(0, 1),
    "repeat": lambda x: x.repeat(1, 2),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "transposed copy": lambda x: x.t().contiguous(),
    "permuted copy": lambda x: x.view(128, 48, 64).permute(1, 0, 2).contiguous(),
    "split heads": lambda x: x.view(2, 64, 48, 64).transpose(1, 2).contiguous(),
    "slice with a step": lambda x: x[:, ::2].contiguous(),
    "to f32": lambda x: x.to(torch.float32) + 1,
    "to u8": lambda x: x.to(torch.uint8),
}


def _draw(kind: torch.dtype, low: float, high: float) -> torch.Tensor:
    if kind.is_floating_point:
        return (torch.rand(SHAPE, dtype=torch.float64) * (high - low) + low).to(kind)
    return torch.randint(1, 60, SHAPE, dtype=kind)


def _case(name: str, function: Function, dtype: str, low: float, high: float, operands: int = 1) -> Case:
    def make() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
        return Call(function), tuple(_draw(DTYPES[dtype], low, high) for _ in range(operands))

    return Case(f"{name} {dtype}", make)


def _each(
    names: str, room: Any, dtypes: Iterable[str], low: float, high: float, operands: int = 1
) -> Iterator[Case]:
    for name in names.split():
        for dtype in dtypes:
            yield _case(name, getattr(room, name), dtype, low, high, operands)


def _along(function: Function, dim: int) -> Function:
    return lambda x: function(x, dim=dim)


def _rows(names: str, dtypes: Iterable[str]) -> Iterator[Case]:
    for name in names.split():
        for dim in (0, -1):
            for dtype in dtypes:
                yield _case(f"{name} dim {dim}", _along(getattr(torch, name), dim), dtype, -2, 2)


def function_cases() -> Iterator[Case]:
    whole = ("i64",)
    yield from _each(ANY, torch, FLOATS, -4, 4)
    yield from _each(POSITIVE, torch, FLOATS, 0.01, 9)
    yield from _each(UNIT, torch, FLOATS, 0.01, 0.99)
    yield from _each(ACTIVATIONS, functional, FLOATS, -4, 4)
    yield from _each(BINARY, torch, FLOATS, 0.1, 4, 2)
    yield from _each(INTEGER_UNARY, torch, whole, 1, 60)
    yield from _each(INTEGER_BINARY, torch, whole, 1, 60, 2)
    yield from _rows(ROWS, FLOATS)
    yield from _rows(INTEGER_ROWS, whole)
    for name, move in MOVES.items():
        for dtype in DTYPES:
            yield _case(name, move, dtype, 0, 2)
