# SPDX-License-Identifier: Apache-2.0
"""The runtime for Windows, as `make windows` packs it, under Wine: the same engine files give the same bits as on Linux.

Skipped without Wine, or without the zip. The mingw-w64 compiler builds a program against what the zip holds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zipfile
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
from safetensors.numpy import save_file

WINE = shutil.which("wine64") or "/usr/lib/wine/wine64"
GCC = "x86_64-w64-mingw32"
PACKED = sorted((ROOT / "dist").glob("ingot-*-windows-x86-64.zip"))
NON_ASCII = "模型 größe"

pytestmark = [
    pytest.mark.skipif(
        not Path(WINE).exists(), reason="Wine is not installed (tools/setup_windows.sh --wine)"
    ),
    pytest.mark.skipif(not PACKED, reason="there is no zip for Windows (make windows)"),
    pytest.mark.skipif(shutil.which(f"{GCC}-g++-posix") is None, reason="mingw-w64 is not installed"),
]

# Routines that call the C library, whose last bits differ between the systems: compared by the accuracy rule.
BY_ACCURACY = (
    "lstm",
    "gru",
    "rnn",
    "special_function",
    "complex_singular_values",
    "complex_least_squares",
)  # in f64


def windows_path(path: Path) -> str:
    """As Windows programs write it; Wine has the root folder as drive Z."""
    return "Z:" + str(path).replace("/", "\\")


PLATFORM = Platform(
    target="windows-x86-64",
    emulator=(WINE,),
    compilers={".c": f"{GCC}-gcc-posix", ".cpp": f"{GCC}-g++-posix"},
    flags=("-Wa,-muse-unaligned-vector-move", "-static"),
    library="lib/ingot_runtime.dll.a",
    suffix=".exe",
    variables={
        "WINEPREFIX": str(ROOT / "build" / "wine"),
        "WINEDEBUG": "-all",
        "WINEARCH": "win64",
        "WINEDLLOVERRIDES": "mscoree,mshtml=",
    },
    path=windows_path,
)


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Package:
    folder = tmp_path_factory.mktemp("windows")
    with zipfile.ZipFile(PACKED[-1]) as archive:
        archive.extractall(folder)
    (root,) = folder.iterdir()
    return Package(PLATFORM, root)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    write_model(folder, PLATFORM.target)
    return folder


def test_runs_with_the_bits_of_linux(windows: Package, model: Path, tmp_path: Path) -> None:
    assert (output_of_model(windows, model, tmp_path) == np.load(model / "y.npy")).all()


def test_threads_do_not_change_bits(windows: Package, model: Path, tmp_path: Path) -> None:
    assert (output_of_model(windows, model, tmp_path, "--threads", "2") == np.load(model / "y.npy")).all()


def test_commands(windows: Package, model: Path) -> None:
    check_commands(windows, model, ["linux-x86-64", "windows-x86-64"], "x86-64-v3")


def test_non_ascii_paths(windows: Package, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / NON_ASCII
    folder.mkdir()
    for name in ("model.ingot", "x.npy"):
        shutil.copy(model / name, folder / name)
    windows.ingot("run", folder / "model.ingot", "-i", folder / "x.npy", "-o", folder / "é.npz")
    (y,) = np.load(folder / "é.npz").values()
    assert (y == np.load(model / "y.npy")).all()
    assert f"{NON_ASCII}" in windows.ingot("run", folder / "missing.ingot", status=1)


@pytest.fixture
def deep(model: Path, tmp_path: Path) -> Path:
    """A folder whose path is longer than Windows takes without a prefix, with all kinds of files that `ingot.exe` reads."""
    folder = tmp_path
    while len(str(folder)) < 300:
        folder = folder / ("x" * 60)
    folder.mkdir(parents=True)
    shutil.copy(model / "model.ingot", folder / "model.ingot")
    shutil.copy(model / "x.npy", folder / "x.npy")
    np.savez(folder / "x.npz", input=np.load(model / "x.npy"))
    save_file({"3.bias": np.zeros(7, np.float32)}, folder / "weights.safetensors")
    return folder


def test_long_paths(windows: Package, model: Path, deep: Path) -> None:
    """Wine has no limit, so that what reaches its calls is checked, too."""
    engine, weights = windows_path(deep / "model.ingot"), windows_path(deep / "weights.safetensors")
    assert "intact" in ingot_with_prefixes(windows, "verify", engine)
    for extension in ("npy", "npz"):
        given, result = (windows_path(deep / f"{name}.{extension}") for name in "xy")
        ingot_with_prefixes(windows, "run", engine, "-i", given, "-o", result)
        ingot_with_prefixes(windows, "compare", result, result)
    (y,) = np.load(deep / "y.npz").values()
    assert (y == np.load(model / "y.npy")).all()
    assert (np.load(deep / "y.npy") == y).all()
    other = windows_path(deep / "other.ingot")
    ingot_with_prefixes(windows, "refit", engine, "--weights", weights, "--partial", "-o", other)
    assert "there is no folder" in windows.ingot(
        "run", engine, "-o", windows_path(deep / "missing" / "y.npy"), status=1
    )
    missing = windows_path(deep / "missing.npy")
    assert "No such file" in windows.ingot("run", engine, "-i", missing, "-o", "y.npy", status=1)


def ingot_with_prefixes(windows: Package, *arguments: str) -> str:
    """What the program prints. Each long path has the prefix by which Windows takes it when it is opened or looked at."""
    process = windows.start(windows.bin / "ingot.exe", *arguments, WINEDEBUG="+file")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err.decode(errors="replace")[-2000:]
    paths = re.findall(r":file:\w*File\w*W L\"(.*?)\"", err.decode(errors="replace"))
    long = [path for path in (each.replace("\\\\", "\\") for each in paths) if len(path) > 259]
    assert long
    assert [path for path in long if not path.startswith("\\\\?\\")] == []
    return out.decode()


def test_the_level_for_this_processor(windows: Package, tmp_path: Path) -> None:
    check_levels(windows, tmp_path, "x86-64-v3")


def test_damaged_files(windows: Package, model: Path, tmp_path: Path) -> None:
    check_damaged_files(windows, model, tmp_path)


def test_signatures(windows: Package, model: Path, tmp_path: Path) -> None:
    check_signatures(windows, model, tmp_path)


def test_a_file_in_use_is_replaced(windows: Package, model: Path, tmp_path: Path) -> None:
    check_a_file_in_use(windows, model, tmp_path)


def test_operator_samples(windows: Package, tmp_path: Path) -> None:
    for difference in differing_samples(windows, tmp_path):
        assert difference.engine.startswith(BY_ACCURACY), difference
        assert difference.bits == 64, difference
        assert difference.distance < 1e-11, difference


def test_the_page_names_what_is_compared_by_the_accuracy_rule() -> None:
    (names,) = re.findall(
        r"call functions of the C library \(([^)]*)\)", (ROOT / "docs/windows.md").read_text(encoding="utf-8")
    )
    assert tuple(re.findall(r"`(\w+)`", names)) == BY_ACCURACY


@pytest.mark.parametrize("name", MODELS)
def test_models(windows: Package, name: str, tmp_path: Path) -> None:
    assert distance_from_x86(windows, MODELS[name], tmp_path) == 0


@pytest.mark.parametrize("name", ALL)
def test_architectures(windows: Package, name: str, tmp_path: Path) -> None:
    assert distance_of_architecture(windows, name, tmp_path) == 0


def test_examples(windows: Package, model: Path) -> None:
    check_examples(windows, model)


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
def test_the_header_suits_other_compilers(windows: Package) -> None:
    source = windows.root / "header.c"
    source.write_text("#include <ingot/ingot.h>\n")
    subprocess.run(
        ["clang-19", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-fsyntax-only", "-Wall", "-Werror",
         f"-I{windows.root / 'include'}", str(source)],
        check=True,
    )  # fmt: skip
