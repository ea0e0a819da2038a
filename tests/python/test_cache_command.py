# SPDX-License-Identifier: Apache-2.0
"""Folders and files of the cache as the command line finds them: never used, without a home, with tactics that cannot be kept."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from cache_folders import entries
from errors.inputs import INGOT
from small_models import mlp


def environment(**changes: str | None) -> dict[str, str]:
    """Of this process, with other values; None: without the variable."""
    return {k: v for k, v in {**os.environ, **changes}.items() if v is not None}


def ingot_here(*arguments: Any, **changes: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([INGOT, *arguments], env=environment(**changes), capture_output=True, text=True)


NO_HOME: dict[str, str | None] = {"HOME": None, "XDG_CACHE_HOME": None, "INGOT_ENGINE_CACHE_DIR": None}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    torch.export.save(torch.export.export(mlp(), (torch.randn(6, 8),)), tmp_path / "model.pt2")
    return tmp_path / "model.pt2"


def test_a_cache_that_was_never_used_is_empty(tmp_path: Path) -> None:
    home = {**NO_HOME, "HOME": str(tmp_path)}
    for command in ("ls", "stats", "verify", "gc", "clear", "bundle"):
        extra = [tmp_path / "empty.bundle"] if command == "bundle" else []
        done = ingot_here("cache", command, *extra, "--json", **home)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["entries"] in ([], 0), command
    assert ingot_here("cache", "unbundle", tmp_path / "empty.bundle", **home).returncode == 0
    assert ingot_here("cache", "ls", "--folder", tmp_path / "other", **home).returncode == 1


def test_collecting_goes_to_the_limit_of_builds(archive: Path, tmp_path: Path) -> None:
    folder = {"INGOT_ENGINE_CACHE_DIR": str(tmp_path / "cache")}
    assert ingot_here("build", archive, "-o", tmp_path / "a.ingot", **folder).returncode == 0
    count = len(entries(tmp_path / "cache"))
    assert ingot_here("cache", "gc", **folder).stdout.startswith("0 entries removed")
    assert len(entries(tmp_path / "cache")) == count
    limited = ingot_here("cache", "gc", "--json", **folder, INGOT_ENGINE_CACHE_SIZE="0")
    assert json.loads(limited.stdout) == {"removed": count, "entries": 0, "bytes": 0}


@pytest.mark.parametrize("home", [{}, {"HOME": ""}, {"HOME": "relative"}], ids=str)
def test_without_a_home_the_log_says_what_to_set(home: dict, archive: Path, tmp_path: Path) -> None:
    def build(*options: str, **changes: str) -> subprocess.CompletedProcess[str]:
        output = tmp_path / "a.ingot"
        return ingot_here(
            "build", archive, "-o", output, *options, **{**NO_HOME, **home, "INGOT_LOG": "warning", **changes}
        )

    says = "nothing is kept on disk, since there is no home directory: set HOME or INGOT_ENGINE_CACHE_DIR"
    assert says in build().stderr
    assert "INGOT-U028" in build("--strict-cache").stderr
    for done in (
        build("--strict-cache", INGOT_ENGINE_CACHE_DIR="off"),
        build("--strict-cache", "--engine-cache-dir", "off"),
        build("--strict-cache", "--engine-cache-dir", str(tmp_path / "named")),
    ):
        assert done.returncode == 0, done.stderr
        assert "nothing is kept" not in done.stderr


def test_choices_of_tactics_that_cannot_be_kept_fail_no_build(archive: Path, tmp_path: Path) -> None:
    def build(*options: Any) -> subprocess.CompletedProcess[str]:
        output = tmp_path / "a.ingot"
        level = ("--optimization-level", "4", "--reuse-cached-engines", "false")
        return ingot_here("build", archive, "-o", output, *level, *options, INGOT_LOG="warning")

    nowhere = ("--timing-cache-path", tmp_path / "no" / "such" / "file")
    done = build(*nowhere)
    assert done.returncode == 0, done.stderr
    assert "what was timed is not kept" in done.stderr
    assert "INGOT-U028" in build(*nowhere, "--strict-cache").stderr
    own = ("--engine-cache-dir", tmp_path / "cache")
    assert build(*own).returncode == 0
    tactics = tmp_path / "cache" / "tactics.txt"
    for damage in ("junk\n", tactics.read_text().rpartition("\t")[0]):
        tactics.write_text(damage)
        done = build(*own)
        assert done.returncode == 0, done.stderr
        assert "is removed" in done.stderr
        assert tactics.read_text().startswith("# Ingot tactics")
    # A file that was named may be anything, and is left alone.
    foreign = tmp_path / "notes.txt"
    foreign.write_text("mine\n")
    assert "INGOT-U026" in build("--timing-cache-path", foreign).stderr
    assert foreign.read_text() == "mine\n"
