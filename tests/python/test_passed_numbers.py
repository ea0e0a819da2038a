# SPDX-License-Identifier: Apache-2.0
"""Integers as arguments, and numbers as results, of single engines (`ingot.build`), of programs and of their files."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from small_models import Function
from torch.export import Dim

FREE = Dim.DYNAMIC
X = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))


def exported(function: Callable, *values: Any, rows: Any = FREE) -> torch.export.ExportedProgram:
    """Rows and columns of tensors, and integers, are free."""
    shapes = tuple({0: rows, 1: FREE} if isinstance(value, torch.Tensor) else FREE for value in values)
    return torch.export.export(Function(function), values, dynamic_shapes={"args": shapes})


@pytest.fixture(params=["program", "file"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., ingot.Engine]:
    def built(function: Callable, *values: Any, **options: Any) -> ingot.Engine:
        program = exported(function, *values, **options)
        if request.param == "program":
            return ingot.build(program)
        torch.export.save(program, tmp_path / "model.pt2")
        return ingot.build(tmp_path / "model.pt2")

    return built


def assert_same(actual: Any, expected: Any) -> None:
    assert type(actual) is type(expected)
    if isinstance(expected, dict):
        assert list(actual) == list(expected)
        assert_same(list(actual.values()), list(expected.values()))
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for pair in zip(actual, expected, strict=True):
            assert_same(*pair)
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected)
    else:
        assert actual == expected or (actual != actual and expected != expected)


ANY_SIGN = {
    "multiplied": lambda x, k: x * k,
    "expression": lambda x, k: x + (k - 3) * 2,
    "power": lambda x, k: x.abs() ** k,
    "quotient": lambda x, k: x / (k + 100),
    "floor": lambda x, k: (x * 10).to(torch.int64) // (k + 100),
    "remainder": lambda x, k: (x * 10) % (k + 100),
    "compared": lambda x, k: x * 3 > k,
    "chosen": lambda x, k: torch.where(x > 0, x, k),
    "limited": lambda x, k: x.clamp(max=k),
    "filled": lambda x, k: torch.full((3,), k) + x.sum().long(),
    "counted": lambda x, k: torch.arange(k, k + 5) + x.sum(),
    "alpha": lambda x, k: torch.add(x, x, alpha=k),
    "size": lambda x, k: x * (k * x.shape[0] - 1),
    "pad": lambda x, k: F.pad(x, (k, 0)),
    "pads": lambda x, k: F.pad(x, (0, k, k, 1), value=2.0),
    "moved": lambda x, k: F.pad(x, (-k, k)),
    "replicated": lambda x, k: F.pad(x[None], (k, 0), mode="replicate"),
    "tril": lambda x, k: x.tril(k),
    "triu": lambda x, k: (x > 0).triu(k),
    "row_written": lambda x, k: torch.select_scatter(x, x[0] * 2, 0, k),
    "roll": lambda x, k: x.roll(k, 0) * 2,
    "roll_all": lambda x, k: (x + 1).roll(k),
    "fused": lambda x, k: (F.pad(x.relu(), (k, 0)).tril(k) * k).sum(1),
    "branch": lambda x, k: torch.cond(x.sum() > 0, lambda x: x * k, lambda x: x + k, (x,)),
    "only": lambda x, k: (k + 1, k, -k, k * 2.5),
    "many": lambda x, k: {"sum": x.sum() + k, "k": k, "rows": x.shape[0] - k},
}


@pytest.mark.parametrize("name", ANY_SIGN)
def test_integers_of_any_sign(name: str, build: Callable[..., ingot.Engine]) -> None:
    function = ANY_SIGN[name]
    engine = build(function, X, 3)
    for k in (3, 5, 1, 0, -1, -4):
        assert_same(engine(X, k), function(X, k))
    assert_same(engine(X[:4, :7], 2), function(X[:4, :7], 2))


SIZES = {
    "sliced": (lambda x, k: x[:, :k] * 2, (1, 2, 6)),
    "sliced_from_end": (lambda x, k: x[-k:] * 2, (1, 2, 5)),
    "cut": (lambda x, k: x[:, :-k] * 2, (1, 2, 5)),
    "row": (lambda x, k: x[k] * 2, (0, 1, 5)),
    "written": (lambda x, k: torch.slice_scatter(x, x[k:] * 2, 0, k), (0, 1, 4)),
    "range": (lambda x, k: torch.arange(k) + x.sum(), (0, 1, 2, 7)),
    "square": (lambda x, k: torch.eye(k + 1) @ torch.ones(k + 1, 2) + x.sum(), (1, 2, 9)),
}


@pytest.mark.parametrize("name", SIZES)
def test_integers_that_are_sizes(name: str, build: Callable[..., ingot.Engine]) -> None:
    function, values = SIZES[name]
    engine = build(function, X, 3)
    for k in values:
        assert_same(engine(X, k), function(X, k))


def test_a_condition_names_the_argument(build: Callable[..., ingot.Engine]) -> None:
    engine = build(lambda x, k: x[:, :k] * 2, X, 3)
    for k in (-1, 9):
        with pytest.raises(ingot.UserError, match=r"INGOT-U312.*args_1 is -?\d") as raised:
            engine(X, k)
        assert "s" + "66" not in str(raised.value)
    assert_same(engine(X, 2), X[:, :2] * 2)


def test_lists_and_several_integers(build: Callable[..., ingot.Engine]) -> None:
    function = lambda x, k, n: (x * k - n, k * n)  # noqa: E731
    engine = build(function, X, 3, 4)
    for k, n in ((3, 4), (4, 3), (-2, 5), (5, 5)):
        assert_same(engine(X, k, n), function(X, k, n))
    assert [port.dtype for port in engine.inputs] == ["f32", "i64", "i64"]
    assert [port.shape for port in engine.inputs][1:] == [(), ()]


def test_results_of_each_kind(build: Callable[..., ingot.Engine]) -> None:
    def function(x: torch.Tensor) -> tuple:
        rows = x.shape[0]
        return x + 1, rows, rows / 4, rows**0.5, 3, 2.5, True, None, "text", [rows, {"twice": rows * 2}]

    engine = build(function, X)
    for rows in (6, 3, 7):
        x = torch.randn(rows, 5)
        assert_same(engine(x), function(x))


def test_bools_as_results() -> None:
    """Of programs: torch cannot save them in a file."""
    function = lambda x: (x.shape[0] > 5, x.shape[0] > 2 * x.shape[1], (x > 0).any().item())  # noqa: E731
    engine = ingot.build(exported(function, X))
    for x in (X, X[:3, :1], X[:4] * 0):
        assert_same(engine(x), function(x))


def test_a_number_of_data(build: Callable[..., ingot.Engine]) -> None:
    function = lambda x: (x.max().item(), x.nonzero().shape[0])  # noqa: E731
    engine = build(function, X)
    for x in (X, X * 0, -X, X.half().float() * 100):
        assert_same(engine(x), function(x))


def test_engines_keep_numbers(tmp_path: Path) -> None:
    function = lambda x, k: (x * k, k + 1, x.shape[0])  # noqa: E731
    engine = ingot.build(exported(function, X, 3))
    engine.save(tmp_path / "engine.ingot")
    loaded = ingot.Engine.load(tmp_path / "engine.ingot")
    for each in (loaded, pickle.loads(pickle.dumps(engine)), copy.deepcopy(loaded)):
        assert_same(each(X, -5), function(X, -5))
    of_arrays = loaded(X.numpy(), np.int32(4))
    assert isinstance(of_arrays[0], np.ndarray)
    assert of_arrays[1:] == (5, 6)


@pytest.mark.parametrize("value", [2.5, True, torch.tensor(3), "3", None, 1 << 63, -(1 << 63) - 1])
def test_what_is_no_integer_of_64_bits(value: Any) -> None:
    engine = ingot.build(exported(lambda x, k: x * k, X, 3))
    with pytest.raises(ingot.UserError, match="INGOT-U302"):
        engine(X, value)
    assert_same(engine(X, 1 << 40), X * (1 << 40))


def test_errors_name_arguments_inside_of_others() -> None:
    class Model(torch.nn.Module):
        def forward(self, options: dict, x: torch.Tensor, pair: list, *, last: dict) -> torch.Tensor:
            return x * options["k"] + pair[0] * pair[1] + options["scale"] + last["n"][0]

    given = ({"k": 3, "scale": 2.5}, X, [4, 5])
    shapes = {"options": {"k": FREE, "scale": None}, "x": None, "pair": [FREE, None], "last": {"n": [FREE]}}
    engine = ingot.build(torch.export.export(Model(), given, {"last": {"n": [7]}}, dynamic_shapes=shapes))
    torch.testing.assert_close(engine(*given, last={"n": [-7]}), X * 3 + 20 + 2.5 - 7)
    wrong = {
        "options['k']": (({"k": 0.5, "scale": 2.5}, X, [4, 5]), [7]),
        "options['scale']": (({"k": 3, "scale": 3.5}, X, [4, 5]), [7]),
        "pair[0]": (({"k": 3, "scale": 2.5}, X, ["4", 5]), [7]),
        "pair[1]": (({"k": 3, "scale": 2.5}, X, [4, 6]), [7]),
        "last['n'][0]": (given, [None]),
    }
    for name, (arguments, last) in wrong.items():
        with pytest.raises(ingot.UserError) as raised:
            engine(*arguments, last={"n": last})
        assert raised.value.code in ("INGOT-U302", "INGOT-U308")
        assert f"argument {name} " in str(raised.value)


def test_an_integer_that_is_a_size_of_a_tensor(build: Callable[..., ingot.Engine]) -> None:
    function = lambda x, k: x * torch.ones(k, 1)  # noqa: E731
    engine = build(function, X, 6)
    assert_same(engine(X, 6), function(X, 6))
    with pytest.raises(ingot.UserError, match=r"INGOT-U31[23]"):
        engine(X, 5)


def test_a_size_of_an_input_by_an_integer(build: Callable[..., ingot.Engine]) -> None:
    """torch solves the condition that a reshape makes for the size of the input."""
    with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N5(22|24)|integer"):
        build(lambda x, k: x.reshape(-1, k * 2), X, 4)
