# SPDX-License-Identifier: Apache-2.0
"""A GPU that computes nothing, beside a stand-in for one of NVIDIA's libraries: engines whose tactic file names that library."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from errors.inputs import INGOT

_FOLDER = Path(__file__).parent


@dataclass
class Machine:
    """`name` as in `fake_cublaslt.cpp`; INGOT_CUBLASLT and FAKE_CUBLASLT_VERSION are its variables. `numerics` is of all builds."""

    driver: Path
    name: str
    folder: Path
    numerics: str = "default"

    def __post_init__(self) -> None:
        source = _FOLDER / f"fake_{self.name}.cpp"
        command = [
            "c++",
            "-std=c++20",
            "-O1",
            "-shared",
            "-fPIC",
            "-Wall",
            "-Wextra",
            "-Werror",
            source,
            "-o",
            self.library,
        ]
        subprocess.run(command, check=True)  # fmt: skip

    @property
    def library(self) -> Path:
        return self.folder / f"lib{self.name}.so"

    def run(
        self, *words: str | Path, version: int | None = None, library: bool = True
    ) -> subprocess.CompletedProcess[str]:
        path = self.library if library else self.library.with_name("missing.so")
        environment = os.environ | {
            "LD_LIBRARY_PATH": str(self.driver),
            "INGOT_CUBLASLT": "/nowhere/libcublasLt.so",
            "INGOT_CUDNN": "/nowhere/libcudnn.so",
            f"INGOT_{self.name.upper()}": str(path),
        }
        if version is not None:
            environment[f"FAKE_{self.name.upper()}_VERSION"] = str(version)
        return subprocess.run([INGOT, *words], capture_output=True, text=True, env=environment, check=False)

    def build(self, folder: Path, *options: str, library: bool = True, level: int = 4) -> Path:
        """`model.ingot` of the folder's `model.pt2`, tuned; its tactics are in `tactics.txt`."""
        engine = folder / "model.ingot"
        target = ["--device", "cuda:sm_90a", "--engine-cache-dir", "off", "--numerics", self.numerics]
        tuned = ["--optimization-level", str(level), "--timing-cache-path", folder / "tactics.txt"]
        done = self.run(
            "build", folder / "model.pt2", "-o", engine, *target, *tuned, *options, library=library
        )
        assert done.returncode == 0, done.stderr
        return engine

    def build_with(self, folder: Path, step: str, tactic: str, *options: str) -> Path:
        """The same with a tactic for steps with this operator: the tactic file says so, as people may write it."""
        self.build(folder, *options)
        tactics = folder / "tactics.txt"
        line = rf"(\t4\t)[^\t]*(\t[^\t\n]*\b{step}\b)"
        text, count = re.subn(line, rf"\1{tactic}\2", tactics.read_text())
        assert count > 0, text
        tactics.write_text(text)
        return self.build(folder, *options)

    def kernels(self, engine: Path) -> list[str]:
        inspected = json.loads(self.run("inspect", engine, "--json").stdout)
        return [step.get("kernel", step["kind"]) for step in inspected["main"]["steps"]]
