# SPDX-License-Identifier: Apache-2.0
"""A refit changes weights alone: sources with other constants, such as ranges of activations, are another program's."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from lacking import negated
from torch import nn


class Net(nn.Module):
    def __init__(self, seed: int, in_parts: bool = False) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.convolution, self.first, self.last = nn.Conv2d(3, 8, 3), nn.Linear(8, 64), nn.Linear(64, 4)
        self.in_parts = in_parts

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(self.convolution(x).mean((2, 3)))
        return self.last((negated(y) if self.in_parts else y).relu())


class Wrapped(nn.Module):
    def __init__(self, graph: nn.Module) -> None:
        super().__init__()
        self.graph = graph

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.graph(x) * 0.5


X = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))


def made(seed: int, largest: float, kind: str = "u8", in_parts: bool = False) -> nn.Module:
    """A quantized model with weights of its own. Ranges are those of data times `largest`."""
    options = {"weights": "float8", "activations": "float8"} if kind == "float8" else {}
    program = ingot.quantize(Net(1, in_parts).eval(), [X * largest], method="minmax", **options)
    return with_weights(program, seed)


def with_weights(program: nn.Module, seed: int) -> nn.Module:
    """Another order of their rows, which leaves the ranges as they are."""
    program.load_state_dict({name: value.roll(seed, 0) for name, value in program.state_dict().items()})
    return program


def pt2e(seed: int, largest: float) -> nn.Module:
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

    quantizer = x86.X86InductorQuantizer().set_global(x86.get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(torch.export.export(Net(1).eval(), (X,)).module(), quantizer)
    prepared(X * largest)
    return with_weights(convert_pt2e(prepared), seed)


KINDS: dict[str, Callable[[int, float], nn.Module]] = {
    "u8": made,
    "float8": lambda seed, largest: made(seed, largest, "float8"),
    "in parts": lambda seed, largest: made(seed, largest, in_parts=True),
    "wrapped": lambda seed, largest: Wrapped(made(seed, largest)),
    "pt2e": pt2e,
}


@functools.cache
def model(name: str, seed: int, largest: float) -> nn.Module:
    return KINDS[name](seed, largest)


def as_pt2(new: nn.Module, folder: Path) -> Path:
    torch.export.save(torch.export.export(new, (X,)), folder / "new.pt2")
    return folder / "new.pt2"


SOURCES: dict[str, Callable[[nn.Module, Path], Any]] = {
    "module": lambda new, folder: new,
    "program": lambda new, folder: torch.export.export(new, (X,)),
    "pt2": as_pt2,
}


def reopened(module: Any, folder: Path) -> Any:
    ingot.save(module, folder / "model.pt2")
    return ingot.load(folder / "model.pt2")


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "copied": lambda module, folder: copy.deepcopy(module),
    "loaded twice": lambda module, folder: reopened(reopened(module, folder), folder),
    "pickled": lambda module, folder: pickle.loads(pickle.dumps(module)),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_other_ranges_are_another_program(name: str, source: str, tmp_path: Path) -> None:
    module = ingot.compile(model(name, 1, 1.0), inputs=[X])
    before = module(X)
    other = SOURCES[source](model(name, 2, 3.0), tmp_path)
    for refit in (module.refit, lambda new: ingot.refit_module_weights(module, new, in_place=True)):
        with pytest.raises(ingot.UserError, match="another program") as caught:
            refit(other)
        assert caught.value.code == "INGOT-U329"
    assert torch.equal(module(X), before)
    module.refit(model(name, 2, 3.0).state_dict())  # whose weights are meant for this program


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_other_weights_of_the_same_ranges_are_taken(name: str, source: str, tmp_path: Path) -> None:
    new = model(name, 2, 1.0)
    module, fresh = ingot.compile(model(name, 1, 1.0), inputs=[X]), ingot.compile(new, inputs=[X])
    assert not torch.equal(module(X), fresh(X))
    module.refit(SOURCES[source](new, tmp_path))
    assert torch.equal(module(X), fresh(X))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["u8", "in parts"])
@torch.no_grad()
def test_files_and_copies_know_the_ranges(name: str, form: str, tmp_path: Path) -> None:
    module = FORMS[form](ingot.compile(model(name, 1, 1.0), inputs=[X]), tmp_path)
    for source in SOURCES.values():
        with pytest.raises(ingot.UserError, match="INGOT-U329"):
            module.refit(source(model(name, 2, 3.0), tmp_path))
        new = model(name, 2, 1.0)
        module.refit(source(new, tmp_path))
        assert torch.equal(module(X), ingot.compile(new, inputs=[X])(X))


@torch.no_grad()
def test_the_error_names_the_range() -> None:
    module = ingot.compile(model("u8", 1, 1.0), inputs=[X])
    call = r"\S*quantize_per_tensor\S*\("
    with pytest.raises(ingot.UserError, match=f"it has {call}.*the compiled one has {call}"):
        module.refit(model("u8", 2, 3.0))


@pytest.mark.parametrize("form", [lambda graph: graph, Wrapped], ids=["graph", "wrapped"])
@torch.no_grad()
def test_graphs_without_quantization_are_compared_too(form: Callable[[nn.Module], nn.Module]) -> None:
    class Scaled(nn.Module):
        def __init__(self, share: float) -> None:
            super().__init__()
            self.linear, self.share = nn.Linear(4, 4), share

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.leaky_relu(self.linear(x) * self.share, 0.2)

    x = torch.randn(3, 4)
    graphs = [form(torch.export.export(Scaled(share), (x,)).module()) for share in (0.5, 0.5, 0.25)]
    module = ingot.compile(graphs[0], inputs=[x])
    module.refit(graphs[1])
    torch.testing.assert_close(module(x), graphs[1](x))
    with pytest.raises(ingot.UserError, match="INGOT-U329"):
        module.refit(graphs[2])


@torch.no_grad()
def test_graphs_of_other_operators_are_taken_by_their_names() -> None:
    """torch.fx traces functions of torch, which say nothing about the operators of a program."""
    x = torch.randn(2, 3, 8, 8)
    module = ingot.compile(Net(1).eval(), inputs=[x])
    new = Net(2).eval()
    module.refit(torch.fx.symbolic_trace(new))
    torch.testing.assert_close(module(x), new(x))
