# SPDX-License-Identifier: Apache-2.0
"""What users do to a model."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import torch
from torch import nn
from torch.nn.utils import parametrizations, prune

CHANGES: list[Callable[[nn.Module], object]] = []
IDS = torch.arange(21).reshape(3, 7)


class Model(nn.Module):
    """Tied weights, products that become one, norms with statistics, a buffer and an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.parallel = nn.ModuleList(nn.Linear(16, 16) for _ in range(3))
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embedding.weight
        self.register_buffer("scale", torch.rand(16))
        self.factor = 2.0

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.body(self.embedding(ids)) * self.scale * self.factor
        first, second, third = (linear(hidden) for linear in self.parallel)
        hidden = hidden + first * second + third
        return self.head(self.norm(hidden.flatten(0, 1)).view(hidden.shape))


def change(function: Callable[[nn.Module], object]) -> Callable[[nn.Module], object]:
    CHANGES.append(function)
    return function


def _other_state(model: nn.Module) -> dict[str, torch.Tensor]:
    return {
        k: torch.rand_like(v) if v.is_floating_point() else v.clone() for k, v in model.state_dict().items()
    }


def _random(model: nn.Module, *shape: int) -> torch.Tensor:
    return torch.rand(*shape, device=_weight(model).device)


def _weight(model: nn.Module) -> nn.Parameter:
    return model.body[0].weight


@change
def state(model: nn.Module) -> None:
    model.load_state_dict(_other_state(model))


@change
def assigned_state(model: nn.Module) -> None:
    model.load_state_dict(_other_state(model), assign=True)


@change
def data(model: nn.Module) -> None:
    _weight(model).data += 0.3


@change
def other_data(model: nn.Module) -> None:
    _weight(model).data = _random(model, 16, 32).t()


@change
def array(model: nn.Module) -> None:
    model.body[0].bias.detach().numpy()[3] += 2


@change
def storage(model: nn.Module) -> None:
    _weight(model).untyped_storage().copy_(_random(model, 32, 16).untyped_storage())


@change
def other_storage(model: nn.Module) -> None:
    with torch.no_grad():
        _weight(model).set_(_random(model, 32, 16))


@change
def tied_weight(model: nn.Module) -> None:
    model.head.weight.data.mul_(2)


@change
def untied_weight(model: nn.Module) -> None:
    model.head.weight = nn.Parameter(_random(model, 50, 16))


@change
def weight_that_was_merged(model: nn.Module) -> None:
    model.parallel[1].weight.data += 1


@change
def weights_in_another_order(model: nn.Module) -> None:
    first, second = model.parallel[0], model.parallel[2]
    first.weight, second.weight = second.weight, first.weight


@change
def statistics(model: nn.Module) -> None:
    model.norm.running_mean += 1


@change
def replaced_buffer(model: nn.Module) -> None:
    model.scale = _random(model, 16)


@change
def attribute(model: nn.Module) -> None:
    model.factor = 3.0


@change
def replaced_submodule(model: nn.Module) -> None:
    model.body = nn.Sequential(nn.Linear(16, 8), nn.GELU(), nn.Linear(8, 16)).to(_weight(model).device)


@change
def further_submodule(model: nn.Module) -> None:
    model.body.append(nn.Tanh())


@change
def removed_submodule(model: nn.Module) -> None:
    del model.body[1]


@change
def removed_bias(model: nn.Module) -> None:
    model.body[0].bias = None


@change
def other_sizes(model: nn.Module) -> None:
    model.body[0], model.body[2] = (
        nn.Linear(*sizes).to(_weight(model).device) for sizes in ((16, 64), (64, 16))
    )


@change
def inference_mode(model: nn.Module) -> None:
    with torch.inference_mode():
        _weight(model).copy_(_random(model, 32, 16))


@change
def inference_weight(model: nn.Module) -> None:
    with torch.inference_mode():
        value = _random(model, 32, 16)
    model.body[0].weight = nn.Parameter(value, requires_grad=False)


@change
def no_gradients(model: nn.Module) -> None:
    model.requires_grad_(False)
    _weight(model).data.add_(1)


@change
def pruned(model: nn.Module) -> None:
    prune.l1_unstructured(model.body[0], "weight", 0.5)


@change
def parametrized(model: nn.Module) -> None:
    parametrizations.weight_norm(model.body[0])


@change
def swapped(model: nn.Module) -> None:
    torch.utils.swap_tensors(_weight(model), nn.Parameter(_random(model, 32, 16)))


@change
def hook(model: nn.Module) -> None:
    model.body[0].register_forward_hook(lambda module, inputs, output: output * 2)


@change
def hook_before(model: nn.Module) -> None:
    model.body[2].register_forward_pre_hook(lambda module, inputs: (inputs[0] + 1,))


@change
def hook_that_goes(model: nn.Module) -> None:
    hooks = [each.register_forward_hook(lambda m, i, output: output * 2) for each in model.parallel]
    hooks[1].remove()


def compare(module: ingot.MutableModule, model: nn.Module, ids: torch.Tensor = IDS) -> None:
    with torch.no_grad():
        expected = model(ids)
    for _ in range(2):
        torch.testing.assert_close(module(ids), expected, rtol=2e-4, atol=2e-5)
