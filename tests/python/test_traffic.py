# SPDX-License-Identifier: Apache-2.0
"""Timings that no call disturbs, by a clock that only the test moves."""

from __future__ import annotations

import itertools
from typing import Any

import ingot
import pytest
import torch
from ingot import background, staging
from ingot.staged_part import Better, StagedPart, times_of
from ingot.staging import Staged
from ingot.traffic import Quiet, StoppedError, Traffic


class Clock:
    """`sleep` passes the time, and does what is planned for it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.planned: list[tuple[float, object]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def traffic_of(clock: Clock) -> Traffic:
    return Traffic(clock, clock.sleep)


def call(traffic: Traffic) -> None:
    with traffic.call():
        pass


def test_a_timing_waits_for_a_pause_between_calls() -> None:
    clock = Clock()
    traffic = traffic_of(clock)
    assert traffic.wait_for_idle(0.5, lambda: False) == 0, "there was no call yet"
    assert clock.now == 100.0
    call(traffic)
    assert traffic.wait_for_idle(0.5, lambda: False) == 1
    assert clock.now == pytest.approx(100.5, abs=1e-3)


def test_a_timing_waits_while_a_call_runs() -> None:
    clock = Clock()
    traffic = traffic_of(clock)
    running = traffic.call()
    running.__enter__()
    looks = iter([False] * 5 + [True])
    assert traffic.wait_for_idle(0.0, lambda: next(looks)) == -1, "it is stopped while it waits"
    running.__exit__(None, None, None)
    assert traffic.wait_for_idle(0.0, lambda: False) == 1


def test_disturbed_timings_are_discarded_and_repeated() -> None:
    traffic = traffic_of(Clock())
    quiet = Quiet(traffic)
    taken = []

    def measure() -> float:
        taken.append(len(taken))
        if len(taken) < 4:
            call(traffic)
        return float(taken[-1])

    assert quiet.undisturbed(measure) == 3.0
    assert quiet.discarded == 3
    assert quiet.undisturbed(lambda: 7.0) == 7.0
    assert quiet.discarded == 3


def test_pauses_get_longer_while_calls_disturb_and_end_at_some_point() -> None:
    clock = Clock()
    traffic = traffic_of(clock)
    quiet = Quiet(traffic, patience=12)
    pauses = []

    def measure() -> float:
        pauses.append(clock.now)
        call(traffic)
        return 0.0

    with pytest.raises(StoppedError):
        quiet.undisturbed(measure)
    assert quiet.is_too_busy
    waits = [after - before for before, after in itertools.pairwise(pauses)]
    assert waits == sorted(waits)
    assert waits[0] < 0.02
    assert waits[-1] == pytest.approx(1.0, abs=1e-3)
    assert len(pauses) == 12
    assert quiet(True) == quiet(False) == -1, "a build is cancelled"


def test_pauses_that_are_all_short_are_used_from_their_beginning() -> None:
    """A call of 0.1 s begins 0.1 s after the one before has ended: a timing of 0.08 s fits in between if it begins early enough."""
    clock = Clock()
    traffic = traffic_of(clock)
    running: list[Any] = []

    def go_to(end: float) -> None:
        """Time passes, in which calls begin and end."""
        while clock.now < end:
            slot = round((clock.now - 100.0) * 1e3) // 100
            if slot % 2 == 0 and not running:
                running.append(traffic.call())
                running[0].__enter__()
            elif slot % 2 == 1 and running:
                running.pop().__exit__(None, None, None)
            clock.now = round(clock.now + 1e-3, 6)

    clock.sleep = lambda seconds: go_to(clock.now + seconds)
    traffic = Traffic(clock, clock.sleep)
    quiet = Quiet(traffic)
    quiet._idle = 0.16  # after some disturbed ones
    for _ in range(3):
        quiet.undisturbed(lambda: go_to(clock.now + 0.08))
    assert clock.now < 105
    assert not quiet.is_too_busy


def test_an_undisturbed_timing_makes_pauses_short_again() -> None:
    clock = Clock()
    traffic = traffic_of(clock)
    quiet = Quiet(traffic, patience=4)
    for _ in range(5):  # more in all, but not in sequence
        calls = iter([True, True, False])
        quiet.undisturbed(lambda calls=calls: call(traffic) if next(calls) else None)
    assert quiet.discarded == 10
    assert not quiet.is_too_busy


def test_a_stop_ends_timings() -> None:
    stopped = False
    quiet = Quiet(traffic_of(Clock()), lambda: stopped)
    assert quiet.undisturbed(lambda: 1.0) == 1.0
    stopped = True
    with pytest.raises(StoppedError):
        quiet.undisturbed(lambda: 1.0)


def test_gains_are_the_smallest_of_undisturbed_turns() -> None:
    clock = Clock()
    traffic = traffic_of(clock)

    class Core:
        def __init__(self, seconds: list[float]) -> None:
            self.seconds = iter(seconds)

        def run(self, _tensors: list[torch.Tensor]) -> None:
            taken = next(self.seconds)
            if taken < 0:  # a call comes in between, and the time says nothing
                call(traffic)
            clock.now += abs(taken)

    # the first turn warms up
    before, after = Core([0.9, 0.4, 0.3, 0.5]), Core([0.8, 0.2, -0.01, 0.25, 0.3])
    assert times_of(before, after, [], Quiet(traffic), clock) == pytest.approx((300, 200))


def test_builds_ask_before_and_after_each_timing_of_tactics() -> None:
    """The whole way through the compiler: calls that begin during a timing make it be repeated."""
    traffic = Traffic()
    quiet = Quiet(traffic)
    asked: list[bool] = []

    def ask(waits: bool) -> int:
        asked.append(waits)
        if not waits and len(asked) < 4:
            call(traffic)
        return quiet(waits)

    x = torch.randn(8, 64)
    with torch.no_grad():
        module = ingot.compile(
            torch.nn.Linear(64, 64).eval(),
            inputs=[x],
            staged=True,
            staged_first_level=1,
            optimization_level=1,
            engine_cache_dir="off",
        )
    part: StagedPart = module._staged.parts[0]
    better = part.better(4, 1, ask, lambda *_: True)
    assert isinstance(better, Better)
    assert better.build["tuning"]["timed"] > 0
    assert asked.count(True) > 3
    assert quiet.discarded >= 1
    with pytest.raises(ingot.UserError, match="cancelled"):
        part.better(5, 1, lambda waits: -1, lambda *_: True)


def test_a_module_that_is_never_idle_keeps_its_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    class Busy(Traffic):
        """Calls begin all the time."""

        def wait_for_idle(self, seconds: float, is_stopped: object, most: float = 0.0) -> int:
            self.begun += 1
            return self.begun - 1

    monkeypatch.setattr(background, "TRAFFIC", Busy())
    monkeypatch.setattr(background, "_lower_priority", lambda: None)
    x = torch.randn(8, 64)
    model = torch.nn.Linear(64, 64).eval()
    with torch.no_grad():
        module = ingot.compile(model, inputs=[x], staged=True, staged_first_level=1, engine_cache_dir="off")
        module(x)
        assert module.wait_until_tuned(120)
        torch.testing.assert_close(module(x), model(x))
    states = [(stage.level, stage.state) for stage in module.report.stages]
    assert states == [(1, "ran"), (3, "runs"), (5, "is not taken")], "level 3 times nothing"
    assert "calls left no time for timings" in str(module.report)
    assert isinstance(module._staged, Staged)


def test_only_the_run_that_a_call_disturbed_is_timed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls leave pauses for single runs, and none for all runs of a program."""

    class Alternating(Traffic):
        """A call begins during every second timing."""

        timings = 0

        def wait_for_idle(self, seconds: float, is_stopped: object, most: float = 0.0) -> int:
            before = self.begun
            self.timings += 1
            self.begun += self.timings % 2
            return before

    monkeypatch.setattr(background, "TRAFFIC", Alternating())
    monkeypatch.setattr(background, "_lower_priority", lambda: None)
    monkeypatch.setattr(staging, "_SLOWER", float("inf"))
    x, model = torch.randn(8, 64), torch.nn.Linear(64, 64).eval()
    with torch.no_grad():
        module = ingot.compile(model, inputs=[x], staged=True, engine_cache_dir="off")
        module(x)
        assert module.wait_until_tuned(120)
    assert [(stage.level, stage.state) for stage in module.report.stages] == [(3, "ran"), (5, "runs")]
    assert module.report.builds[0]["tuning"]["timed"] > 0
