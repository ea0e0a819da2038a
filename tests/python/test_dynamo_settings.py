# SPDX-License-Identifier: Apache-2.0
"""`ingot.compile(ir="torch_compile")` traces with the settings of Dynamo that avoid graph breaks, and leaves the process's alone."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import ingot
import pytest
import torch
from ingot.dynamo_settings import WHOLE_GRAPHS


def _counted(x: torch.Tensor) -> torch.Tensor:
    count = x.sum().int().item()
    torch._check(count >= 0)
    return torch.ones(count) * x.max()


class _Counted(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return _counted(x)


class _Found(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.nonzero() * 2


class _Recurrent(torch.nn.Module):
    def __init__(self, kind: type[torch.nn.Module]) -> None:
        super().__init__()
        self.layer = kind(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0] + 1


MODELS: dict[str, tuple[Callable[[], Any], list[torch.Tensor]]] = {
    "item": (_Counted, [torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0, 0.0])]),
    "function": (lambda: _counted, [torch.tensor([1.0, 2.0])]),
    "nonzero": (_Found, [torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0, 5.0])]),
    "lstm": (lambda: _Recurrent(torch.nn.LSTM), [torch.ones(2, 1, 4), torch.ones(5, 1, 4)]),
    "gru": (lambda: torch.nn.GRU(4, 3), [torch.ones(2, 1, 4)]),
}


@pytest.fixture(autouse=True)
def _nothing_traced() -> None:
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()


def _settings() -> list[bool]:
    return [getattr(torch._dynamo.config, name) for name in WHOLE_GRAPHS]


@pytest.mark.parametrize("again", [lambda compiled: compiled, copy.deepcopy], ids=["itself", "copy"])
@pytest.mark.parametrize("name", MODELS)
def test_graphs_are_whole(name: str, again: Callable) -> None:
    make, inputs = MODELS[name]
    before, model = _settings(), make()
    compiled = again(ingot.compile(model, ir="torch_compile"))
    with torch.no_grad():
        for x in inputs:
            torch.testing.assert_close(compiled(x), model(x))
    assert {segment.backend for segment in ingot.report(compiled).segments} == {"cpu"}
    assert not torch._dynamo.utils.counters["graph_break"]
    assert _settings() == before


def test_errors_leave_the_settings_alone() -> None:
    class Failing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ x

    before = _settings()
    compiled = ingot.compile(Failing(), ir="torch_compile")
    with pytest.raises(Exception, match=r"shape|size"):
        compiled(torch.ones(2, 3))
    assert _settings() == before


@pytest.mark.parametrize("stance", ["eager_on_recompile", "eager_then_compile", "force_eager"])
def test_stances_of_torch(stance: str) -> None:
    compiled = ingot.compile(_Found(), ir="torch_compile")
    with torch.compiler.set_stance(stance):
        for x in MODELS["nonzero"][1]:
            torch.testing.assert_close(compiled(x), _Found()(x))


def test_without_the_private_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingot.dynamo_settings.compat", SimpleNamespace(find=lambda name: None))
    compiled = ingot.compile(torch.nn.Linear(3, 2), ir="torch_compile")
    assert compiled(torch.ones(1, 3)).shape == (1, 2)
