# SPDX-License-Identifier: Apache-2.0
"""Models in which structure repeats, for `bench.reuse`. Each is a function with the arguments of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Model = tuple[Callable[..., Any], list[tuple[Any, ...]]]


def encoder(layers: int) -> Model:
    layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=False).eval(), [
        (torch.randn(1, 64, 256),)
    ]


class Block(nn.Module):
    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.norm, self.up, self.down = (
            nn.LayerNorm(width),
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Ensemble(nn.Module):
    """The mean of members with the same layers."""

    def __init__(self, members: int = 5) -> None:
        super().__init__()
        self.members = nn.ModuleList(nn.Sequential(*(Block() for _ in range(3))) for _ in range(members))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([member(x) for member in self.members]).mean(0)


class Tasks(nn.Module):
    """One trunk, and a tower and a head for each of three tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*(Block() for _ in range(4)))
        self.towers = nn.ModuleList(
            nn.Sequential(Block(), Block(), nn.Linear(256, classes)) for classes in (2, 10, 7)
        )

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        shared = self.trunk(x)
        return [tower(shared).softmax(-1) for tower in self.towers]


class TaskByName(Tasks):
    """One task per call: torch.compile makes a graph per task, each with the trunk."""

    def forward(self, x: torch.Tensor, task: str) -> torch.Tensor:  # type: ignore[override]
        return self.towers["abc".index(task)](self.trunk(x)).softmax(-1)


class Mixture(nn.Module):
    """Each layer weighs eight experts."""

    def __init__(self, layers: int = 4, experts: int = 8) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(256, experts) for _ in range(layers))
        self.experts = nn.ModuleList(nn.ModuleList(Block() for _ in range(experts)) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gate, experts in zip(self.gates, self.experts, strict=True):
            weight = gate(x).softmax(-1)
            x = sum(weight[..., i : i + 1] * expert(x) for i, expert in enumerate(experts))
        return x


def in_parts(modules: list[nn.Module], step: str, last: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """A function that calls the modules, with a graph break after each. Without a loop: torch.compile runs loops with graph
    breaks in Python, and compiles what is called in them once."""
    lines = ["def function(x):", "    results = []"]
    for i in range(len(modules)):
        lines += [f"    {step.format(module=f'modules[{i}]')}", "    torch._dynamo.graph_break()"]
    scope: dict[str, Any] = {"modules": nn.ModuleList(modules).eval(), "torch": torch}
    exec("\n".join([*lines, f"    return {last}"]), scope)
    return scope["function"]


def graph_breaks() -> Model:
    """torch.compile sees 21 graphs."""
    return in_parts([Block() for _ in range(21)], "x = {module}(x)", "x"), [(torch.randn(8, 256),)]


def members() -> Model:
    """The ensemble, with each member in a graph of its own, and one that combines them."""
    modules = [nn.Sequential(*(Block() for _ in range(3))) for _ in range(5)]
    function = in_parts(modules, "results.append({module}(x))", "torch.stack(results).mean(0)")
    return function, [(torch.randn(8, 256),)]


def tasks_by_name() -> Model:
    x = torch.randn(8, 256)
    return TaskByName().eval(), [(x, task) for task in "abc"]


def from_registry(name: str) -> Model:
    from models import build

    case = build(name)
    return case.model, [case.args]


MODELS: dict[str, Callable[[], Model]] = {
    "bert_base": lambda: from_registry("bert_base"),
    "vit_b16": lambda: from_registry("vit_b16"),
    "resnet50": lambda: from_registry("resnet50"),
    "ensemble_of_5": lambda: (Ensemble().eval(), [(torch.randn(8, 256),)]),
    "ensemble_in_parts": members,
    "3_tasks": lambda: (Tasks().eval(), [(torch.randn(8, 256),)]),
    "3_tasks_by_name": tasks_by_name,
    "8_experts": lambda: (Mixture().eval(), [(torch.randn(8, 256),)]),
    "20_graph_breaks": graph_breaks,
    "encoder_of_12": lambda: encoder(12),
    "encoder_of_24": lambda: encoder(24),
}
