# SPDX-License-Identifier: Apache-2.0
"""Whatever a user does to a model, ingot.MutableModule answers what the model does now."""

from __future__ import annotations

import copy
from collections.abc import Callable

import ingot
import pytest
import torch
from model_changes import CHANGES, IDS, Model, compare, hook
from torch import nn


@pytest.mark.parametrize("options", [{}, {"check_weights": "full"}, {"immutable_weights": True}], ids=str)
@pytest.mark.parametrize("change", CHANGES, ids=lambda function: function.__name__)
def test_no_change_is_missed(change: Callable[[nn.Module], object], options: dict) -> None:
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Model().eval()
    module = ingot.MutableModule(model, **options)
    compare(module, model)
    change(model)
    compare(module, model)
    for parameter in model.parameters():
        parameter.data.mul_(1.05)
    compare(module, model)


def test_hooks_that_come_and_go() -> None:
    torch._dynamo.reset()
    model = Model().eval()
    module = ingot.MutableModule(model)
    for layer in (*model.parallel, model.norm):
        kept = layer.register_forward_hook(lambda m, i, output: output + 1)
        compare(module, model)
        kept.remove()
        compare(module, model)


def test_other_dtypes_by_swapping_the_tensors() -> None:
    torch._dynamo.reset()
    model = Model().eval()
    module = ingot.MutableModule(model)
    compare(module, model)
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        module.double()
        compare(module, model)
    finally:
        torch.__future__.set_swap_module_params_on_conversion(swaps)


def test_engines_without_weights_are_refused() -> None:
    with pytest.raises(ingot.UserError, match="engines that are saved"):
        ingot.MutableModule(Model(), strip_engine_weights=True)
    with pytest.raises(ingot.UserError, match="engines that are saved"):
        torch.compile(Model().eval(), backend="ingot", options={"strip_engine_weights": True})(IDS)


def test_models_are_kept_apart() -> None:
    torch._dynamo.reset()
    model = Model().eval()
    module, twin = ingot.MutableModule(model), ingot.MutableModule(copy.deepcopy(model))
    compare(module, model)
    hook(model)
    compare(module, model)
    assert not torch.equal(module(IDS), twin(IDS))
