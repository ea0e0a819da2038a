# SPDX-License-Identifier: Apache-2.0
"""Caches on file systems that are full or read-only: each build is right, and finds what there is."""

from __future__ import annotations

import json
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import ingot
import pytest
from cache_builds import INGOT, Built
from cache_servers import find_program


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory; skips the test where none can be mounted."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"mode=0700,{options}", "tmpfs", folder]
    if (
        find_program("mount") is None
        or subprocess.run(command, capture_output=True, check=False).returncode != 0
    ):
        pytest.skip("file systems cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def entries(folder: Path) -> list[Path]:
    return [path for path in folder.glob("??/*") if path.is_file()]


def damaged(folder: Path) -> list[str]:
    command = [INGOT, "cache", "verify", "--json", "--folder", folder]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["damaged"]


def test_a_full_file_system_costs_compilations(tmp_path: Path) -> None:
    made = Built(engine_cache_dir=str(tmp_path / "large")).made
    largest = max(path.stat().st_size for path in entries(tmp_path / "large"))
    with mounted(tmp_path / "small", f"size={largest // 4096 * 4096}") as small:
        for _ in range(2):
            assert Built(engine_cache_dir=str(small)).made <= made
            assert entries(small), "what fits is kept"
            assert damaged(small) == []
            assert not list(small.glob("??/tmp-*")), "nothing is left of what does not fit"
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(engine_cache_dir=str(small), strict_cache=True)


def test_a_read_only_file_system_is_only_read(tmp_path: Path) -> None:
    with mounted(tmp_path / "large", "size=16m") as folder:
        first = Built(engine_cache_dir=str(folder))
        subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
        assert Built(engine_cache_dir=str(folder)).made == 0
        other = Built(engine_cache_dir=str(folder), reuse_cached_engines=False)
        assert other.made == first.made
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
        assert Built(engine_cache_dir=str(folder)).made == 0


def test_a_limit_of_file_sizes_costs_compilations(tmp_path: Path) -> None:
    made = Built(engine_cache_dir=str(tmp_path / "unlimited")).made
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # Python ignores the signal
    try:
        builds = [Built(engine_cache_dir=str(tmp_path / "limited")) for _ in range(2)]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [built.made for built in builds] == [made, made]
    assert not entries(tmp_path / "limited")
    Built(engine_cache_dir=str(tmp_path / "limited"))
    assert Built(engine_cache_dir=str(tmp_path / "limited")).made == 0
