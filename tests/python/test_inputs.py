# SPDX-License-Identifier: Apache-2.0
"""What `inputs=` may hold: trees of tensors, Inputs and plain values, by position, by keyword and by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from accuracy import assert_accurate
from torch import nn
from torch.utils import _pytree


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


class Tree(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, tree: dict, flag: bool = True, scale: torch.Tensor | None = None) -> dict:
        x = tree["a"] + 2 * tree["b"][0]
        y = self.linear(x).relu() if flag else self.linear(x)
        return {"y": y if scale is None else y * scale, "rest": (x, None, 3)}


def rows(count: int) -> torch.Tensor:
    return torch.randn(count, 8)


def doubled(tree: Any) -> Any:
    return _pytree.tree_map_only(torch.Tensor, torch.Tensor.double, tree)


def tree_of(a: Any, b: Any, c: Any) -> dict:
    return {"a": a, "b": [b, c]}


def batch() -> ingot.Input:
    return ingot.Input(min_shape=(2, 8), opt_shape=(4, 8), max_shape=(9, 8))


@pytest.mark.parametrize(
    ("inputs", "keywords", "args", "kwargs"),
    [
        ([tree_of(rows(4), rows(4), rows(1))], {}, [tree_of(rows(4), rows(4), rows(1))], {}),
        ([tree_of(batch(), batch(), rows(1))], {}, [tree_of(rows(7), rows(7), rows(1))], {}),
        ([tree_of(batch(), batch(), batch()), False], {}, [tree_of(rows(3), rows(3), rows(5)), False], {}),
        (
            [tree_of(rows(4), rows(4), rows(1))],
            {"scale": torch.tensor(2.0)},
            [tree_of(rows(4), rows(4), rows(1))],
            {"scale": torch.tensor(3.0)},
        ),
        (
            [tree_of(batch(), batch(), rows(1)), True, None],
            {},
            [tree_of(rows(2), rows(2), rows(1)), True, None],
            {},
        ),
    ],
)
def test_trees(inputs: list, keywords: dict, args: list, kwargs: dict) -> None:
    model = Tree().eval()
    module = ingot.compile(model, inputs=inputs, kwarg_inputs=keywords)
    found, expected = module(*args, **kwargs), model(*args, **kwargs)
    assert_accurate(found["y"], expected["y"], model.double()(*doubled(args), **doubled(kwargs))["y"])
    assert torch.equal(found["rest"][0], expected["rest"][0])
    assert found["rest"][1:] == (None, 3)


class Difference(nn.Module):
    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return first - second.sum()


def test_named_inputs_go_to_their_parameter(tmp_path: Path) -> None:
    first = ingot.Input(min_shape=(1, 4), opt_shape=(3, 4), max_shape=(5, 4), name="first")
    second = ingot.Input((2, 2), name="second")
    module = ingot.compile(Difference(), inputs=[second, first])
    a, b = torch.randn(5, 4), torch.randn(2, 2)
    assert_accurate(module(a, b), a - b.sum(), a.double() - b.double().sum())
    assert module.engine.inputs[0].ranges[0] == (1, 5)

    program = torch.export.export(Difference(), (torch.randn(3, 4), b), dynamic_shapes={
        "first": {0: torch.export.Dim("rows", max=64)}, "second": None})  # fmt: skip
    torch.export.save(program, tmp_path / "difference.pt2")
    engine = ingot.build(tmp_path / "difference.pt2", inputs=[first])
    assert engine.inputs[0].ranges[0] == (1, 5)
    assert_accurate(engine(a, b), a - b.sum(), a.double() - b.double().sum())


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([np.zeros((3, 4)), torch.zeros(2)], r"input \[0\]\[0\] is a ndarray"),
        ([{"x": [object()]}, torch.zeros(2)], r"input \[0\]\[0\]\['x'\]\[0\] is a object"),
        ([], "needs inputs"),
    ],
)
def test_what_is_no_input_is_refused_by_its_place(inputs: list, says: str) -> None:
    with pytest.raises(ingot.UserError, match=says):
        ingot.compile(Difference(), inputs=inputs)


def test_inputs_of_a_program_must_be_its_own() -> None:
    program = torch.export.export(Difference(), (torch.randn(3, 4), torch.randn(2)))
    with pytest.raises(ingot.UserError, match="no argument third"):
        ingot.build(program, kwarg_inputs={"third": torch.zeros(2)})
    with pytest.raises(ingot.UserError, match="argument 0: expected 1 leaves, got 2"):
        ingot.dynamo.compile(program, [[torch.zeros(3), torch.zeros(3)]])
    with pytest.raises(ingot.UserError, match="not a function"):
        ingot.compile(lambda x: x, inputs=[torch.zeros(2)])
    with pytest.raises(ingot.UserError, match="not a Difference"):
        ingot.build(Difference())
    with pytest.raises(ingot.UserError, match="with names"):
        ingot.build("model.pt2", inputs=[torch.zeros(2)])
