# SPDX-License-Identifier: Apache-2.0
"""Models that compute sizes and branches from integers in buffers: torch.export alone takes these for unknown numbers."""

from __future__ import annotations

from typing import Any

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional


class Padded(nn.Module):
    """A convolution whose padding follows from buffers, as in codecs of audio."""

    def __init__(self, kernel: int, stride: int) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(2, 3, kernel, stride)
        self.register_buffer("stride", torch.tensor(stride))
        self.register_buffer("padding", torch.tensor(kernel - stride), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frames = torch.ceil((x.shape[-1] + self.padding) / self.stride).to(torch.int64)
        right = self.padding // 2
        left = self.padding - right
        if x.shape[-1] <= max(left, right):
            x = functional.pad(x, (0, left))
        return self.convolution(functional.pad(x, (left, right), "reflect"))[..., :frames]


class Branches(nn.Module):
    def __init__(self, chosen: Any) -> None:
        super().__init__()
        self.register_buffer("chosen", torch.tensor(chosen))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.exp() if self.chosen else x.sin()


def compiled(model: nn.Module, x: Any) -> Any:
    return ingot.compile(model, inputs=[x], require_full_compilation=True)


@pytest.mark.parametrize(("kernel", "stride"), [(7, 1), (4, 2), (5, 3), (3, 3)])
def test_sizes(kernel: int, stride: int) -> None:
    model, x = Padded(kernel, stride).eval(), torch.randn(2, 2, 19)
    torch.testing.assert_close(compiled(model, x)(x), model(x))


def test_several_modules_with_other_values() -> None:
    model, x = (
        nn.Sequential(Padded(7, 1), nn.ELU(), nn.Conv1d(3, 2, 1), Padded(4, 2)).eval(),
        torch.randn(1, 2, 30),
    )
    torch.testing.assert_close(compiled(model, x)(x), model(x))


def test_a_dynamic_batch() -> None:
    model = Padded(5, 2).eval()
    engine = compiled(model, ingot.Input(min_shape=(1, 2, 16), opt_shape=(2, 2, 16), max_shape=(5, 2, 16)))
    for batch in (1, 3, 5):
        x = torch.randn(batch, 2, 16)
        torch.testing.assert_close(engine(x), model(x))


@pytest.mark.parametrize("chosen", [True, False, 3, 0])
def test_branches(chosen: Any) -> None:
    model, x = Branches(chosen), torch.randn(3, 4)
    torch.testing.assert_close(compiled(model, x)(x), model(x))


def test_values_are_part_of_the_engine() -> None:
    model, x = Padded(5, 2).eval(), torch.randn(2, 2, 16)
    module = compiled(model, x)
    state = {
        name: value + 1 if value.is_floating_point() else value for name, value in model.state_dict().items()
    }
    refitted = ingot.dynamo.refit_module_weights(module, state)
    model.load_state_dict(state)
    torch.testing.assert_close(refitted(x), model(x))
    with pytest.raises(ingot.UserError, match=r"INGOT-U325.*'stride'"):
        ingot.dynamo.refit_module_weights(module, state | {"stride": torch.tensor(3)})
    other = Padded(5, 2).eval()
    other.padding += 2
    with pytest.raises(ingot.UserError, match="'padding'"):
        ingot.dynamo.refit_module_weights(module, other)


@pytest.mark.parametrize(("chosen", "other"), [(True, False), (3, 0), (1, 2)])
def test_branches_are_part_of_the_engine(chosen: Any, other: Any) -> None:
    module = compiled(Branches(chosen), torch.randn(3, 4))
    ingot.dynamo.refit_module_weights(module, Branches(chosen))
    with pytest.raises(ingot.UserError, match=r"INGOT-U325.*'chosen'"):
        ingot.dynamo.refit_module_weights(module, Branches(other))


def test_mutable_modules_are_built_again() -> None:
    model, x = Branches(3), torch.randn(3, 4)
    module = ingot.MutableModule(model, require_full_compilation=True)
    torch.testing.assert_close(module(x), model(x))
    module.chosen.fill_(0)
    torch.testing.assert_close(module(x), x.sin())


def by_operator(module: nn.Module) -> None:
    module.count += 1


def by_another_tensor(module: nn.Module) -> None:
    module.count = module.count + 1


def by_copy(module: nn.Module) -> None:
    module.count.copy_(module.count * 2)


def by_a_view(module: nn.Module) -> None:
    module.count.view(1).add_(1)


@pytest.mark.parametrize("write", [by_operator, by_another_tensor, by_copy, by_a_view])
@pytest.mark.parametrize("is_first", [True, False], ids=["before", "after"])
def test_values_that_calls_change_stay_unknown(write: Any, is_first: bool) -> None:
    class Counts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.tensor(1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if is_first:
                write(self)
            result = x.exp() if self.count > 2 else x.sin()
            if not is_first:
                write(self)
            return result

    with pytest.raises(Exception, match="data-dependent"):
        compiled(Counts(), torch.randn(3, 4))


def test_the_error_of_torch_remains() -> None:
    class OnData(Branches):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.exp() if x.sum() > self.chosen else x.sin()

    with pytest.raises(Exception, match="data-dependent"):
        compiled(OnData(1), torch.randn(3))
