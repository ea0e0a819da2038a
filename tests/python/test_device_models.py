# SPDX-License-Identifier: Apache-2.0
"""Models of the transformers library, reduced in width and depth, on the fake device beside the interpreter."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from models.architectures import architecture, table

_PROGRAM = Path(__file__).parents[2] / "build/release/bin/ingot_run_on_device"
_SLICE = ("bert", "convnext", "gpt2_step", "llama", "mobilenet_v2", "t5", "vit", "whisper")
_LONG = pytest.mark.long


@pytest.mark.parametrize("level", [pytest.param(0, marks=_LONG), 3])
@pytest.mark.parametrize(
    "name", [each if each in _SLICE else pytest.param(each, marks=_LONG) for each in table()]
)
def test_is_what_the_interpreter_says(name: str, level: int, tmp_path: Path) -> None:
    if not _PROGRAM.exists():
        pytest.skip("the C++ tests are not built (make tests)")
    made = architecture(name)
    with torch.no_grad():
        program = ingot.dynamo.trace(made.model, kwarg_inputs=made.arguments())
    torch.export.save(program, tmp_path / "model.pt2")
    done = subprocess.run(
        [_PROGRAM, str(level), tmp_path / "model.pt2"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "right\n"
