# SPDX-License-Identifier: Apache-2.0
"""Guarantees for callers of torch.compile: numbers, aliases, writes, strides, gradients, odd arguments."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from small_models import mlp
from torch import nn
from torch._subclasses import FakeTensorMode


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def just_in_time(function: Callable, **options: Any) -> Callable:
    return torch.compile(function, backend=backend, **options)


def test_numbers_that_are_no_size() -> None:
    def scaled(x: torch.Tensor, factor: Any) -> torch.Tensor:
        return x * factor + 1

    compiled, x = just_in_time(scaled), torch.randn(3, 8)
    for factor in (2, 3, 4, 0.5, 0.7, True, -1, torch.tensor(2.5)):
        torch.testing.assert_close(compiled(x, factor), scaled(x, factor))


def test_results_of_no_arguments_are_tensors() -> None:
    torch.testing.assert_close(just_in_time(lambda: torch.ones(3) * 2)(), torch.full((3,), 2.0))


def test_saved_statistics_run_in_torch() -> None:
    class Norm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.linear(x)).softmax(-1)

    model, x = Norm(), torch.randn(3, 8)
    with torch.enable_grad():
        just_in_time(model)(x).square().sum().backward()
        got = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        model(x).square().sum().backward()
    for parameter, gradient in zip(model.parameters(), got, strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def returns_written(a: torch.Tensor) -> tuple:
    a.add_(1)
    return a, a[0]


def writes_through_view(a: torch.Tensor) -> tuple:
    part = a[:, 2:4]
    part.mul_(3)
    return a, part


def returns_views(a: torch.Tensor) -> tuple:
    b = a + 1
    return b, b[0], b.view(-1), a.t(), a[:, ::2]


def returns_chunks(a: torch.Tensor) -> tuple:
    return (a * 2).chunk(2, 1)


def returns_expanded(a: torch.Tensor) -> tuple:
    return a.expand(4, a.shape[0], 8), a.squeeze()


def returns_what_needs_no_conversion(a: torch.Tensor) -> tuple:
    return a.type_as(a), a.to(a.dtype), a.contiguous()


def writes_after_no_conversion(a: torch.Tensor) -> tuple:
    b = a.type_as(a)
    a[a > 5] = 0.25
    return (b,)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    "function",
    [
        returns_written,
        writes_through_view,
        returns_views,
        returns_chunks,
        returns_expanded,
        returns_what_needs_no_conversion,
        writes_after_no_conversion,
    ],
)
def test_results_share_memory_as_in_eager(function: Callable, dynamic: bool) -> None:
    x, y = torch.arange(24.0).reshape(3, 8), torch.arange(24.0).reshape(3, 8)
    got, want = just_in_time(function, dynamic=dynamic)(x), function(y)
    for mine, other in zip(got, want, strict=True):
        assert mine.stride() == other.stride()
        if 0 not in mine.stride():
            mine.mul_(0.5).add_(1)
            other.mul_(0.5).add_(1)
        for left, right in zip((x, *got), (y, *want), strict=True):
            torch.testing.assert_close(left, right)


def test_strided_argument_is_written() -> None:
    def push(a: torch.Tensor) -> torch.Tensor:
        return a.add_(1)

    x = torch.arange(48.0).reshape(3, 16)[:, ::2]
    want = x + 1
    assert just_in_time(push)(x).data_ptr() == x.data_ptr()
    torch.testing.assert_close(x, want)


def test_lazy_negation() -> None:
    x = torch.randn(3, 8)
    negated = torch._neg_view(x)
    for compiled in (ingot.compile(mlp(), inputs=[x]), just_in_time(mlp())):
        torch.testing.assert_close(compiled(negated), compiled(-x))


@pytest.mark.parametrize(
    "make",
    [
        torch.Tensor.to_sparse,
        lambda x: x.to("meta"),
        lambda x: torch.nested.nested_tensor([x]),
        lambda x: FakeTensorMode().from_tensor(x),
        lambda x: torch.masked.masked_tensor(x, x > 0),
    ],
)
def test_tensors_without_dense_memory(make: Callable) -> None:
    x = torch.randn(3, 8)
    with pytest.raises(ingot.UserError, match="expected a dense tensor in host memory"):
        ingot.compile(mlp(), inputs=[x])(make(x))


def test_branches() -> None:
    def branch(a: torch.Tensor) -> torch.Tensor:
        return torch.cond(a.sum() > 0, lambda a: a.sin() + 1, lambda a: a.cos() * 2, (a,)) * 2

    compiled = just_in_time(branch)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(compiled(x), branch(x))


def test_unknown_composites_are_taken_apart() -> None:
    def similar(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.cosine_similarity(a, b) + nn.functional.hardshrink(a).sum(-1)

    a, b = torch.randn(3, 8), torch.randn(3, 8)
    compiled = just_in_time(similar, options={"require_full_compilation": True})
    torch.testing.assert_close(compiled(a, b), similar(a, b))


def test_torch_reads_strides_as_it_laid_them_out() -> None:
    def windows(x: torch.Tensor) -> torch.Tensor:
        y = (x.transpose(0, 1) * 2).relu()  # torch keeps the order of x in memory
        return y.as_strided((3, 4), (1, 2), 1) + 1

    x = torch.randn(4, 6)
    torch.testing.assert_close(just_in_time(windows)(x), windows(x))


def test_writes_that_torch_cannot_make_functional_stay_in_torch() -> None:
    class Written(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("state", torch.full((1, 4), 0.9))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            torch.where(x.bool())[0].abs_()  # of a size that is data
            self.state.view(-1).tanh_()
            return self.state.flatten(0) + x[0]

    x, eager = torch.ones(2, 4), Written()
    compiled = ingot.compile(Written(), inputs=[x])
    for _ in range(3):
        torch.testing.assert_close(compiled(x), eager(x))


class NormalizedTable(nn.Module):
    """A call changes a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4, max_norm=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x) * 2


