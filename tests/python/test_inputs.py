# SPDX-License-Identifier: Apache-2.0
"""Values for `inputs=`: trees of tensors, Inputs and plain values, by position, by keyword and by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import ingot
import numpy as np
import pytest
import torch
from accuracy import assert_accurate
from lacking import negated
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


class Corners(NamedTuple):
    """Not registered with torch's trees."""

    low: torch.Tensor
    high: torch.Tensor


class Widened(nn.Module):
    def forward(self, corners: Corners, by: torch.Tensor) -> dict[str, Corners]:
        return {"box": Corners(corners.low - by, corners.high + by)}


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": {"aten.sub.Tensor"}}])
def test_named_tuples(options: dict) -> None:
    model, inputs = Widened(), [Corners(torch.zeros(2, 3), torch.ones(2, 3)), torch.full((3,), 0.5)]
    got = ingot.compile(model, inputs=inputs, **options)(*inputs)
    assert isinstance(got["box"], Corners)
    torch.testing.assert_close(got, model(*inputs))


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


def test_named_inputs_of_a_program_go_to_their_argument() -> None:
    rows = {"first": {0: torch.export.Dim("rows", max=64)}, "second": {0: torch.export.Dim("more", max=64)}}
    program = torch.export.export(Difference(), (torch.randn(3, 4), torch.randn(4, 4)), dynamic_shapes=rows)
    first = ingot.Input(min_shape=(1, 4), opt_shape=(3, 4), max_shape=(5, 4), name="first")
    second = ingot.Input(min_shape=(1, 4), opt_shape=(3, 4), max_shape=(9, 4), name="second")
    for inputs in ([second, first], [first, second], [second]):
        ports = ingot.dynamo.compile(program, inputs=inputs).engine.inputs
        assert ports[1].ranges[0] == (1, 9)
        assert ports[0].ranges[0] == ((1, 5) if first in inputs else (1, 64))


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["frist", "second"], "INGOT-U300.*the argument frist.*\n.*its arguments are first, second"),
        (["second", "second"], "INGOT-U300.*second is given twice"),
        (["first", 3], "INGOT-U006.*the name of an Input must be a text, not 3"),
    ],
)
def test_names_that_inputs_cannot_have(names: list, says: str) -> None:
    for model in (Difference(), torch.export.export(Difference(), (torch.ones(3), torch.ones(3)))):
        with pytest.raises(ingot.UserError, match=says):
            ingot.compile(model, inputs=[ingot.Input((3,), name=name) for name in names])


def test_an_input_has_one_shape_or_a_range() -> None:
    with pytest.raises(ingot.UserError, match=r"INGOT-U006.*not both"):
        ingot.Input((3, 4), min_shape=(1, 4))


