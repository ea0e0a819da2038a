# SPDX-License-Identifier: Apache-2.0
"""Packages of the runtime for other platforms, run by an emulator, and what every one of them must do."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Platform:
    """How programs for a platform are made and run here."""

    target: str
    emulator: tuple[str, ...]
    compilers: dict[str, str]
    flags: tuple[str, ...]
    library: str
    suffix: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    path: Callable[[Path], str] = str


class Package:
    """The package below `root`."""

    def __init__(self, platform: Platform, root: Path) -> None:
        self.platform = platform
        self.root = root
        self.bin = root / "bin"

    def start(self, program: Path, *arguments: str | Path, **variables: str) -> subprocess.Popen:
        environment = {**os.environ, "INGOT_ENGINE_CACHE_DIR": "off", **self.platform.variables, **variables}
        return subprocess.Popen(
            [*self.platform.emulator, str(program), *map(str, arguments)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, program: Path, *arguments: str | Path, status: int = 0, **variables: str) -> str:
        process = self.start(program, *arguments, **variables)
        out, err = process.communicate(timeout=600)
        text = out.decode().replace("\r\n", "\n")
        assert process.returncode == status, (process.returncode, text, err.decode())
        return text if status == 0 else err.decode().replace("\r\n", "\n")

    def ingot(self, *arguments: str | Path, status: int = 0, **variables: str) -> str:
        return self.run(self.bin / f"ingot{self.platform.suffix}", *arguments, status=status, **variables)

    def compile(self, name: str, source: Path) -> Path:
        """A program beside the package's own, built against what the package holds."""
        program = self.bin / f"{name}{self.platform.suffix}"
        command = [
            self.platform.compilers[source.suffix],
            "-std=c11" if source.suffix == ".c" else "-std=c++20",
            *["-O1", "-Wall", "-Wextra", "-Werror", *self.platform.flags],
            *[f"-I{self.root / 'include'}", f"-I{ROOT}"],
            *[str(source), str(self.root / self.platform.library), "-o", str(program)],
        ]
        subprocess.run(command, check=True)
        return program


def write_model(folder: Path, target: str, cpu: Sequence[str] = ()) -> None:
    """The engine of a small model with a dynamic batch, its input, and the outputs of x86-64-v3 on Linux. `cpu`: its levels."""
    import torch

    torch.manual_seed(3)
    layers = [torch.nn.Linear(24, 40), torch.nn.GELU(), torch.nn.LayerNorm(40), torch.nn.Linear(40, 7)]
    model = torch.nn.Sequential(*layers).eval()
    batch = ingot.Input(min_shape=(1, 24), opt_shape=(4, 24), max_shape=(9, 24))

    def compiled(target: str, **options: Any) -> ingot.Engine:
        return ingot.compile(
            model, inputs=[batch], target=target, require_full_compilation=True, **options
        ).engine

    compiled(target, **({"cpu": cpu} if cpu else {})).save(folder / "model.ingot")
    x = np.random.default_rng(5).standard_normal((5, 24), dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.asarray(compiled("linux-x86-64")(x)))


def output_of_model(package: Package, model: Path, folder: Path, *options: str) -> np.ndarray:
    """What the package computes, and what Linux on x86-64 does."""
    package.ingot("run", model / "model.ingot", "-i", model / "x.npy", "-o", folder / "y.npz", *options)
    (y,) = np.load(folder / "y.npz").values()
    return y


def check_commands(package: Package, model: Path, platforms: list[str], processor: str) -> None:
    engine = model / "model.ingot"
    described = json.loads(package.ingot("inspect", engine, "--json"))
    assert described["platforms"] == platforms
    assert described["target"].startswith(f"cpu:{processor} ")
    assert "every byte is intact" in package.ingot("verify", engine)
    assert json.loads(package.ingot("bench", engine, "--seconds", "0.05", "--json"))
    assert "linear" in package.ingot("profile", engine, "--seconds", "0.05")
    assert "instructions that this processor lacks" in package.ingot("explain", "U220")
    assert "INGOT-U038" in package.ingot("build", "model.pt2", "-o", "model.ingot", status=1)


