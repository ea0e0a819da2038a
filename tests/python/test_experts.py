# SPDX-License-Identifier: Apache-2.0
"""Grouped matrix products of mixtures of experts: both operators, every form, all dtypes, and what the router may decide."""

from __future__ import annotations

from collections.abc import Iterator

import ingot
import pytest
import torch
import transformers.integrations.moe  # registers transformers::grouped_mm_fallback
from accuracy import assert_accurate, golden
from torch import nn
from torch.nn import functional

assert transformers.integrations.moe.ALL_EXPERTS_FUNCTIONS
WIDTH, HIDDEN = 24, 40
ROUTES = {
    "all groups": (3, 9, 10, 17),
    "empty groups": (0, 8, 8, 17),
    "one group": (0, 17, 17, 17),
    "rows behind": (2, 2, 5, 11),
    "no rows in groups": (0, 0, 0, 0),
}


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Fallback(nn.Module):
    """What transformers exports, with a bias for each row and an activation behind, which fuse with the product."""

    def __init__(self, experts: int = 4, *, transposed: bool = True) -> None:
        super().__init__()
        shape = (experts, HIDDEN, WIDTH) if transposed else (experts, WIDTH, HIDDEN)
        self.weight = nn.Parameter(torch.randn(shape))
        self.transposed = transposed

    def forward(self, x: torch.Tensor, bias: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        weight = self.weight.transpose(-2, -1) if self.transposed else self.weight
        product = torch.ops.transformers.grouped_mm_fallback(x, weight, ends)
        return functional.silu(product + bias)


def arguments(rows: int, ends: tuple[int, ...], dtype: torch.dtype, index: torch.dtype) -> list[torch.Tensor]:
    x, bias = torch.randn(rows, WIDTH).to(dtype), torch.randn(rows, HIDDEN).to(dtype)
    return [x, bias, torch.tensor(ends, dtype=index)]


def check(module: nn.Module, model: nn.Module, args: list[torch.Tensor]) -> None:
    assert_accurate(module(*args), model(*args), golden(model, args))


def wholly(model: nn.Module, inputs: list) -> nn.Module:
    module = ingot.compile(model.eval(), inputs=inputs, require_full_compilation=True)
    assert [segment.backend for segment in ingot.report(module).segments] == ["cpu"]
    return module


@pytest.mark.parametrize(("index", "transposed"), [(torch.int32, True), (torch.int64, False)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_each_route_gives_what_torch_gives(dtype: torch.dtype, index: torch.dtype, transposed: bool) -> None:
    model = Fallback(transposed=transposed).to(dtype)
    module = wholly(model, arguments(17, ROUTES["all groups"], dtype, index))
    for ends in ROUTES.values():
        check(module, model, arguments(17, ends, dtype, index))


@pytest.mark.parametrize("level", [0, 2, 3])
def test_the_number_of_rows_may_change(level: int) -> None:
    model = Fallback()
    rows = {"min_shape": (1, WIDTH), "opt_shape": (17, WIDTH), "max_shape": (64, WIDTH)}
    bias = {key: (shape[0], HIDDEN) for key, shape in rows.items()}
    inputs = [ingot.Input(**rows), ingot.Input(**bias), ingot.Input((4,), dtype=torch.int32)]
    module = ingot.compile(
        model.eval(), inputs=inputs, require_full_compilation=True, optimization_level=level
    )
    for count, ends in (
        (17, ROUTES["all groups"]),
        (1, (0, 0, 1, 1)),
        (64, (6, 13, 13, 64)),
    ):
        check(module, model, arguments(count, ends, torch.float32, torch.int32))


def test_no_rows() -> None:
    model, args = Fallback(), arguments(0, (0, 0, 0, 0), torch.float32, torch.int32)
    check(wholly(model, args), model, args)


def test_rows_that_are_not_dense() -> None:
    model = Fallback()
    x, bias, ends = arguments(17, ROUTES["all groups"], torch.float32, torch.int32)
    args = [x.t().contiguous().t(), bias.repeat(1, 2)[:, ::2], ends.repeat_interleave(2)[::2]]
    check(wholly(model, args), model, args)


def test_new_weights() -> None:
    old, new = Fallback(), Fallback()
    args = arguments(17, ROUTES["all groups"], torch.float32, torch.int32)
    module = wholly(old, args)
    refitted = ingot.refit_module_weights(module, new.state_dict())
    check(refitted, new, args)
    check(module, old, args)


def test_weights_that_are_computed() -> None:
    class Scaled(Fallback):
        def forward(self, x: torch.Tensor, scale: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
            weight = self.weight.transpose(-2, -1) * scale[:1, :]
            return torch.ops.transformers.grouped_mm_fallback(x, weight, ends)

    model, args = Scaled(), arguments(17, ROUTES["rows behind"], torch.float32, torch.int32)
    check(wholly(model, args), model, args)


def test_groups_behind_one_another_in_one_model() -> None:
    """The rows of a product become those of another, with the same ends."""

    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Fallback(), nn.Parameter(torch.randn(4, WIDTH, HIDDEN))

        def forward(self, x: torch.Tensor, bias: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
            wide = self.first(x, bias, ends)
            return torch.ops.transformers.grouped_mm_fallback(wide, self.second.transpose(-2, -1), ends) + x

    model = Two()
    module = wholly(model, arguments(17, ROUTES["all groups"], torch.float32, torch.int32))
    for ends in ROUTES.values():
        check(module, model, arguments(17, ends, torch.float32, torch.int32))


SHAPES = {"2x3": ((17, 32), (4, 32, 16)), "3x2": ((4, 16, 32), (32, 17)), "3x3": ((4, 16, 32), (4, 32, 24))}


class Grouped(nn.Module):
    """aten._grouped_mm of operands whose ranks are `form`."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.has_ends = form != "3x3"

    def forward(self, a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        return functional.grouped_mm(a, b, offs=ends if self.has_ends else None)

    @staticmethod
    def reference(a: torch.Tensor, b: torch.Tensor, ends: torch.Tensor, form: str) -> torch.Tensor:
        if form == "3x3":
            return a @ b
        starts = [0, *ends.tolist()[:-1]]
        parts = zip(starts, ends.tolist(), strict=True)
        if form == "2x3":
            return torch.cat([a[i:j] @ b[g] for g, (i, j) in enumerate(parts)])
        return torch.cat([a[g] @ b[:, i:j] for g, (i, j) in enumerate(parts)], 1)


@pytest.mark.parametrize("form", SHAPES)
def test_forms_of_grouped_mm(form: str) -> None:
    """Torch has them for bf16, with strides of 16 bytes."""
    first, second = SHAPES[form]
    a, b = (torch.randn(shape, dtype=torch.bfloat16) for shape in (first, second))
    if form == "3x2":  # 17 columns: dense along the depth
        b = torch.randn(17, 32, dtype=torch.bfloat16).t()
    ends = torch.tensor(ROUTES["empty groups"], dtype=torch.int32)
    model = Grouped(form)
    compiled = ingot.compile(model, inputs=[a, b, ends], require_full_compilation=True)
    found = compiled(a, b, ends)
    wanted = Grouped.reference(a.double(), b.double(), ends, form)
    assert_accurate(found, model(a, b, ends), wanted)


def test_groups_of_the_depth_run_in_torch_and_say_why() -> None:
    a, b = torch.randn(16, 24, dtype=torch.bfloat16), torch.randn(24, 16, dtype=torch.bfloat16)
    ends = torch.tensor((8, 8, 16, 24), dtype=torch.int32)
    model = Grouped("2x2")
    module = ingot.compile(model, inputs=[a, b, ends])
    assert "groups of the depth" in str(ingot.report(module))
    torch.testing.assert_close(module(a, b, ends), model(a, b, ends))
