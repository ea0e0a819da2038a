# SPDX-License-Identifier: Apache-2.0
"""Builds that share a server, as machines do, and what they sign with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from cache_servers import find_program
from torch import nn

INGOT = Path(sys.executable).with_name("ingot")
X = torch.randn(6, 24, generator=torch.Generator().manual_seed(1))

needs_redis = pytest.mark.skipif(not find_program("redis-server"), reason="redis-server is not installed")
needs_nginx = pytest.mark.skipif(not find_program("nginx"), reason="nginx is not installed")


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 8)).eval()


class Keys:
    """A key to sign with, and a file of trusted keys that has it."""

    def __init__(self, folder: Path, name: str = "key") -> None:
        self.secret = folder / name
        subprocess.run([INGOT, "cache", "keygen", self.secret], check=True, capture_output=True)
        self.trusted = Path(f"{self.secret}.pub")

    def options(self) -> dict[str, Any]:
        return {"cache_signing_key": str(self.secret), "trusted_keys": str(self.trusted)}


class Built:
    """A build as another machine would make it: nothing in memory, nothing on disk; checked against the model."""

    def __init__(self, module: nn.Module | None = None, x: torch.Tensor = X, **options: Any) -> None:
        module = module or model()
        with torch.no_grad(), ingot.Session() as session:
            program = torch.export.export(module, (x,))
            settings = {"engine_cache_dir": "off", "verify_kernels": False, **options}
            self.engine = ingot.build(program, **settings)
            self.stats = session.cache_stats()
            torch.testing.assert_close(self.engine(x), module(x))

    @property
    def made(self) -> int:
        return self.stats["made"]


def address(server: tuple[str, int], space: str = "team") -> str:
    return f"{server[0]}://127.0.0.1:{server[1]}/{space}"


def slow_model(folder: Path) -> Path:
    """A model whose layers all differ, so that its build takes a while."""
    path = folder / "model.pt2"
    layers = [nn.Sequential(nn.Linear(24 + i, 25 + i), nn.GELU()) for i in range(60)]
    torch.export.save(torch.export.export(nn.Sequential(*layers).eval(), (X,)), path)
    return path


class Machines:
    """Processes that build the same model; each machine has a folder of its own."""

    def __init__(self, archive: Path, server: str, keys: Keys, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._options = [f"--cache={server}", "--threads=1"]
        self._options += [f"--{name.replace('_', '-')}={value}" for name, value in keys.options().items()]
        self.engines: list[Path] = []

    def start(self, machine: int) -> Any:
        output = self._folder / f"engine{len(self.engines)}.ingot"
        self.engines.append(output)
        folder = f"--engine-cache-dir={self._folder}/machine{machine}"
        command = [INGOT, "build", self._archive, "-o", output, "--json", folder, *self._options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def is_found(process: Any) -> bool:
    return json.loads(process.communicate()[0])["is_from_cache"]
