# SPDX-License-Identifier: Apache-2.0
"""Engines that hold no weights take them when they are loaded; engines whose weights are constants refuse others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from refit_models import MODELS, as_file, as_pt2, compiled, made, refused, result


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("hybrid", "bert")])
def test_stripped_engines_take_their_weights_when_they_are_loaded(name: str, tmp_path: Path) -> None:
    x, model = MODELS[name][1], made(name, 1)
    fresh = compiled(model, x).engine
    stripped = ingot.compile(model, inputs=[x], engine_cache_dir="off", strip_engine_weights=True)
    path = tmp_path / "stripped.ingot"
    ingot.save(stripped, path, output_format="engine")
    assert not any(
        value.numpy().tobytes() in path.read_bytes() for value in model.parameters() if value.numel() > 3
    )
    assert refused(lambda: ingot.Engine.load(path)(x)).code == "INGOT-U323"
    for source in (model.state_dict(), as_file(model, x, tmp_path), as_pt2(model, x, tmp_path)):
        engine = ingot.Engine.load(path, weights=source)
        assert torch.equal(result(engine, x), result(fresh, x))
        assert engine.to_bytes() == fresh.to_bytes()
    ingot.save(stripped, tmp_path / "stripped.pt2")
    module = ingot.load(tmp_path / "stripped.pt2", weights=model.state_dict())
    assert torch.equal(result(module, x), result(fresh, x))


def test_stripped_engines_take_weights_in_parts(tmp_path: Path) -> None:
    x, model = MODELS["experts"][1], made("experts", 1)
    stripped = ingot.compile(model, inputs=[x], strip_engine_weights=True).engine
    engine = ingot.Engine.from_bytes(stripped.to_bytes())
    weights = list(model.state_dict().items())
    for part in (weights[::2], weights[1::2]):
        assert refused(lambda: engine(x)).code == "INGOT-U323"
        engine.refit(dict(weights if part[0] != weights[0] else part), partial=True)
    assert torch.equal(engine(x), compiled(model, x)(x))


def test_immutable_weights_refuse_a_refit_with_the_reason() -> None:
    x, model = torch.randn(3, 8), made("mlp", 1)
    module = ingot.compile(model, inputs=[x], immutable_weights=True)
    torch.testing.assert_close(module(x), model(x))
    module.refit(model.state_dict())
    error = refused(lambda: module.refit(made("mlp", 2).state_dict()))
    assert error.code == "INGOT-U327"
    assert "immutable_weights" in str(error)
    torch.testing.assert_close(module(x), model(x))
