# SPDX-License-Identifier: Apache-2.0
"""Engines that hold no weights take them when they are loaded; engines whose weights are constants refuse others."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from refit_models import MODELS, as_file, as_pt2, compiled, made, refused, result
from safetensors.torch import save_file


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def _left_to_a_file(name: str, folder: Path) -> tuple[torch.nn.Module, torch.Tensor, Path]:
    """The model, its argument, and the path of a compiled module that takes its weights from a file beside it."""
    x, model = MODELS[name][1], made(name, 1)
    weights = folder / "weights.safetensors"
    save_file(
        {key: value.clone() for key, value in model.state_dict().items()} | {"of.others": torch.ones(3)},
        weights,
    )
    module = ingot.compile(model, inputs=[x], engine_cache_dir="off", weights_file=weights)
    assert torch.equal(result(module, x), result(compiled(model, x), x))
    ingot.save(module, folder / "model", output_format="exported_program" if name == "hybrid" else "engine")
    return model, x, weights


@pytest.mark.parametrize("name", MODELS)
def test_engines_take_their_weights_from_a_file(name: str, tmp_path: Path) -> None:
    model, x, _ = _left_to_a_file(name, tmp_path)
    expected = result(compiled(model, x), x)
    content = (tmp_path / "model").read_bytes()
    assert not any(value.numpy().tobytes() in content for value in model.parameters() if value.numel() > 3)
    loaded = ingot.load(tmp_path / "model")
    for module in (loaded, copy.deepcopy(loaded), ingot.load(tmp_path / "model", weights=model.state_dict())):
        assert torch.equal(result(module, x), expected)


@pytest.mark.parametrize("name", MODELS)
def test_another_file_is_refused_and_other_weights_are_not(name: str, tmp_path: Path) -> None:
    model, x, weights = _left_to_a_file(name, tmp_path)
    other = made(name, 2)
    state = {key: value.clone() for key, value in other.state_dict().items()}
    assert torch.equal(
        result(ingot.load(tmp_path / "model", weights=state), x), result(compiled(other, x), x)
    )
    save_file(state, weights)
    assert refused(lambda: ingot.load(tmp_path / "model")).code == "INGOT-U334"
    read = next(iter(dict(model.named_parameters())))
    save_file({key: value for key, value in state.items() if key != read}, weights)
    error = refused(lambda: ingot.load(tmp_path / "model"))
    assert error.code == "INGOT-U334"
    weights.unlink()
    assert refused(lambda: ingot.load(tmp_path / "model")).code == "INGOT-U335"
    assert torch.equal(
        result(ingot.load(tmp_path / "model", weights=state), x), result(compiled(other, x), x)
    )


def test_a_saved_engine_keeps_the_file_until_it_gets_other_weights(tmp_path: Path) -> None:
    model, x, weights = _left_to_a_file("mlp", tmp_path)
    engine = ingot.Engine.load(tmp_path / "model")
    engine.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    engine.save(tmp_path / "elsewhere" / "model")
    for path in ("again", "elsewhere/model"):
        assert ingot.Engine.load(tmp_path / path).inspect()["weights_files"] == [str(weights)]
    assert torch.equal(pickle.loads(pickle.dumps(engine))(x), engine(x))
    engine.refit({"0.bias": torch.ones_like(model.state_dict()["0.bias"])}, partial=True)
    engine.save(tmp_path / "own")
    weights.unlink()
    assert torch.equal(ingot.Engine.load(tmp_path / "own")(x), engine(x))


def test_engines_and_their_file_move_together(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    model, x, _ = _left_to_a_file("mlp", tmp_path / "old")
    (tmp_path / "old").rename(tmp_path / "new")
    torch.testing.assert_close(ingot.Engine.load(tmp_path / "new" / "model")(x), model(x))


def test_weights_that_are_used_as_they_are_stored_stay_in_the_file(tmp_path: Path) -> None:
    _, x, weights = _left_to_a_file("tied", tmp_path)
    engine = ingot.Engine.load(tmp_path / "model")
    engine(x)
    assert any(line.endswith(str(weights)) for line in Path("/proc/self/maps").read_text().splitlines())


def test_a_file_that_does_not_fit_fails_the_build(tmp_path: Path) -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    path = tmp_path / "weights.safetensors"

    def build(**options: object) -> ingot.Error:
        return refused(lambda: ingot.compile(model, inputs=[x], weights_file=path, **options))

    assert build().code == "INGOT-U335"
    save_file(made("mlp", 2).state_dict(), path)
    assert build().code == "INGOT-U334"
    assert build(immutable_weights=True).code == "INGOT-U002"
    path.write_bytes(b"not tensors")
    assert build().code == "INGOT-U530"


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


def test_immutable_weights_say_what_they_saved() -> None:
    x, model = torch.randn(2, 3, 8, 8), torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    model.eval()
    model[1].running_var.uniform_(1, 2)
    fixed = ingot.compile(model, inputs=[x], immutable_weights=True, engine_cache_dir="off")
    torch.testing.assert_close(fixed(x), model(x))
    folded = fixed.report.builds[0]["folded_weights"]
    assert folded["operators"] > 0  # the norm is part of the convolution's weights
    assert folded["numbers"] == 3  # its weight, bias and mean are as they began
    assert (
        f"immutable weights: the build computed {folded['operators']} operators of constants, "
        "and 3 constants are one number everywhere"
    ) in str(ingot.report(fixed))
    mutable = ingot.compile(model, inputs=[x], engine_cache_dir="off")
    assert "folded_weights" not in mutable.report.builds[0]
    assert "immutable" not in str(ingot.report(mutable))


def test_an_option_without_a_value_is_true_on_the_command_line(tmp_path: Path) -> None:
    model, x = made("mlp", 1), MODELS["mlp"][1]
    model_file = as_pt2(model, x, tmp_path)
    command = Path(sys.executable).with_name("ingot")
    for given, is_stripped in (([], True), (["true"], True), (["false"], False)):
        path = tmp_path / "-".join(["engine", *given])
        options = ["--engine-cache-dir", "off", "--strip-engine-weights", *given]
        subprocess.run([command, "build", model_file, *options, "-o", path], check=True, capture_output=True)
        weights = model.state_dict() if is_stripped else None
        if is_stripped:
            assert refused(lambda path=path: ingot.Engine.load(path)(x)).code == "INGOT-U323"
        assert torch.equal(ingot.Engine.load(path, weights=weights)(x), result(compiled(model, x), x))
