# SPDX-License-Identifier: Apache-2.0
"""Programs end with their own status while daemon threads are inside of Ingot. (Inside of torch they are aborted, so none is there.)

pytest tests/python/test_exit.py -k runs
"""

import os
import subprocess
import sys
from pathlib import Path

import ingot
import pytest
import torch
from torch import nn

# Threads that call `work` without end; the program ends once each of them has ended one call.
PROGRAM = """
import threading
import ingot, numpy

array = numpy.ones((64, 32), numpy.float32)
{work}
begun = [threading.Event() for _ in range(3)]

def go_on(event):
    try:
        while True:
            work()
            event.set()
    finally:  # a failure does not wait
        event.set()

for event in begun:
    threading.Thread(target=go_on, args=(event,), daemon=True).start()
for event in begun:
    event.wait()
print("the end", flush=True)
"""
RUNS = """
engine = ingot.Engine.load("model.ingot")
work = lambda: engine(array)
"""
RUNS_BY_CTYPES = """
from ingot import _ctypes
engine = ingot.Engine(_ctypes.Engine.load_memory(open("model.ingot", "rb").read()))
work = lambda: engine(array)
"""
REFITS = """
engine = ingot.Engine.load("model.ingot")
def work():
    engine.refit({"0.weight": array[:32]}, partial=True)
    engine(array)
"""
LOADS = """
work = lambda: ingot.Engine.load("model.ingot")
"""
BUILDS = """
def progress(*_):
    sum(range(10_000))  # long enough for another thread's turn
work = lambda: ingot.build("model.pt2", progress=progress)
"""
CACHES = """
class Cache:
    def load(self, key):
        sum(range(10_000))
    def save(self, key, data):
        sum(range(10_000))
cache = Cache()
work = lambda: ingot.build("model.pt2", custom_engine_cache=cache, cache_built_engines=True)
"""
WORKS = {
    "runs": RUNS,
    "runs_by_ctypes": RUNS_BY_CTYPES,
    "refits": REFITS,
    "loads": LOADS,
    "builds": BUILDS,
    "caches": CACHES,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("exit")
    model = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32)).eval()
    program = torch.export.export(model, (torch.ones(64, 32),))
    torch.export.save(program, folder / "model.pt2")
    ingot.compile(program).engine.save(folder / "model.ingot")
    return folder


@pytest.mark.parametrize("work", WORKS)
def test_daemon_threads_that_go_on(work: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(work=WORKS[work])],
        env={**os.environ, "INGOT_CACHE_DIR": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "the end\n", "")
