# SPDX-License-Identifier: Apache-2.0
"""Wheels without the compiler: the same files with the library of Linux, in environments of their own, and what the wheel for Windows
holds. Windows itself, and Python under Wine, are not tested: no registry that the tests use has a Python for Windows.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import ingot
import numpy as np
import pytest
from ingot._ctypes import library

ROOT = Path(__file__).parents[2]
WHEELS = sorted((ROOT / "dist").glob("ingot-*-py3-none-win_amd64.whl"))
OBJDUMP = shutil.which("x86_64-w64-mingw32-objdump")
PACKAGES = Path(np.__file__).parents[1]


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    subprocess.run([sys.executable, ROOT / "tests/tools/make_runtime_models.py", folder], check=True)
    return folder


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For Linux."""
    library = Path(ingot.__file__).with_name("libingot_runtime.so.0")
    return built(library, "linux_x86_64", tmp_path_factory.mktemp("wheels"))


def built(library: Path, platform: str, folder: Path) -> Path:
    subprocess.run(
        [ROOT / "tools/build_runtime_wheel.sh", library, platform, folder],
        env={**os.environ, "PYTHON": sys.executable},
        check=True,
    )
    (path,) = folder.glob("*.whl")
    return path


class Environment:
    """A virtual environment with the wheel and numpy; `torch`: and with all that the environment of the tests has."""

    def __init__(self, folder: Path, wheel: Path, torch: bool) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / "bin/python"
        (packages,) = folder.glob("lib/python3*/site-packages")
        for name in ("numpy", "numpy.libs"):
            if (PACKAGES / name).exists():
                (packages / name).symlink_to(PACKAGES / name)
        subprocess.run(
            [sys.executable, "-m", "pip", "--python", self.python, "install", "-q", "--no-deps", "--no-index", wheel],
            check=True,
        )  # fmt: skip
        # Last, so that pip did not see the package that is there: this environment's own comes first.
        if torch:
            (packages / "others.pth").write_text(f"{PACKAGES}\n")

    def run(self, *arguments: str | Path, folder: Path) -> str:
        done = subprocess.run(
            [self.python, *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "INGOT_ENGINE_CACHE_DIR": "off"},
            cwd=folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.mark.parametrize("torch", [False, True], ids=["numpy", "torch"])
def test_the_wheel_works(wheel: Path, models: Path, tmp_path: Path, torch: bool) -> None:
    environment = Environment(tmp_path / "environment", wheel, torch)
    output = environment.run(ROOT / "tests/tools/try_runtime_wheel.py", models, folder=tmp_path)
    assert output.endswith("works without the compiler\n")
    assert ("no torch" in output) == (not torch)


def test_it_has_no_extension(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert [name for name in names if ".so" in name] == ["ingot/libingot_runtime.so.0"]
    assert python_files(wheel) == {
        f"ingot/{path.relative_to(ROOT / 'python/ingot')}" for path in (ROOT / "python/ingot").rglob("*.py")
    }


def python_files(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}


# ---- the wheel for Windows ----
needs_wheel = pytest.mark.skipif(not WHEELS, reason="there is no wheel for Windows (make windows)")


def content_of(suffix: str) -> str:
    with zipfile.ZipFile(WHEELS[-1]) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(suffix)]
        return archive.read(name).decode()


@needs_wheel
def test_wheels_for_windows_hold_what_the_others_hold(wheel: Path, tmp_path: Path) -> None:
    """One of the present Python files: that of `make windows` may be older."""
    with zipfile.ZipFile(WHEELS[-1]) as archive:
        names = archive.namelist()
        archive.extract("ingot/ingot_runtime.dll", tmp_path)
    for licence in ("LICENSE", "libsodium", "zlib", "zstd"):
        assert any(name.endswith(licence) for name in names), licence
    fresh = built(tmp_path / "ingot/ingot_runtime.dll", "win_amd64", tmp_path)
    with zipfile.ZipFile(fresh) as windows, zipfile.ZipFile(wheel) as linux:
        libraries = [name for name in windows.namelist() if re.search(r"\.(so|dll|pyd|exe)\b", name)]
        assert libraries == ["ingot/ingot_runtime.dll"]
        assert python_files(fresh) == python_files(wheel)
        for name in python_files(wheel):
            assert windows.read(name) == linux.read(name), name


@needs_wheel
def test_tags_and_metadata() -> None:
    tags = content_of(".dist-info/WHEEL")
    assert "Tag: py3-none-win_amd64\n" in tags
    assert tags.count("Tag:") == 1
    assert "Root-Is-Purelib: false" in tags
    metadata = content_of(".dist-info/METADATA")
    assert f"Version: {ingot.__version__}\n" in metadata
    assert "Requires-Python: >=3.10\n" in metadata
    needed = re.findall(r"Requires-Dist: (\S+?)[\s><=;]", metadata)
    assert needed == ["numpy", "torch", "ray[serve]", "mlserver", "uvloop", "nvidia-pytriton"]
    assert "ingot.torch_backend:backend" in content_of(".dist-info/entry_points.txt")


@needs_wheel
def test_record_has_the_digest_of_each_file() -> None:
    with zipfile.ZipFile(WHEELS[-1]) as archive:
        rows = {name: (digest, size) for name, digest, size in csv.reader(content_of("/RECORD").splitlines())}
        assert set(rows) == {name for name in archive.namelist() if not name.endswith("/")}
        for name, (digest, size) in rows.items():
            if name.endswith("/RECORD"):
                continue
            content = archive.read(name)
            want = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={want}", len(content)), name


@needs_wheel
@pytest.mark.skipif(OBJDUMP is None, reason="mingw-w64 is not installed")
def test_its_library_needs_windows_alone_and_exports_what_python_calls(tmp_path: Path) -> None:
    with zipfile.ZipFile(WHEELS[-1]) as archive:
        archive.extract("ingot/ingot_runtime.dll", tmp_path)
    described = subprocess.run(
        [OBJDUMP, "-p", tmp_path / "ingot/ingot_runtime.dll"], capture_output=True, text=True, check=True
    ).stdout
    needed = {name.lower() for name in re.findall(r"DLL Name: (\S+)", described)}
    assert needed
    for name in needed:
        assert re.fullmatch(r"(kernel32|msvcrt|advapi32|shell32|api-ms-win-core-synch-.*)\.dll", name), name
    exported = set(re.findall(r"\bingot_(\w+)$", described, re.MULTILINE))
    assert set(library._SIGNATURES) - exported == set()
