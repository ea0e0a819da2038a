# SPDX-License-Identifier: Apache-2.0
"""Staged builds: whatever happens to a module while a better engine is built, calls return what the model returns."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from ingot import background, staged_part
from refit_models import MODELS, compiled, made, result
from staged_builds import (
    PATIENCE,
    Held,
    held,
    mlp_of,
    no_grad,
    staged,
    states_of,
    tests_do_not_wait_for_others,
    times_are_predictable,
)
from torch import nn

__all__ = ["held", "no_grad", "tests_do_not_wait_for_others", "times_are_predictable"]  # fixtures


@pytest.mark.parametrize("name", ["mlp", "convolutions", "hybrid"])
def test_a_better_engine_replaces_the_running_one(name: str, held: Held) -> None:
    x, model = MODELS[name][1], made(name, 1)
    module = staged(model, x)
    core = module.compiled.engines[0]
    held.wait_until_begun()
    assert states_of(module) == [(1, "runs"), (3, "is built")]
    first = result(module, x)
    assert_accurate(first, model(x), golden(model, [x]))
    kernels = core.inspect()
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "ran"), (3, "runs")]
    assert module.compiled.engines[0] is core, "whoever holds the engine has the better one"
    assert core.inspect() != kernels
    assert_accurate(result(module, x), model(x), golden(model, [x]))
    plain = compiled(model, x)
    assert torch.equal(result(module, x), result(plain, x)), "it is the engine of an ordinary build"
    assert "level 3 runs" in str(ingot.report(module))
    assert "2.00 times as fast" in str(ingot.report(module))


def test_the_stages_follow_from_the_level() -> None:
    assert staged_part.levels_after(1, None) == [3, 5]
    assert staged_part.levels_after(1, "4") == [3, 4]
    assert staged_part.levels_after(1, "2") == [2]
    assert staged_part.levels_after(1, "1") == []
    assert staged_part.levels_after(3, None) == [5]
    x = torch.randn(2, 8)
    module = ingot.compile(nn.Linear(8, 8).eval(), inputs=[x], staged=True, optimization_level=0)
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(0, "runs")]


def test_the_first_engines_are_those_of_an_ordinary_build(held: Held) -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    module = ingot.compile(model, inputs=[x], staged=True)
    held.wait_until_begun()
    assert states_of(module) == [(3, "runs"), (5, "is built")]
    assert torch.equal(result(module, x), result(compiled(model, x), x))
    module.stop_tuning()
    held.let_go()


def test_tactics_are_timed_in_the_background() -> None:
    x = torch.randn(8, 64)
    module = staged(mlp_of(64), x, level=4, engine_cache_dir="off")
    module(x)
    assert module.wait_until_tuned(PATIENCE), module.report
    assert states_of(module)[-1] == (4, "runs")
    assert module.report.builds[0]["tuning"]["timed"] > 0


# ---- states ----
class Cache(nn.Module):
    """Rows that are kept from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 8))
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows.mul_(0.5).add_(x)
        return self.linear(self.rows)


def test_own_states_keep_their_values(held: Held) -> None:
    model, x = Cache().eval(), torch.randn(4, 8)
    eager = copy.deepcopy(model)
    module = staged(model, x)
    for _ in range(3):
        torch.testing.assert_close(module(x), eager(x))
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "runs"), module.report
    for _ in range(3):
        torch.testing.assert_close(module(x), eager(x))


def test_buffers_of_torch_compile_keep_values_and_addresses(held: Held) -> None:
    model, x = Cache().eval(), torch.randn(4, 8)
    eager = copy.deepcopy(model)
    call = torch.compile(
        model, backend="ingot", options={"staged": True, "staged_first_level": 1, "optimization_level": 3}
    )
    address = model.rows.data_ptr()
    torch.testing.assert_close(call(x), eager(x))
    held.let_go()
    assert ingot.wait_until_tuned(call, PATIENCE)
    torch.testing.assert_close(call(x), eager(x))
    torch.testing.assert_close(model.rows, eager.rows)
    assert model.rows.data_ptr() == address
    assert states_of(call)[-1] == (3, "runs")


