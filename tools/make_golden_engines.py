#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden engines of this version's engine formats, for any x86-64 processor with AVX2.

    .venv/bin/python tools/make_golden_engines.py [FOLDER]

To be run once, when the format has changed: into format_N of tests/compatibility, where they stay as they are. Each engine is compressed
(sections begin at multiples of 64 KiB), and beside it are inputs, and results of torch in the model's precision and in f64.
"""

from __future__ import annotations

import copy
import gzip
import sys
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import torch

COMPATIBILITY = Path(__file__).resolve().parents[1] / "tests/compatibility"
sys.path.insert(0, str(COMPATIBILITY))
from golden_models import MODELS, SEVERAL_LEVELS, Golden, make  # noqa: E402


def export(golden: Golden) -> torch.export.ExportedProgram:
    model = copy.deepcopy(golden.model)
    program = torch.export.export(model, golden.calls[0], dynamic_shapes=golden.dynamic_shapes)
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            node.meta.pop("stack_trace", None)  # has paths of this machine
    return program


def widen(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@torch.no_grad()
def results(model: torch.nn.Module, calls: list[tuple[torch.Tensor, ...]]) -> list[list[torch.Tensor]]:
    """The outputs of each call, made in order on one copy of the model."""
    model = copy.deepcopy(model)
    outputs = [model(*arguments) for arguments in calls]
    return [list(output) if isinstance(output, tuple) else [output] for output in outputs]


class Wide(torch.nn.Module):
    """The same model in f64, whatever dtypes it converts to."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).double()

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.model(*map(widen, arguments))


def as_array(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def arrays(golden: Golden) -> dict[str, np.ndarray]:
    eager = results(golden.model, golden.calls)
    exact = results(Wide(golden.model), golden.calls) if golden.has_exact else eager
    kept = {}
    for call, arguments in enumerate(golden.calls):
        kept |= {f"call{call}.input{i}": as_array(value) for i, value in enumerate(arguments)}
        kept |= {f"call{call}.eager{i}": as_array(value) for i, value in enumerate(eager[call])}
        kept |= {f"call{call}.exact{i}": as_array(value) for i, value in enumerate(exact[call])}
    return kept


def write(name: str, folder: Path) -> None:
    golden = make(name)
    engine = ingot.build(export(golden), **{"cpu": "x86-64-v3", "optimization_level": 3, **golden.options})
    packed = gzip.compress(engine.to_bytes(), compresslevel=9, mtime=0)
    (folder / f"{name}.ingot.gz").write_bytes(packed)
    np.savez_compressed(folder / f"{name}.npz", **arrays(golden))
    print(f"{folder.name}/{name}: {len(packed)} bytes")


def main() -> None:
    for names in (MODELS, SEVERAL_LEVELS):
        first = make(next(iter(names)))
        content = ingot.build(export(first), **first.options).to_bytes()
        form = int.from_bytes(content[8:12], "little")
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else COMPATIBILITY) / f"format_{form}"
        if folder.exists():
            print(f"{folder} exists: golden engines are written once per format")
            continue
        folder.mkdir(parents=True)
        for name in names:
            write(name, folder)


if __name__ == "__main__":
    main()
