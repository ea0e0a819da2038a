# SPDX-License-Identifier: Apache-2.0
"""Weights that are divided into several .safetensors files, with or without an index: engines that refer to them, and refits."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
import torch
from refit_models import MODELS, compiled, made, refused, result
from safetensors.torch import save_file

INGOT = Path(sys.executable).with_name("ingot")
INDEX = "model.safetensors.index.json"


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def divide(model: torch.nn.Module, folder: Path, count: int = 3) -> list[Path]:
    """Writes the model's weights to so many files, and their index, as checkpoints of large models come."""
    folder.mkdir(exist_ok=True)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    names, files, places = list(state), [], {}
    for i in range(count):
        files.append(folder / f"model-{i + 1:05}-of-{count:05}.safetensors")
        save_file({name: state[name] for name in names[i::count]}, files[-1])
        places |= dict.fromkeys(names[i::count], files[-1].name)
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": places}))
    return files


@pytest.mark.parametrize("given", ["list", "index"])
@pytest.mark.parametrize("name", MODELS)
def test_engines_refer_to_all_files(name: str, given: str, tmp_path: Path) -> None:
    x, model = MODELS[name][1], made(name, 1)
    files = divide(model, tmp_path / "checkpoint")
    source = files if given == "list" else tmp_path / "checkpoint" / INDEX
    module = ingot.compile(model, inputs=[x], engine_cache_dir="off", weights_file=source)
    expected = result(compiled(model, x), x)
    assert torch.equal(result(module, x), expected)
    ingot.save(module, tmp_path / "model", output_format="exported_program" if name == "hybrid" else "engine")
    assert torch.equal(result(ingot.load(tmp_path / "model"), x), expected)


def _engine(folder: Path) -> tuple[torch.nn.Module, torch.Tensor, list[Path]]:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    files = divide(model, folder)
    module = ingot.compile(model, inputs=[x], weights_file=folder / INDEX)
    ingot.save(module, folder / "model.ingot", output_format="engine")
    return model, x, files


def test_an_engine_needs_no_index_and_moves_with_its_files(tmp_path: Path) -> None:
    model, x, files = _engine(tmp_path / "old")
    (tmp_path / "old" / INDEX).unlink()
    (tmp_path / "old").rename(tmp_path / "new")
    engine = ingot.Engine.load(tmp_path / "new" / "model.ingot")
    torch.testing.assert_close(engine(x), model(x))
    assert _names(tmp_path / "new" / "model.ingot") == [file.name for file in files]
    engine.save(tmp_path / "elsewhere.ingot")
    assert _names(tmp_path / "elsewhere.ingot") == [f"new/{file.name}" for file in files]
    assert torch.equal(ingot.Engine.load(tmp_path / "elsewhere.ingot")(x), engine(x))


