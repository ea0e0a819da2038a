# SPDX-License-Identifier: Apache-2.0
"""Models whose widths leave padding in every packing, and a program that builds and runs models by name.

python -m poisoned_models FOLDER NAME...: writes FOLDER/NAME.ingot, and the results of two runs to FOLDER/NAME.pt. The memory
that it gets from malloc may be poisoned (tests/tools/poison.c).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from models import build
from models.registry import Case
from torch import nn
from torch.nn import functional


class Vision(nn.Module):
    """Convolutions of every kernel template, on channels that fill no panel: plain, with groups, depthwise, Winograd, 1x1."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 24, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(24)
        self.depthwise = nn.Conv2d(24, 24, 3, padding=1, groups=24)
        self.expand = nn.Conv2d(24, 40, 1)
        self.square = nn.Conv2d(40, 44, 3, padding=1)
        self.groups = nn.Conv2d(44, 20, 3, padding=1, groups=4)
        self.labels = nn.Linear(20, 9)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = functional.relu6(self.norm(self.stem(image)))
        x = functional.silu(self.expand(self.depthwise(x)))
        x = functional.relu(self.groups(functional.relu(self.square(x))))
        return self.labels(x.mean((2, 3)))


class Sequence(nn.Module):
    """Recurrent panels, attention of odd widths, an odd vocabulary, and a product whose second operand is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(101, 36)
        self.lstm = nn.LSTM(36, 21, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(42, 18, batch_first=True)
        self.attention = nn.MultiheadAttention(18, 3, batch_first=True)
        self.mix = nn.Parameter(torch.randn(17, 18))
        self.scale = nn.Parameter(torch.randn(17, 1))
        self.labels = nn.Linear(17, 101, bias=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x, _ = self.lstm(self.words(tokens))
        x, _ = self.gru(x)
        x = x + self.attention(x, x, x, need_weights=False)[0]
        weight = self.mix * self.scale * x.mean()  # packed at each call
        return self.labels(functional.linear(x, weight)).log_softmax(-1)


def _small(model: type[nn.Module], *args: torch.Tensor) -> Callable[[], Case]:
    def make() -> Case:
        torch.manual_seed(0)
        return Case(model().eval(), args)

    return make


_IMAGE = torch.linspace(-1, 1, 3 * 35 * 35).reshape(1, 3, 35, 35)
SMALL = {
    "vision": _small(Vision, _IMAGE),
    "sequence": _small(Sequence, (torch.arange(26).reshape(2, 13) * 7) % 101),
}


def make(name: str) -> Case:
    return SMALL[name]() if name in SMALL else build(name)


def build_and_run(folder: Path, name: str) -> None:
    import ingot

    case = make(name)
    with torch.no_grad():
        program = torch.export.export(case.model, case.args)
        engine = ingot.build(program)
        engine.save(folder / f"{name}.ingot")
        results = []
        for _ in range(2):
            engine.reset_states()
            result = engine(*case.args)
            results.append(result if isinstance(result, (tuple, list)) else (result,))
    torch.save([[tensor.clone() for tensor in result] for result in results], folder / f"{name}.pt")


if __name__ == "__main__":
    for each in sys.argv[2:]:
        build_and_run(Path(sys.argv[1]), each)
