# SPDX-License-Identifier: Apache-2.0
"""Small models with every template of kernels, and every way to store numbers, for packages of other platforms."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import torch
from emulated import ROOT, Package
from torch import nn

sys.path.append(str(ROOT / "tests/python"))
from poisoned_models import Sequence, Vision


@dataclass(frozen=True)
class Model:
    """Makes a module or an exported program; `options` for the build."""

    make: Callable[[], Any]
    x: torch.Tensor
    options: dict[str, Any]
    tolerance: float  # beside x86-64, of the largest element


def _layers() -> nn.Module:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 64), nn.Tanh(), nn.Linear(64, 24)).eval()


def _module(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(4)
    return kind().eval()


class Attention(nn.Module):
    """Attention of whole blocks, with a mask and with heads in groups."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = x[:, :6], x[:, 6:8].repeat_interleave(3, 1), x[:, 8:10].repeat_interleave(3, 1)
        causal = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return causal + nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=x[:, 10:, :, :40] > -1)


class Upsampling(nn.Module):
    """Transposed convolutions whose windows do not overlap, of images and of lines, and a join."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.up = nn.Conv2d(3, 8, 3, 2), nn.ConvTranspose2d(8, 6, 2, 2)
        self.last, self.line = nn.ConvTranspose2d(14, 5, (2, 3), (2, 3)), nn.ConvTranspose1d(5, 4, 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).relu()
        joined = torch.cat([self.up(y), nn.functional.interpolate(y, scale_factor=2.0)], 1)
        return self.line(self.last(joined).flatten(2))


class Histogram(nn.Module):
    """Rows and weights of a histogram of two dims; NaN and infinities are in no bin."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = torch.cat([x[:, :2], x[:1, :2] / 0, x[:, 2:4] * 0.5])
        return torch.histogramdd(
            rows, [4, 3], [-1.0, 1.0, -0.5, 0.75], weight=rows[:, 0].nan_to_num(1.0, 1.0).abs()
        ).hist


class FoundInteger(nn.Module):
    """An integer that the call finds, positive and negative ones."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        results = []
        for sign in (1, -1):
            k = (x[0, 0] * 0 + sign * x.shape[0] * 7).round().long().item()
            results.append(x * k + k // 3 - k % 5 + (torch.arange(64) - k).clamp(min=k))
        return torch.cat(results)


_X = torch.linspace(-2, 2, 5 * 64).reshape(5, 64).sin()
_IMAGE = torch.linspace(-1, 1, 2 * 3 * 35 * 35).reshape(2, 3, 35, 35)
_TOKENS = (torch.arange(26).reshape(2, 13) * 7) % 101
_HEADS = torch.linspace(-3, 3, 11 * 40 * 48).sin().reshape(1, 11, 40, 48)


def _stored(weights: str) -> Any:
    return ingot.quantize(_layers(), inputs=[_X], weights=weights)


MODELS = {
    "vision": Model(lambda: _module(Vision), _IMAGE, {}, 1e-5),
    "sequence": Model(lambda: _module(Sequence), _TOKENS, {}, 1e-5),
    "attention": Model(lambda: _module(Attention), _HEADS, {}, 1e-5),
    "f16": Model(lambda: _layers().half(), _X.half(), {}, 4e-3),
    "bf16": Model(lambda: _layers().bfloat16(), _X.bfloat16(), {}, 3e-2),
    "f64": Model(lambda: _layers().double(), _X.double(), {}, 1e-14),
    "int8": Model(lambda: ingot.quantize(_layers(), [(_X,)]), _X, {}, 1e-5),
    "int4": Model(lambda: _stored("int4"), _X, {}, 1e-5),
    "float8": Model(lambda: _stored("float8"), _X, {}, 1e-5),
    "upsampling": Model(lambda: ingot.quantize(_module(Upsampling), [(_IMAGE,)]), _IMAGE, {}, 1e-5),
    "histogram": Model(lambda: _module(Histogram), _X, {}, 1e-5),
    "found integer": Model(lambda: _module(FoundInteger), _X, {}, 1e-5),
    "plain": Model(lambda: _module(Vision), _IMAGE, {"optimization_level": 0}, 1e-5),
}


def _program(model: Model) -> Any:
    made = model.make()
    return torch.export.export(made, (model.x,)) if isinstance(made, nn.Module) else made


def distance_from_x86(package: Package, model: Model, folder: Path) -> float:
    """The largest difference between an output of the package and of an engine for x86-64-v3 here, relative to the largest element."""
    engines = [
        ingot.build(_program(model), target=target, **model.options)
        for target in (package.platform.target, "linux-x86-64")
    ]
    engines[0].save(folder / "model.ingot")
    expected = torch.as_tensor(engines[1](model.x)).double()
    inputs = folder / "x.safetensors"
    _write(inputs, engines[0].inputs[0].name, model.x)
    package.ingot("run", folder / "model.ingot", "-i", inputs, "-o", folder / "y.npz")
    (y,) = np.load(folder / "y.npz").values()
    got = (
        torch.from_numpy(y.view(np.uint16)).view(torch.bfloat16)
        if y.dtype.kind == "V"
        else torch.as_tensor(y)
    )
    return float((got.double() - expected).abs().max() / expected.abs().max())


def _write(path: Path, name: str, x: torch.Tensor) -> None:
    from safetensors.torch import save_file

    save_file({name: x.contiguous()}, path)
