# SPDX-License-Identifier: Apache-2.0
"""Arguments that are not tensors: integers that calls choose, values that the build fixed, objects with named fields."""

from __future__ import annotations

import copy
import pickle
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import ingot
import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree

Row = namedtuple("Row", "left right")


@dataclass
class Pair:
    left: torch.Tensor
    right: torch.Tensor
    scale: float = 2.0


class Unnamed(Pair):
    """torch has no name for it, and does not write its trees."""


class _Keeping:
    """Keeps something of which nobody said how to write it."""

    def __init__(self, x: torch.Tensor, kept: object) -> None:
        self.x, self.kept = x, kept


torch.export.register_dataclass(Pair, serialized_type_name="ingot_tests.Pair")
torch.export.register_dataclass(Unnamed)
_pytree.register_pytree_node(
    _Keeping,
    lambda given: ([given.x], given.kept),
    lambda items, kept: _Keeping(items[0], kept),
    flatten_with_keys_fn=lambda given: ([(_pytree.GetAttrKey("x"), given.x)], given.kept),
)
_pytree._register_namedtuple(Row, serialized_type_name="ingot_tests.Row")  # torch.export.save asks for it
torch.serialization.add_safe_globals([Pair, Row, Unnamed])  # torch 2.13 fails to log that a file has others


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


class Inputs(NamedTuple):
    """Not registered with torch, which cannot write it."""

    x: torch.Tensor
    y: torch.Tensor


Outputs = namedtuple("Outputs", "sum parts")


class _OfNamedTuples(nn.Module):
    def forward(self, given: Inputs) -> tuple[Any, dict[str, Any]]:
        local = namedtuple("local", "product")  # not even pickle finds it
        x, y = given
        return Outputs(x + y, [Inputs(x.relu(), y)]), {"top": x.max(0), "local": local(x * y)}


def _names(result: Any) -> list[str]:
    return [type(each).__name__ for each in (result[0], result[0][1][0], *result[1].values())]


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.relu"], "min_block_size": 1}])
@pytest.mark.parametrize("is_local", [False, True])
def test_named_tuples_that_torch_cannot_write(options: dict, is_local: bool, tmp_path: Path) -> None:
    class Known(_OfNamedTuples):
        def forward(self, given: Inputs) -> tuple[Any, dict[str, Any]]:
            outputs, others = super().forward(given)
            return outputs, {"top": others["top"]}

    model = _OfNamedTuples() if is_local else Known()
    given = Inputs(torch.randn(3, 4), torch.randn(3, 4))
    compiled = ingot.compile(model, inputs=[given], **options)
    assert _names(compiled(given)) == _names(model(given))
    module, from_file, from_pickle = compiled, *_forms(compiled, tmp_path)[1:]
    assert _names(copy.deepcopy(module)(given)) == _names(model(given))
    assert set(_names(from_file(given))) == {"tuple"}
    again = pickle.loads(pickle.dumps(from_pickle))
    for form in (from_pickle, again):
        assert _names(form(given)) == (["tuple"] * 4 if is_local else _names(model(given)))
    for form in (compiled, from_file, from_pickle):
        for arguments in (given, tuple(given)):
            found = [torch.as_tensor(each) for each in _pytree.tree_leaves(form(arguments))]
            torch.testing.assert_close(found, _pytree.tree_leaves(model(given)))


class _Model(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, count: int) -> Any:
        return self.function(x, count)


def _forms(compiled: Any, folder: Path) -> list[Any]:
    """The module, and what its file and its pickle hold."""
    path = str(folder / "model.pt2")
    ingot.save(compiled, path)
    return [compiled, ingot.load(path), pickle.loads(pickle.dumps(compiled))]


def _chosen(function: Callable[..., Any], count: int = 3) -> Any:
    """The function, compiled for all sizes and integers for which torch traces what it does for `count`."""
    arguments, shapes = (torch.randn(9), count), ({0: Dim.DYNAMIC}, Dim.DYNAMIC)
    return ingot.compile(torch.export.export(_Model(function), arguments, dynamic_shapes=shapes))


