# SPDX-License-Identifier: Apache-2.0
"""Small models with weights of every kind, and everything that new weights can come from: for the tests of refits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from safetensors.torch import save_file
from small_models import InParts, mlp, tiny_bert
from torch import nn


class Convolutions(nn.Module):
    """Folded batch norms, and a buffer of integers (num_batches_tracked) that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.last = nn.Conv2d(8, 4, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.norm(self.first(x)).relu())


class Tied(nn.Module):
    """An embedding that is also the last layer's weight, as in language models."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 8)
        self.middle = nn.Linear(8, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.middle(self.embedding(ids)).relu())


class Buffers(nn.Module):
    """Buffers that state dicts leave out, one of integers, and a parameter that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.unread = nn.Parameter(torch.zeros(3))
        self.register_buffer("order", torch.arange(8).flip(0))
        self.register_buffer("frequencies", torch.linspace(0, 1, 8), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)[:, self.order] * self.frequencies


class Experts(nn.Module):
    """Equal layers, and weights that several results of init depend on."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.scale = nn.Parameter(torch.ones(16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x * self.scale) for layer in (self.query, self.key, self.value))
        return nn.functional.scaled_dot_product_attention(q, k, v) @ (self.query.weight * self.scale)


MODELS: dict[str, tuple[Callable[[], nn.Module], torch.Tensor]] = {
    "mlp": (mlp, torch.randn(3, 8)),
    "bert": (tiny_bert, torch.randint(0, 99, (2, 7))),
    "convolutions": (Convolutions, torch.randn(2, 3, 6, 5)),
    "tied": (Tied, torch.randint(0, 20, (2, 5))),
    "buffers": (Buffers, torch.randn(2, 8)),
    "experts": (Experts, torch.randn(2, 5, 16)),
    "hybrid": (lambda: InParts(counts=False), torch.randn(5, 4)),
}


def made(name: str, seed: int) -> nn.Module:
    """Model `name` with weights of its own."""
    model = MODELS[name][0]().eval()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.copy_(torch.randn_like(parameter) * 0.3)
    for key, buffer in model.named_buffers():
        if key.endswith("num_batches_tracked"):
            buffer.fill_(seed)  # as training does
    return model


def compiled(model: nn.Module, x: torch.Tensor) -> Any:
    return ingot.compile(model, inputs=[x], engine_cache_dir="off")


def result(module: Any, x: torch.Tensor) -> torch.Tensor:
    value = module(x)
    return value if isinstance(value, torch.Tensor) else value[0]


def untied(model: nn.Module) -> dict[str, torch.Tensor]:
    """Its state dict, each tensor once: as files of weights have them."""
    names: dict[int, str] = {}
    for name, value in model.state_dict().items():
        names.setdefault(value.data_ptr() if value.numel() else id(value), name)
    return {name: model.state_dict()[name].contiguous() for name in names.values()}


def exported(model: nn.Module, x: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(model, (x,))


def as_file(model: nn.Module, x: torch.Tensor, folder: Path) -> Path:
    save_file(untied(model), folder / "new.safetensors")
    return folder / "new.safetensors"


def as_shards(model: nn.Module, x: torch.Tensor, folder: Path) -> list[Path]:
    weights = list(untied(model).items())
    paths = [folder / "1.safetensors", folder / "2.safetensors"]
    for path, part in zip(paths, (weights[::2], weights[1::2]), strict=True):
        save_file(dict(part), path)
    return paths


def as_pt2(model: nn.Module, x: torch.Tensor, folder: Path) -> str:
    torch.export.save(exported(model, x), folder / "new.pt2")
    return str(folder / "new.pt2")


SOURCES: dict[str, Callable[[nn.Module, torch.Tensor, Path], Any]] = {
    "state_dict": lambda model, x, folder: model.state_dict(),
    "module": lambda model, x, folder: model,
    "program": lambda model, x, folder: exported(model, x),
    "pt2": as_pt2,
    "safetensors": as_file,
    "shards": as_shards,
}


def refused(call: Callable[[], Any]) -> ingot.UserError:
    with pytest.raises(ingot.UserError) as error:
        call()
    return error.value
