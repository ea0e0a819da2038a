# SPDX-License-Identifier: Apache-2.0
"""ingot.MutableModule never answers with what the model was before."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import ingot
import pytest
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.linear = nn.Linear(8, width)
        self.norm = nn.BatchNorm1d(width)
        self.scale = 1.0
        self.model = nn.Identity()  # a name that wrappers like to have

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.linear(x)).relu() * self.scale

    def width(self) -> int:
        return self.linear.out_features


class LowRank(nn.Module):
    """What a LoRA adapter puts in the place of a linear layer."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base, self.in_features, self.out_features = base, base.in_features, base.out_features
        self.down = nn.Parameter(torch.randn(2, base.in_features))
        self.up = nn.Parameter(torch.randn(base.out_features, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + x @ self.down.T @ self.up.T

    def merge(self) -> nn.Linear:
        self.base.weight.data += self.up @ self.down
        return self.base


@pytest.fixture
def pair() -> tuple[ingot.MutableModule, torch.Tensor]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    module = ingot.MutableModule(Block().eval())
    x = torch.randn(4, 8)
    module(x)
    return module, x


def agrees(module: ingot.MutableModule, x: torch.Tensor) -> None:
    model = copy.deepcopy(module)  # of the model as it is now, without what was compiled
    with torch.no_grad():
        torch.testing.assert_close(module(x), Block.forward(model, x))


@torch.no_grad()
def adapt(module: ingot.MutableModule) -> None:
    module.linear = LowRank(module.linear)


@torch.no_grad()
def merge(module: ingot.MutableModule) -> None:
    adapter = LowRank(module.linear)
    adapter.merge()


@torch.no_grad()
def step(module: ingot.MutableModule) -> None:
    with torch.enable_grad():
        optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
        for parameter in module.parameters():
            parameter.grad = torch.ones_like(parameter)
    optimizer.step()


def replace(module: ingot.MutableModule) -> None:
    module.linear.weight = nn.Parameter(torch.randn(8, 8))


def widen(module: ingot.MutableModule) -> None:
    module.linear, module.norm = nn.Linear(8, 6), nn.BatchNorm1d(6).eval()


def scale(module: ingot.MutableModule) -> None:
    module.scale = 3.0


def assign(module: ingot.MutableModule) -> None:
    module.load_state_dict({name: value * 2 for name, value in module.state_dict().items()}, assign=True)


def write_all(module: ingot.MutableModule) -> None:
    module.linear.weight.detach().numpy()[:] *= 0.5


def buffer(module: ingot.MutableModule) -> None:
    module.norm.running_mean.add_(1)


CHANGES: list[Callable[[ingot.MutableModule], None]] = [
    lambda module: module.load_state_dict(Block().state_dict()),
    assign, step, replace, widen, scale, adapt, merge, write_all, buffer,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_noticed(pair: tuple, change: Callable) -> None:
    module, x = pair
    for _ in range(2):
        change(module)
        agrees(module, x)


def test_one_element_through_data_is_noticed_by_a_full_check() -> None:
    torch._dynamo.reset()
    module = ingot.MutableModule(nn.Linear(256, 256, bias=False).eval(), check_weights="full")
    x = torch.eye(256)
    module(x)
    for k in range(0, 65536, 9973):
        module.weight.data.view(-1)[k] += 1
        with torch.no_grad():
            torch.testing.assert_close(module(x), nn.functional.linear(x, module.weight))


def test_it_remains_the_model(pair: tuple) -> None:
    module, x = pair
    assert isinstance(module, nn.Module)
    assert isinstance(module.model, nn.Identity)
    assert module.width() == 8
    assert list(module.state_dict()) == list(Block().state_dict())
    assert [name for name, _ in module.named_parameters()] == [name for name, _ in Block().named_parameters()]
    assert not module.training
    module.train()
    assert module.norm.training
    module.eval()
    agrees(module, x)
    assert "engines run" in str(ingot.report(module)) or ingot.report(module).engines
    with pytest.raises(AttributeError, match="no_such"):
        _ = module.no_such


def test_other_shapes_and_dtypes(pair: tuple) -> None:
    module, x = pair
    agrees(module, torch.randn(9, 8))
    assert module.to(torch.float64) is module
    agrees(module, x.double())


def test_copies_and_pickles(pair: tuple) -> None:
    module, x = pair
    for twin in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        twin.linear.weight.data.zero_()
        agrees(twin, x)
        agrees(module, x)
        assert twin.linear.weight is not module.linear.weight


def test_bad_arguments() -> None:
    for call in (
        lambda: ingot.MutableModule(torch.relu),
        lambda: ingot.MutableModule(nn.Linear(2, 2), check_weights="sometimes"),
        lambda: ingot.MutableModule(nn.Linear(2, 2), no_such_option=1),
    ):
        with pytest.raises(ingot.UserError):
            call()
