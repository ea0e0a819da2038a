# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers of all kinds against torch: the routines split their work by these sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import ingot
import pytest
import torch
from accuracy import assert_accurate
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map_only

SIZES = [  # hidden, batch: whole and broken panels of columns, groups of batch rows, weights beyond a cache
    (4, 1),
    (52, 5),
    (128, 1),
    (128, 11),
    (300, 3),
]
KINDS = [nn.LSTM, nn.GRU, nn.RNN, partial(nn.RNN, nonlinearity="relu")]


def check(compiled: nn.Module, model: nn.Module, args: tuple) -> None:
    exact = copy.deepcopy(model).double()(*tree_map_only(torch.Tensor, torch.Tensor.double, args))
    results = zip(tree_leaves(compiled(*args)), tree_leaves(model(*args)), tree_leaves(exact), strict=True)
    for actual, eager, wide in results:
        assert_accurate(actual, eager, wide)


@pytest.mark.parametrize(("hidden", "batch"), SIZES)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_layers(kind: Callable[..., nn.RNNBase], bidirectional: bool, hidden: int, batch: int) -> None:
    torch.manual_seed(0)
    model = kind(24, hidden, num_layers=2, bidirectional=bidirectional).eval().requires_grad_(False)
    directions = 2 if bidirectional else 1
    state = torch.randn(2 * directions, batch, hidden)
    args = (torch.randn(9, batch, 24), (state, torch.randn_like(state)) if kind is nn.LSTM else state)
    compiled = ingot.dynamo.compile(torch.export.export(model, args), require_full_compilation=True)
    check(compiled, model, args)


@pytest.mark.parametrize("kind", KINDS)
def test_double_without_biases(kind: Callable[..., nn.RNNBase]) -> None:
    torch.manual_seed(0)
    model = (
        kind(8, 20, bias=False, batch_first=True, bidirectional=True).double().eval().requires_grad_(False)
    )
    args = (torch.randn(6, 7, 8, dtype=torch.float64),)
    compiled = ingot.dynamo.compile(torch.export.export(model, args), require_full_compilation=True)
    check(compiled, model, args)


@pytest.mark.parametrize("kind", KINDS)
def test_any_batch(kind: Callable[..., nn.RNNBase]) -> None:
    torch.manual_seed(0)
    model = kind(8, 40, batch_first=True).eval().requires_grad_(False)
    rows = ingot.Input(min_shape=(1, 5, 8), opt_shape=(2, 5, 8), max_shape=(16, 5, 8))
    compiled = ingot.compile(model, inputs=[rows])
    for batch in (1, 3, 8, 16):
        args = (torch.randn(batch, 5, 8),)
        check(compiled, model, args)
