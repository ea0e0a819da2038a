# SPDX-License-Identifier: Apache-2.0
"""Whole models against eager and an fp64 run, by every way into an engine."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from ingot.torch_backend import backend
from models import MODELS, build
from models.registry import Case

CALLS = 3  # of models with state, whose calls build on each other
QUICK = ("mobilenet_v2", "llama_small", "lstm_tagger")


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def assert_model(compiled: torch.nn.Module, case: Case) -> None:
    """Calls it like the model, and compares; `case.model` is not called before."""
    exact = golden(case.model, case.args)
    twin = copy.deepcopy(case.model)
    assert_accurate(compiled(*case.args), twin(*case.args), exact)
    for _ in range(CALLS - 1 if case.has_state else 0):
        torch.testing.assert_close(compiled(*case.args), twin(*case.args), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in MODELS]
)
def test_ahead_of_time(name: str) -> None:
    case = build(name)
    program = torch.export.export(copy.deepcopy(case.model), case.args)
    assert_model(ingot.dynamo.compile(program, require_full_compilation=True), case)


@pytest.mark.parametrize(
    "name", ["lstm_tagger", *(pytest.param(n, marks=pytest.mark.long) for n in ("minilm", "gpt2_decode"))]
)
def test_just_in_time(name: str) -> None:
    case = build(name)
    assert_model(torch.compile(copy.deepcopy(case.model), backend=backend), case)


@pytest.mark.parametrize(
    "name", ["llama_small", *(pytest.param(n, marks=pytest.mark.long) for n in ("minilm", "convnext_tiny"))]
)
def test_archive(name: str, tmp_path: Path) -> None:
    case = build(name)
    torch.export.save(torch.export.export(copy.deepcopy(case.model), case.args), tmp_path / "model.pt2")
    assert_model(ingot.build(tmp_path / "model.pt2"), case)
