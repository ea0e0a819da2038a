# SPDX-License-Identifier: Apache-2.0
"""Staged builds that fail, are stopped, or would change results: the running engines stay."""

from __future__ import annotations

import contextlib
import copy
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from ingot import background, staged_part, staging
from ingot.staged_part import StagedPart
from refit_models import MODELS, made, refused, result
from small_models import mlp
from staged_builds import (
    PATIENCE,
    Held,
    held,
    mlp_like,
    mlp_of,
    no_grad,
    staged,
    states_of,
    tests_do_not_wait_for_others,
    times_are_predictable,
)
from torch import nn

__all__ = ["held", "no_grad", "tests_do_not_wait_for_others", "times_are_predictable"]  # fixtures


def test_same_bits_admits_equal_results(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """One multiplication is the same at each level."""

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 3

    x = torch.randn(5, 7)
    module = staged(Scaled(), x, staged="same_bits")
    held.let_go()
    assert not module.wait_until_tuned(0), "there was no call to compare on"
    assert refused(lambda: module.wait_until_tuned()).code == "INGOT-U006"
    module(x)
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "runs")


@pytest.mark.parametrize("difference", ["output 0", "input 0", "output 0 of a second call"])
def test_same_bits_keeps_the_running_engine_otherwise(
    difference: str, held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(2, 16)
    monkeypatch.setattr(staging, "bits_that_differ", lambda *_rest: difference)
    module = staged(mlp_of(16), x, staged="same_bits")
    before = module(x)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is not taken")]
    assert difference in str(module.report)
    assert torch.equal(module(x), before)


class Core:
    """An engine for `bits_that_differ`: writes to its input, and keeps a state."""

    def __init__(self, state: float, step: float = 0, written: float = 0) -> None:
        self.state, self.step, self.written = state, step, written

    def copy_states(self, other: Core) -> None:
        self.state = other.state

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        tensors[0].add_(self.written)
        out = tensors[0] * 0 + self.state
        self.state += self.step
        return [out]


def test_bits_are_compared_of_outputs_inputs_and_states() -> None:
    x = [torch.zeros(3)]
    differ = staged_part.bits_that_differ
    assert differ(Core(1), Core(2), x) == "", "states are those of the running engine"
    assert differ(Core(1, step=1), Core(1, step=2), x) == "output 0 of a second call"
    assert differ(Core(1, written=1), Core(1, written=2), x) == "input 0"
    assert differ(Core(0.0), CoreOf(-0.0), x) == "output 0"
    assert differ(Core(float("nan")), Core(float("nan")), x) == ""
    assert torch.equal(x[0], torch.zeros(3)), "the sample itself is not written to"


class CoreOf(Core):
    """With a state of its own."""

    def copy_states(self, other: Core) -> None:
        pass

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.full((3,), self.state)]


def test_slower_engines_are_not_taken(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "times_of", lambda *_rest: (1.0, 1.2))
    x = torch.randn(2, 16)
    module = staged(mlp_of(16), x)
    module(x)
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is not taken")]


# ---- failures ----
def test_a_failure_leaves_the_running_engine(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_rest: Any) -> None:
        raise MemoryError("none left")

    monkeypatch.setattr(StagedPart, "better", fail)
    x = torch.randn(2, 16)
    with caplog.at_level(logging.WARNING, "ingot"):
        module = staged(mlp_of(16), x)
        assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "has failed")]
    assert "MemoryError: none left" in str(module.report)
    assert len(caplog.records) == 1
    torch.testing.assert_close(module(x), mlp_like(module, x))


def test_an_exchange_of_several_engines_is_all_or_nothing(
    held: Held, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, model = MODELS["hybrid"][1], made("hybrid", 1)
    module = staged(model, x)
    assert len(module.compiled.engines) > 1
    held.wait_until_begun()
    before = [core.inspect() for core in module.compiled.engines]

    class Broken:
        def __init__(self, core: Any) -> None:
            self.core = core

        def __getattr__(self, name: str) -> Any:
            return getattr(self.core, name)

        def take_engine(self, other: Any) -> None:
            raise MemoryError

        def __deepcopy__(self, memo: dict) -> Any:
            return copy.deepcopy(self.core)

    module._staged.parts[-1].core = Broken(module.compiled.engines[-1])
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "has failed")
    assert [core.inspect() for core in module.compiled.engines] == before
    assert_accurate(result(module, x), model(x), golden(model, [x]))


def test_stopping_keeps_what_runs(held: Held) -> None:
    x = torch.randn(2, 16)
    module = staged(mlp_of(16), x, level=5)
    held.wait_until_begun()
    module.stop_tuning()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is stopped"), (5, "is stopped")]
    torch.testing.assert_close(module(x), mlp_like(module, x))


def test_a_module_that_is_dropped_is_not_tuned(held: Held) -> None:
    module = staged(mlp_of(16), torch.randn(2, 16))
    held.wait_until_begun()
    stages = module._staged
    del module
    assert stages.wait(PATIENCE)
    assert "the module is gone" in stages.summary()


