# SPDX-License-Identifier: Apache-2.0
"""Modules of one class, of which torch.compile compiles a graph once: each has an engine with its own weights."""

from __future__ import annotations

import gc
import multiprocessing
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from small_models import mlp
from torch import nn


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    torch.compiler.reset()
    with torch.no_grad():
        yield


@pytest.fixture
def refits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of weights, as engines are refitted with them."""
    seen: list[str] = []
    refit = ingot._core.Engine.refit

    def counted(engine: Any, weights: dict[str, Any], *args: Any, **kwargs: Any) -> None:
        seen.extend(weights)
        refit(engine, weights, *args, **kwargs)

    monkeypatch.setattr(ingot._core.Engine, "refit", counted)
    return seen


class Hybrid(nn.Module):
    """Torch runs a part of it."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.sin(self.first(x)))


class Scaled(nn.Module):
    """A buffer of integers is a constant of its engine."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("places", torch.randint(0, 4, (4,)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)[:, self.places]


def compiled(module: nn.Module, **options: Any) -> Callable:
    return torch.compile(module, backend=backend, options=options)


MODELS = pytest.mark.parametrize(
    ("make", "options"),
    [
        (mlp, {}),
        (mlp, {"check_weights": "full"}),
        (Hybrid, {"torch_executed_ops": ["aten.sin.default"]}),
        (Scaled, {}),
        (mlp, {"immutable_weights": True}),
    ],
    ids=["mlp", "full", "hybrid", "integers", "immutable"],
)


@MODELS
def test_replicas_have_their_own_weights(make: Callable, options: dict) -> None:
    models = [make().eval() for _ in range(3)]
    calls = [compiled(model, **options) for model in models]
    for _ in range(3):
        for model, call in zip(models, calls, strict=True):
            x = torch.randn(3, 8)
            torch.testing.assert_close(call(x), model(x))


def test_replicas_are_refitted_once(refits: list[str]) -> None:
    models, x = [mlp() for _ in range(4)], torch.randn(3, 8)
    calls = [compiled(model) for model in models]
    for call in calls:
        call(x)
    assert len(refits) == 3 * 4
    for _ in range(5):
        for model, call in zip(models, calls, strict=True):
            torch.testing.assert_close(call(x), model(x))
    assert len(refits) == 3 * 4


def test_changes_of_one_replica_are_its_own(refits: list[str]) -> None:
    models, x = [mlp() for _ in range(3)], torch.randn(3, 8)
    calls = [compiled(model) for model in models]
    wants = [call(x) for call in calls]
    refits.clear()
    models[1][0].weight.mul_(2)
    torch.testing.assert_close(calls[1](x), models[1](x))
    assert len(refits) == 1
    assert torch.equal(calls[0](x), wants[0])
    assert torch.equal(calls[2](x), wants[2])
    assert len(refits) == 1


def test_replaced_parameters_take_the_place_of_the_old_ones(refits: list[str]) -> None:
    model, x = mlp(), torch.randn(3, 8)
    call = compiled(model)
    call(x)
    old = weakref.ref(model[0].weight)
    for _ in range(3):
        model[0].weight = nn.Parameter(torch.randn_like(model[0].weight))
        torch.testing.assert_close(call(x), model(x))
    assert old() is None
    assert len(refits) == 3  # of one weight each


def test_modules_end() -> None:
    """What is compiled keeps no module's weights but those of the last call."""
    models, x = [mlp() for _ in range(3)], torch.randn(3, 8)
    for model in models:
        compiled(model)(x)
    watched = [weakref.ref(parameter) for model in models for parameter in model.parameters()]
    del model, models
    gc.collect()
    last = mlp()
    torch.testing.assert_close(compiled(last)(x), last(x))
    gc.collect()
    assert not [each for each in watched if each() is not None]


def test_layers_that_are_compiled_one_by_one(refits: list[str]) -> None:
    layers = nn.ModuleList(
        nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, norm_first=True) for _ in range(6)
    ).eval()
    x = torch.randn(2, 5, 16)

    def run(x: torch.Tensor) -> torch.Tensor:
        for layer in layers:
            x = layer(x)
        return x

    want = run(x)
    for layer in layers:
        layer.compile(backend=backend)
    torch.testing.assert_close(run(x), want)
    refits.clear()
    torch.testing.assert_close(run(x), want)
    assert not refits


