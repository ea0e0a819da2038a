# SPDX-License-Identifier: Apache-2.0
"""Integers that calls choose and that no tensor has as a size: engines get them all the same."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.integer_bounds import not_negative
from test_passed_numbers import ANY_SIGN, assert_same, exported
from torch import nn
from torch.export import Dim


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch.compiler.reset()
    with torch.no_grad():
        yield


class Positions(nn.Module):
    """Sizes alone are the input."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.linear = nn.Embedding(64, 8), nn.Linear(8, 4)

    def forward(self, n: int) -> torch.Tensor:
        return self.linear(self.table(torch.arange(n))).relu()


class Masked(nn.Module):
    def forward(self, n: int, m: int) -> torch.Tensor:
        return torch.full((n, m + 1), float("-inf")).triu(1) / (n * m + 2)


class Repeated(nn.Module):
    """A tensor whose sizes say nothing of the integer; torch computes a number in between, and a part after it."""

    def forward(self, x: torch.Tensor, n: int) -> tuple[torch.Tensor, int, torch.Tensor]:
        y = x.sin() * n + torch.arange(n, dtype=x.dtype)[:, None]
        return (
            y,
            n * 2 + x.shape[0],
            torch.linalg.eigvals(nn.functional.pad(y[:2, :2], (0, 1, 0, 1))).abs().sum() + torch.ones(n + 1),
        )


class Far(nn.Module):
    """The part after what torch runs uses a size that none of its tensors has."""

    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        y = x.flatten().sum().reshape(1)
        return torch.sinc(y) + torch.arange(x.shape[0] * 2 + n).float()


class InBranch(nn.Module):
    def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + torch.ones(n, 1), lambda x: x * torch.zeros(n, 1), (x,))


X = torch.randn(3, 4)
RETURNED = ("only", "many")  # numbers as results, which torch saves in no graph of calls
CASES: dict[str, tuple[nn.Module, list[tuple]]] = {
    "size alone": (Positions().eval(), [(5,), (9,), (2,), (64,)]),
    "two sizes": (Masked(), [(3, 4), (7, 2), (2, 9)]),
    "beside a tensor": (Repeated(), [(X[:1], 6), (X[:1], 4), (X[:1] * 2, 9)]),
    "far": (Far(), [(X, 5), (torch.randn(6, 4), 5), (torch.randn(7, 4), 3)]),
    "in a branch": (InBranch(), [(X[:1], 5), (-X[:1], 5), (X[:1], 7)]),
}
_FAR = {"torch_executed_ops": ["aten.sinc"], "min_block_size": 1}


def options_of(name: str) -> dict[str, Any]:
    return _FAR if name == "far" else {}


def program_of(name: str) -> tuple[Any, Any]:
    model, calls = CASES[name]
    shapes = tuple(Dim.DYNAMIC if isinstance(each, int) else {0: Dim.DYNAMIC} for each in calls[0])
    shapes = tuple(None if isinstance(each, torch.Tensor) and len(each) == 1 else shape
                   for each, shape in zip(calls[0], shapes, strict=True))  # fmt: skip
    return model, torch.export.export(model, calls[0], dynamic_shapes=shapes)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("dynamic", [None, True])
def test_torch_compile(name: str, dynamic: bool | None) -> None:
    model, calls = CASES[name]
    compiled = torch.compile(model, backend="ingot", dynamic=dynamic, options=options_of(name))
    for call in calls * 2:
        torch.testing.assert_close(compiled(*call), model(*call))
    report = ingot.report(compiled)
    assert not any("depends on data, or on a number" in node.reason for node in report.fallbacks), str(report)
    assert all(node.reason for node in report.fallbacks), str(report)


@pytest.mark.parametrize("name", list(CASES))
@pytest.mark.parametrize("level", [0, 1, 3])
def test_ahead_of_time(name: str, level: int, tmp_path: Path) -> None:
    model, program = program_of(name)
    compiled = ingot.compile(program, optimization_level=level, **options_of(name))
    ingot.save(compiled, tmp_path / "model.pt2")
    forms = [
        compiled,
        ingot.load(tmp_path / "model.pt2"),
        pickle.loads(pickle.dumps(compiled)),
        copy.deepcopy(compiled),
    ]
    for form in forms:
        for call in CASES[name][1]:
            torch.testing.assert_close(form(*call), model(*call))
        assert form.engines


SIGNS = {
    "1 + L['n'] >= 2": "n",
    "3 + L['n'] >= 2": "",
    "2*L['n'] + 3 >= 2": "n",
    "2*L['n'] + 4 >= 2": "",
    "2 <= L['n'] - 1 and L['m'] <= 4": "n",
    "-L['n'] <= 0": "n",
    "L['n'] > -1": "n",
    "L['n'] > -2": "",
    "1 == L['n'] + 2": "",
    "L['n'] == 4 - L['n']": "n",
    "L['n'] != 3": "",
    "0 <= L['n'] <= 9  # where": "n",
    "L['n'] >= 0 or L['m'] >= 0": "",
    "not L['n'] < 0": "",
    "L['n'] <= 2": "",
    "L['n']*L['m'] >= 2": "",
    "L['n'] + L['m'] >= 2": "",
    "L['x'].size()[0] <= L['n']": "",
    "L['n'] // 2 >= 2": "",
    "L['d']['n'] >= 2": "",
}


@pytest.mark.parametrize("guard", list(SIGNS))
def test_signs_that_guards_state(guard: str) -> None:
    assert not_negative([guard]) == set(SIGNS[guard])


