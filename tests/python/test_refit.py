# SPDX-License-Identifier: Apache-2.0
"""New weights for compiled modules and engines: from every source, the result is that of a fresh compilation."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from lacking import negated
from refit_models import MODELS, SOURCES, as_shards, compiled, exported, made, refused, result
from small_models import mlp
from torch import nn

INGOT = Path(sys.executable).with_name("ingot")


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.mark.parametrize(
    ("name", "source"),
    [(name, source) for name in MODELS for source in SOURCES if name != "bert" or source == "state_dict"],
)
def test_a_refit_gives_what_a_fresh_compilation_gives(name: str, source: str, tmp_path: Path) -> None:
    x = MODELS[name][1]
    old, new = made(name, 1), made(name, 2)
    module, fresh = compiled(old, x), compiled(new, x)
    before = result(module, x)
    refitted = ingot.refit_module_weights(module, SOURCES[source](new, x, tmp_path))
    assert torch.equal(result(refitted, x), result(fresh, x))
    assert torch.equal(result(module, x), before), "the module itself has not changed"
    torch.testing.assert_close(refitted.state_dict(), new.state_dict())
    if module.compiled.graph is None:
        assert refitted.engine.to_bytes() == fresh.engine.to_bytes()


@pytest.mark.parametrize("source", ["state_dict", "pt2", "safetensors"])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("hybrid", "bert")])
def test_engines_of_files_are_refitted(name: str, source: str, tmp_path: Path) -> None:
    x, path = MODELS[name][1], tmp_path / "engine.ingot"
    new = made(name, 2)
    ingot.save(compiled(made(name, 1), x), path, output_format="engine")
    engine, fresh = ingot.Engine.load(path), compiled(new, x).engine
    refitted = ingot.dynamo.refit_module_weights(engine, SOURCES[source](new, x, tmp_path))
    assert torch.equal(result(refitted, x), result(fresh, x))
    assert refitted.to_bytes() == fresh.to_bytes()


# What init computes from several weights, of which files keep none: folded norms, a product of two (the other of which main keeps).
TOGETHER = {"convolutions": ("first", "norm"), "experts": ("scale",)}


@pytest.mark.parametrize("form", ["built", "loaded"])
@pytest.mark.parametrize("name", MODELS)
def test_each_weight_alone(name: str, form: str, tmp_path: Path) -> None:
    """Only what depends on a weight is prepared again, and that is enough."""
    x, model = MODELS[name][1], made(name, 1)
    module = compiled(model, x)
    if form == "loaded":
        ingot.save(module, tmp_path / "model.pt2")
        module = ingot.load(tmp_path / "model.pt2")
    for key, parameter in model.named_parameters():
        parameter.mul_(1.5).add_(0.01)
        needs_others = key.startswith(TOGETHER.get(name, ("none",)))
        if form == "loaded" and needs_others:
            assert refused(lambda new={key: parameter}: module.refit(new, partial=True)).code == "INGOT-U322"
            module.refit(model.state_dict(), partial=True)
        else:
            module.refit({key: parameter}, partial=True)
        assert torch.equal(result(module, x), result(compiled(model, x), x)), key


def test_a_partial_refit_prepares_only_what_depends_on_it() -> None:
    x = torch.randn(2, 64)
    layers = [nn.Linear(64, 64) for _ in range(8)]
    engine = compiled(nn.Sequential(*layers).eval(), x).engine
    files = [engine.to_bytes()]
    assert json.loads(json.dumps(engine.inspect()))["weights_form"] == "prepared"
    engine.refit({"3.weight": torch.zeros(64, 64)}, partial=True)
    files.append(engine.to_bytes())
    differing = sum(a != b for a, b in zip(*files, strict=True))
    assert 0 < differing < 2 * 64 * 64 * 4, "one layer, and checksums"


def without(weights: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in weights.items() if key != name}


BAD: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "unknown": ("mlp", lambda w: {**w, "3.weight": torch.zeros(1)}, "INGOT-U320"),
    "shape": ("mlp", lambda w: {**w, "0.weight": torch.zeros(8, 16)}, "INGOT-U321"),
    "dtype": ("mlp", lambda w: {**w, "0.bias": w["0.bias"].double()}, "INGOT-U321"),
    "missing": ("mlp", lambda w: without(w, "2.bias"), "INGOT-U324"),
    "no longer tied": ("tied", lambda w: {**w, "head.weight": w["head.weight"] + 1}, "INGOT-U326"),
    "integers": ("buffers", lambda w: {**w, "order": torch.arange(8)}, "INGOT-U325"),
    "unknown in parts": ("hybrid", lambda w: {**w, "other": torch.zeros(1)}, "INGOT-U320"),
    "shape in parts": ("hybrid", lambda w: {**w, "linear.bias": torch.zeros(3)}, "INGOT-U321"),
    "missing in parts": ("hybrid", lambda w: without(w, "linear.bias"), "INGOT-U324"),
    "no weights": ("mlp", lambda w: 3, "INGOT-U006"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_weights_are_refused_before_anything_changes(case: str) -> None:
    name, change, code = BAD[case]
    x, new = MODELS[name][1], made(name, 2)
    module = compiled(made(name, 1), x)
    before = result(module, x)
    assert refused(lambda: module.refit(change(dict(new.state_dict())))).code == code
    assert torch.equal(result(module, x), before)
    module.refit(new.state_dict())
    assert torch.equal(result(module, x), result(compiled(new, x), x))


def test_names_that_the_model_had_are_accepted() -> None:
    x, model = MODELS["buffers"][1], made("buffers", 1)
    module = compiled(model, x)
    module.refit({"unread": torch.ones(3), "order": model.order}, partial=True)
    assert torch.equal(result(module, x), result(compiled(model, x), x))
    tied, ids = made("tied", 1), MODELS["tied"][1]
    engine = compiled(tied, ids).engine
    for name in ("head.weight", "embedding.weight"):
        engine.refit({name: tied.head.weight * 2}, partial=True)
        tied.head.weight.mul_(2)
        assert torch.equal(engine(ids), compiled(tied, ids)(ids))


def test_a_program_of_another_model_is_refused() -> None:
    x = torch.randn(3, 8)
    module = compiled(mlp(), x)
    other = mlp()
    other[1] = nn.ReLU()
    assert refused(lambda: module.refit(exported(other, x))).code == "INGOT-U329"
    module.refit(other.state_dict())


def test_a_program_with_other_symbols_is_the_same() -> None:
    model, x = mlp(), torch.randn(3, 8)
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(9, 8))
    module = ingot.compile(model, inputs=[rows])
    new = made("mlp", 3)
    batch = torch.export.Dim("many", min=1, max=9)
    program = torch.export.export(new, (x,), dynamic_shapes=({0: batch},))
    module.refit(program)
    torch.testing.assert_close(module(x), new(x))


def test_in_place_and_copies() -> None:
    x, old, new = torch.randn(3, 8), made("mlp", 1), made("mlp", 2)
    module = compiled(old, x)
    assert ingot.refit_module_weights(module, new.state_dict(), in_place=True) is module
    torch.testing.assert_close(module(x), new(x))
    assert refused(lambda: ingot.refit_module_weights(old, new.state_dict())).code == "INGOT-U007"


def test_later_changes_of_the_new_tensors_have_no_effect() -> None:
    for name in ("mlp", "hybrid"):
        x, new = MODELS[name][1], made(name, 2)
        module = compiled(made(name, 1), x)
        module.refit(new.state_dict())
        want, state = result(module, x), copy.deepcopy(module.state_dict())
        for parameter in new.parameters():
            parameter.zero_()
        assert torch.equal(result(module, x), want)
        torch.testing.assert_close(module.state_dict(), state)


def test_tied_names_of_a_state_dict_share_a_new_value() -> None:
    x, old, new = MODELS["tied"][1], made("tied", 1), made("tied", 2)
    module = compiled(old, x)
    module.refit({"embedding.weight": new.state_dict()["embedding.weight"]}, partial=True)
    state = module.state_dict()
    for name in ("embedding.weight", "head.weight"):
        torch.testing.assert_close(state[name], new.state_dict()[name])


def test_calls_see_all_parts_before_or_after_a_refit() -> None:
    class TwoParts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(negated(self.first(x) * 0) + torch.eye(4))

    x, model = torch.ones(4, 4), TwoParts().eval()
    module = compiled(model, x)
    assert len(module.engines) == 2
    weights = [
        {name: torch.full((4, 4), value) for name in ("first.weight", "last.weight")} for value in (1.0, 2.0)
    ]
    seen: set[float] = set()
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            seen.add(round(float(module(x)[0, 0]), 4))

    module.refit(weights[0])
    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for k in range(40):
        module.refit(weights[k % 2])
    stop.set()
    for thread in threads:
        thread.join()
    assert seen <= {1.0, 2.0}


def test_the_command_line(tmp_path: Path) -> None:
    x, old, new = torch.randn(3, 8), made("mlp", 1), made("mlp", 2)
    ingot.save(compiled(old, x), tmp_path / "old.ingot", output_format="engine")
    as_shards(new, x, tmp_path)

    def refit(*arguments: str) -> subprocess.CompletedProcess:
        command = [INGOT, "refit", "old.ingot", "-o", "new.ingot", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    whole = refit("--weights", "1.safetensors", "--weights", "2.safetensors", "--json")
    assert whole.returncode == 0, whole.stderr
    assert json.loads(whole.stdout)["tensors"] == 4
    assert (tmp_path / "new.ingot").read_bytes() == compiled(new, x).engine.to_bytes()
    missing = refit("--weights", "1.safetensors")
    assert (missing.returncode, "INGOT-U324" in missing.stderr) == (1, True)
    assert refit("--weights", "1.safetensors", "--partial").returncode == 0
    twice = refit("--weights", "1.safetensors", "--weights", "1.safetensors")
    assert (twice.returncode, "both have" in twice.stderr) == (1, True)


def test_nothing_is_not_a_set_of_all_weights() -> None:
    model = torch.nn.Linear(4, 4).eval()
    module = ingot.compile(model, inputs=[torch.randn(2, 4)])
    for target in (module, module.engine):
        with pytest.raises(ingot.UserError, match="INGOT-U324"):
            target.refit({})
        target.refit({}, partial=True)


@pytest.mark.parametrize(
    "value",
    [None, "text", torch.empty(4, 4, device="meta"), torch.eye(4).to_sparse()],
    ids=["none", "text", "meta", "sparse"],
)
def test_what_is_no_tensor_with_data_is_refused(value: object) -> None:
    model = torch.nn.Linear(4, 4).eval()
    module = ingot.compile(model, inputs=[torch.randn(2, 4)])
    for target in (module, module.engine):
        with pytest.raises(ingot.UserError, match=r"INGOT-U006.*'weight'"):
            target.refit({"weight": value}, partial=True)
        with pytest.raises(ingot.UserError, match=r"INGOT-U006.*names"):
            target.refit({3: torch.eye(4)}, partial=True)


def test_the_error_of_tied_weights_has_both_names() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).eval()
    model[1].weight = model[0].weight
    module = ingot.compile(model, inputs=[torch.randn(2, 4)])
    with pytest.raises(ingot.UserError, match=r"INGOT-U326.*'0\.weight' and '1\.weight'"):
        module.refit({"0.weight": torch.eye(4), "1.weight": torch.ones(4, 4)}, partial=True)
