# SPDX-License-Identifier: Apache-2.0
"""Names are for people: whatever a model calls its parts, the results are those of eager."""

from __future__ import annotations

import copy
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from ingot import capture
from ingot.torch_backend import backend
from torch import nn
from torch.nn import functional

# What Ingot itself calls weights, variables, parts and files; what its texts give a meaning; and what no text likes.
NAMES = ("init.0", "init.1", "weight", "i0", "i", "j", "$i0", "%x", "submod_0", "result", "symbol", "none", " ", "größe",
         'a"b', "a;b", "x: f32[2]", "0", "-1", "tile.row", "()", "\n")  # fmt: skip


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def add_tensor(model: nn.Module, name: str, value: torch.Tensor, *, is_buffer: bool) -> None:
    """A parameter or buffer of this qualified name: what stands before a dot becomes a module."""
    *path, last = name.split(".")
    for part in path:
        if part not in model._modules:
            model.add_module(part, nn.Module())
        model = model._modules[part]
    model.register_buffer(last, value) if is_buffer else model.register_parameter(last, nn.Parameter(value))


class Named(nn.Module):
    """A chain of products, each with a weight of another name that has to be packed, and one that is used as it is."""

    def __init__(self, names: tuple[str, ...], buffers: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.names = names
        for number, name in enumerate(names):
            add_tensor(self, name, torch.randn(9 + number % 3, 9 + (number - 1) % 3) / 3, is_buffer=buffers)
        add_tensor(self, "bias of all", torch.randn(9), is_buffer=buffers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.names:
            weight = self
            for part in name.split("."):
                weight = weight._modules[part] if part in weight._modules else weight._buffers.get(
                    part, weight._parameters.get(part))  # fmt: skip
            x = functional.linear(x, weight.exp() * 0.1).tanh()
        return x[:, :9] + getattr(self, "bias of all")


@pytest.mark.parametrize("buffers", [False, True], ids=["parameters", "buffers"])
def test_weights(buffers: bool) -> None:
    model, x = Named(NAMES, buffers).eval(), torch.randn(3, 9 + (-1) % 3)
    expected = model(x)
    program = torch.export.export(copy.deepcopy(model), (x,))
    engine = ingot.build(program)
    torch.testing.assert_close(engine(x), expected)
    torch.testing.assert_close(torch.compile(model, backend=backend)(x), expected)
    new = {
        name: value * 0.5 for name, value in model.state_dict().items() if name in ("init.0", "i0", "größe")
    }
    engine.refit(new, partial=True)
    model.load_state_dict({**model.state_dict(), **new})
    torch.testing.assert_close(engine(x), model(x))


class ParameterListOfInit(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.init = nn.ParameterList([nn.Parameter(torch.randn(24)), nn.Parameter(torch.randn(24, 24))])
        self.layer = nn.Linear(24, 24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) * self.init[0] + functional.linear(x, self.init[1])


@pytest.mark.parametrize("level", ["0", "1", "3"])
def test_parameter_list_called_init(level: str) -> None:
    model, x = ParameterListOfInit().eval(), torch.randn(5, 24)
    module = ingot.compile(model, inputs=[x], optimization_level=level)
    torch.testing.assert_close(module(x), model(x))


class Caches(nn.Module):
    """Arguments that are called like buffers, both written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(4))
        self.register_buffer("i0", torch.ones(4))
        self.weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0, 4.0]))

    def forward(self, cache: torch.Tensor, i0: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        self.cache.add_(cache)
        self.i0.mul_(2)
        cache.add_(1)
        i0.sub_(self.weight)
        weight.mul_(self.i0)
        return self.cache + cache * i0 + self.weight * weight


def caches_arguments() -> list[torch.Tensor]:
    return [torch.arange(4.0), torch.arange(4.0) * 10, torch.arange(4.0) - 2]


@pytest.mark.parametrize("hybrid", [False, True])
def test_arguments_called_like_buffers(hybrid: bool) -> None:
    options = {"torch_executed_ops": {"aten.sub.Tensor", "aten.sub_.Tensor"}} if hybrid else {}
    model = Caches()
    program = torch.export.export(copy.deepcopy(model), tuple(caches_arguments()))
    compiled_twice = [ingot.dynamo.compile(program, **options)]
    if not hybrid:
        compiled_twice.append(torch.compile(copy.deepcopy(model), backend=backend))
    for compiled in compiled_twice:
        twin, given, expected = copy.deepcopy(model), caches_arguments(), caches_arguments()
        for _ in range(3):
            torch.testing.assert_close(compiled(*given), twin(*expected))
            for name, value, right in zip(("cache", "i0", "weight"), given, expected, strict=True):
                torch.testing.assert_close(value, right, msg=lambda text, name=name: f"{name}: {text}")


class Sizes(nn.Module):
    """Kernels of all kinds over two dynamic sizes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        products = self.linear(x) @ y.transpose(-1, -2)
        attended = functional.scaled_dot_product_attention(x, x, x)
        joined = torch.cat([x.flatten(1), y.flatten(1)], 1)
        return (
            products.softmax(-1),
            attended.cumsum(1),
            torch.relu(joined).sum(0),
            x.transpose(1, 2).reshape(-1, x.shape[1]) + x.shape[1],
            y[:, : y.shape[1] - 1].amax((0, 2)),
        )


SYMBOLS = [("i0", "i1"), ("i1", "i0"), ("i", "j"), ("j0", "j1"), ("k0", "d0"), ("tile.row", "tile.rows"),
           ("matrix.batch", "tile.columns"), ("i0.o", "i0.i"), ("max", "mod"), ("_", "s.0_")]  # fmt: skip


class RenamingBuilder:
    """A builder to which all calls go, symbols under other names."""

    def __init__(self, builder: object, names: tuple[str, ...]) -> None:
        self._builder, self._names, self._known = builder, names, {}

    def _renamed(self, text: str) -> str:
        return re.sub(r"\bs\d+\b", lambda match: self._known[match[0]], text)

    def symbol(self, name: str, *info: int) -> None:
        self._known.setdefault(name, self._names[len(self._known)])
        self._builder.symbol(self._known[name], *info)

    def value(self, name: str, kind: int, dtype: int, dims: list, strides: list | None) -> int:
        texts = [self._renamed(dim) for dim in dims]
        return self._builder.value(
            name, kind, dtype, texts, strides if strides is None else [self._renamed(dim) for dim in strides]
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self._builder, name)


def sizes_program() -> torch.export.ExportedProgram:
    rows, columns = torch.export.Dim("rows", min=2, max=20), torch.export.Dim("columns", min=3, max=30)
    shapes = {"x": {1: rows}, "y": {1: columns}}
    return torch.export.export(Sizes(), (torch.randn(3, 5, 8), torch.randn(3, 7, 8)), dynamic_shapes=shapes)


def check_sizes(engine: ingot.Engine) -> None:
    for rows, columns in ((5, 7), (2, 30), (20, 3)):
        x, y = torch.randn(3, rows, 8), torch.randn(3, columns, 8)
        for actual, expected in zip(engine(x, y), Sizes()(x, y), strict=True):
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("names", SYMBOLS, ids=",".join)
def test_symbols(names: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Renaming:
        def __new__(cls, origin: str) -> RenamingBuilder:
            return RenamingBuilder(builder(origin), names)

    builder = capture._core.Builder
    monkeypatch.setattr(capture._core, "Builder", Renaming)
    check_sizes(ingot.build(sizes_program()))


def test_symbols_of_an_archive(tmp_path: Path) -> None:
    known: dict[str, str] = {}
    torch.export.save(sizes_program(), tmp_path / "model.pt2")
    with (
        zipfile.ZipFile(tmp_path / "model.pt2") as given,
        zipfile.ZipFile(tmp_path / "renamed.pt2", "w") as renamed,
    ):
        for entry in given.infolist():
            content = given.read(entry)
            if entry.filename.endswith("model.json"):
                content = re.sub(r"\bs\d+\b", lambda match: known.setdefault(match[0], f"i{len(known)}"),
                                 content.decode()).encode()  # fmt: skip
            renamed.writestr(entry, content)
    assert known
    check_sizes(ingot.build(tmp_path / "renamed.pt2"))


@pytest.mark.parametrize("name", ["$i0", "$", "%x", "", "é", "0a", "a b", "a+b", ".a", "a\n"])
def test_names_that_no_symbol_may_have(name: str) -> None:
    builder = capture._core.Builder("a test")
    with pytest.raises(ingot.UserError, match="INGOT-U103"):
        builder.symbol(name, 1, 9, -1)
