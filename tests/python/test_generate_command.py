# SPDX-License-Identifier: Apache-2.0
"""`ingot generate`: tokens of a GPT-2 without Python, with and without a cache, against eager's; bad arguments and engines."""

from __future__ import annotations

import functools
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from errors.inputs import INGOT
from models.sequence import initialize
from test_dynamic_cache import small_gpt2
from transformers.integrations.executorch import TorchExportableModuleWithStaticCache

PROMPT = [5, 17, 99, 3]
TOKENS = 64


class Logits(torch.nn.Module):
    """Without a cache: the whole sequence at every step."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.model(input_ids=input_ids, use_cache=False).logits


def build(program: torch.export.ExportedProgram, path: Path) -> Path:
    torch.export.save(program, path.with_suffix(".pt2"))
    subprocess.run([INGOT, "build", path.with_suffix(".pt2"), "-o", path], check=True, capture_output=True)
    return path


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    """With layers that outweigh the embeddings: it does not repeat a token."""
    torch.manual_seed(0)
    model = initialize(small_gpt2()).eval()
    with torch.no_grad():
        for layer in model.transformer.h:
            for weight in layer.parameters():
                weight.mul_(6 if weight.ndim == 2 else 1)
    return model


@pytest.fixture(scope="module")
def plain(model: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    length = {1: torch.export.Dim("length", min=2, max=128)}
    program = torch.export.export(Logits(model), (torch.tensor([PROMPT]),), dynamic_shapes=(length,))
    return build(program, tmp_path_factory.mktemp("plain") / "gpt2.ingot")


@pytest.fixture(scope="module")
def cached(model: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    model.generation_config.cache_implementation = "static"
    module = TorchExportableModuleWithStaticCache(model, 1, 128)
    inputs = {"input_ids": torch.tensor([[5]]), "cache_position": torch.tensor([0])}
    with torch.no_grad():
        program = torch.export.export(module, (), inputs)
    return build(program, tmp_path_factory.mktemp("cached") / "gpt2.ingot")


def run(engine: Path, *arguments: Any) -> subprocess.CompletedProcess:
    return subprocess.run([INGOT, "generate", engine, *map(str, arguments)], capture_output=True, text=True)


def generate(engine: Path, *arguments: Any) -> list[int]:
    done = run(engine, "--ids", ",".join(map(str, PROMPT)), "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["ids"]


@functools.cache
@torch.no_grad()
def greedy(model: torch.nn.Module) -> list[int]:
    ids = list(PROMPT)
    for _ in range(TOKENS):
        ids.append(int(model(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids[len(PROMPT) :]


@pytest.mark.parametrize("engine", ["plain", "cached"])
def test_greedy_tokens_are_eagers(
    engine: str, model: torch.nn.Module, request: pytest.FixtureRequest
) -> None:
    assert len(set(greedy(model))) > 20
    assert generate(request.getfixturevalue(engine), "--tokens", TOKENS) == greedy(model)


def test_sampling_follows_the_seed_and_the_probabilities(
    plain: Path, cached: Path, model: torch.nn.Module
) -> None:
    options = ("--tokens", 12, "--temperature", 2.5)
    assert generate(plain, *options, "--seed", 3) == generate(cached, *options, "--seed", 3)
    assert generate(plain, *options, "--seed", 3) != generate(plain, *options, "--seed", 4)
    assert generate(plain, *options, "--seed", 4, "--top-k", 1) == greedy(model)[:12]


def test_it_stops_after_a_token(plain: Path, model: torch.nn.Module) -> None:
    tokens = greedy(model)
    assert generate(plain, "--stop", tokens[2]) == tokens[: tokens.index(tokens[2]) + 1]
    done = run(plain, "--ids", "5,17,99,3", "--tokens", 3)
    assert done.stdout == ",".join(map(str, tokens[:3])) + "\n"


def test_refusals_say_what_is_wrong(plain: Path, tmp_path: Path) -> None:
    done = run(plain, "--ids", "5,x")
    assert (done.returncode, "'x' is not a token" in done.stderr) == (2, True)
    done = run(plain, "--ids", "5", "--tokens", 2)
    assert (done.returncode, "the engine takes 2 to 128 tokens, not 1" in done.stderr) == (1, True)
    done = run(plain, "--ids", "5,17", "--temperature", -1)
    assert (done.returncode, "'-1' is not a temperature" in done.stderr) == (2, True)
    program = torch.export.export(torch.nn.Linear(4, 4), (torch.ones(2, 4),))
    done = run(build(program, tmp_path / "linear.ingot"), "--ids", "5,17")
    assert (done.returncode, "the input 'input' is f32; `ingot generate` needs" in done.stderr) == (1, True)