def check_levels(package: Package, folder: Path, processor: str) -> None:
    """Of a file for several processors it runs the level for its own."""
    write_model(folder, "", ["x86-64-v3", "aarch64"])
    np.testing.assert_allclose(output_of_model(package, folder, folder), np.load(folder / "y.npy"), atol=1e-6)
    for command in ("inspect", "verify"):
        shown = package.ingot(command, folder / "model.ingot")
        assert re.search(rf"{processor}: .*; runs here, the best of those that can", shown)
        assert shown.count("cannot run here: this processor has") == 1


def check_damaged_files(package: Package, model: Path, folder: Path) -> None:
    whole = (model / "model.ingot").read_bytes()
    random = np.random.default_rng(7)
    for number in range(12):
        damaged = bytearray(whole)
        if number % 3 == 0:
            del damaged[int(random.integers(len(whole))) :]
        else:
            damaged[int(random.integers(len(whole)))] ^= 1 << int(random.integers(8))
        path = folder / f"{number}.ingot"
        path.write_bytes(damaged)
        assert "INGOT-U2" in package.ingot("verify", path, status=1)


def check_signatures(package: Package, model: Path, folder: Path) -> None:
    """What the package signs, this system verifies too."""
    engine, key = folder / "signed.ingot", folder / "key"
    shutil.copy(model / "model.ingot", engine)
    trusting = ["--trust", "signed", "--trusted-keys", folder / "key.pub"]
    package.ingot("cache", "keygen", key)
    assert "INGOT-U222" in package.ingot("run", engine, *trusting, status=1)
    package.ingot("sign", engine, "--key", key)
    package.ingot("run", engine, *trusting)
    here = [Path(sys.executable).with_name("ingot"), "inspect", engine, "--json"]
    described = json.loads(subprocess.run(here, check=True, capture_output=True).stdout)
    there = json.loads(package.ingot("inspect", engine, "--json"))
    assert described["signed_by"] == there["signed_by"] != ""


def check_a_file_in_use(package: Package, model: Path, folder: Path) -> None:
    """It is replaced while another process runs the engine, and goes on to."""
    engine = folder / "model.ingot"
    shutil.copy(model / "model.ingot", engine)
    program = package.compile("hold", ROOT / "tests/platforms/driver/hold.cpp")
    process = package.start(program, package.platform.path(engine))
    assert process.stdout is not None
    assert process.stdout.readline().strip() == b"loaded"
    # A second process with the same engine, and one that writes it.
    package.ingot("run", engine, "-i", model / "x.npy", "-o", folder / "y.npy")
    key = folder / "key"
    package.ingot("cache", "keygen", key)
    package.ingot("sign", engine, "--key", key)
    assert json.loads(package.ingot("inspect", engine, "--json"))["signed_by"]
    out, err = process.communicate(b"go\n", timeout=60)
    assert process.returncode == 0, err
    assert b"same" in out
    assert sorted(path.name for path in folder.glob("*.tmp")) == []


@dataclass(frozen=True)
class Difference:
    """An output of a sample that has other bits than here."""

    engine: str
    bits: int
    distance: float  # relative to the largest element


def differing_samples(package: Package, folder: Path, **variables: str) -> list[Difference]:
    """Of the engines of all samples, which the C++ tests write."""
    writer = ROOT / "build/release/bin/ingot_test_platforms"
    if not writer.exists():
        pytest.skip("the C++ tests are not built (make tests)")
    environment = {**os.environ, **variables, "INGOT_SAMPLES_FOLDER": str(folder)}
    command = [writer, "--gtest_brief=1", "--gtest_filter=*SampleEngines*"]
    subprocess.run(command, env=environment, check=True)
    program = package.compile("run_cases", ROOT / "tests/platforms/driver/run_cases.cpp")
    *lines, last = package.run(program, package.platform.path(folder)).splitlines()
    assert int(last.split()[0]) == len(list(folder.glob("*.ingot"))) > 500
    return [difference_of(line) for line in lines]


def difference_of(line: str) -> Difference:
    engine, _, text = line.partition(": ")
    words = text.split()
    assert words[0] == "output", line
    return Difference(engine, int(words[3]), float(words[-1]))


def check_examples(package: Package, model: Path) -> None:
    """The C API of plain C, and the C++ headers."""
    for name, source in (("c", "c/main.c"), ("cpp", "cpp/run.cpp")):
        program = package.compile(name, ROOT / "examples" / source)
        assert package.run(program, model / "model.ingot").startswith("output_0: [ 1 7 ]")
