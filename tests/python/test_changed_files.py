# SPDX-License-Identifier: Apache-2.0
"""Files that others write to while engines of them are in use: nothing wrong is saved, and copies do not notice."""

import copy
import os
import pickle
import subprocess

import ingot
import pytest
import torch
from errors.inputs import INGOT
from small_models import mlp

ROWS = torch.arange(24.0).reshape(3, 8) / 10


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("engine") / "model.ingot"
    torch.manual_seed(0)
    ingot.save(ingot.compile(mlp(), inputs=[ROWS]), path, output_format="engine")
    return path.read_bytes()


@pytest.fixture
def path(content, tmp_path):
    file = tmp_path / "model.ingot"
    file.write_bytes(content)
    return file


def section(path, name: str) -> int:
    return next(row["offset"] for row in ingot.Engine.load(path).inspect()["sections"] if row["name"] == name)


def flip(path, offset: int) -> None:
    """Changes a byte in place, and the file's time, whatever the clock's resolution is."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x10]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


SEALS = {
    "save": lambda engine, target: engine.save(target),
    "pickle": lambda engine, _: pickle.dumps(engine),
    "deepcopy": lambda engine, _: copy.deepcopy(engine),
    "refit": lambda engine, _: engine.refit({"2.bias": torch.ones(4)}, partial=True),
}


@pytest.mark.parametrize("seal", SEALS)
@pytest.mark.parametrize("where", ["key", "metadata", "programs", "checksums", "images", "weights"])
def test_changes_are_not_sealed(seal, where, path, tmp_path):
    offset = section(path, where)
    engine = ingot.Engine.load(path, verify="full")
    flip(path, offset)
    with pytest.raises(
        ingot.UserError, match=f"'{path}' changed after it was loaded, in section '{where}'"
    ) as caught:
        SEALS[seal](engine, tmp_path / "saved.ingot")
    assert caught.value.code == "INGOT-U211"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("load", [ingot.Engine.load, ingot.load], ids=["Engine.load", "load"])
def test_copies_do_not_notice(load, path, content, tmp_path):
    expected = ingot.Engine.load(path)(ROWS)
    engine = load(path, memory="copy")
    for offset in [section(path, name) for name in ("key", "images", "weights")]:
        flip(path, offset)
    assert torch.equal(engine(ROWS), expected)
    path.write_bytes(b"cut off")
    assert torch.equal(engine(ROWS), expected)
    assert torch.equal(copy.deepcopy(engine)(ROWS), expected)
    engine.save(tmp_path / "saved.ingot")
    assert (tmp_path / "saved.ingot").read_bytes() == content


def test_a_changed_model_is_not_sealed(tmp_path):
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(mlp(), (ROWS,)), path)
    engine = ingot.build(path)
    flip(path, path.stat().st_size // 2)
    with pytest.raises(ingot.UserError, match="changed after an engine was built from it"):
        engine.save(tmp_path / "saved.ingot")
    assert list(tmp_path.iterdir()) == [path]


def test_unknown_choices_are_refused(path):
    for load in (ingot.Engine.load, ingot.load):
        with pytest.raises(ingot.UserError, match='memory is one of map, copy, not "file"'):
            load(path, memory="file")


def test_command_line_copies(path):
    done = subprocess.run(
        [INGOT, "run", path, "--memory", "copy"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["verify", "inspect"])
@pytest.mark.parametrize("kind", ["engine", "model"])
def test_files_that_are_cut_off_meanwhile_end_no_process(command, kind, tmp_path):
    """If the truncation comes during the load, the file is rejected; before or after, it is read whole."""
    path = tmp_path / ("large.ingot" if kind == "engine" else "large.pt2")
    large = torch.nn.Linear(1500, 1500)
    if kind == "engine":
        ingot.save(ingot.compile(large, inputs=[torch.randn(1, 1500)]), path, output_format="engine")
    else:
        torch.export.save(torch.export.export(large, (torch.randn(1, 1500),)), path)
    whole = path.read_bytes()
    for cuts in range(6):
        path.write_bytes(whole)
        process = subprocess.Popen(
            [INGOT, command, path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(cuts * 200):
            path.stat()
        while process.poll() is None:
            os.truncate(path, 5000)
            os.truncate(path, len(whole))
        assert process.returncode in (0, 1, 2)