@pytest.mark.parametrize(
    ("inputs", "says"),
    [
        ([np.zeros((3, 4)), torch.zeros(2)], r"inputs\[0\] is a ndarray"),
        ([{"x": [object()]}, torch.zeros(2)], r"inputs\[0\]\['x'\]\[0\] is an object"),
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


class Loose(nn.Module):
    """Declares nothing, as most models."""

    def forward(self, x, y, *, scale=1):  # type: ignore[no-untyped-def]
        return x * scale - y


X = torch.randn(2, 8)


@pytest.mark.parametrize(
    ("model", "inputs", "keywords", "says"),
    [
        (nn.Linear(8, 4), "x", {}, "inputs must be a list of the model's arguments, not 'x'"),
        (nn.Linear(8, 4), 4, {}, "inputs must be a list of the model's arguments, not 4"),
        (nn.Linear(8, 4), X, {}, "inputs must be a list of the model's arguments, not a Tensor"),
        (
            nn.Linear(8, 4),
            ingot.Input((2, 8)),
            {},
            "inputs must be a list of the model's arguments, not an Input",
        ),
        (nn.Linear(8, 4), [X], [X], "kwarg_inputs must be a dict of names and arguments, not a list"),
        (nn.Linear(8, 4), ["x"], {}, "the model's argument input is a tensor, but 'x' is not"),
        (nn.Linear(8, 4), [(2, 4)], {}, r"the model's argument input is a tensor, but \(2, 4\) is not"),
        (nn.Linear(8, 4), (2, 4), {}, "the model takes 1 argument by position, but inputs has 2"),
        (nn.Linear(8, 4), [2.5], {}, "the model's argument input is a tensor, but 2.5 is not"),
        (Loose(), [(2, 4), (2, 4)], {}, r"the model's argument x is a tensor, but \(2, 4\) is not"),
        (Loose(), (2, 4), {}, "the model's argument x is a tensor, but 2 is not"),
        (Loose(), ["x", "y"], {}, "the model's argument x is a tensor, but 'x' is not"),
        (Loose(), [X], {}, "missing an input for the model's argument y"),
        (Loose(), [], {"x": X}, "missing an input for the model's argument y"),
        (Loose(), [X, X, X], {}, "the model takes 2 arguments by position, but inputs has 3"),
        (Loose(), [X, X], {"z": X}, "the model has no argument z"),
        (Loose(), [X], {"x": X, "y": X}, "the model's argument x is given twice"),
    ],
)
def test_what_does_not_fit_the_forward_is_refused_by_name(
    model: nn.Module, inputs: Any, keywords: Any, says: str
) -> None:
    with pytest.raises(ingot.UserError, match=says) as error:
        ingot.compile(model.eval(), inputs=inputs, kwarg_inputs=keywords)
    assert error.value.code in ("INGOT-U006", "INGOT-U300")
    assert "tensor" in error.value.advice or "arguments" in error.value.advice or "dict" in says


@pytest.mark.parametrize("inputs", ["x", ["x", X], X, [X, (2, 4)], [3, X]])
def test_programs_refuse_what_is_no_tensor(inputs: Any) -> None:
    program = torch.export.export(Difference(), (X, X))
    with pytest.raises(ingot.UserError):
        ingot.dynamo.compile(program, inputs)
    with pytest.raises(ingot.UserError):
        ingot.build(program, inputs=inputs)


class Pair(nn.Module):
    """A whole engine, or one with torch in its middle."""

    def __init__(self, in_parts: bool) -> None:
        super().__init__()
        self.in_parts = in_parts

    def forward(self, x: torch.Tensor, y: torch.Tensor, *, scale: torch.Tensor) -> torch.Tensor:
        return (negated(x) if self.in_parts else x * 2) * scale - y


@pytest.mark.parametrize("in_parts", [False, True], ids=["whole", "hybrid"])
def test_arguments_of_a_call_are_named(in_parts: bool) -> None:
    x, y, scale = torch.randn(4, 4), torch.randn(4, 4), torch.randn(4)
    model = Pair(in_parts)
    module = ingot.compile(model, inputs=[x, y], kwarg_inputs={"scale": scale})
    assert bool(ingot.report(module).fallbacks) is in_parts
    want = module(x, y, scale=scale)
    assert torch.equal(module(scale=scale, y=y, x=x), want)
    for args, kwargs, says in (
        ((), {}, "argument x is missing"),
        ((x,), {"scale": scale}, "argument y is missing"),
        ((x, y), {}, "argument scale is missing"),
        ((x, y, scale, x), {}, "exported with 2 arguments by position, but got 4"),
        ((x, y), {"scale": scale, "bias": x}, "without an argument bias"),
        ((x, y), {"scale": scale, "x": x}, "argument x is given twice"),
    ):
        with pytest.raises(ingot.UserError, match=says) as error:
            module(*args, **kwargs)
        assert error.value.code == "INGOT-U300"


def test_a_missing_tensor_of_a_flat_engine_is_named() -> None:
    engine = ingot.compile(Difference(), inputs=[X, X]).engine
    for args, says in (
        ((), "first is missing"),
        ((X,), "second is missing"),
        ((X, X, X), "2 arguments by position, but got 3"),
    ):
        with pytest.raises(ingot.UserError, match=says):
            engine(*args)


def test_masked_arrays_are_refused() -> None:
    engine = ingot.compile(Difference(), inputs=[X, X]).engine
    array = X.numpy()
    masked = np.ma.masked_array(array, mask=array > 0)
    for args, kwargs in (
        ((array, masked), {}),
        ((masked,), {"second": array}),
        ((masked.view(type("Own", (np.ma.MaskedArray,), {})), array), {}),
    ):
        for _ in range(2):
            with pytest.raises(ingot.UserError, match="masked array") as error:
                engine(*args, **kwargs)
            assert error.value.code == "INGOT-U309"
    np.testing.assert_array_equal(engine(array, masked.data), engine(array, array))


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.relu"], "min_block_size": 1}])
def test_a_minimum_of_zero_counts_as_one(options: dict[str, Any], tmp_path: Path) -> None:
    """torch.export says nothing of empty tensors."""
    empty = ingot.Input(min_shape=(0, 8), opt_shape=(4, 8), max_shape=(9, 8))
    model = Tree().eval()
    compiled = ingot.compile(model, inputs=[tree_of(empty, empty, empty)], **options)
    ingot.save(compiled, str(tmp_path / "empty.pt2"), output_format="exported_program")
    for count in (1, 2, 9):
        given = tree_of(rows(count), rows(count), rows(count))
        torch.testing.assert_close(compiled(given)["y"], model(given)["y"], rtol=1e-4, atol=1e-5)
    with pytest.raises(ingot.UserError, match=r"INGOT-U305.* is 0, outside of the range 1\.\.9"):
        compiled(tree_of(rows(0), rows(0), rows(0)))
