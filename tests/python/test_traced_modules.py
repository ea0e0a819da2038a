# SPDX-License-Identifier: Apache-2.0
"""Compiled modules inside of what torch traces: torch.export, torch.compile, fake tensors."""

from __future__ import annotations

import io
from collections.abc import Callable

import ingot
import pytest
import torch
from small_models import Around
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

ROWS = {0: torch.export.Dim("rows", min=2, max=64)}


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu()


class Hybrid(Whole):
    """torch draws the random numbers, between two engines; in evaluation mode they do not matter."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + torch.rand_like(self.layer(x)).floor()


@pytest.fixture(params=[Whole, Hybrid], ids=lambda model: model.__name__)
def pair(request: pytest.FixtureRequest) -> tuple[nn.Module, ingot.CompiledModule]:
    torch.manual_seed(0)
    model = request.param().eval()
    program = torch.export.export(model, (torch.randn(4, 8),), dynamic_shapes=(ROWS,))
    compiled = ingot.dynamo.compile(program)
    assert (len(compiled.engines) == 1) == (request.param is Whole)
    return model, compiled


@torch.no_grad()
def test_torch_export(pair: tuple) -> None:
    model, compiled = pair
    for module, expected, shapes in (
        (compiled, model, ((ROWS,),)),
        (Around(compiled), Around(model), (ROWS,)),
    ):
        program = torch.export.export(module, (torch.randn(4, 8),), dynamic_shapes=shapes)
        assert any(node.target is torch.ops.ingot.run.default for node in program.graph.nodes)
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        for call in (program.module(), torch.export.load(file).module()):
            x = torch.randn(7, 8)
            torch.testing.assert_close(call(x), expected(x))


@pytest.mark.parametrize("backend", ["eager", "ingot"])
@torch.no_grad()
def test_torch_compile(pair: tuple, backend: str) -> None:
    model, compiled = pair
    torch._dynamo.reset()
    call: Callable = torch.compile(Around(compiled), backend=backend)
    x = torch.randn(5, 8)
    torch.testing.assert_close(call(x), Around(model)(x))


@torch.no_grad()
def test_fake_tensors(pair: tuple) -> None:
    _, compiled = pair
    with FakeTensorMode():
        result = compiled(torch.empty(5, 8))
    assert (result.shape, result.dtype) == ((5, 8), torch.float32)
    assert compiled(torch.ones(5, 8)).isfinite().all()


@torch.no_grad()
def test_a_trace_holds_the_weights_of_its_time() -> None:
    model, x = Whole().eval(), torch.randn(4, 8)
    compiled = ingot.dynamo.compile(torch.export.export(model, (x,)))
    before = torch.export.export(compiled, (x,)).module()
    expected = model(x)
    other = Whole().eval()
    compiled.refit(other.state_dict())
    torch.testing.assert_close(before(x), expected)
    torch.testing.assert_close(torch.export.export(compiled, (x,)).module()(x), other(x))
