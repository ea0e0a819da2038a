# SPDX-License-Identifier: Apache-2.0
"""Hooks of compiled modules: they run at each call, as those of any module."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
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


def doubled(_: nn.Module, given: tuple) -> tuple:
    return (given[0] * 2,)


def one_more(_: nn.Module, given: tuple, result: torch.Tensor) -> torch.Tensor:
    return result + 1


def with_hooks(module: nn.Module) -> nn.Module:
    module.register_forward_pre_hook(doubled)
    module.register_forward_hook(one_more)
    return module


def saved_by_torch(module: nn.Module) -> Any:
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES = {
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "torch.save": saved_by_torch,
    "refit": lambda module: ingot.refit_module_weights(module, {}, partial=True),
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_have_the_hooks(compiled: nn.Module, way: str) -> None:
    x = torch.randn(2, 8)
    plain, changed = compiled(x), compiled(x * 2) + 1
    twin = COPIES[way](with_hooks(compiled))
    torch.testing.assert_close(twin(x), changed)
    torch.testing.assert_close(compiled(x), changed)
    if way != "copy.copy":  # which shares them, as of any module
        for hooks in (twin._forward_hooks, twin._forward_pre_hooks):
            hooks.clear()
        torch.testing.assert_close(twin(x), plain)
        torch.testing.assert_close(compiled(x), changed)


@pytest.mark.parametrize("way", ["copy.deepcopy", "pickle", "torch.save"])
def test_copies_of_mutable_modules_have_the_hooks(way: str) -> None:
    model, x = mlp(), torch.randn(2, 8)
    twin = COPIES[way](with_hooks(ingot.MutableModule(model)))
    torch.testing.assert_close(twin(x), model(x * 2) + 1)


def exported(module: nn.Module, x: torch.Tensor) -> nn.Module:
    return torch.export.export(module, (x,)).module()


TRACES: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "torch.compile": lambda module, x: torch.compile(module, backend="ingot"),
    "another backend": lambda module, x: torch.compile(module, backend="eager"),
    "torch.export": exported,
    "ingot.compile": lambda module, x: ingot.compile(module.eval(), inputs=[x]),
}


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("way", TRACES)
def test_hooks_run_once_where_torch_traces_the_call(compiled: nn.Module, way: str, inside: bool) -> None:
    torch.compiler.reset()
    x = torch.randn(2, 8)
    changed = compiled(x * 2) + 1
    with_hooks(compiled)
    traced = TRACES[way](nn.Sequential(compiled) if inside else compiled, x)
    for _ in range(2):
        torch.testing.assert_close(traced(x), changed)


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