def _compare(module: Any, function: Callable[..., Any], count: int) -> str:
    """The code of the error if the module refuses this integer."""
    x = torch.randn(9)
    try:
        found = module(x, count)
    except ingot.UserError as error:
        return error.code
    assert torch.equal(found, function(x, count))
    return ""


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: x[:k] * 2,
        lambda x, k: x[k:] * 2,
        lambda x, k: x[k] * 2,
        lambda x, k: x.narrow(0, k, 2) * 2,
        lambda x, k: x.roll(k) * k + k // 2,
        lambda x, k: torch.arange(k, k + 4) + x[:4],
    ],
    ids=["end", "start", "position", "narrow", "number", "range"],
)
@pytest.mark.parametrize("dynamic", [None, True])
def test_negative_integers_of_torch_compile(function: Callable[..., Any], dynamic: bool | None) -> None:
    compiled = torch.compile(function, backend="ingot", dynamic=dynamic)
    for count in (4, 3, -3, -2, 1, 0, 2, -4):
        x = torch.randn(9)
        assert torch.equal(compiled(x, count), function(x, count))


def test_conditions_on_integers_are_checked_at_each_call(tmp_path: Path) -> None:
    for function, count in ((lambda x, k: x * 2 if k > 4 else x * 3, 5),
                            (lambda x, k: x.relu() if k % 2 == 1 else -x, 3),
                            (lambda x, k: x * 2 if k > x.shape[0] else x * 3, 3)):  # fmt: skip
        for module in _forms(_chosen(function, count), tmp_path):
            codes = [_compare(module, function, other) for other in (3, 5, 2, 7, 100, count)]
            assert set(codes) == {"", "INGOT-U312"}


def test_saved_modules_take_other_integers(tmp_path: Path) -> None:
    for function in (lambda x, k: x.relu() * k + k, lambda x, k: torch.full((3,), k) + x[:3]):
        for module in _forms(_chosen(function), tmp_path):
            for count in (5, 2, -7, 100):
                x = torch.randn(9)
                torch.testing.assert_close(module(x, count), function(x, count))


def test_integers_of_other_kinds_are_refused(tmp_path: Path) -> None:
    for module in _forms(_chosen(lambda x, k: x * k), tmp_path):
        for value in (2.5, "3", None, [3]):
            with pytest.raises(ingot.UserError, match=r"INGOT-U308.*argument count is|INGOT-U300"):
                module(torch.randn(9), value)


def test_torchscript_does_not_fix_an_integer(tmp_path: Path) -> None:
    with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N009.*count is an integer"):
        ingot.save(_chosen(lambda x, k: x * k), str(tmp_path / "model.pt"), output_format="torchscript")


class _Fixed(nn.Module):
    def forward(
        self, x: torch.Tensor, flag: bool, count: int, bias: Any = None, kind: str = "a", more: Any = None
    ) -> torch.Tensor:
        x = x.relu() * count if flag else x - count
        if bias is not None:
            x = x + bias
        return (torch.tanh(x) if kind == "a" else x.exp()) + more["q"]


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.tanh"], "min_block_size": 1}])
def test_other_values_than_the_fixed_ones_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    given = {"flag": True, "count": 3, "bias": None, "kind": "a", "more": {"q": 2.5}}
    compiled = ingot.compile(_Fixed(), inputs=[torch.randn(4)], kwarg_inputs=given, **options)
    assert any(segment.backend == "torch" for segment in compiled.report.segments) == bool(options)
    for module in _forms(compiled, tmp_path):
        x = torch.randn(4)
        torch.testing.assert_close(module(x, **given), _Fixed()(x, **given))
        for other in (
            {"flag": False},
            {"count": 4},
            {"count": "3"},
            {"bias": x},
            {"kind": "b"},
            {"more": {"q": 2.0}},
        ):
            with pytest.raises(ingot.UserError, match=r"INGOT-U308.*when the model was exported"):
                module(x, **{**given, **other})


def test_nan_is_the_fixed_nan() -> None:
    compiled = ingot.compile(
        _Model(lambda x, k: torch.where(x > 0, x, k)), inputs=[torch.ones(4), float("nan")]
    )
    assert torch.equal(compiled(torch.ones(4), float("nan")), torch.ones(4))
    with pytest.raises(ingot.UserError, match="INGOT-U308"):
        compiled(torch.ones(4), 1.0)


_EQUAL = [True, 1, 1.0, False, 0, 0.0, -0.0]


