# SPDX-License-Identifier: Apache-2.0
"""One model in the three files that the servers of `bench.serving` load, and the request that its clients send."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
MOST_ROWS = {"minilm": 64, "resnet50": 64}  # per call


def write_models(name: str, folder: Path) -> None:
    """model.ingot, model.pt2, model.onnx and request.npz. Weights are random or real, as the model of tests/models has them."""
    import ingot
    import torch
    from models import build

    folder.mkdir(parents=True, exist_ok=True)
    case = build(name)
    rows = torch.export.Dim("rows", min=1, max=MOST_ROWS[name])
    example = tuple(value[:1].expand(2, *value.shape[1:]).contiguous() for value in case.args)
    dims = tuple({0: rows} for _ in example)
    with torch.no_grad():
        program = torch.export.export(case.model.eval(), example, dynamic_shapes=dims)
    engine = ingot.build(program)
    engine.save(folder / "model.ingot")
    torch.export.save(program, folder / "model.pt2")
    torch.onnx.export(program, dynamo=True, verbose=False, output_names=["output_0"]).save(
        folder / "model.onnx"
    )
    request = {port.name: value[:1].numpy() for port, value in zip(engine.inputs, case.args, strict=True)}
    np.savez(folder / "request.npz", **request)
