# SPDX-License-Identifier: Apache-2.0
"""Environments of model servers, which exclude each other: made once below build/servers, from requirements/serving/*.txt."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import ingot
import pytest

ROOT = Path(__file__).parents[2]


def needs_environment(server: str) -> pytest.MarkDecorator:
    """Making one takes up to two minutes: CI and the long mode do, otherwise tests take those that are there."""
    is_made = "1" in (os.environ.get("INGOT_SERVERS"), os.environ.get("INGOT_LONG"))
    is_there = is_made or (_folder(server) / ".complete").exists()
    return pytest.mark.skipif(
        not is_there, reason=f"there is no environment of {server} (make test SERVERS=1)"
    )


def page_of(section: str, language: str) -> str:
    """All code of a section of docs/servers.md."""
    text = (ROOT / "docs/servers.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {section}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    return "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", part, re.DOTALL | re.MULTILINE))


def _folder(server: str) -> Path:
    requirements = ROOT / f"requirements/serving/{server}.txt"
    digest = hashlib.sha256(requirements.read_bytes() + sys.version.encode()).hexdigest()[:12]
    return ROOT / f"build/servers/{server}-{digest}"


@functools.cache
def environment(server: str) -> Path:
    """Its Python, with the server and the package that is tested."""
    requirements = ROOT / f"requirements/serving/{server}.txt"
    folder = _folder(server)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{server}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / ".complete").exists():
            _make(folder, requirements)
        _link_package(folder)
    return folder / "bin/python"


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        folder / "bin/python",
        "install",
        "-q",
        "--no-deps",
        "--no-compile",
    ]
    subprocess.run([*command, "-r", requirements], check=True)
    (folder / ".complete").touch()


def _link_package(folder: Path) -> None:
    (packages,) = folder.glob("lib/python3*/site-packages")
    link = packages / "ingot"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(ingot.__file__).parent)


def run(server: str, *arguments: str | Path, folder: Path, timeout: float = 240) -> str:
    """The output of a Python script in the server's environment, where torch is not."""
    done = subprocess.run(
        [environment(server), *arguments],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "INGOT_ENGINE_CACHE_DIR": "off",
            "PYTHONPATH": str(Path(__file__).parent),
        },
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    return done.stdout
