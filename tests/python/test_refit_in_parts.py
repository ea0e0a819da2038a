# SPDX-License-Identifier: Apache-2.0
"""New weights for modules that torch runs in part: what is accepted and what is refused does not depend on where engines end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from refit_models import MODELS, made, result, untied
from safetensors.torch import save_file

TORCH_RUNS = {
    "mlp": "aten.gelu.default",
    "convolutions": "aten.relu.default",
    "tied": "aten.relu.default",
    "buffers": "aten.mul.Tensor",
    "experts": "aten.mul.Tensor",
}

NEEDS_OTHERS = "INGOT-U322"

Weights = dict[str, Any]
CHANGES: dict[str, Callable[[Weights], Weights]] = {
    "all": lambda w: w,
    "none": lambda w: {},
    "the first": lambda w: dict(list(w.items())[:1]),
    "all but the first": lambda w: dict(list(w.items())[1:]),
    "all but the last": lambda w: dict(list(w.items())[:-1]),
    "another one": lambda w: {**w, "other": torch.zeros(1)},
    "the first in another shape": lambda w: {**w, next(iter(w)): torch.zeros(1, 2, 3)},
    "the last in another shape": lambda w: {**w, list(w)[-1]: torch.zeros(1, 2, 3)},
    "all in double precision": lambda w: {name: value.double() for name, value in w.items()},
    "other integers": lambda w: {name: value if value.is_floating_point() else value + 1 for name, value in w.items()},
    "no integers": lambda w: {name: value for name, value in w.items() if value.is_floating_point()},
    "nothing unread": lambda w: {name: value for name, value in w.items() if name != "unread"},
    "unread in another shape": lambda w: {**w, **({"unread": torch.zeros(7)} if "unread" in w else {})},
    "no longer tied": lambda w: {name: value + (name == "head.weight") for name, value in w.items()},
    "tied weights once": lambda w: {name: value for name, value in w.items() if name != "head.weight"},
    "tied weights once, by the other name": lambda w: {
        name: value for name, value in w.items() if name != "embedding.weight"
    },
}  # fmt: skip


def outcome(module: Any, x: torch.Tensor, weights: Weights, partial: bool) -> str | torch.Tensor:
    """What a refit is refused with, or else gives."""
    try:
        return result(ingot.refit_module_weights(module, weights, partial=partial), x)
    except ingot.UserError as error:
        return error.code


def reopened(module: Any, path: Path) -> Any:
    ingot.save(module, path)
    return ingot.load(path)


@torch.no_grad()
@pytest.mark.parametrize("form", ["built", "loaded"])
@pytest.mark.parametrize("name", TORCH_RUNS)
def test_parts_are_refitted_as_a_whole_is(name: str, form: str, tmp_path: Path) -> None:
    x, old, new = MODELS[name][1], made(name, 1), made(name, 2).state_dict()
    options = {"inputs": [x], "engine_cache_dir": "off"}
    whole = ingot.compile(old, **options)
    parts = ingot.compile(old, torch_executed_ops={TORCH_RUNS[name]}, **options)
    assert (len(whole.engines), parts.compiled.graph is None) == (1, False)
    if form == "loaded":
        whole, parts = (reopened(module, tmp_path / "model.pt2") for module in (whole, parts))
    for change, make in CHANGES.items():
        for partial in (False, True):
            wanted, got = (outcome(module, x, make(dict(new)), partial) for module in (whole, parts))
            where = f"{change}, partial={partial}"
            if any(isinstance(each, str) and each == NEEDS_OTHERS for each in (wanted, got)):
                continue  # what init computes from several weights ends where parts do
            if isinstance(wanted, str) or isinstance(got, str):
                assert (where, got) == (where, wanted)
            else:
                torch.testing.assert_close(got, wanted, msg=lambda text, where=where: f"{where}: {text}")


@torch.no_grad()
def test_parts_take_tied_weights_from_a_file_that_has_them_once(tmp_path: Path) -> None:
    x, model = MODELS["tied"][1], made("tied", 1)
    save_file(untied(model), tmp_path / "weights.safetensors")
    options = {
        "weights_file": str(tmp_path / "weights.safetensors"),
        "torch_executed_ops": {TORCH_RUNS["tied"]},
    }
    module = reopened(ingot.compile(model, inputs=[x], **options), tmp_path / "model.pt2")
    torch.testing.assert_close(result(module, x), model(x))
