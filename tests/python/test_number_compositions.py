# SPDX-License-Identifier: Apache-2.0
"""Integers that calls choose, in builds in stages, refits, copies, files and engines from a cache."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from number_models import Counting, Numbers, X, assert_calls, program_of
from staged_builds import (
    PATIENCE,
    Held,
    held,
    no_grad,
    states_of,
    tests_do_not_wait_for_others,
    times_are_predictable,
)

__all__ = ["held", "no_grad", "tests_do_not_wait_for_others", "times_are_predictable"]  # fixtures

MODELS = pytest.mark.parametrize("kind", [Numbers, Counting])
STAGES = {"staged": True, "staged_first_level": 1}


@MODELS
def test_stages_change_between_calls(kind: type[Numbers], held: Held) -> None:
    model = kind()
    module = ingot.compile(program_of(kind()), optimization_level=3, **STAGES)
    held.wait_until_begun()
    assert_calls(module, model)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "ran"), (3, "runs")]
    assert_calls(module, model)
    assert_calls(module, model, X[:2])


@MODELS
def test_stages_of_torch_compile(kind: type[Numbers], held: Held) -> None:
    model = kind().eval()
    compiled = torch.compile(
        copy.deepcopy(model), backend="ingot", dynamic=True, options={**STAGES, "optimization_level": 3}
    )
    calls = [(7, 3), (9, 4), (12, 5)]
    assert_calls(compiled, model, calls=calls)
    held.let_go()
    assert ingot.wait_until_tuned(compiled, PATIENCE)
    assert_calls(compiled, model, calls=calls)


SOURCES: dict[str, Callable[[Numbers], Any]] = {
    "module": lambda new: new,
    "program": program_of,
    "weights": lambda new: {name: value for name, value in new.state_dict().items() if name != "total"},
}


@pytest.mark.parametrize("source", SOURCES)
@MODELS
def test_refits(kind: type[Numbers], source: str) -> None:
    module, new = ingot.compile(program_of(kind())), kind(seed=2).eval()
    module.refit(SOURCES[source](copy.deepcopy(new)))
    assert_calls(module, new)


def _saved(module: Any, folder: Path) -> Any:
    ingot.save(module, folder / "model.pt2")
    return ingot.load(folder / "model.pt2")


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "copied": lambda module, folder: copy.deepcopy(module),
    "pickled": lambda module, folder: pickle.loads(pickle.dumps(module)),
    "saved": _saved,
}


@pytest.mark.parametrize("form", FORMS)
@MODELS
def test_copies_and_files(kind: type[Numbers], form: str, tmp_path: Path) -> None:
    module = FORMS[form](ingot.compile(program_of(kind())), tmp_path)
    new = kind(seed=2).eval()
    module.refit(SOURCES["weights"](new))
    assert_calls(module, new)


@MODELS
def test_engines_from_a_cache(kind: type[Numbers], tmp_path: Path) -> None:
    """The second module has other weights, and takes the entries of the first, as another process would."""
    options = {"engine_cache_dir": str(tmp_path), "cache_built_engines": True, "reuse_cached_engines": True}
    entries = []
    for seed in (1, 2):
        with ingot.Session() as session:
            module = ingot.compile(program_of(kind(seed)), verify_kernels=False, **options)
            made = session.cache_stats()["made"]
        assert (made == 0) == (seed == 2)
        assert_calls(module, kind(seed).eval())
        entries.append({path for path in tmp_path.glob("??/*") if path.read_bytes()[32:38] == b"engine"})
    assert entries[0] == entries[1] != set()


def test_torchscript_names_all_integers(tmp_path: Path) -> None:
    with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N009.*and k, n are integers that calls choose"):
        ingot.save(ingot.compile(program_of(Numbers())), tmp_path / "model.ts", output_format="torchscript")
