# SPDX-License-Identifier: Apache-2.0
"""Products of bf16 and of 8-bit integers at sizes that fill no register, with this processor's kernels: exact for
integers, and as near as the rounding of operands allows for bf16."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional

# Rows, columns and depth: single ones, those of a register and one more or less, and of several blocks.
_SIZES = [
    (1, 1, 2), (1, 33, 64), (3, 31, 30), (15, 16, 32), (16, 32, 62), (17, 48, 66), (31, 65, 34), (32, 64, 128),
    (33, 17, 4), (47, 96, 1026), (64, 130, 256), (97, 40, 770), (200, 20, 96), (1025, 34, 72),
]  # fmt: skip


def _numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape)


def _integers(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8)


class _IntegerProduct(nn.Module):
    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch._int_mm(x, self.weight.t())


class _Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def _engine(module: nn.Module, *args: torch.Tensor) -> Any:
    return ingot.build(torch.export.export(module.eval(), args))


def _check(actual: torch.Tensor, exact: torch.Tensor) -> None:
    """Sums of f32 are rounded to bf16 once."""
    torch.testing.assert_close(actual.float(), exact, rtol=2**-7, atol=2**-7 * float(exact.abs().mean()))


@pytest.fixture(params=[1, 4], autouse=True)
def threads(request: pytest.FixtureRequest) -> Any:
    ingot.set_threads(request.param)
    torch.manual_seed(request.param)
    yield
    ingot.set_threads(0)


@pytest.mark.parametrize(("rows", "columns", "depth"), _SIZES)
def test_linear(rows: int, columns: int, depth: int) -> None:
    module, x = nn.Linear(depth, columns).bfloat16(), _numbers(rows, depth).bfloat16()
    _check(
        _engine(module, x)(x),
        functional.linear(x.float(), module.weight.float(), module.bias.float()).detach(),
    )


@pytest.mark.parametrize(("rows", "columns", "depth"), _SIZES)
@pytest.mark.parametrize("transposed", [False, True])
def test_matmul(rows: int, columns: int, depth: int, transposed: bool) -> None:
    a = _numbers(2, rows, depth).bfloat16()
    b = _numbers(2, columns, depth).bfloat16().mT if transposed else _numbers(2, depth, columns).bfloat16()
    _check(_engine(_Product(), a, b)(a, b), a.float() @ b.float())


@pytest.mark.parametrize(("rows", "columns", "depth"), _SIZES)
def test_integers(rows: int, columns: int, depth: int) -> None:
    depth = (depth + 3) // 4 * 4
    x, weight = _integers(rows, depth), _integers(columns, depth)
    exact = (x.double() @ weight.double().t()).to(torch.int32)
    assert torch.equal(_engine(_IntegerProduct(weight), x)(x), exact)


@pytest.mark.parametrize(
    ("channels", "columns", "size", "window", "stride"),
    [(4, 20, 9, 3, 1), (16, 33, 12, 3, 2), (32, 64, 14, 1, 1), (34, 48, 11, 3, 1), (64, 96, 8, 5, 1), (2, 8, 17, 7, 2),
     (3, 16, 17, 7, 2), (3, 32, 16, 4, 4), (1, 8, 9, 3, 1), (33, 20, 7, 3, 1)],
)  # fmt: skip
def test_convolution(channels: int, columns: int, size: int, window: int, stride: int) -> None:
    module = nn.Conv2d(channels, columns, window, stride, padding=window // 2).bfloat16()
    x = _numbers(2, channels, size, size).bfloat16()
    exact = functional.conv2d(
        x.float(), module.weight.float(), module.bias.float(), stride, window // 2
    ).detach()
    _check(_engine(module, x)(x), exact)


def _run_at_once(calls: list[Callable[[], None]]) -> None:
    failures: list[BaseException] = []

    def guarded(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=guarded, args=(call,)) for call in calls]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    assert not failures, failures


def test_threads_and_children() -> None:
    """Several threads at once in products of both kinds, each in a loop; then a forked child."""
    module, x = nn.Linear(130, 70).bfloat16(), _numbers(45, 130).bfloat16()
    given, weight = _integers(45, 132), _integers(70, 132)
    narrow, bytes_ = _engine(module, x), _engine(_IntegerProduct(weight), given)
    expected, exact = narrow(x), bytes_(given)

    def run() -> None:
        for _ in range(200):
            assert torch.equal(narrow(x), expected)
            assert torch.equal(bytes_(given), exact)

    _run_at_once([run] * 4)
    child = os.fork()
    if child == 0:
        os._exit(0 if torch.equal(narrow(x), expected) and torch.equal(bytes_(given), exact) else 1)
    assert os.waitpid(child, 0)[1] == 0


class _Attention(nn.Module):
    def __init__(self, causal: bool) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        return functional.scaled_dot_product_attention(query, key, value, mask, is_causal=self.causal)


# Queries, keys, width of queries and of values: few queries stream keys; others fill blocks of pairs or do not.
_ATTENTIONS = [
    (1, 70, 64, 64),
    (3, 129, 24, 40),
    (5, 5, 2, 3),
    (48, 128, 64, 64),
    (50, 131, 40, 20),
    (97, 257, 6, 33),
]


@pytest.mark.parametrize("sizes", _ATTENTIONS, ids=str)
@pytest.mark.parametrize("mask", ["none", "causal", "bool", "narrow"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_attention_of_halves(sizes: tuple[int, int, int, int], mask: str, dtype: torch.dtype) -> None:
    queries, keys, width, value_width = sizes
    given = [
        _numbers(2, 3, rows, columns).to(dtype)
        for rows, columns in ((queries, width), (keys, width), (keys, value_width))
    ]
    if mask == "bool":
        given.append(torch.rand(2, 1, queries, keys) < 0.8)
    if mask == "narrow":
        given.append(_numbers(1, 1, 1, keys).to(dtype))
    module = _Attention(mask == "causal")
    wide = [each.double() if each.is_floating_point() else each for each in given]
    engine = _engine(module, *given)
    # Exponentials and results are rounded; sums of values near 1 may be near 0.
    torch.testing.assert_close(engine(*given).double(), module(*wide), rtol=2**-7, atol=2**-8)
    if queries <= 4:
        assert "convert" not in str(ingot.profile(engine, *given))  # keys and values are read as they are
