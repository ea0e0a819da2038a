# SPDX-License-Identifier: Apache-2.0
"""Engine files that the servers of these tests load, with requests and what torch answers to them."""

from __future__ import annotations

from pathlib import Path

import ingot
import numpy as np
import torch
from safetensors.torch import save_file


class Scorer(torch.nn.Module):
    """Two inputs that share both of their sizes, two outputs of different ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor([0.5]))

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        weights = torch.softmax(ids.float() * self.scale + mask.log(), -1)
        return {"weights": weights, "total": (ids * weights).sum(1)}


class Slow(torch.nn.Module):
    """Has state, and takes about half a second."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.eye(1024))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(10):
            x = x @ self.table
        self.calls.add_(1)
        return x.abs().sum() * 0 + self.calls  # of all elements: engines compute those alone that are read


class Scaled(torch.nn.Module):
    """Each request chooses an integer, and gets one back."""

    def forward(self, x: torch.Tensor, k: int) -> tuple[torch.Tensor, int]:
        return x * k + k // 2, k * 2


class Doubled(torch.nn.Module):
    """The model of docs/servers.md."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() * 2


def request(rows: int, columns: int) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1000 * rows + columns)
    ids = generator.integers(0, 9, (rows, columns))
    mask = (generator.random((rows, columns)) < 0.8).astype(np.float32)
    mask[:, 0] = 1
    return {"ids": ids, "mask": mask}


def scorer(scale: float) -> Scorer:
    model = Scorer()
    model.scale.data.fill_(scale)
    return model


def write(folder: Path) -> None:
    """scorer.ingot and other.ingot, which differ in their weights; these; slow, scaled, and model.ingot of the page; requests.npz."""
    rows, columns = torch.export.Dim("rows", min=1, max=16), torch.export.Dim("columns", min=1, max=64)
    dims = {name: {0: rows, 1: columns} for name in ("ids", "mask")}
    example = (torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 5))
    for name, scale in (("scorer", 0.5), ("other", -0.25)):
        program = torch.export.export(scorer(scale), example, dynamic_shapes=dims)
        ingot.build(program).save(folder / f"{name}.ingot")
        save_file({"scale": torch.tensor([scale])}, folder / f"{name}.safetensors")
    ingot.build(torch.export.export(Slow(), (torch.ones(1024, 1024),))).save(folder / "slow.ingot")
    scaled = torch.export.export(
        Scaled(),
        (torch.ones(4, 3), 5),
        dynamic_shapes=({0: torch.export.Dim("n", min=1, max=16)}, torch.export.Dim.DYNAMIC),
    )
    ingot.build(scaled).save(folder / "scaled.ingot")
    page = torch.export.export(
        Doubled(), (torch.ones(4, 64),), dynamic_shapes=[{0: torch.export.Dim("n", min=1, max=32)}]
    )
    ingot.build(page).save(folder / "model.ingot")
    arrays = {}
    for k, size in enumerate([(1, 3), (2, 3), (3, 7), (1, 7), (5, 3), (16, 3), (1, 64)]):
        asked = request(*size)
        for name, value in asked.items():
            arrays[f"{k}.input.{name}"] = value
        for model, scale in (("scorer", 0.5), ("other", -0.25)):
            with torch.no_grad():
                answer = scorer(scale)(*map(torch.from_numpy, asked.values()))
            for name, value in answer.items():
                arrays[f"{k}.{model}.{name}"] = value.numpy()
    np.savez(folder / "requests.npz", **arrays)
