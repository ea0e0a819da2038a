# SPDX-License-Identifier: Apache-2.0
"""fallback="fastest": partitions that torch runs faster run there, if the whole gets faster. Times are given, not measured."""

from __future__ import annotations

import copy
import itertools
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from ingot import fastest, hybrid, parts, ranks
from ingot.speed import Times, times_of
from lacking import negated
from refit_models import refused
from small_models import Counter
from torch import nn

FASTER, EQUAL = Times(1.0, 2.0, 0.01), Times(1.0, 1.04, 0.0)


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Three(nn.Module):
    """Two engines with a part in torch between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x).relu()
        return self.last(negated(y) + y * 2)


def given_times(patch: pytest.MonkeyPatch, of_parts: Times | list[Times], of_whole: Times) -> None:
    rest = itertools.chain(of_parts if isinstance(of_parts, list) else [of_parts], itertools.repeat(EQUAL))
    for place in (hybrid, parts):
        patch.setattr(place, "measure", lambda *_: next(rest))
    patch.setattr(fastest, "whole_times", lambda *_: of_whole)


def jit(model: nn.Module, x: torch.Tensor, **options: Any) -> Any:
    call = torch.compile(model, backend="ingot", options=options)
    call(x)
    return call


def aot(model: nn.Module, x: torch.Tensor, **options: Any) -> Any:
    return ingot.compile(model, inputs=[x], **options)


@pytest.mark.parametrize("compile", [jit, aot])
def test_the_slower_partition_runs_in_torch(compile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Three().eval(), torch.randn(4, 4)
    given_times(monkeypatch, [EQUAL, FASTER, EQUAL], FASTER)
    call = compile(model, x, fallback="fastest")
    report = ingot.report(call)
    assert [segment.backend for segment in report.segments] == ["cpu", "torch"]
    moved = [node for node in report.fallbacks if "faster in torch" in node.reason]
    assert moved
    assert "1.000 ms there and 2.000 ms in an engine" in moved[0].reason
    trial = report.trials[0]
    assert trial.is_taken
    assert (trial.before_ms, trial.after_ms) == (2.0, 1.0)
    assert "took 1.000 ms in torch, 2.000 ms in an engine" in str(report)
    assert_accurate(call(x), model(x), golden(model, [x]))


@pytest.mark.parametrize("compile", [jit, aot])
def test_it_stays_if_the_whole_gets_slower(compile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Three().eval(), torch.randn(4, 4)
    given_times(monkeypatch, [FASTER, EQUAL], Times(3.0, 2.0, 0.0))
    report = ingot.report(compile(model, x, fallback="fastest"))
    assert [segment.backend for segment in report.segments] == ["cpu", "torch", "cpu"]
    assert not report.trials[0].is_taken
    assert "they stay in engines" in str(report)


def test_a_whole_program_may_go_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = nn.Linear(4, 4).eval(), torch.randn(4, 4)
    given_times(monkeypatch, FASTER, FASTER)
    module = aot(model, x, fallback="fastest")
    assert [segment.backend for segment in module.report.segments] == ["torch"]
    assert torch.equal(module(x), model(x))


def test_differences_within_the_noise_move_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert FASTER.is_faster_in_torch
    assert not EQUAL.is_faster_in_torch, "less than 5 %"
    assert not Times(1.0, 1.4, 0.5).is_faster_in_torch, "less than the noise"
    given_times(monkeypatch, EQUAL, FASTER)
    report = aot(Three().eval(), torch.randn(4, 4), fallback="fastest").report
    assert len(report.segments) == 3
    assert not report.trials
    assert report.segments[0].torch_ms == 1.0, "both times are in the report"


def test_times_are_the_smallest_of_turns_and_their_noise() -> None:
    now, taken = [0.0], {0: iter([9.0, 1.0, 1.5, 1.2, 1.0, 1.0]), 1: iter([9.0, 2.0, 3.0, 3.0, 3.0, 2.0])}

    def way(number: int) -> None:
        now[0] += next(taken[number]) / 1e3

    times = times_of([lambda: way(0), lambda: way(1)], [], clock=lambda: now[0])
    assert (times.torch_ms, times.engine_ms, times.noise) == pytest.approx((1.0, 2.0, 0.5))


@pytest.mark.parametrize("compile", [jit, aot])
def test_states_are_as_before_the_measurements(compile: Any) -> None:
    """Measured for real: whatever runs where, the calls of the user are the first."""
    model, x = Counter().eval(), torch.randn(2, 4)
    eager = copy.deepcopy(model)
    call = compile(model, x, fallback="fastest") if compile is aot else None
    if call is None:
        call = torch.compile(model, backend="ingot", options={"fallback": "fastest"})
    for _ in range(3):
        torch.testing.assert_close(call(x), eager(x))


def test_the_whole_is_measured_on_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = Counter().eval(), torch.randn(2, 4)
    for place in (hybrid, parts):
        monkeypatch.setattr(place, "measure", lambda *_: FASTER)
    module = aot(model, x, fallback="fastest")
    assert module.report.trials[0].before_ms > 0
    eager = copy.deepcopy(model)
    for _ in range(2):
        torch.testing.assert_close(module(x), eager(x))


def test_staged_modules_measure_engines_of_level_3(monkeypatch: pytest.MonkeyPatch) -> None:
    given_times(monkeypatch, [EQUAL, FASTER, EQUAL], FASTER)
    module = aot(Three().eval(), torch.randn(4, 4), fallback="fastest", staged=True, optimization_level=3)
    assert [(stage.level, stage.state) for stage in module.report.stages] == [(3, "runs")]
    assert module.wait_until_tuned(60)


def test_ranks_do_not_decide_by_their_own_timings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "groups_in", lambda _module: iter(["tp"]))
    error = refused(lambda: aot(Three().eval(), torch.randn(4, 4), fallback="fastest"))
    assert error.code == "INGOT-U002"
    assert "collectives" in str(error)


def test_engines_alone_have_no_torch(tmp_path: Path) -> None:
    model, x = nn.Linear(4, 4).eval(), torch.randn(4, 4)
    program = torch.export.export(model, (x,))
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    for call in (
        lambda: ingot.build(program, fallback="fastest"),
        lambda: ingot.build(path, fallback="fastest"),
        lambda: aot(model, x, fallback="fastest", require_full_compilation=True),
    ):
        error = refused(call)
        assert error.code == "INGOT-U002"
        assert "optimization_level=5" in error.advice
    assert refused(lambda: aot(model, x, fallback="slowest")).code == "INGOT-U002"


def test_the_command_line_says_what_to_use(tmp_path: Path) -> None:
    command = [Path(sys.executable).with_name("ingot"), "build", "model.pt2", "--fallback", "fastest"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode != 0
    assert "modules of Python" in done.stderr
    assert "optimization_level=5" in done.stderr