# ---- weights ----
@pytest.mark.parametrize("by", ["module", "engine"])
@pytest.mark.parametrize("name", ["mlp", "hybrid"])
def test_a_refit_meanwhile_is_kept(name: str, by: str, held: Held) -> None:
    x, new = MODELS[name][1], made(name, 2)
    module = staged(made(name, 1), x)
    held.wait_until_begun()
    if by == "module":
        module.refit(new.state_dict())
    else:
        for engine in module.engines:
            engine.refit({key: new.state_dict()[key] for key in engine.weights}, partial=True)
    expected = result(module, x)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "runs"), module.report
    torch.testing.assert_close(result(module, x), expected)
    if by == "module":
        assert torch.equal(result(module, x), result(compiled(new, x), x))


def test_weights_of_torch_compile_that_change_meanwhile(held: Held) -> None:
    model, x = mlp_of(16), torch.randn(2, 16)
    call = torch.compile(
        model, backend="ingot", options={"staged": True, "staged_first_level": 1, "optimization_level": 3}
    )
    call(x)
    held.wait_until_begun()
    model[0].weight.mul_(2)
    torch.testing.assert_close(call(x), model(x))
    held.let_go()
    assert ingot.wait_until_tuned(call, PATIENCE)
    torch.testing.assert_close(call(x), model(x))
    model[2].weight.mul_(2)
    torch.testing.assert_close(call(x), model(x))


@pytest.mark.parametrize("replaced", ["data", "parameter"])
def test_weights_that_were_replaced_before_a_stage_begins(
    monkeypatch: pytest.MonkeyPatch, replaced: str
) -> None:
    """Its build reads the tensors that the program was captured with."""
    tasks: list[Callable[[], None]] = []
    monkeypatch.setattr(background.WORKER, "submit", lambda _rank, task: tasks.append(task))
    model, x = mlp_of(16), torch.randn(2, 16)
    call = ingot.MutableModule(model, staged=True, staged_first_level=1, optimization_level=5)
    call(x)
    for stage in (3, 5):
        if replaced == "data":
            model[0].weight.data = torch.randn(16, 16)
        else:
            model[0].weight = nn.Parameter(torch.randn(16, 16))
        torch.testing.assert_close(call(x), model(x))
        tasks.pop()()
        assert (stage, "runs") in states_of(call)
        for _ in range(2):
            torch.testing.assert_close(call(x), model(x))


def test_mutable_modules_notice_weights_after_an_exchange(held: Held) -> None:
    model, x = mlp_of(16), torch.randn(2, 16)
    module = ingot.MutableModule(model, staged=True, staged_first_level=1, optimization_level=3)
    module(x)
    held.wait_until_begun()
    model[2].bias = nn.Parameter(torch.randn(16))
    held.let_go()
    assert ingot.wait_until_tuned(module, PATIENCE)
    torch.testing.assert_close(module(x), model(x))


def test_weights_written_in_place_end_the_stages(held: Held) -> None:
    """Nobody knows which values a build has read."""
    model, x = mlp_of(16), torch.randn(2, 16)
    module = staged(model, x)
    held.wait_until_begun()
    module.state_dict()["0.bias"].add_(1)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is stopped")]
    assert "'0.bias' was written to" in str(module.report)


# ---- copies and files ----
@pytest.mark.parametrize("name", ["mlp", "hybrid"])
def test_a_copy_goes_on_by_itself(name: str, held: Held) -> None:
    x, new = MODELS[name][1], made(name, 2)
    module = staged(made(name, 1), x)
    held.wait_until_begun()
    twin = copy.deepcopy(module)
    before = result(module, x)
    twin.refit(new.state_dict())
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert twin.wait_until_tuned(PATIENCE)
    assert states_of(module) == states_of(twin) == [(1, "ran"), (3, "runs")]
    torch.testing.assert_close(result(module, x), before)
    assert torch.equal(result(twin, x), result(compiled(new, x), x))


def test_saving_meanwhile_writes_what_runs(held: Held, tmp_path: Path) -> None:
    x, model = MODELS["mlp"][1], made("mlp", 1)
    module = staged(model, x)
    held.wait_until_begun()
    ingot.save(module, tmp_path / "first.pt2")
    first = result(module, x)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert torch.equal(result(ingot.load(tmp_path / "first.pt2"), x), first)
