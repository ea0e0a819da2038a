# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cuda_host MODEL ...`: what the host takes for a model on the first GPU: to compile it, to start, and to call it.

Seconds, each in a process of its own with empty caches: the first call of `torch.compile(model)` by inductor with its defaults, and by
Ingot; an export, builds of it at levels 3 and 5, and from the file of the latter to the end of its first call (`start`), with torch
imported.

Microseconds of the host for one of 20 calls in a row, the best of many such rows in turns, on an idle GPU: an `Engine`, what
`ingot.compile` returns, a CUDA graph of the engine that torch replays, where the driver's part is left, an `Engine` whose inputs are at
other addresses in each call, and one that enqueues kernel by kernel; through torch.compile: Ingot, a backend that returns results that
it has already, one that replays a graph of a single kernel before, and one that calls a single operator: they show how much slower
torch's own guards are after any work between them.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import torch
from ingot.devices import architecture

from bench import cuda_cases
from bench.compiled_calls import does_nothing, multiplies
from bench.cuda_peers import Way

ROUNDS, CALLS = 60, 20


def case_of(name: str, dtype: torch.dtype) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    return cuda_cases.in_dtype(cuda_cases.build(name), dtype)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def first_call(name: str, dtype: torch.dtype, backend: str) -> dict[str, float]:
    model, args = case_of(name, dtype)
    given = [value.cuda() for value in args]
    compiled = torch.compile(model.cuda(), backend=backend)
    return {f"torch.compile, {backend}": seconds(lambda: compiled(*given))[0]}


def builds(name: str, dtype: torch.dtype, file: str) -> dict[str, float]:
    model, args = case_of(name, dtype)
    exporting, program = seconds(lambda: torch.export.export(model, args))
    device = f"cuda:{architecture()}"
    level_3, _ = seconds(lambda: ingot.build(program, device=device))
    with ingot.Session(cache_bytes=0):  # which finds no kernel of level 3
        level_5, engine = seconds(lambda: ingot.build(program, device=device, optimization_level=5))
    engine.save(file)
    return {"export": exporting, "level 3": level_3, "level 5": level_5}


def start(name: str, dtype: torch.dtype, file: str) -> dict[str, float]:
    _, args = case_of(name, dtype)
    given = [value.cuda() for value in args]
    return {"start": seconds(lambda: ingot.Engine.load(file)(*given))[0]}


def least_us(ways: dict[str, Way]) -> dict[str, float]:
    for way in ways.values():
        for k in range(8):
            way(k % 2)
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for label, way in ways.items():
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for k in range(CALLS):
                way(k % 2)
            least[label] = min(least[label], (time.perf_counter() - begin) / CALLS * 1e6)
    return least


def ahead_of_time(name: str, dtype: torch.dtype, _: str) -> dict[str, float]:
    model, args = case_of(name, dtype)
    sets = [tuple(value.cuda().clone() for value in args) for _ in range(2)]
    module = ingot.compile(model, inputs=args, device=f"cuda:{architecture()}")
    engine = module.engine
    plain = ingot.Engine.from_bytes(engine.to_bytes(), cuda_graphs=False)
    # More than a context remembers. They share inputs that are not small: caches stay where they are.
    moving = itertools.cycle(
        tuple(value.clone() if value.numel() < 1 << 16 else value for value in sets[0]) for _ in range(100)
    )
    for _ in range(3):
        engine(*sets[0])
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        engine(*sets[0])
    return least_us({
        "Engine": lambda k: engine(*sets[k]),
        "module": lambda k: module(*sets[k]),
        "replay": lambda _: graph.replay(),
        "Engine, inputs that move": lambda _: engine(*next(moving)),
        "Engine, without graphs": lambda k: plain(*sets[k]),
    })  # fmt: skip


def replays(module: torch.fx.GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """A backend that launches as little as a CUDA graph can have, and returns results that it has already."""
    results = module(*example_inputs)
    first = results[0]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        first * first

    def call(*_: Any) -> Any:
        graph.replay()
        return results

    return call


def just_in_time(name: str, dtype: torch.dtype, _: str) -> dict[str, float]:
    model, args = case_of(name, dtype)
    model = model.cuda()
    sets = [tuple(value.cuda().clone() for value in args) for _ in range(2)]
    took = {}
    backends = {"ingot": "ingot", "nothing": does_nothing, "one graph": replays, "one operator": multiplies}
    for label, backend in backends.items():
        torch._dynamo.reset()  # one at a time: what is compiled for one code object waits in one list, which each call searches
        compiled = torch.compile(copy.deepcopy(model), backend=backend)
        took |= {f"jit, {label}": us for us in least_us({label: lambda k, f=compiled: f(*sets[k])}).values()}
    return took


STEPS = {
    "inductor": lambda name, dtype, _: first_call(name, dtype, "inductor"),
    "ingot": lambda name, dtype, _: first_call(name, dtype, "ingot"),
    "builds": builds,
    "start": start,
    "ahead of time": ahead_of_time,
    "just in time": just_in_time,
}


def measured_apart(step: str, name: str, dtype: str, folder: Path) -> dict[str, float]:
    words = [sys.executable, "-m", "bench.cuda_host", name, "--dtype", dtype, "--step", step]
    caches = {word: str(folder / step) for word in ("TORCHINDUCTOR_CACHE_DIR", "INGOT_ENGINE_CACHE_DIR")}
    words += ["--file", str(folder / "model.ingot")]
    run = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=False, timeout=480, env={**os.environ, **caches}
    )
    if run.returncode:
        raise SystemExit(f"{name}, {step}: the process that measures it ended with {run.returncode}")
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    parser.add_argument("--step", choices=list(STEPS), help="one step of one model, in this process, as JSON")
    parser.add_argument("--file", default="model.ingot", help="of the step: the engine's")
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    if given.step:
        print(json.dumps(STEPS[given.step](given.models[0], getattr(torch, given.dtype), given.file)))
        return
    for name in given.models:
        with tempfile.TemporaryDirectory() as folder:
            for step in STEPS:
                took = measured_apart(step, name, given.dtype, Path(folder))
                print(
                    f"{name:14} {step}: " + ", ".join(f"{what} {value:.1f}" for what, value in took.items()),
                    flush=True,
                )


if __name__ == "__main__":
    main()
