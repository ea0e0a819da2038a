# SPDX-License-Identifier: Apache-2.0
"""The runtime for Windows, as `make windows` packs it, under Wine: the same engine files give the same bits as on Linux.

Skipped without Wine, or without the zip. The mingw-w64 compiler builds a program against what the zip holds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import ingot
import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
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
BY_ACCURACY = ("lstm", "gru", "rnn")  # in f64


@pytest.fixture(scope="session")
def windows(tmp_path_factory: pytest.TempPathFactory) -> Windows:
    return Windows(tmp_path_factory.mktemp("windows"))


class Windows:
    """An unpacked zip, and Wine to run what it holds."""

    def __init__(self, folder: Path) -> None:
        with zipfile.ZipFile(PACKED[-1]) as archive:
            archive.extractall(folder)
        (self.root,) = folder.iterdir()
        self.bin = self.root / "bin"
        self.environment = {
            **os.environ,
            "WINEPREFIX": str(ROOT / "build" / "wine"),
            "WINEDEBUG": "-all",
            "WINEARCH": "win64",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "INGOT_ENGINE_CACHE_DIR": "off",
        }

    def start(self, program: Path, *arguments: str | Path, **variables: str) -> subprocess.Popen:
        texts = [str(argument) for argument in arguments]
        return subprocess.Popen(
            [WINE, str(program), *texts],
            env={**self.environment, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, program: Path, *arguments: str | Path, status: int = 0, **variables: str) -> str:
        process = self.start(program, *arguments, **variables)
        out, err = process.communicate(timeout=300)
        text = out.decode().replace("\r\n", "\n")
        assert process.returncode == status, (process.returncode, text, err.decode())
        return text if status == 0 else err.decode().replace("\r\n", "\n")

    def ingot(self, *arguments: str | Path, status: int = 0, **variables: str) -> str:
        return self.run(self.bin / "ingot.exe", *arguments, status=status, **variables)

    def compile(self, target: Path, *sources: Path) -> Path:
        """A program beside the DLL."""
        program = self.bin / target
        is_c = sources[0].suffix == ".c"
        subprocess.run(
            [
                f"{GCC}-{'gcc' if is_c else 'g++'}-posix",
                "-std=c11" if is_c else "-std=c++20",
                *["-O1", "-Wall", "-Wextra", "-Werror", "-Wa,-muse-unaligned-vector-move", "-static"],
                f"-I{self.root / 'include'}",
                f"-I{ROOT}",
                *map(str, sources),
                str(self.root / "lib" / "ingot_runtime.dll.a"),
                "-o",
                str(program),
            ],
            check=True,
        )
        return program


def windows_path(path: Path) -> str:
    """As Windows programs write it; Wine has the root folder as drive Z."""
    return "Z:" + str(path).replace("/", "\\")


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine of a small model with a dynamic batch, its input, and the outputs of Linux."""
    import torch

    torch.manual_seed(3)
    layers = [torch.nn.Linear(24, 40), torch.nn.GELU(), torch.nn.LayerNorm(40), torch.nn.Linear(40, 7)]
    batch = ingot.Input(min_shape=(1, 24), opt_shape=(4, 24), max_shape=(9, 24))
    module = ingot.compile(
        torch.nn.Sequential(*layers).eval(),
        inputs=[batch],
        target="windows-x86-64",
        require_full_compilation=True,
    )
    folder = tmp_path_factory.mktemp("model")
    module.engine.save(folder / "model.ingot")
    x = np.random.default_rng(5).standard_normal((5, 24), dtype=np.float32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", np.asarray(ingot.Engine.load(folder / "model.ingot")(x)))
    return folder


def test_runs_with_the_bits_of_linux(windows: Windows, model: Path, tmp_path: Path) -> None:
    windows.ingot("run", model / "model.ingot", "-i", model / "x.npy", "-o", tmp_path / "y.npy")
    assert (np.load(tmp_path / "y.npy") == np.load(model / "y.npy")).all()


def test_threads_do_not_change_bits(windows: Windows, model: Path, tmp_path: Path) -> None:
    windows.ingot(
        "run", model / "model.ingot", "-i", model / "x.npy", "-o", tmp_path / "y.npz", "--threads", "2"
    )
    (y,) = np.load(tmp_path / "y.npz").values()
    assert (y == np.load(model / "y.npy")).all()


def test_commands(windows: Windows, model: Path) -> None:
    engine = model / "model.ingot"
    described = json.loads(windows.ingot("inspect", engine, "--json"))
    assert described["platforms"] == ["linux-x86-64", "windows-x86-64"]
    assert described["target"].startswith("cpu:x86-64-v3 ")
    assert "every byte is intact" in windows.ingot("verify", engine)
    assert json.loads(windows.ingot("bench", engine, "--seconds", "0.05", "--json"))
    assert "linear" in windows.ingot("profile", engine, "--seconds", "0.05")
    assert "instructions that this processor lacks" in windows.ingot("explain", "U220")
    assert "INGOT-U038" in windows.ingot("build", "model.pt2", "-o", "model.ingot", status=1)


def test_non_ascii_and_long_paths(windows: Windows, model: Path, tmp_path: Path) -> None:
    folder = tmp_path / NON_ASCII
    folder.mkdir()
    for name in ("model.ingot", "x.npy"):
        shutil.copy(model / name, folder / name)
    windows.ingot("run", folder / "model.ingot", "-i", folder / "x.npy", "-o", folder / "é.npz")
    (y,) = np.load(folder / "é.npz").values()
    assert (y == np.load(model / "y.npy")).all()
    assert f"{NON_ASCII}" in windows.ingot("run", folder / "missing.ingot", status=1)

    deep = tmp_path
    while len(str(deep)) < 300:
        deep = deep / ("x" * 60)
    deep.mkdir(parents=True)
    shutil.copy(model / "model.ingot", deep / "model.ingot")
    assert "intact" in windows.ingot("verify", windows_path(deep / "model.ingot"))
    windows.ingot(
        "run", windows_path(deep / "model.ingot"), "-i", model / "x.npy", "-o", windows_path(deep / "y.npy")
    )
    assert (np.load(deep / "y.npy") == np.load(model / "y.npy")).all()


def test_damaged_files(windows: Windows, model: Path, tmp_path: Path) -> None:
    whole = (model / "model.ingot").read_bytes()
    random = np.random.default_rng(7)
    for number in range(12):
        damaged = bytearray(whole)
        if number % 3 == 0:
            del damaged[int(random.integers(len(whole))) :]
        else:
            damaged[int(random.integers(len(whole)))] ^= 1 << int(random.integers(8))
        path = tmp_path / f"{number}.ingot"
        path.write_bytes(damaged)
        assert "INGOT-U2" in windows.ingot("verify", path, status=1)


def test_signatures(windows: Windows, model: Path, tmp_path: Path) -> None:
    engine, key = tmp_path / "signed.ingot", tmp_path / "key"
    shutil.copy(model / "model.ingot", engine)
    windows.ingot("cache", "keygen", key)
    assert "INGOT-U222" in windows.ingot(
        "run", engine, "--trust", "signed", "--trusted-keys", tmp_path / "key.pub", status=1
    )
    windows.ingot("sign", engine, "--key", key)
    windows.ingot("run", engine, "--trust", "signed", "--trusted-keys", tmp_path / "key.pub")
    # Linux accepts what Windows signed.
    assert ingot.Engine.load(engine, trust="signed", trusted_keys=tmp_path / "key.pub")


def test_a_file_in_use_is_replaced(windows: Windows, model: Path, tmp_path: Path) -> None:
    """While another process runs the engine, and goes on to."""
    engine = tmp_path / "model.ingot"
    shutil.copy(model / "model.ingot", engine)
    program = windows.compile(Path("hold.exe"), ROOT / "tests/platforms/driver/hold.cpp")
    process = windows.start(program, windows_path(engine))
    assert process.stdout.readline().strip() == b"loaded"
    # A second process with the same engine, and one that writes it.
    windows.ingot("run", engine, "-i", model / "x.npy", "-o", tmp_path / "y.npy")
    key = tmp_path / "key"
    windows.ingot("cache", "keygen", key)
    windows.ingot("sign", engine, "--key", key)
    assert json.loads(windows.ingot("inspect", engine, "--json"))["signed_by"]
    out, err = process.communicate(b"go\n", timeout=60)
    assert process.returncode == 0, err
    assert b"same" in out
    assert sorted(path.name for path in tmp_path.glob("*.tmp")) == []


def test_operator_samples(windows: Windows, tmp_path: Path) -> None:
    """Engines of all samples, written by the C++ tests."""
    writer = ROOT / "build/release/bin/ingot_test_platforms"
    if not writer.exists():
        pytest.skip("the C++ tests are not built (make tests)")
    folder = tmp_path / "samples"
    folder.mkdir()
    subprocess.run(
        [writer, "--gtest_brief=1"], env={**os.environ, "INGOT_SAMPLES_FOLDER": str(folder)}, check=True
    )
    program = windows.compile(Path("run_cases.exe"), ROOT / "tests/platforms/driver/run_cases.cpp")
    *different, last = windows.run(program, windows_path(folder)).splitlines()
    assert int(last.split()[0]) == len(list(folder.glob("*.ingot"))) > 500
    for line in different:
        name, _, distance = line.partition(":")
        assert name.startswith(BY_ACCURACY), line
        assert name.endswith("_f64"), line
        assert float(distance.split()[-1]) < 1e-11, line


def test_examples(windows: Windows, model: Path) -> None:
    """The C API of plain C, and the C++ headers."""
    of_c = windows.run(
        windows.compile(Path("c.exe"), windows.root / "examples/c/main.c"), model / "model.ingot"
    )
    of_cpp = windows.run(
        windows.compile(Path("cpp.exe"), windows.root / "examples/cpp/run.cpp"), model / "model.ingot"
    )
    assert of_c.startswith("output_0: [ 1 7 ]")
    assert of_cpp.startswith("output_0: [ 1 7 ]")


def test_outputs_in_memory_of_the_library(windows: Windows, model: Path) -> None:
    """The calls that Python makes there."""
    program = windows.compile(Path("owned.exe"), ROOT / "tests/platforms/driver/run_owned.c")
    want = np.asarray(ingot.Engine.load(model / "model.ingot")(np.ones((5, 24), np.float32)))
    assert (
        windows.run(program, model / "model.ingot").strip() == f"2 5 7 {int(want[0, 0].view(np.uint32)):08x}"
    )


def test_the_zip_is_whole(windows: Windows) -> None:
    for name in [
        "bin/ingot_runtime.dll",
        "bin/ingot.exe",
        "lib/ingot_runtime.def",
        "lib/ingot_runtime.lib",
        "lib/ingot_runtime.dll.a",
        "include/ingot/ingot.h",
        "include/ingot/engine.h",
        "LICENSE",
        "licences/libsodium",
        "licences/zstd",
        "licences/zlib",
        "windows.md",
        "examples/c/main.c",
        "examples/cpp/run.cpp",
    ]:
        assert (windows.root / name).is_file(), name
    assert not (windows.root / "include/ingot/build.h").exists()
    definitions = (windows.root / "lib/ingot_runtime.def").read_text()
    assert "ingot_engine_load" in definitions
    assert "_Z" not in definitions


@pytest.mark.skipif(shutil.which("clang-19") is None, reason="clang-19 is not installed")
def test_the_header_suits_other_compilers(windows: Windows) -> None:
    source = windows.root / "header.c"
    source.write_text("#include <ingot/ingot.h>\n")
    subprocess.run(
        ["clang-19", "--target=x86_64-pc-windows-msvc", "-ffreestanding", "-fsyntax-only", "-Wall", "-Werror",
         f"-I{windows.root / 'include'}", str(source)],
        check=True,
    )  # fmt: skip
