# SPDX-License-Identifier: Apache-2.0
"""Calls with tensors that the last call had too: what was done to the tensor in between counts, however it was done."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from ingot.watching import tensors

Call = Callable[[torch.Tensor], torch.Tensor]


def _transpose(x: torch.Tensor) -> None:
    x.t_()


def _write(x: torch.Tensor) -> None:
    x.add_(1)


def _other_data(x: torch.Tensor) -> None:
    x.data = torch.randn(4, 4)


def _other_strides_of_data(x: torch.Tensor) -> None:
    x.data = torch.randn(4, 4).t()


def _negated_data(x: torch.Tensor) -> None:
    x.data = torch._neg_view(torch.randn(4, 4))


def _other_storage(x: torch.Tensor) -> None:
    x.set_(torch.randn(32).untyped_storage(), 16, (4, 4), (4, 1))


def _other_offset(x: torch.Tensor) -> None:
    x.set_(x.untyped_storage(), 0, (4, 4), (0, 1))


def _larger_storage(x: torch.Tensor) -> None:
    x.untyped_storage().resize_(1 << 20)


def _larger_and_back(x: torch.Tensor) -> None:
    x.resize_(1 << 10, 4).resize_(4, 4)


def _shared_memory(x: torch.Tensor) -> None:
    x.share_memory_()


def _strided(x: torch.Tensor) -> None:
    x.as_strided_((4, 4), (1, 2))


def _swapped(x: torch.Tensor) -> None:
    torch.utils.swap_tensors(x, torch.randn(4, 4).t())


def _with_gradient(x: torch.Tensor) -> None:
    x.requires_grad_(not x.requires_grad)


CHANGES = [
    _transpose, _write, _other_data, _other_strides_of_data, _negated_data, _other_storage, _other_offset, _larger_storage,
    _larger_and_back, _shared_memory, _strided, _swapped, _with_gradient,
]  # fmt: skip


class _Rows(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight + x.sum(1, keepdim=True)


def _engine(model: torch.nn.Module, x: torch.Tensor) -> Call:
    return ingot.build(torch.export.export(model, (x,)))


def _module(model: torch.nn.Module, x: torch.Tensor) -> Call:
    return ingot.compile(model, inputs=(x,))


def _jit(model: torch.nn.Module, x: torch.Tensor) -> Call:
    torch._dynamo.reset()
    return torch.compile(model, backend="ingot")


WAYS = {"engine": _engine, "module": _module, "torch.compile": _jit}


def test_this_version_of_torch_is_known() -> None:
    assert tensors().tensor_bytes > 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
@torch.no_grad()
def test_changes_count(change: Callable[[torch.Tensor], None], way: str) -> None:
    model, x = _Rows().eval(), torch.randn(4, 4)
    call = WAYS[way](model, x.clone())
    for _ in range(3):
        for _ in range(2):
            torch.testing.assert_close(call(x), model(x))
        change(x)
    torch.testing.assert_close(call(x), model(x))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__.strip("_"))
@torch.no_grad()
def test_changes_of_tensors_that_take_turns_count(change: Callable[[torch.Tensor], None], way: str) -> None:
    """Two sets of buffers are remembered, and a third one takes the place of the older."""
    model, sets = _Rows().eval(), [torch.randn(4, 4) for _ in range(3)]
    call = WAYS[way](model, sets[0].clone())
    for turns in ([0, 1, 0, 1], [0, 1, 2, 0, 1]):
        for k in turns:
            torch.testing.assert_close(call(sets[k]), model(sets[k]))
        change(sets[turns[-1] - 1])
        for x in sets:
            torch.testing.assert_close(call(x), model(x))


@pytest.mark.parametrize("way", ["engine", "module"])
@torch.no_grad()
def test_other_dtypes_and_sizes_are_refused_as_ever(way: str) -> None:
    model, x = _Rows().eval(), torch.randn(4, 4)
    call = WAYS[way](model, x.clone())
    for _ in range(2):
        expected = call(x)
        x.data = x.double()
        with pytest.raises(ingot.UserError, match=r"x.*f64|x.*float64"):
            call(x)
        x.data = x.float()
        x.unsqueeze_(0)
        with pytest.raises(ingot.UserError, match="x"):
            call(x)
        x.squeeze_(0)
        torch.testing.assert_close(call(x), expected)


class _Many(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.flatten(1).cumsum(1)


@torch.no_grad()
def test_sizes_that_lie_elsewhere() -> None:
    """torch keeps those of more than five dims in memory of their own."""
    x = torch.randn(2, 2, 2, 2, 2, 2, 2)
    call = _engine(_Many(), x.clone())
    for k in range(6):
        torch.testing.assert_close(call(x), _Many()(x))
        x.transpose_(k, k + 1)
    torch.testing.assert_close(call(x), _Many()(x))


class _Adds(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2


@torch.no_grad()
def test_writes_do_not_reach_lazy_copies() -> None:
    """A lazy copy shares memory until one of the two is written."""
    x = torch.zeros(8)
    call = _engine(_Adds(), x.clone())
    for k in range(1, 4):
        call(x)
        copy = torch._lazy_clone(x)
        torch.testing.assert_close(call(x), torch.full((8,), 4.0 * k))
        torch.testing.assert_close(copy, torch.full((8,), 2.0 * k - 1))
    assert x._version >= 6


@torch.no_grad()
def test_tensors_in_turns_and_new_ones_where_others_were() -> None:
    model, x, y = _Rows().eval(), torch.randn(4, 4), torch.randn(4, 8)[:, ::2]
    call = _engine(model, x.clone())
    for k in range(20):
        given: Any = (x, y, torch.randn(4, 4).t(), torch.nn.Parameter(torch.randn(4, 4)), x.numpy())[k % 5]
        result = call(given)
        expected = model(torch.as_tensor(given))
        torch.testing.assert_close(torch.as_tensor(np.asarray(result)), expected)
        del given, result
        gc.collect()
