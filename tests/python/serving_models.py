# SPDX-License-Identifier: Apache-2.0
"""Small engines for tests of what model servers share, and a gate in front of their calls."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import torch
from ingot.serving import BatchAxis, Model

ROWS = torch.export.Dim("rows", min=1, max=16)
COLUMNS = torch.export.Dim("columns", min=1, max=64)


class Masked(torch.nn.Module):
    """Two inputs that share their sizes, and two outputs."""

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        weights = torch.softmax(ids * mask, -1)
        return {"weights": weights, "total": (ids * weights).sum(1)}


class Centred(torch.nn.Module):
    """Rows change each other's results."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x - x.mean(0)


class Scaled(torch.nn.Module):
    """Each request chooses an integer, which decides whether rows change each other's results."""

    def forward(self, k: int, x: torch.Tensor) -> torch.Tensor:
        return x * k - x.mean(0) * (k // 3)


class Looked(torch.nn.Module):
    """Fails for values that are not in the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(10, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids)


def saved(folder: Path, model: torch.nn.Module, *inputs: torch.Tensor, dims: Any = None) -> Path:
    program = torch.export.export(model.eval(), inputs, dynamic_shapes=dims)
    path = folder / "model.ingot"
    ingot.build(program).save(path)
    return path


class Gate:
    """Holds the engine's calls back, so that requests gather; counts the rows of each."""

    def __init__(self, model: Model) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.rows: list[int] = []
        run = model.engine._run

        def held(tensors: list[np.ndarray]) -> list[np.ndarray]:
            self.entered.set()
            assert self.open.wait(60)
            self.rows.append(next(len(tensor) for tensor in tensors if tensor.ndim))
            return run(tensors)

        model.engine._run = held

    def block(self, model: Model, inputs: dict[str, np.ndarray]) -> Any:
        """A first request, which occupies the model's thread."""
        first = model.submit(inputs)
        assert self.entered.wait(60)
        return first


def take_all(model: Model) -> None:
    """Batches have all that fits, as if that was measured to be best."""
    model._batcher._checked.add(())
    axis = model.batching
    assert isinstance(axis, BatchAxis)
    pace = model._batcher._paces.of(())  # other keys begin with it
    for k, size in enumerate(pace._sizes):
        for _ in range(5):
            pace.add(size, size * 0.5**k)


def request(rows: int, columns: int = 5, seed: int = 0) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed + 100 * rows + columns)
    return {name: generator.standard_normal((rows, columns), np.float32) for name in ("ids", "mask")}


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
