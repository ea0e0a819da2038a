# SPDX-License-Identifier: Apache-2.0
"""Programs that torch runs in part and that change buffers or arguments, through files: each copy has a state of its own."""

from __future__ import annotations

import copy
from pathlib import Path

import ingot
import pytest
import torch
from lacking import negated
from torch import nn
from torch.utils import _pytree


def in_torch(x: torch.Tensor) -> torch.Tensor:
    """torch computes it, between two engines."""
    return negated(x)


class Counts(nn.Module):
    """Sums and counts its calls; `seen` is only written."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("sum", torch.zeros(8))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(4, 8), persistent=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layer(x)
        self.sum.add_(y.sum(0))
        self.calls += 1
        self.seen.copy_(x)
        return in_torch(y) + self.sum, self.calls * 2


class Doubles(nn.Module):
    """Writes its argument."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = in_torch(self.layer(x))
        x.mul_(2)
        return y + x


@pytest.mark.parametrize("make", [Counts, Doubles])
@torch.no_grad()
def test_each_copy_goes_on_from_the_state_that_was_saved(make: type[nn.Module], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = make().eval()
    compiled = ingot.dynamo.compile(torch.export.export(copy.deepcopy(model), (torch.randn(4, 8),)))
    assert len(compiled.engines) > 1
    x = torch.randn(4, 8)
    compiled(x.clone())
    model(x.clone())
    ingot.save(compiled, tmp_path / "module.pt2")
    copies = [compiled, ingot.load(tmp_path / "module.pt2")]
    ingot.save(copies[1], tmp_path / "again.pt2")
    copies += [torch.export.load(tmp_path / "module.pt2").module(), ingot.load(tmp_path / "again.pt2")]
    for _ in range(2):
        expected_x, given = x.clone(), [x.clone() for _ in copies]
        expected = _pytree.tree_leaves(model(expected_x))
        for call, argument in zip(copies, given, strict=True):
            torch.testing.assert_close(_pytree.tree_leaves(call(argument)), expected)
            assert torch.equal(argument, expected_x)


@torch.no_grad()
def test_states_are_no_weights_of_a_refit(tmp_path: Path) -> None:
    model = Counts().eval()
    compiled = ingot.dynamo.compile(torch.export.export(model, (torch.randn(4, 8),)))
    ingot.save(compiled, tmp_path / "module.pt2")
    loaded = ingot.load(tmp_path / "module.pt2")
    other = Counts().eval()
    loaded.refit(other.state_dict())
    x = torch.randn(4, 8)
    torch.testing.assert_close(loaded(x), other(x))


@torch.no_grad()
def test_torchscript_has_no_state(tmp_path: Path) -> None:
    compiled = ingot.dynamo.compile(torch.export.export(Counts().eval(), (torch.randn(4, 8),)))
    with pytest.raises(ingot.UnsupportedError, match="INGOT-N002"):
        ingot.save(compiled, tmp_path / "module.ts", output_format="torchscript")
