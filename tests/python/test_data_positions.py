# SPDX-License-Identifier: Apache-2.0
"""Parts of tensors at positions that follow from data, wholly in engines, against eager."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch

_ROWS, _COLUMNS = 20, 6
_POSITIONS = [(2, 3), (0, 0), (19, 5), (2, 3), (7, 1)]


def _position(tensor: torch.Tensor, end: int) -> Any:
    value = tensor.item()
    torch._check(value >= 0)
    torch._check(value < end)
    return value


class _Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(1)
        self.weight = torch.nn.Parameter(torch.randn(_ROWS, _COLUMNS, generator=generator))
        self.register_buffer("cache", torch.zeros(_ROWS, _COLUMNS))


class _OfComputed(_Model):
    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        computed = x.exp()
        row, column = _position(at[0], _ROWS), _position(at[1], _COLUMNS)
        part = computed.narrow(0, row, 1)
        return (
            part + 1,
            computed[row, column],
            part.sin().narrow(1, column, 1),
            computed.view(-1)[row * 6 + column],
        )


class _OfWeights(_Model):
    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        row, column = _position(at[0], _ROWS), _position(at[1], _COLUMNS)
        return (
            self.weight[row] * 2,
            self.weight.t().narrow(0, column, 1).exp(),
            x @ self.weight.narrow(0, row, 1).t(),
        )


class _OfStates(_Model):
    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        row = _position(at[0], _ROWS)
        before = self.cache[row] * 2
        self.cache.narrow(0, row, 1).add_(x[:1])
        return before, self.cache[row] + 1, self.cache.sum(0)


class _OfPositions(_Model):
    """The second position is found at the first."""

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        computed = x.exp()
        part = computed.narrow(0, _position(at[0], _ROWS), 1)
        return computed.t().contiguous().narrow(0, _position(part.argmax(), _COLUMNS), 1)


class _OfLayers(_Model):
    """All but the part can be left out of the layers."""

    def forward(self, x: torch.Tensor, at: torch.Tensor) -> Any:
        scores = torch.softmax(torch.nn.functional.layer_norm(x * 2, (_COLUMNS,)), -1) @ self.weight.t()
        return scores.relu().narrow(0, _position(at[0], _ROWS), 1)


_MODELS = [_OfComputed, _OfWeights, _OfStates, _OfPositions, _OfLayers]


def _results(found: Any) -> list[torch.Tensor]:
    return [each.clone() for each in (found if isinstance(found, (tuple, list)) else [found])]


def _x() -> torch.Tensor:
    return torch.randn(_ROWS, _COLUMNS, generator=torch.Generator().manual_seed(2))


def _assert_same_in_each_call(run: Any, model: _Model) -> None:
    for position in _POSITIONS:
        at = torch.tensor(position)
        torch.testing.assert_close(_results(run(_x(), at)), _results(model(_x(), at)))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("kind", _MODELS)
def test_parts(kind: type[_Model], level: int) -> None:
    model = kind()
    program = torch.export.export(model, (_x(), torch.tensor([1, 1])), strict=False)
    run = ingot.compile(program, optimization_level=level, require_full_compilation=True, check_speed=False)
    _assert_same_in_each_call(run, copy.deepcopy(model))


@pytest.mark.parametrize("kind", [_OfComputed, _OfWeights])
def test_files(kind: type[_Model], tmp_path: Path) -> None:
    model = kind()
    torch.export.save(
        torch.export.export(model, (_x(), torch.tensor([1, 1])), strict=False), tmp_path / "model.pt2"
    )
    ingot.build(tmp_path / "model.pt2").save(tmp_path / "model.ingot")
    _assert_same_in_each_call(ingot.Engine.load(tmp_path / "model.ingot"), model)


def test_positions_outside_are_rejected() -> None:
    program = torch.export.export(_OfComputed(), (_x(), torch.tensor([1, 1])), strict=False)
    run = ingot.compile(program, require_full_compilation=True, check_speed=False)
    for position in [(20, 0), (-1, 0), (0, 6), (2**40, 0)]:
        with pytest.raises((ingot.Error, RuntimeError)):
            run(_x(), torch.tensor(position))
    _assert_same_in_each_call(run, _OfComputed())
