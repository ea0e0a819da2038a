# SPDX-License-Identifier: Apache-2.0
"""Servers load engines and fork: children of any kind call them, in processes that have torch loaded."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable

import ingot
import numpy as np
import pytest
import torch

pytestmark = pytest.mark.usefixtures("binding")

LONGEST = 60  # seconds that a child may take


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(256, 128)
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x):
        self.count.add_(1)
        return self.linear(x), self.count.clone()


@pytest.fixture(scope="module")
def engine_file(tmp_path_factory):
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("fork") / "model.ingot"
    module = ingot.compile(Model().eval(), inputs=[torch.ones(8, 256)])
    ingot.save(module, path, output_format="engine")
    return path


X = np.linspace(-1, 1, 8 * 256, dtype=np.float32).reshape(8, 256)


def in_child(body: Callable[[], bool]) -> int | None:
    """The exit status of a forked child, 0 if `body` was true there; None if it hung."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if body() else 2
        finally:
            os._exit(status)
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def threads_of_process() -> int:
    return len(os.listdir("/proc/self/task"))


def test_child_forked_right_after_a_load(engine_file):
    expected = ingot.Engine.load(engine_file)(X)[0]
    for _ in range(10):
        engine = ingot.Engine.load(engine_file)
        assert in_child(lambda engine=engine: np.array_equal(engine(X)[0], expected)) == 0


def test_children_have_their_own_threads(engine_file):
    engine = ingot.Engine.load(engine_file)
    expected = engine(X)[0]
    threads = ingot.get_threads()

    def runs_on_all_threads() -> bool:
        same = np.array_equal(engine(X)[0], expected)
        return same and ingot.get_threads() == threads and threads_of_process() >= threads

    assert in_child(runs_on_all_threads) == 0
    assert in_child(lambda: in_child(runs_on_all_threads) == 0 and runs_on_all_threads()) == 0


def test_engines_have_threads_of_their_own_in_children_too(engine_file):
    engine = ingot.Engine.load(engine_file, threads=2)
    expected = engine(X)[0]

    def runs_on_own_threads() -> bool:
        same = np.array_equal(engine(X)[0], expected)
        return same and threads_of_process() >= engine.threads

    assert in_child(runs_on_own_threads) == 0
    assert in_child(lambda: in_child(runs_on_own_threads) == 0 and runs_on_own_threads()) == 0
    assert np.array_equal(engine(X)[0], expected)


def test_children_set_threads(engine_file):
    engine = ingot.Engine.load(engine_file)
    expected = engine(X)[0]

    def run() -> bool:
        ingot.set_threads(2)
        return np.array_equal(engine(X)[0], expected)

    for _ in range(4):
        assert in_child(run) == 0


def test_fork_while_other_threads_call(engine_file):
    """Some of them have the context of the engine with a state, which the child does without."""
    engine = ingot.Engine.load(engine_file)
    expected = engine(X)[0]
    stop = threading.Event()

    def call() -> None:
        while not stop.is_set():
            engine(X)

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    try:
        for _ in range(20):
            assert in_child(lambda: np.array_equal(engine(X)[0], expected)) == 0
    finally:
        stop.set()
        for caller in callers:
            caller.join()


def test_children_load_and_refit(engine_file):
    engine = ingot.Engine.load(engine_file)
    weight = torch.zeros(128, 256)

    def refit() -> bool:
        other = ingot.Engine.load(engine_file)
        for each in (engine, other):
            each.refit({"linear.weight": weight}, partial=True)
        return np.array_equal(engine(X)[0], other(X)[0])

    assert in_child(refit) == 0


def run_in_worker(path: str) -> bytes:
    return ingot.Engine.load(path)(X)[0].tobytes()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing(engine_file, method):
    expected = run_in_worker(str(engine_file))
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = [pool.apply_async(run_in_worker, (str(engine_file),)) for _ in range(4)]
        assert [result.get(timeout=LONGEST) for result in results] == [expected] * 4
