# SPDX-License-Identifier: Apache-2.0
"""Engines whose tactics were chosen by hand, on this machine's GPU."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path

import ingot
import torch
from gpu_targets import DEVICE


def can_open(variable: str, *files: str) -> bool:
    """Whether the file that the variable names, or one of `files`, can be opened."""
    for name in (os.environ.get(variable, files[0]), *files[1:]):
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return True
    return False


def built_with(
    tactic: str,
    program: torch.export.ExportedProgram,
    folder: Path,
    operator: str,
    without: str = "nothing",
    level: int = 4,
    **options: object,
) -> ingot.Engine:
    """With this tactic for steps that have the operator, and not `without`: the tactic file says so, as people may write it."""
    tactics = folder / "tactics.txt"
    build = {
        "device": DEVICE,
        "optimization_level": level,
        "timing_cache_path": str(tactics),
        "engine_cache_dir": "off",
    }
    ingot.build(program, **build, **options)
    lines = [
        re.sub(rf"(\t{level}\t)[^\t]*\t", rf"\1{tactic}\t", line)
        if operator in line and without not in line
        else line
        for line in tactics.read_text().splitlines()
    ]
    tactics.write_text("\n".join(lines) + "\n")
    return ingot.build(program, **build, **options)


def kernels_of(engine: ingot.Engine, library: str) -> list[str]:
    """Those of its kernels that are the library's."""
    kernels = [step["kernel"] for step in engine.inspect()["main"]["steps"] if step["kind"] == "kernel"]
    assert all(": " in kernel for kernel in kernels), "each names its tactic"
    return [kernel for kernel in kernels if library in kernel]


def loaded_without(variable: str, engine: ingot.Engine, folder: Path) -> subprocess.CompletedProcess[str]:
    """Another process, which loads the engine where the variable names no file."""
    engine.save(str(folder / "model.ingot"))
    code = "import sys, ingot; ingot.Engine.load(sys.argv[1])"
    return subprocess.run(
        [sys.executable, "-c", code, str(folder / "model.ingot")],
        env={**os.environ, variable: "/nonexistent/library.so"},
        capture_output=True,
        text=True,
        check=False,
    )
