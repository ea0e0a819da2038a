# SPDX-License-Identifier: Apache-2.0
"""Engines as bytes, with metadata, with names of outputs, and with threads of their own."""

from __future__ import annotations

import copy
import os
import pickle
import re
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
import transformers
from errors.inputs import INGOT
from ingot import ranks
from small_models import InParts, mlp
from torch import nn

pytestmark = pytest.mark.usefixtures("binding")

METADATA = {"commit": "1a2b3c", "empty": "", "größe": "7 µs"}


class Returns(nn.Module):
    """A model whose result has the structure that `build` returns."""

    def __init__(self, structure: Any) -> None:
        super().__init__()
        self.structure = structure

    def forward(self, x: torch.Tensor) -> Any:
        return self.structure(x)


@pytest.fixture(scope="module")
def engine(binding: str) -> ingot.Engine:
    with torch.no_grad():
        return ingot.compile(mlp(), inputs=[torch.randn(3, 8)], metadata=METADATA).engine


@pytest.mark.parametrize(
    ("structure", "names"),
    [
        (lambda x: x + 1, ["output_0"]),
        (lambda x: (x + 1, x * 2), ["output_0", "output_1"]),
        (lambda x: [x + 1], ["output_0"]),
        (lambda x: {"logits": x + 1, "loss": x.sum()}, ["logits", "loss"]),
        (lambda x: OrderedDict(b=x + 1, a=x * 2), ["b", "a"]),
        (lambda x: {"logits": x + 1, "past": ((x * 2, x * 3), (x * 4, x * 5))},
         ["logits", "past.0.0", "past.0.1", "past.1.0", "past.1.1"]),
        (lambda x: (x + 1, {"state": x * 2}), ["output_0", "output_1.state"]),
        (lambda x: (x + 1, None, x * 2), ["output_0", "output_2"]),
        (lambda x: {3: x + 1, "a.b": x * 2, "a": {"b": x * 3}}, ["output_3", "a.b", "a.b_2"]),
    ],
)  # fmt: skip
@torch.no_grad()
def test_outputs_are_named_as_the_model_names_them(structure: Any, names: list[str], tmp_path: Path) -> None:
    program = torch.export.export(Returns(structure), (torch.randn(3, 4),))
    torch.export.save(program, tmp_path / "model.pt2")
    for engine in (ingot.build(program), ingot.build(tmp_path / "model.pt2")):
        assert [port.name for port in engine.outputs] == names
    assert [port["name"] for port in engine.inspect()["outputs"]] == names


