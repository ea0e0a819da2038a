# SPDX-License-Identifier: Apache-2.0
"""A model that two backends run in parts, for the tests of divided engines with and without a GPU."""

from __future__ import annotations

import torch


class Layers(torch.nn.Module):
    """Two products with a softmax between them, which the CPU runs, and what was seen so far."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Linear(32, 48)
        self.second = torch.nn.Linear(48, 32)
        self.register_buffer("total", torch.zeros(48))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(self.first(x), -1)
        self.total += y.sum(0)
        return self.second(y) + self.total.mean()


def exported(model: torch.nn.Module) -> torch.export.ExportedProgram:
    rows = torch.export.Dim("rows", min=1, max=64)
    return torch.export.export(model.eval(), (torch.zeros(4, 32),), dynamic_shapes=({0: rows},))
