# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cuda_peers MODEL ...`: halves on the first GPU: eager, eager + CUDA graph, inductor, Ingot with predicted
and with timed tactics (levels 3 and 5), in turns.

A time is the median of a call on an idle GPU, by events. Inputs lie on the GPU; two sets of them are used in turns, but the graph of eager
has one. Errors are the largest difference to fp32 in eager over its largest value.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from pathlib import Path

import ingot
import torch
from ingot.devices import architecture

from bench import cuda_cases
from bench.cuda_graphs import graph_of

ROUNDS, CALLS = 10, 20
Way = Callable[[int], object]  # runs on a set of inputs


def call_us(way: Way) -> list[float]:
    times = []
    for k in range(-3, CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        way(k % 2)
        end.record()
        end.synchronize()
        if k >= 0:
            times.append(begin.elapsed_time(end) * 1e3)
    return times


def first(result: object) -> torch.Tensor:
    return result[0] if isinstance(result, (tuple, list)) else result


def measure(name: str, dtype: torch.dtype) -> dict:
    case = cuda_cases.build(name)
    model = case.model.eval()
    exact = first(model.cuda()(*[value.cuda() for value in case.args])).float()
    model, args = cuda_cases.in_dtype(case, dtype)
    device = f"cuda:{architecture()}"
    program = torch.export.export(model, args)
    engine = ingot.build(program, device=device)
    tuned = ingot.build(program, device=device, optimization_level=5)
    sets = [tuple(value.cuda().clone() for value in args) for _ in range(2)]
    model = model.cuda()
    compiled = torch.compile(model, mode="reduce-overhead")
    graph = graph_of(lambda: model(*sets[0]))
    ways: dict[str, Way] = {
        "eager": lambda k: model(*sets[k]),
        "eager + graph": lambda _: graph(),
        "inductor": lambda k: compiled(*sets[k]),
        "ingot": lambda k: engine(*sets[k]),
        "ingot tuned": lambda k: tuned(*sets[k]),
    }
    for k in range(8):
        ways["inductor"](k % 2)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, run in ways.items():
            times[way] += call_us(run)
    errors = {
        way: float((first(ways[way](0)).float() - exact).abs().max() / exact.abs().max())
        for way in ("eager", "ingot", "ingot tuned")
    }
    return {
        "model": name,
        "dtype": str(dtype),
        "us": {way: statistics.median(taken) for way, taken in times.items()},
        "error": errors,
    }


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    parser.add_argument("--output", type=Path, help="JSON")
    given = parser.parse_args()
    rows = []
    with torch.no_grad():
        for name in given.models:
            rows.append(measure(name, getattr(torch, given.dtype)))
            row = rows[-1]
            times = "  ".join(f"{way} {us:8.1f} us" for way, us in row["us"].items())
            print(f"{name:14} {times}  errors {row['error']}", flush=True)
    if given.output:
        given.output.write_text(
            json.dumps({"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows})
        )


if __name__ == "__main__":
    main()