def test_parameter_that_a_call_changes() -> None:
    model, x = NormalizedTable(), torch.tensor([[1, 2], [2, 3]])
    module = ingot.compile(model, inputs=[x])
    for _ in range(2):
        torch.testing.assert_close(module(x), model(x))


def test_one_example_for_two_arguments() -> None:
    class Difference(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    x, y = torch.randn(3), torch.randn(3)
    torch.testing.assert_close(ingot.compile(Difference(), inputs=[x, x])(x, y), x - y)


def test_refit_of_no_weight() -> None:
    module = ingot.compile(mlp(), inputs=[torch.randn(3, 8)])
    with pytest.raises(ingot.UserError, match=r"has no weight '0\.wait'"):
        module.refit({"0.wait": torch.randn(16, 8)})


def test_statistics_that_a_composite_changes() -> None:
    model = nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
    twin, x = copy.deepcopy(model), torch.randn(2, 3, 8) + 1
    compiled = just_in_time(model)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), twin(x))
        torch.testing.assert_close(model.state_dict(), twin.state_dict())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"torch_executed_ops": "aten.add.Tensor"}, "must be a list of operators"),
        ({"progress": 3}, "is a function"),
    ],
)
def test_options_of_a_wrong_kind(options: dict, says: str) -> None:
    with pytest.raises(ingot.UserError, match=says):
        ingot.compile(mlp(), inputs=[torch.randn(3, 8)], **options)


def test_repeats_that_do_not_add_up_are_an_error() -> None:
    def repeated(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        return torch.repeat_interleave(x, counts, output_size=3)

    compiled = torch.compile(repeated, backend=backend)
    assert compiled(torch.arange(2.0), torch.tensor([1, 2])).tolist() == [0, 1, 1]
    for counts in ([1, 1], [2, 2]):
        with pytest.raises(ingot.UserError, match="out of range"):
            compiled(torch.arange(2.0), torch.tensor(counts))


def test_kernels_that_read_alike_are_not_shared() -> None:
    def function(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
        return (a - b) * c + b, (a - d) * d + b, (c - b) * b + b, (c - d) * a + d

    inputs = [torch.randn(4, 8) for _ in range(4)]
    for mine, eager in zip(just_in_time(function)(*inputs), function(*inputs), strict=True):
        torch.testing.assert_close(mine, eager)


_EDGES: dict[str, tuple[Callable, float]] = {
    "acos": (torch.acos, 1),
    "acosh": (torch.acosh, 1),
    "asin": (torch.asin, -1),
    "atan2": (lambda x: torch.atan2(x, -x.abs()), 0),
    "atanh": (torch.atanh, 1),
    "log": (torch.log, 0),
    "log10": (torch.log10, 0),
    "log1p": (torch.log1p, -1),
    "log2": (torch.log2, 0),
    "pow": (lambda x: (-1.5 * torch.ones_like(x)) ** x, 2),
    "rsqrt": (torch.rsqrt, 0),
    "sqrt": (torch.sqrt, 0),
}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", list(_EDGES))
def test_functions_with_edges_read_rounded_values(name: str, dtype: torch.dtype) -> None:
    """What falls on an edge when it is rounded is there, and not beside it, where a function has no value or another one."""
    function, edge = _EDGES[name]
    near = torch.linspace(-1, 1, 40) * (torch.finfo(dtype).smallest_normal if edge == 0 else 1e-2)
    x = torch.cat([edge + near, edge + near * 1e-4, torch.full((1,), float(edge))])
    ours, eager = (
        call(x) for call in (just_in_time(lambda x: function(x.to(dtype))), lambda x: function(x.to(dtype)))
    )
    assert torch.equal(ours.isnan(), eager.isnan())
    assert torch.equal(ours.isinf(), eager.isinf())
    torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2, equal_nan=True)


def test_places_follow_from_values_that_are_rounded_after_each_step() -> None:
    torch.manual_seed(0)

    def maxima(x: torch.Tensor, places: torch.Tensor) -> Any:
        return nn.functional.fractional_max_pool2d(
            x, (2, 1), output_ratio=(0.5, 0.5), return_indices=True, _random_samples=places
        )

    for dtype in (torch.float16, torch.bfloat16):
        for bins in (7, 13, 18):
            x = (torch.rand(40 * bins) * 12 - 1).to(dtype)
            counted = just_in_time(lambda x, bins=bins: torch.histc(x, bins), fullgraph=True)(x)
            assert torch.equal(counted, torch.histc(x, bins))
        for scale in (1, 2):
            x, places = torch.randn(1, 2, 21, 16).to(dtype), (torch.rand(1, 2, 2) * scale).to(dtype)
            for ours, eager in zip(just_in_time(maxima)(x, places), maxima(x, places), strict=True):
                assert torch.equal(ours, eager)
