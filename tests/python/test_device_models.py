# SPDX-License-Identifier: Apache-2.0
"""Models of the transformers library, reduced in width and depth, on the fake device beside the interpreter."""

from __future__ import annotations

import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from ingot.dynamo import functional
from models.architectures import Architecture, architecture, table

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
    program = _program(made)
    answer = _answer(program, level, tmp_path / "model.pt2")
    if answer.startswith("unsupported: ") and answer.endswith("a write through this view\n"):
        answer = _answer(functional(program), level, tmp_path / "functional.pt2")  # as the front ends do
    assert answer == "right\n"


def _program(made: Architecture) -> torch.export.ExportedProgram:
    with torch.no_grad():
        try:
            return ingot.dynamo.trace(made.model, kwarg_inputs=made.arguments())
        except Exception as error:
            try:
                torch.export.export(made.model, (), made.arguments())
            except Exception:
                pytest.skip(f"torch.export cannot trace it: {type(error).__name__}")
            raise


def _answer(program: torch.export.ExportedProgram, level: int, path: Path) -> str:
    torch.export.save(program, path)
    done = subprocess.run([_PROGRAM, str(level), path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
