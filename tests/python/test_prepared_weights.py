# SPDX-License-Identifier: Apache-2.0
"""What loading computes of weights that lie in a file is kept in the cache, and mapped by whoever loads the engine again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import ingot
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

# Loads an engine and says what it computes, which files it maps, and what went wrong in the cache.
_LOAD = """
import os, sys, pathlib, torch, ingot
engine = ingot.Engine.load(sys.argv[1], memory=sys.argv[2])
print(engine(torch.ones(2, 512)).double().sum().item().hex())
exec(sys.argv[4])
print("shares" if sys.argv[3] in pathlib.Path("/proc/self/maps").read_text() else "owns")
"""


def _model(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).eval()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With an engine whose weights, of 2 MiB, are in a file beside it."""
    weights = tmp_path / "weights.safetensors"
    save_file(_model(0).state_dict(), weights)
    module = ingot.compile(_model(0), inputs=[torch.ones(2, 512)], weights_file=weights)
    ingot.save(module, tmp_path / "model.ingot", output_format="engine")
    return tmp_path


def _load(
    folder: Path, memory: str = "map", path: str = "model.ingot", then: str = "", policy: str = ""
) -> list[str]:
    cache = folder / "cache"
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, folder / path, memory, cache, then],
        env={"INGOT_ENGINE_CACHE_DIR": str(cache), "INGOT_LOG": "warning", "OMP_NUM_THREADS": "1",
             "INGOT_CACHE_WRITE_POLICY": policy},
        capture_output=True, text=True,
    )  # fmt: skip
    return (done.stdout + done.stderr).splitlines()


def _entries(folder: Path) -> list[Path]:
    return [path for path in (folder / "cache").glob("??/*") if len(path.name) == 62]


def test_processes_share_what_the_first_prepared(folder: Path) -> None:
    first = _load(folder)
    assert first[1:] == ["owns"]
    assert len(_entries(folder)) == 1
    for memory in ("map", "copy"):
        assert _load(folder, memory) == [first[0], "shares"]
    assert len(_entries(folder)) == 1


def test_a_process_that_ends_early_loses_the_entry_alone(folder: Path) -> None:
    first = _load(folder, then="sys.stdout.flush(); os._exit(0)")
    assert _load(folder)[:1] == first
    assert _load(folder) == [*first, "shares"]


def test_whoever_waits_has_the_entry(folder: Path) -> None:
    first = _load(folder, then="assert ingot.cache_flush(60); sys.stdout.flush(); os._exit(0)")
    assert _load(folder) == [*first, "shares"]


def test_policies(folder: Path) -> None:
    for policy in ("read_only", "none"):
        first = _load(folder, policy=policy)
        assert not _entries(folder)
    assert _load(folder, policy="through", then="os._exit(0)") == []
    [entry] = _entries(folder)
    content, written = entry.read_bytes(), entry.stat().st_mtime_ns
    assert _load(folder, policy="read_only") == [first[0], "shares"]
    assert _load(folder, policy="none") == [first[0], "owns"]
    assert (entry.read_bytes(), entry.stat().st_mtime_ns) == (content, written)


def test_a_damaged_entry_is_made_again(folder: Path) -> None:
    first = _load(folder)
    [entry] = _entries(folder)
    content = bytearray(entry.read_bytes())
    content[len(content) // 2] ^= 1
    entry.write_bytes(content)
    again = _load(folder)
    assert again[:2] == first
    assert "it is damaged" in again[2]
    assert _load(folder) == [first[0], "shares"]


def test_another_file_is_refused_as_without_an_entry(folder: Path) -> None:
    _load(folder)
    state = _model(0).state_dict()
    state["0.weight"][3, 4] += 1  # of a weight that only the entry's maker read
    save_file(state, folder / "weights.safetensors")
    assert "INGOT-U334" in "".join(_load(folder))
    assert "INGOT-U334" in "".join(_load(folder, "copy"))


def test_the_same_weights_elsewhere_use_the_entry(folder: Path) -> None:
    first = _load(folder)
    (folder / "elsewhere").mkdir()
    for name in ("model.ingot", "weights.safetensors"):
        (folder / name).rename(folder / "elsewhere" / name)
    assert _load(folder, path="elsewhere/model.ingot") == [first[0], "shares"]


def test_other_weights_have_an_entry_of_their_own(folder: Path) -> None:
    first = _load(folder)
    weights = folder / "other.safetensors"
    save_file(_model(1).state_dict(), weights)
    module = ingot.compile(_model(1), inputs=[torch.ones(2, 512)], weights_file=weights)
    ingot.save(module, folder / "other.ingot", output_format="engine")
    other = _load(folder, path="other.ingot")
    assert other[1:] == ["owns"]
    assert other[0] != first[0]
    assert _load(folder, path="other.ingot") == [other[0], "shares"]
    assert _load(folder) == [first[0], "shares"]


def test_a_refit_leaves_the_entry_alone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _load(folder)
    [entry] = _entries(folder)
    content = entry.read_bytes()
    engine = ingot.Engine.load(folder / "model.ingot")
    engine.refit(_model(1).state_dict())
    torch.testing.assert_close(engine(torch.ones(2, 512)), _model(1)(torch.ones(2, 512)))
    assert entry.read_bytes() == content
