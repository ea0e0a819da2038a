# SPDX-License-Identifier: Apache-2.0
"""An engine is found by what a model computes, whatever it calls its modules, arguments and sizes and wherever its lines are,
and is the engine that a build from nothing makes, byte for byte."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from refit_models import MODELS
from torch import nn


def export(model: nn.Module, args: tuple[Any, ...], **options: Any) -> Any:
    with torch.no_grad():
        return torch.export.export(model.eval(), args, **options)


def fresh(program: Any, **options: Any) -> bytes:
    with ingot.Session(cache_bytes=0):
        return ingot.build(program, engine_cache_dir="off", verify_kernels=False, **options).to_bytes()


def finds(session: ingot.Session, program: Any, **options: Any) -> tuple[bool, ingot.Engine]:
    """Whether the whole engine was found: then the build asks for no kernel, and keeps nothing."""
    before = session.cache_stats()
    engine = ingot.build(program, engine_cache_dir="off", verify_kernels=False, **options)
    after = session.cache_stats()
    kernels = ("made", "from_memory", "from_other_threads", "entries")
    return all(before[name] == after[name] for name in kernels), engine


class Wrapped(nn.Module):
    """The same model by other names of modules, weights and arguments, on other lines."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.another_name = model

    def forward(self, *tensors: Any) -> Any:
        return self.another_name(*tensors)


@pytest.fixture
def session() -> Iterator[ingot.Session]:
    with ingot.Session() as entered:
        yield entered


@pytest.mark.parametrize("name", [name for name in MODELS if name != "hybrid"])
@pytest.mark.parametrize("options", [{}, {"optimization_level": 0}], ids=str)
def test_other_names_and_lines_find_the_engine(
    session: ingot.Session, name: str, options: dict[str, Any]
) -> None:
    make, x = MODELS[name]
    assert not finds(session, export(make(), (x,)), **options)[0]
    program = export(Wrapped(make()), (x,))
    found, engine = finds(session, program, **options)
    assert found
    assert engine.to_bytes() == fresh(program, **options)


LINES = """
import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.{up}, self.{down} = nn.Linear(24, 40), nn.Linear(40, 24)

    def forward(self, {x}):
{space}
        {h} = nn.functional.gelu(self.{up}({x}))
        return {x} + self.{down}({h}).softmax(-1)
"""


def written(folder: Path, **names: str) -> nn.Module:
    path = folder / f"model_{len(list(folder.glob('*.py')))}.py"
    path.write_text(textwrap.dedent(LINES.format(**names)))
    scope: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(), path, "exec"), scope)
    torch.manual_seed(len(names["x"]))
    return scope["Model"]()


FIRST = {"up": "up", "down": "down", "x": "x", "h": "h", "space": ""}


@pytest.mark.parametrize(
    "names",
    [
        {"space": "\n" * 30},
        {"x": "features"},
        {"h": "hidden"},
        {"up": "first", "down": "last"},
        {"up": "down", "down": "up"},
        {"up": "linear_1", "down": "linear", "x": "add", "space": "\n"},
    ],
    ids=str,
)
def test_written_another_way(session: ingot.Session, tmp_path: Path, names: dict[str, str]) -> None:
    x = torch.randn(6, 24)
    batch = torch.export.Dim("batch", min=2, max=64)
    assert not finds(session, export(written(tmp_path, **FIRST), (x,), dynamic_shapes=({0: batch},)))[0]
    other = written(tmp_path, **{**FIRST, **names})
    rows = torch.export.Dim("rows", min=2, max=64)
    program = export(other, (x,), dynamic_shapes=({0: rows},))
    found, engine = finds(session, program)
    assert found
    assert engine.to_bytes() == fresh(program)
    torch.testing.assert_close(engine(x), other(x))
    assert [tensor.name for tensor in engine.inputs] == [names.get("x", "x")]


class Branches(nn.Module):
    def __init__(self, reordered: bool) -> None:
        super().__init__()
        self.reordered = reordered
        torch.manual_seed(5)
        self.left, self.right = nn.Linear(16, 16), nn.Sequential(nn.Linear(16, 16), nn.LayerNorm(16))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.reordered:
            right = self.right(y).tanh()
            left = self.left(x).relu()
        else:
            left = self.left(x).relu()
            right = self.right(y).tanh()
        return left * right, right + x.sin()


def test_independent_calls_in_another_order(session: ingot.Session) -> None:
    args = (torch.randn(4, 16), torch.randn(4, 16))
    assert not finds(session, export(Branches(False), args))[0]
    model = Branches(True)
    found, engine = finds(session, export(model, args))
    assert found
    for _ in range(2):  # also with other weights
        torch.testing.assert_close(tuple(engine(*args)), model(*args))
        with torch.no_grad():
            model.left.weight.mul_(3)
        engine.refit(model.state_dict())


@pytest.mark.parametrize(
    "change",
    [
        lambda m: setattr(m.right[1], "eps", 1e-3),
        lambda m: setattr(m, "left", nn.Linear(16, 16, bias=False)),
        lambda m: setattr(m.right[0], "weight", m.left.weight),  # tied
        lambda m: m.half(),
        lambda m: m.right.append(nn.Dropout()).append(nn.ReLU()),
        lambda m: setattr(m.right, "0", nn.Identity()),
    ],
)
def test_another_structure_finds_nothing(session: ingot.Session, change: Callable[[Any], Any]) -> None:
    args = (torch.randn(4, 16), torch.randn(4, 16))
    finds(session, export(Branches(False), args))
    model = Branches(False)
    change(model)
    args = tuple(x.to(next(model.parameters()).dtype) for x in args)
    program = export(model, args)
    found, engine = finds(session, program)
    assert not found
    assert engine.to_bytes() == fresh(program)


def test_states_start_as_the_model_at_hand_says(session: ingot.Session) -> None:
    class Counter(nn.Module):
        def __init__(self, name: str, start: float) -> None:
            super().__init__()
            self.name = name
            self.register_buffer(name, torch.full((3,), start))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            getattr(self, self.name).add_(1)
            return x * getattr(self, self.name)

    x = torch.ones(3)
    for number, (name, start) in enumerate((("count", 0.0), ("steps", 5.0))):
        program = export(Counter(name, start), (x,))
        found, engine = finds(session, program)
        assert found == (number == 1)
        assert engine.to_bytes() == fresh(program)
        torch.testing.assert_close(engine(x), x * (start + 1))


def test_the_parts_between_graph_breaks_are_one_engine() -> None:
    """What a session keeps after 6 equal parts is what it keeps after one."""

    def kept(parts: int) -> dict[str, int]:
        torch._dynamo.reset()
        layers = [nn.Sequential(nn.Linear(16, 16), nn.GELU()).eval() for _ in range(parts)]
        x = torch.randn(4, 16)
        with torch.no_grad(), ingot.Session() as session:
            expected = x
            for layer in layers:
                compiled = torch.compile(layer, backend="ingot", options={"verify_kernels": False})
                torch._dynamo.reset()
                x, expected = compiled(x), layer(expected)
                torch.testing.assert_close(x, expected)
            stats = session.cache_stats()
        return {name: stats[name] for name in ("made", "entries", "from_memory")}

    assert kept(6) == kept(1)