def test_a_forked_child_keeps_the_running_engine(held: Held) -> None:
    x = torch.randn(2, 16)
    module = staged(mlp_of(16), x)
    expected = module(x)
    held.wait_until_begun()
    child = os.fork()
    if child == 0:
        is_right = torch.equal(module(x), expected) and "forked" in str(module.report)
        is_right = is_right and module.wait_until_tuned(0)
        os._exit(0 if is_right else 1)
    assert os.waitpid(child, 0)[1] == 0
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "runs"), "the parent goes on"


def test_a_process_ends_while_it_builds() -> None:
    text = """
import logging, torch, ingot
logging.basicConfig(level=logging.INFO)
from ingot.staged_part import StagedPart
import threading
begun, build = threading.Event(), StagedPart.better
def better(part, level, *rest):
    begun.set()
    while rest[2](): threading.Event().wait(0.01)
    return build(part, level, *rest)
StagedPart.better = better
x = torch.randn(2, 8)
module = ingot.compile(torch.nn.Linear(8, 8).eval(), inputs=[x], staged=True)
begun.wait()
print(module(x).shape)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "torch.Size([2, 8])" in done.stdout
    assert done.stderr.count("the process ends") >= 1


# ---- calls meanwhile ----
def test_calls_of_many_threads_see_whole_stages(held: Held) -> None:
    x, model = MODELS["hybrid"][1], made("hybrid", 1)
    module = staged(model, x)
    wanted = model(x)
    failures: list[Exception] = []
    stop = threading.Event()

    def call() -> None:
        try:
            with torch.no_grad():
                while not stop.is_set():
                    torch.testing.assert_close(result(module, x), wanted, rtol=1e-3, atol=1e-4)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    held.let_go()
    assert module.wait_until_tuned(PATIENCE)
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert states_of(module)[-1] == (3, "runs")


def test_the_thread_has_the_lowest_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def look(*_rest: Any) -> None:
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        raise ValueError

    monkeypatch.setattr(StagedPart, "better", look)
    module = staged(mlp_of(16), torch.randn(2, 16))
    assert module.wait_until_tuned(PATIENCE)
    assert found == [19]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) < 19


def test_threads_of_builds_are_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def look(_part: StagedPart, _level: int, threads: int, *_rest: Any) -> None:
        given.append(threads)
        raise ValueError

    monkeypatch.setattr(StagedPart, "better", look)
    for options in ({}, {"staged_threads": 3}):
        assert staged(mlp_of(16), torch.randn(2, 16), **options).wait_until_tuned(PATIENCE)
    assert given == [1, 3]


BUILDS: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "build": lambda model, x: ingot.build(torch.export.export(model, (x,)), staged=True),
    "value": lambda model, x: ingot.compile(model, inputs=[x], staged="sometimes"),
    "threads": lambda model, x: ingot.compile(model, inputs=[x], staged_threads=0),
}


@pytest.mark.parametrize("case", BUILDS)
def test_what_cannot_be_staged_is_refused(case: str) -> None:
    assert refused(lambda: BUILDS[case](mlp().eval(), torch.randn(2, 8))).code == "INGOT-U002"


def test_a_task_that_fails_leaves_the_worker_to_others(caplog: pytest.LogCaptureFixture) -> None:
    worker, finished = background.Worker(), threading.Event()

    def fail() -> None:
        raise ValueError("no")

    worker.submit(1, fail)
    worker.submit(2, finished.set)
    assert finished.wait(PATIENCE)
    assert "the next ones go on" in caplog.text


def test_a_stop_during_the_exchange_counts(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exchange waits for the calls under way; whoever stops meanwhile keeps the engines."""
    x = torch.randn(2, 16)
    module = staged(mlp_of(16), x)
    change = module._staged.gate.change

    @contextlib.contextmanager
    def stopped_while_it_waits() -> Iterator[None]:
        with change():
            module.stop_tuning()
            yield

    monkeypatch.setattr(module._staged.gate, "change", stopped_while_it_waits)
    kernels = module.engine.inspect()
    held.let_go()
    thread = background.WORKER._thread
    if thread is not None:
        thread.join(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "is stopped")]
    assert module.engine.inspect() == kernels


def test_the_worker_takes_low_levels_first() -> None:
    worker, done, gate, job = background.Worker(), [], threading.Event(), Job()
    worker.watch(job)
    worker.submit(1, gate.wait)
    finished = threading.Event()
    worker.submit(9, finished.set)
    for rank in (5, 3, 5, 3):
        worker.submit(rank, lambda rank=rank: done.append(rank))
    gate.set()
    assert finished.wait(PATIENCE)
    assert done == [3, 3, 5, 5]


class Job:
    def forget_threads(self) -> None: ...

    def lose_thread(self, reason: str) -> None: ...