def _names(path: Path) -> list[str]:
    """Of the files, as the engine's file has them."""
    command = [INGOT, "inspect", path, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["weights_files"]


@pytest.mark.parametrize("position", range(3))
def test_every_file_counts(position: int, tmp_path: Path) -> None:
    _, x, files = _engine(tmp_path)
    other = divide(made("mlp", 2), tmp_path / "other")[position]
    path = files[position]
    kept = path.read_bytes()
    path.write_bytes(other.read_bytes())
    assert refused(lambda: ingot.Engine.load(tmp_path / "model.ingot")).code == "INGOT-U334"
    save_file({"of.others": torch.ones(1)}, path)
    error = refused(lambda: ingot.Engine.load(tmp_path / "model.ingot"))
    assert error.code == "INGOT-U334"
    path.unlink()
    error = refused(lambda: ingot.Engine.load(tmp_path / "model.ingot"))
    assert (error.code, path.name in str(error)) == ("INGOT-U335", True)
    path.write_bytes(kept)
    ingot.Engine.load(tmp_path / "model.ingot")(x)
    files[position - 1].write_bytes(kept)
    assert refused(lambda: ingot.Engine.load(tmp_path / "model.ingot")).code == "INGOT-U326"


def test_another_weight_in_one_file_is_noticed_beside_prepared_weights(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).eval()
    x = torch.ones(2, 512)
    files = divide(model, tmp_path)
    module = ingot.compile(model, inputs=[x], weights_file=files)
    ingot.save(module, tmp_path / "model.ingot", output_format="engine")
    script = "import sys, torch, ingot; ingot.Engine.load(sys.argv[1])(torch.ones(2, 512))"
    environment = {"INGOT_ENGINE_CACHE_DIR": str(tmp_path / "cache")}

    def load() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", script, tmp_path / "model.ingot"]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    for _ in range(2):
        assert load().returncode == 0
    assert [path for path in (tmp_path / "cache").glob("??/*") if len(path.name) == 62]
    for file, state in zip(
        files, [dict(list(model.state_dict().items())[i::3]) for i in range(3)], strict=True
    ):
        kept = file.read_bytes()
        save_file({name: value + 1 for name, value in state.items()}, file)
        assert "INGOT-U334" in load().stderr
        file.write_bytes(kept)
        assert load().returncode == 0


BAD_INDICES = {
    "outside": ({"weight_map": {"0.weight": "../model.safetensors"}}, "INGOT-U530"),
    "below and out": ({"weight_map": {"0.weight": "a/../../model.safetensors"}}, "INGOT-U530"),
    "absolute": ({"weight_map": {"0.weight": "/etc/passwd"}}, "INGOT-U530"),
    "nameless": ({"weight_map": {"0.weight": ""}}, "INGOT-U530"),
    "a folder": ({"weight_map": {"0.weight": "."}}, "INGOT-U530"),
    "without files": ({"metadata": {}}, "INGOT-U503"),
    "of numbers": ({"weight_map": {"0.weight": 1}}, "INGOT-U503"),
    "a list": ([], "INGOT-U503"),
    "missing file": ({"weight_map": {"0.weight": "no.safetensors"}}, ""),
    "empty": ({"weight_map": {}}, ""),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_INDICES)
def test_indices_that_are_none(what: str, tmp_path: Path) -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    content, code = BAD_INDICES[what]
    path = tmp_path / INDEX
    path.write_text(json.dumps(content))
    engine = compiled(model, x).engine
    before = engine(x)
    for call in (lambda: ingot.compile(model, inputs=[x], weights_file=path), lambda: engine.refit(path)):
        error = refused(call)
        assert error.code == code or code == ""
    assert torch.equal(engine(x), before)
    path.write_text("{")
    assert refused(lambda: engine.refit(path)).code == "INGOT-U502"


@pytest.mark.parametrize("given", ["list", "index"])
def test_refits_take_all_files(given: str, tmp_path: Path) -> None:
    x, old, new = MODELS["mlp"][1], made("mlp", 1), made("mlp", 2)
    files = divide(new, tmp_path)
    source = files if given == "list" else tmp_path / INDEX
    module = compiled(old, x)
    expected = result(compiled(new, x), x)
    assert torch.equal(result(ingot.refit_module_weights(module, source), x), expected)
    ingot.save(module, tmp_path / "old.ingot", output_format="engine")
    words = [f"--weights={each}" for each in (files if given == "list" else [source])]
    command = [INGOT, "refit", tmp_path / "old.ingot", "-o", tmp_path / "new.ingot", *words]
    subprocess.run(command, check=True, capture_output=True)
    assert torch.equal(ingot.Engine.load(tmp_path / "new.ingot")(x), expected)
    assert torch.equal(ingot.Engine.load(tmp_path / "old.ingot", weights=source)(x), expected)


@pytest.mark.parametrize("given", ["list", "index"])
def test_the_command_line_takes_all_files(given: str, tmp_path: Path) -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    files = divide(model, tmp_path)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
    words = [f"--weights-file={each}" for each in (files if given == "list" else [tmp_path / INDEX])]
    command = [INGOT, "build", tmp_path / "model.pt2", "-o", tmp_path / "model.ingot", *words]
    subprocess.run(command, check=True, capture_output=True)
    engine = ingot.Engine.load(tmp_path / "model.ingot")
    assert len(engine.inspect()["weights_files"]) == 3
    assert torch.equal(engine(x), compiled(model, x)(x))


def test_names_of_files_are_checked() -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    for value in (3, "a\nb", ["a", 3], {"a"}):
        assert (
            refused(lambda value=value: ingot.compile(model, inputs=[x], weights_file=value)).code
            == "INGOT-U002"
        )
