# SPDX-License-Identifier: Apache-2.0
"""README.md's Python and command-line examples work as described."""

from __future__ import annotations

import importlib.metadata
import re
import shlex
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
GRAPH = "graph main(%x: f32[2]) {\n  %y = add(%x, %x)\n  return %y\n}\n"


def block(language: str, word: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return next(text for text in blocks if word in text)


def test_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    try:  # torch.compile finds the backend by the package's entry point
        importlib.metadata.distribution("ingot")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(block("python", "import ingot"), names)
    assert isinstance(names["engine"], ingot.Engine)
    difference = float(capsys.readouterr().out.split("tensor(")[-1].split(",")[0].split(")")[0])
    assert difference < 1e-4


def test_command_line(tmp_path: Path) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.relu() * 2

    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(Model(), (torch.randn(4, 64),), dynamic_shapes=[{0: rows}])
    torch.export.save(program, tmp_path / "model.pt2")
    np.save(tmp_path / "x.npy", np.ones((4, 64), np.float32))
    (tmp_path / "graph.ir").write_text(GRAPH)
    lines = block("sh", "ingot build").splitlines()
    commands = [command for line in lines for command in line.split("#")[0].split(";") if command.strip()]
    assert len(commands) == 8
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "ingot"
        subprocess.run([INGOT, *arguments], cwd=tmp_path, check=True, capture_output=True)
    (output,) = np.load(tmp_path / "outputs.npz").values()
    assert (output == 2).all()


def test_the_page_on_the_command_line_has_all_options_of_builds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    helped = subprocess.run([INGOT, "build", "--help"], check=True, capture_output=True, text=True).stdout
    options = set(re.findall(r"^ +(?:-\w,)?(--[a-z][a-z-]+)", helped, re.MULTILINE)) - {"--help", "--output"}
    assert len(options) > 40
    assert [option for option in sorted(options) if not re.search(rf"{option}\b(?!-)", page)] == []