@pytest.mark.parametrize("options", [{}, {"check_weights": "full"}])
def test_threads_with_replicas(options: dict) -> None:
    """Calls of other weights meanwhile do not matter."""
    models = [nn.Sequential(*(nn.Linear(64, 64) for _ in range(3))).eval() for _ in range(4)]
    x = torch.randn(2, 64)
    wants = [model(x) for model in models]
    compiled(models[0], **options)(x)
    wrong: list[int] = []

    def run(number: int) -> None:
        with torch.no_grad():
            call = compiled(models[number], **options)
            for _ in range(100):
                if not torch.allclose(call(x), wants[number], rtol=1e-4, atol=1e-5):
                    wrong.append(number)

    threads = [threading.Thread(target=run, args=(number % 4,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _call_replicas(calls: list[Callable], x: torch.Tensor, wants: list[torch.Tensor], answers: Any) -> None:
    with torch.no_grad():  # and without eager, whose threads a fork loses
        answers.put([torch.equal(call(x), want) for call, want in zip(calls, wants, strict=True)])


def test_forked_children_with_replicas() -> None:
    models, x = [mlp() for _ in range(3)], torch.randn(3, 8)
    calls = [compiled(model) for model in models]
    wants = [call(x) for call in calls]
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_call_replicas, args=(calls, x, wants, answers))
    process.start()
    assert answers.get(timeout=60) == [True] * 3
    process.join(60)
    assert process.exitcode == 0
    assert all(torch.equal(call(x), want) for call, want in zip(calls, wants, strict=True))


def test_threads_with_replicas_that_come_and_go() -> None:
    first, x = nn.Linear(128, 128).eval(), torch.randn(2, 128)
    engine = ingot.compile(first, inputs=[x]).engine._core
    rows = [(name, value, position) for position, (name, value) in enumerate(first.named_parameters(), 1)]
    runner = ingot._core.Runner(engine, [0], rows, x)
    wrong: list[int] = []

    def run(number: int) -> None:
        with torch.no_grad():
            for _ in range(150):
                model = first if number < 2 else nn.Linear(128, 128).eval()
                if not torch.allclose(runner([x, *model.parameters()])[0], model(x), rtol=1e-4, atol=1e-5):
                    wrong.append(number)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_few_engines_serve_many_replicas(refits: list[str]) -> None:
    """More sets of weights than are kept: the one that was not called for longest makes room."""
    models, x = [nn.Linear(4, 4).eval() for _ in range(5)], torch.randn(3, 4)
    engine = ingot.compile(models[0], inputs=[x]).engine._core
    rows = [(name, value, position) for position, (name, value) in enumerate(models[0].named_parameters(), 1)]
    runner = ingot._core.Runner(engine, [0], rows, x, most=3)
    order = [0, 1, 2, 0, 3, 0, 4, 1, 4, 0]
    counts = []
    for number in order:
        model = models[number]
        torch.testing.assert_close(runner([x, *model.parameters()])[0], model(x))
        counts.append(len(refits))
    assert counts == [0, 2, 4, 4, 6, 6, 8, 10, 10, 10]


def test_a_failed_refit_is_tried_again() -> None:
    models, x = [nn.Linear(4, 4).eval() for _ in range(2)], torch.randn(3, 4)
    engine = ingot.compile(models[0], inputs=[x]).engine._core
    rows = [(name, value, position) for position, (name, value) in enumerate(models[0].named_parameters(), 1)]
    runner = ingot._core.Runner(engine, [0], rows, x)
    weight, bias = models[1].parameters()
    for _ in range(2):
        with pytest.raises(ingot.UserError, match="INGOT-U321"):
            runner([x, nn.Parameter(torch.randn(3, 4)), bias])
        torch.testing.assert_close(runner([x, *models[0].parameters()])[0], models[0](x))
        torch.testing.assert_close(runner([x, weight, bias])[0], models[1](x))
