# SPDX-License-Identifier: Apache-2.0
"""Hooks of compiled modules: they run at each call, as those of any module."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from small_models import mlp
from torch import nn


@pytest.fixture(params=["whole", "parts", "loaded", "copied"])
def compiled(request: pytest.FixtureRequest, tmp_path: Path) -> nn.Module:
    operators = ["aten.relu.default", "aten.gelu.default"] if request.param == "parts" else []
    module = ingot.compile(mlp(), inputs=[torch.ones(2, 8)], torch_executed_ops=operators)
    if request.param == "loaded":
        ingot.save(module, tmp_path / "model.pt2")
        return ingot.load(tmp_path / "model.pt2")
    return copy.deepcopy(module) if request.param == "copied" else module


def test_hooks_of_a_module(compiled: nn.Module) -> None:
    x, seen = torch.randn(2, 8), []
    plain, doubled = compiled(x), compiled(x * 2)
    before = compiled.register_forward_pre_hook(lambda _, given: (given[0] * 2,))
    after = compiled.register_forward_hook(lambda _, given, result: seen.append(given) or result + 1)
    torch.testing.assert_close(compiled(x), doubled + 1)
    assert torch.equal(seen[0][0], x * 2)
    before.remove()
    torch.testing.assert_close(compiled(x), plain + 1)
    after.remove()
    torch.testing.assert_close(compiled(x), plain)
    assert len(seen) == 2
    torch.testing.assert_close(nn.Sequential(compiled)(x), plain)


def test_hooks_with_keywords_and_of_all_modules() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
            return x + y

    x = torch.ones(3)
    compiled = ingot.compile(Model(), inputs=[x], kwarg_inputs={"y": x})
    names: list[Any] = []
    hooks = [
        compiled.register_forward_pre_hook(
            lambda _, given, named: (given, {"y": named["y"] * 3}), with_kwargs=True
        ),
        nn.modules.module.register_module_forward_hook(
            lambda module, *_: names.append(type(module).__name__)
        ),
    ]
    try:
        torch.testing.assert_close(compiled(x, y=x), x * 4)
    finally:
        for hook in hooks:
            hook.remove()
    assert names == ["CompiledModule"]
    torch.testing.assert_close(compiled(x, y=x), x * 2)