@torch.no_grad()
def test_outputs_of_registered_classes_are_named_by_fields() -> None:
    config = transformers.BertConfig(
        vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = transformers.BertModel(config).eval()
    engine = ingot.compile(model, inputs=[torch.zeros(1, 4, dtype=torch.long)]).engine
    assert [port.name for port in engine.outputs] == ["last_hidden_state", "pooler_output"]


def test_bytes_are_what_a_file_holds(engine: ingot.Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "model.ingot")
    content = engine.to_bytes()
    assert content == (tmp_path / "model.ingot").read_bytes()
    x = np.random.default_rng(0).standard_normal((3, 8), np.float32)
    expected = engine(x)
    for form in (content, bytearray(content), memoryview(content), np.frombuffer(content, np.uint8)):
        loaded = ingot.Engine.from_bytes(form, verify="full")
        assert np.array_equal(loaded(x), expected)
        assert loaded.to_bytes() == content


def test_bytes_are_checked(engine: ingot.Engine) -> None:
    content = engine.to_bytes()
    with pytest.raises(ingot.UserError) as caught:
        ingot.Engine.from_bytes(content[:1000])
    assert caught.value.code == "INGOT-U202"
    with pytest.raises(ingot.UserError) as caught:
        ingot.Engine.from_bytes(content, trust="none")
    assert caught.value.code == "INGOT-U221"
    with pytest.raises(ingot.UserError) as caught:
        ingot.Engine.from_bytes(content, verify="never")
    assert caught.value.code == "INGOT-U002"


@torch.no_grad()
def test_metadata_is_kept(engine: ingot.Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "model.ingot")
    loaded = ingot.Engine.load(tmp_path / "model.ingot")
    loaded.refit({name: torch.zeros(size) for name, size in _shapes(loaded).items()})
    loaded.save(tmp_path / "refitted.ingot")
    refitted = ingot.Engine.load(tmp_path / "refitted.ingot", memory="copy")
    for each in (engine, loaded, refitted, copy.deepcopy(refitted), pickle.loads(pickle.dumps(refitted))):
        assert each.metadata == METADATA
        assert each.inspect()["metadata"] == METADATA
    done = subprocess.run(
        [INGOT, "inspect", tmp_path / "refitted.ingot"], check=True, capture_output=True, text=True
    )
    assert "metadata\n  commit: 1a2b3c\n" in done.stdout


def _shapes(engine: ingot.Engine) -> dict[str, tuple[int, ...]]:
    return {source["name"]: tuple(source["shape"]) for source in engine.inspect()["sources"]}


@torch.no_grad()
def test_every_engine_of_a_build_has_the_metadata(tmp_path: Path) -> None:
    hybrid = ingot.compile(InParts(counts=False), inputs=[torch.randn(4, 4)], metadata={"a": "1"})
    assert len(hybrid.engines) > 0
    assert all(engine.metadata == {"a": "1"} for engine in hybrid.engines)
    program = torch.export.export(mlp(), (torch.randn(3, 8),))
    torch.export.save(program, tmp_path / "model.pt2")
    assert ingot.build(tmp_path / "model.pt2", metadata={"a": "1"}).metadata == {"a": "1"}
    assert ingot.build(tmp_path / "model.pt2").metadata == {}


def test_the_command_line_attaches_metadata(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(mlp(), (torch.randn(3, 8),)), tmp_path / "model.pt2")
    command = [INGOT, "build", "model.pt2", "--metadata", "a=1", "--metadata", "b=x=y", "--metadata", "c="]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert ingot.Engine.load(tmp_path / "model.ingot").metadata == {"a": "1", "b": "x=y", "c": ""}
    for bad in ("novalue", "=1"):
        done = subprocess.run(
            [INGOT, "build", "model.pt2", "--metadata", bad], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 2
        assert f"'{bad}' is not KEY=VALUE" in done.stderr
    twice = [INGOT, "build", "model.pt2", "--metadata", "a=1", "--metadata", "a=2"]
    done = subprocess.run(twice, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "INGOT-U021" in done.stderr


def test_messages_go_where_the_environment_says(engine: ingot.Engine, tmp_path: Path) -> None:
    engine.save(tmp_path / "model.ingot")

    def run(level: str | None) -> subprocess.CompletedProcess:
        environment = {name: value for name, value in os.environ.items() if name != "INGOT_LOG"}
        if level is not None:
            environment["INGOT_LOG"] = level
        command = [INGOT, "run", "model.ingot"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment)

    assert [run(level).stderr for level in (None, "", "off", "warning")] == [""] * 4
    lines = run("info").stderr.splitlines()
    assert lines[0].startswith("ingot: opened the engine ")
    assert re.fullmatch(r"ingot: planned input\[3, 8\] in \d+\.\d us", lines[1])
    refused = run("loud")
    assert refused.returncode == 1
    assert '[INGOT-U015] the environment variable INGOT_LOG is "loud"' in refused.stderr


def test_threads_do_not_change_results(engine: ingot.Engine) -> None:
    content = engine.to_bytes()
    x = np.random.default_rng(1).standard_normal((3, 8), np.float32)
    expected = engine(x)
    engines = [ingot.Engine.from_bytes(content, threads=threads) for threads in (1, 2, 3)]
    assert engines[0].threads == 1
    assert engine.threads == ingot.get_threads()
    results: list[np.ndarray] = []
    callers = [threading.Thread(target=lambda each=each: results.append(each(x))) for each in engines * 4]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == len(callers)
    assert all(np.array_equal(result, expected) for result in results)
    assert copy.deepcopy(engines[0]).threads == 1


@pytest.mark.parametrize("threads", [-1, 1025, 1.5, "2", True, None])
def test_threads_are_checked(engine: ingot.Engine, threads: Any, tmp_path: Path) -> None:
    engine.save(tmp_path / "model.ingot")
    for load in (
        lambda: ingot.Engine.load(tmp_path / "model.ingot", threads=threads),
        lambda: ingot.Engine.from_bytes(engine.to_bytes(), threads=threads),
    ):
        with pytest.raises(ingot.UserError, match="threads must be an integer") as caught:
            load()
        assert caught.value.code == "INGOT-U002"


def test_other_ranks_hear_that_this_one_loads(
    engine: ingot.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.save(tmp_path / "model.ingot")
    begun: list[str] = []

    @contextmanager
    def at_work() -> Iterator[None]:
        begun.append("begun")
        yield

    monkeypatch.setattr(ranks, "at_work", at_work)
    for load in (
        lambda: ingot.Engine.load(tmp_path / "model.ingot"),
        lambda: ingot.Engine.from_bytes(engine.to_bytes()),
        lambda: pickle.loads(pickle.dumps(engine)),
    ):
        before = len(begun)
        load()
        assert len(begun) == before + 1