@pytest.mark.parametrize("fixed", _EQUAL, ids=repr)
@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.tanh"], "min_block_size": 1}])
def test_equal_numbers_of_other_types_or_signs_are_refused(
    fixed: Any, options: dict[str, Any], tmp_path: Path
) -> None:
    """They choose another dtype, or another infinity."""
    compiled = ingot.compile(
        _Model(lambda x, k: (x * k).tanh() / k), inputs=[torch.ones(4), fixed], **options
    )
    for module in _forms(compiled, tmp_path):
        module(torch.ones(4), fixed)
        for other in (*_EQUAL, complex(fixed)):
            if repr(other) != repr(fixed):
                with pytest.raises(ingot.UserError, match="INGOT-U308"):
                    module(torch.ones(4), other)


def test_fields_of_objects_are_compared_by_type() -> None:
    compiled = ingot.compile(_Trees(), inputs=list(_rows(4)[0]), kwarg_inputs=_rows(4)[1])
    for scale in (2, -2.0, torch.tensor(2.0)):
        args, kwargs = _rows(4)
        args[0].scale = scale
        with pytest.raises(ingot.UserError, match="INGOT-U30"):
            compiled(*args, **kwargs)


@pytest.mark.parametrize("value", [3.5, None, "x", [torch.ones(4)], torch.ones(4).numpy()])
def test_parts_in_torch_name_an_input_that_is_no_tensor(value: Any) -> None:
    options = {"torch_executed_ops": ["aten.tanh"], "min_block_size": 1}
    compiled = ingot.compile(_Model(lambda x, k: x.tanh() * k), inputs=[torch.ones(4), 2], **options)
    with pytest.raises(ingot.UserError, match="INGOT-U30"):
        compiled(value, 2)


def _rows(rows: int, pair: type[Pair] = Pair) -> tuple[tuple, dict[str, Any]]:
    def of() -> torch.Tensor:
        return torch.randn(rows, 3)

    return (pair(of(), of()), [Row(of(), of()), {"k": (of(),)}]), {"last": [None, pair(of(), of(), 1.5)]}


def _ranges(pair: type[Pair]) -> tuple[tuple, dict[str, Any]]:
    def of() -> ingot.Input:
        return ingot.Input(min_shape=(1, 3), opt_shape=(4, 3), max_shape=(9, 3))

    return (pair(of(), of()), [Row(of(), of()), {"k": (of(),)}]), {"last": [None, pair(of(), of(), 1.5)]}


class _Trees(nn.Module):
    def forward(self, pair: Pair, rows: Any, *, last: Any) -> Any:
        total = pair.left * pair.scale + pair.right + rows[0].left.relu() - rows[0].right
        return type(pair)(total, last[1].left.tanh(), pair.scale), {
            "q": [total + rows[1]["k"][0] * last[1].scale]
        }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.relu"], "min_block_size": 1}])
@pytest.mark.parametrize("is_dynamic", [False, True])
@pytest.mark.parametrize("pair", [Pair, Unnamed])
def test_objects_with_named_fields(
    pair: type[Pair], is_dynamic: bool, options: dict[str, Any], tmp_path: Path
) -> None:
    args, kwargs = _ranges(pair) if is_dynamic else _rows(4, pair)
    compiled = ingot.compile(_Trees(), inputs=list(args), kwarg_inputs=kwargs, **options)
    assert any(segment.backend == "torch" for segment in compiled.report.segments) == bool(options)
    for module in _forms(compiled, tmp_path):
        for rows in (4, 1, 9) if is_dynamic else (4,):
            args, kwargs = _rows(rows, pair)
            expected, found = _Trees()(*args, **kwargs), module(*args, **kwargs)
            assert type(found[0]) is pair
            assert found[0].scale == 2.0
            for a, b in ((expected[0].left, found[0].left), (expected[0].right, found[0].right),
                         (expected[1]["q"][0], found[1]["q"][0])):  # fmt: skip
                torch.testing.assert_close(a, b)
        if is_dynamic:
            args, kwargs = _rows(4, pair)
            args[0].right = torch.randn(5, 3)
            with pytest.raises(ingot.UserError, match=r"INGOT-U3(04|12)"):
                module(*args, **kwargs)


def test_classes_that_torch_cannot_write_are_rejected_by_name() -> None:
    kept = _Keeping(torch.ones(3), object())
    with pytest.raises(ingot.UserError, match=r"INGOT-U040.* torch cannot write") as error:
        ingot.compile(_Model(lambda given, k: given.x * k), inputs=[kept, 2])
    assert "to_dumpable_context" in error.value.advice
