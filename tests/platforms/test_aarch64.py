# SPDX-License-Identifier: Apache-2.0
"""The runtime for Linux on aarch64, as `make aarch64` packs it, under qemu: engines that are built here for it compute what those for
this system do.

Skipped without qemu, or without the archive. The cross compiler builds a program against what the archive holds.
"""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from emulated import (
    ROOT,
    Package,
    Platform,
    check_a_file_in_use,
    check_commands,
    check_damaged_files,
    check_examples,
    check_levels,
    check_signatures,
    differing_samples,
    output_of_model,
    write_model,
)
from emulated_architectures import ALL, distance_of_architecture
from emulated_models import MODELS, distance_from_x86

QEMU = shutil.which("qemu-aarch64")
GCC = "aarch64-linux-gnu"
PACKED = sorted((ROOT / "dist").glob("ingot-*-linux-aarch64.tar.gz"))
EPSILON = {16: 2.0**-8, 32: 2.0**-24, 64: 2.0**-53}

pytestmark = [
    pytest.mark.skipif(QEMU is None, reason="qemu is not installed (tools/setup_aarch64.sh --qemu)"),
    pytest.mark.skipif(not PACKED, reason="there is no archive for aarch64 (make aarch64)"),
    pytest.mark.skipif(shutil.which(f"{GCC}-g++-12") is None, reason="the cross compiler is not installed"),
]

PLATFORM = Platform(
    target="linux-aarch64",
    emulator=(str(QEMU), "-L", f"/usr/{GCC}"),
    compilers={".c": f"{GCC}-gcc-12", ".cpp": f"{GCC}-g++-12"},
    flags=("-static-libstdc++", "-static-libgcc", "-Wl,-rpath,$ORIGIN/../lib"),
    library="lib/libingot_runtime.so",
)


@pytest.fixture(scope="session")
def aarch64(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("aarch64")
    with tarfile.open(PACKED[-1]) as archive:
        archive.extractall(folder, filter="tar")
    (root,) = folder.iterdir()
    return Package(PLATFORM, root)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, PLATFORM.target)
    return folder


def test_computes_what_x86_does(aarch64: Package, model: Path, tmp_path: Path) -> None:
    assert np.abs(output_of_model(aarch64, model, tmp_path) - np.load(model / "y.npy")).max() < 1e-6


def test_threads_do_not_change_bits(aarch64: Package, model: Path, tmp_path: Path) -> None:
    alone = output_of_model(aarch64, model, tmp_path, "--threads", "1")
    assert (output_of_model(aarch64, model, tmp_path, "--threads", "3") == alone).all()


def test_commands(aarch64: Package, model: Path) -> None:
    check_commands(aarch64, model, ["linux-aarch64"], "aarch64")


def test_engines_for_x86_are_refused(aarch64: Package, tmp_path: Path) -> None:
    write_model(tmp_path, "linux-x86-64")
    message = aarch64.ingot("run", tmp_path / "model.ingot", "-i", tmp_path / "x.npy", status=1)
    assert "INGOT-U220" in message
    assert "a processor with x86-64-v3; this one has aarch64" in message


def test_the_level_for_this_processor(aarch64: Package, tmp_path: Path) -> None:
    check_levels(aarch64, tmp_path, "aarch64")


def test_damaged_files(aarch64: Package, model: Path, tmp_path: Path) -> None:
    check_damaged_files(aarch64, model, tmp_path)


def test_signatures(aarch64: Package, model: Path, tmp_path: Path) -> None:
    check_signatures(aarch64, model, tmp_path)


def test_a_file_in_use_is_replaced(aarch64: Package, model: Path, tmp_path: Path) -> None:
    check_a_file_in_use(aarch64, model, tmp_path)


def test_operator_samples(aarch64: Package, tmp_path: Path) -> None:
    """Sums have another order than in x86-64-v3, whose registers are wider."""
    for difference in differing_samples(aarch64, tmp_path, INGOT_SAMPLES_TARGET=PLATFORM.target):
        assert difference.bits in EPSILON, difference
        assert difference.distance < 16 * EPSILON[difference.bits], difference


@pytest.mark.parametrize("name", MODELS)
def test_models(aarch64: Package, name: str, tmp_path: Path) -> None:
    assert distance_from_x86(aarch64, MODELS[name], tmp_path) < MODELS[name].tolerance


@pytest.mark.parametrize("name", ALL)
def test_architectures(aarch64: Package, name: str, tmp_path: Path) -> None:
    assert distance_of_architecture(aarch64, name, tmp_path) < 1e-4


def test_examples(aarch64: Package, model: Path) -> None:
    check_examples(aarch64, model)


def test_it_needs_the_c_library_alone(aarch64: Package) -> None:
    for file in (aarch64.bin / "ingot", aarch64.root / "lib/libingot_runtime.so.0"):
        command = [f"{GCC}-objdump", "-p", str(file)]
        described = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        needed = {line.split()[1] for line in described.splitlines() if "NEEDED" in line}
        allowed = {"libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "libingot_runtime.so.0"}
        assert needed <= allowed, file