@pytest.mark.parametrize("name", ANY_SIGN)
def test_signs_that_guards_leave_open(name: str, tmp_path: Path) -> None:
    """Of exported programs: engines take such integers too, whatever their sign is."""
    function, call = ANY_SIGN[name], (torch.randn(6, 8), 3)
    compiled = ingot.compile(exported(function, *call), min_block_size=1, check_speed=False)
    forms = [compiled, pickle.loads(pickle.dumps(compiled)), copy.deepcopy(compiled)]
    if name not in RETURNED:
        ingot.save(compiled, tmp_path / "model.pt2")
        forms.append(ingot.load(tmp_path / "model.pt2"))
    for form in forms:
        for k in (3, 5, 1, 0, -1, -4):
            assert_same(form(call[0], k), function(call[0], k))
        assert_same(form(call[0][:4, :7], 2), function(call[0][:4, :7], 2))
    if name != "only":
        assert all("computes a number" in node.reason for node in compiled.report.fallbacks), str(
            compiled.report
        )
    assert bool(compiled.engines) == (name != "only")


def test_sizes_by_integers_of_unknown_sign_are_checked() -> None:
    compiled = ingot.compile(program_of("two sizes")[1])
    for n, m in ((-1, 4), (3, -2)):
        with pytest.raises((ingot.UserError, RuntimeError)):
            CASES["two sizes"][0](n, m)
        with pytest.raises(ingot.UserError, match="INGOT-U31"):
            compiled(n, m)
    torch.testing.assert_close(compiled(3, 4), CASES["two sizes"][0](3, 4))


def _follows(function: Callable[..., torch.Tensor]) -> nn.Module:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor, n: int) -> torch.Tensor:
            return function(x, n)

    return Model()


@pytest.mark.parametrize(
    ("function", "others"),
    [
        (lambda x, n: torch.arange(n + 1) + x[0], [5, 1, 9]),
        (lambda x, n: torch.arange(2 * n) + x[0], [5, 1, 9]),
        (lambda x, n: torch.zeros(n - 1) + x[0], [5, 4, 9]),
        (lambda x, n: torch.full((n + 2,), 1.0) * x[0], [5, 0, 9]),
        (lambda x, n: x[:1].expand(n + 1) * 2, [5, 1, 9]),
        (lambda x, n: x[n - 1 : n + 1] * 2, [5, 1, 7]),
        (lambda x, n: torch.ones(n - 1, 2 * n - 3) * x[0], [5, 4, 9]),
    ],
    ids=["sum", "product", "difference", "full", "expand", "slice", "two"],
)
def test_sizes_that_follow_from_integers(function: Callable[..., torch.Tensor], others: list[int]) -> None:
    model, x = _follows(function), torch.randn(9)
    compiled = ingot.compile(torch.export.export(model, (x, 3), dynamic_shapes=(None, Dim.DYNAMIC)))
    for n in (3, *others):
        torch.testing.assert_close(compiled(x, n), model(x, n))
    for n in (-1, -4):
        with pytest.raises(ingot.UserError, match="INGOT-U312"):
            compiled(x, n)
    assert all(node.op.startswith("_operator.") for node in compiled.report.fallbacks)


@pytest.mark.parametrize("dynamic", [None, True])
def test_torch_compile_takes_negative_integers_too(dynamic: bool | None) -> None:
    def function(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * n + torch.ones(4 + n)

    compiled = torch.compile(function, backend="ingot", dynamic=dynamic)
    for n in (5, 3, -2, 7, -1, 0, 1, -3, 9):
        torch.testing.assert_close(compiled(X[0, :1], n), function(X[0, :1], n))


def test_weights_are_refitted() -> None:
    compiled, other = ingot.compile(program_of("size alone")[1]), Positions().eval()
    compiled.refit(other)
    torch.testing.assert_close(compiled(7), other(7))


@pytest.mark.parametrize("value", [-1, 0, 2**40, 3.0, "3", None, True])
def test_other_integers_are_checked_first(value: Any) -> None:
    compiled = ingot.compile(program_of("size alone")[1])
    if value == 2**40:
        with pytest.raises((ingot.Error, RuntimeError, MemoryError)):
            compiled(value)
    else:
        with pytest.raises(ingot.UserError, match="n") as caught:
            compiled(value)
        assert caught.value.code in ("INGOT-U308", "INGOT-U312")
    torch.testing.assert_close(compiled(5), CASES["size alone"][0](5))


def test_one_engine_takes_the_integer_itself() -> None:
    program = program_of("size alone")[1]
    engine, expected = ingot.build(program), CASES["size alone"][0](5)
    torch.testing.assert_close(engine(5), expected)
    module = ingot.compile(program, require_full_compilation=True)
    torch.testing.assert_close(module(5), expected)
    with pytest.raises(ingot.UnsupportedError, match="calls choose the integer n") as caught:
        _ = module.engine
    assert caught.value.code == "INGOT-N002"


def _child(compiled: Callable[..., Any], results: Any) -> None:
    results.put(compiled(6).numpy())


def test_forked_children() -> None:
    compiled = ingot.compile(program_of("size alone")[1], require_full_compilation=True)
    expected = compiled(6)
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_child, args=(compiled, results))
    child.start()
    found = results.get(timeout=60)
    child.join(60)
    torch.testing.assert_close(torch.from_numpy(found), expected)


@pytest.mark.parametrize("mode", ["constant", "replicate"])
def test_padding_by_an_integer_and_its_negative(mode: str) -> None:
    """Sums of amounts that pad and that cut."""

    def moved(x: torch.Tensor, k: int) -> torch.Tensor:
        amounts = (-k, k) if mode == "constant" else (k, 0)
        return torch.nn.functional.pad(x[None], amounts, mode=mode) * 2

    compiled = torch.compile(moved, backend="ingot", dynamic=True, fullgraph=True)
    for k in (3, 5, 2, 0, -1, -4):
        x = torch.randn(6, 8)
        torch.testing.assert_close(compiled(x, k), moved(x, k))
