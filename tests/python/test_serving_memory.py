# SPDX-License-Identifier: Apache-2.0
"""MiniLM behind `ingot.serving.Model`: memory over 2,000 requests, or 100,000 in the long mode."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from ingot.serving import Model
from models import build
from serving_models import resident, saved
from test_metrics import samples

_ROWS = 64
_REQUESTS = 100_000 if os.environ.get("INGOT_LONG") == "1" else 2_000


def test_memory_is_flat(tmp_path: Path) -> None:
    case = build("minilm")
    rows = torch.export.Dim("rows", min=1, max=_ROWS)
    example = [value.expand(2, -1).contiguous() for value in case.args]
    with torch.no_grad():
        want = case.model(*case.args).numpy()
        path = saved(tmp_path, case.model, *example, dims=tuple({0: rows} for _ in example))
    model = Model(path, threads=1)
    asked = {port.name: value.numpy() for port, value in zip(model.inputs, case.args, strict=True)}

    def ask(count: int) -> None:
        for _ in range(0, count, _ROWS):
            answers = [model.submit(asked) for _ in range(_ROWS)]
            for answer in answers:
                np.testing.assert_allclose(answer.result(600)["output_0"], want, rtol=1e-3, atol=1e-5)

    # The largest batch, which may be tried at any time, takes the most memory.
    model.submit({name: np.repeat(value, _ROWS, axis=0) for name, value in asked.items()}).result(600)
    ask(_REQUESTS // 4)
    settled = resident()
    ask(_REQUESTS - _REQUESTS // 4)
    assert resident() < settled + (16 << 20)
    counted = samples(model.metrics())
    assert counted["ingot_serving_requests_total", ("engine", "model"), ("outcome", "ok")] >= _REQUESTS
    model.close()
