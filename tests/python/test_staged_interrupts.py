# SPDX-License-Identifier: Apache-2.0
"""Staged builds, and forks, Ctrl-C and exits at any moment: calls go on, whole stages run, and nobody waits for ever."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
import torch
from accuracy import assert_accurate, golden
from ingot.gate import Gate
from ingot.staged_part import StagedPart
from ingot.traffic import Traffic
from refit_models import MODELS, made, result
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

__all__ = ["held", "no_grad", "tests_do_not_wait_for_others", "times_are_predictable"]  # fixtures


def test_a_fork_waits_for_an_exchange(held: Held) -> None:
    """The child has the engines of one stage, and its report says of which."""
    x, model = MODELS["hybrid"][1], made("hybrid", 1)
    module, begun = staged(model, x), threading.Event()
    assert len(module.compiled.engines) > 1
    held.wait_until_begun()
    take = module._staged._take

    def take_slowly(better: Any) -> None:
        begun.set()
        time.sleep(0.3)
        take(better)

    module._staged._take = take_slowly
    held.let_go()
    assert begun.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            assert states_of(module)[-1] == (3, "runs")
            assert_accurate(result(module, x), model(x), golden(model, [x]))
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module)[-1] == (3, "runs")


class Interrupting:
    """A lock whose release is followed by Ctrl-C."""

    def __init__(self, own: Any) -> None:
        self.own, self.is_over = own, False

    def __enter__(self) -> Any:
        return self.own.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.own.__exit__(*error)
        if not self.is_over:
            self.is_over = True
            raise KeyboardInterrupt


def test_an_interrupted_call_is_over() -> None:
    gate, traffic = Gate(), Traffic()
    gate._turn, traffic._lock = Interrupting(gate._turn), Interrupting(traffic._lock)
    for passed in (gate, traffic):
        with pytest.raises(KeyboardInterrupt), passed.call():
            pass
    with gate.change():
        pass
    assert traffic.wait_for_idle(0, lambda: False) == 1


def test_a_change_waits_for_calls_and_calls_for_it() -> None:
    gate, order = Gate(), []
    began, ended = threading.Event(), threading.Event()

    def change() -> None:
        began.set()
        with gate.change():
            order.append("change")

    def call() -> None:
        with gate.call():
            order.append("call")
        ended.set()

    with gate.call():
        changing = threading.Thread(target=change)
        changing.start()
        assert began.wait(PATIENCE)
        time.sleep(0.05)  # it waits now
        calling = threading.Thread(target=call)
        calling.start()
        assert not ended.wait(0.05)
        order.append("first")
    changing.join(PATIENCE)
    calling.join(PATIENCE)
    assert order == ["first", "change", "call"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_thread_does_not_end_the_stages(
    monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """A cache of the user may raise anything."""

    def fail(*_rest: Any) -> None:
        raise error("enough")

    build = StagedPart.better
    monkeypatch.setattr(StagedPart, "better", fail)
    x = torch.randn(2, 16)
    module = staged(mlp_of(16), x)
    assert module.wait_until_tuned(PATIENCE)
    assert states_of(module) == [(1, "runs"), (3, "has failed")]
    assert f"{error.__name__}: enough" in str(module.report)
    monkeypatch.setattr(StagedPart, "better", build)
    other = staged(mlp_of(16), x)
    assert other.wait_until_tuned(PATIENCE)
    assert states_of(other)[-1] == (3, "runs")


def test_calls_that_are_interrupted_again_and_again() -> None:
    """Ctrl-C arrives during calls while engines are built and exchanged; then calls and stages go on."""
    text = """
import random, signal, sys, threading, time
import ingot, torch
from ingot import background
background._lower_priority = lambda: None  # the machine may have other work
sys.setswitchinterval(1e-4)
is_calling, interrupted, stop = False, 0, threading.Event()

def raise_once(*_unused):
    global is_calling
    if is_calling:
        is_calling = False
        raise KeyboardInterrupt

def interrupt():
    for _ in range(300):
        time.sleep(random.random() * 2e-3)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    stop.set()

signal.signal(signal.SIGINT, raise_once)
x = torch.randn(2, 16)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.GELU(), torch.nn.Linear(16, 16)).eval()
module = ingot.compile(model, inputs=[x], staged=True, staged_first_level=1, optimization_level=3)
threading.Thread(target=interrupt).start()
while not stop.is_set():
    try:
        is_calling = True
        module(x)
        is_calling = False
    except KeyboardInterrupt:
        interrupted += 1
assert interrupted > 20, interrupted
assert module.wait_until_tuned(100), module.report
assert module.report.stages[-1].state in ("runs", "is not taken"), module.report
torch.testing.assert_close(module(x), model(x))
print("done")
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.stdout == "done\n", done.stderr
