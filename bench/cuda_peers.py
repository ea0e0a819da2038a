# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cuda_peers MODEL ...`: halves on the first GPU: eager, eager + CUDA graph, inductor, Ingot with predicted
and with timed tactics (levels 3 and 5), and through torch.compile, in turns, each round beginning with another one.

A time is the median of a call on an idle GPU, by events. The GPU rests before the calls of each way: its clock follows the power of what
ran in the last tenths of a second, and a way would pay for the one before it. `in a row`: one of many calls without a pause, after half a
second of them. Inputs lie on the GPU; two sets of them are used in turns, but the graph of eager has one. `cold`: the second-level cache
was overwritten before each call. Errors are the largest difference to fp32 in eager over its largest value.

Each model is measured in a process of its own. With --output, rows are kept as they come, and those that the file has of this GPU,
this torch and this build are not measured again. --max-autotune measures inductor that way too, with weights frozen, which takes
minutes; later runs print its time scaled by that of eager + CUDA graph, marked with *.
"""

from __future__ import annotations

import hashlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import torch
from ingot.devices import architecture

from bench import cuda_cases
from bench.bars import bars
from bench.cuda_graphs import graph_of

ROUNDS, CALLS = 10, 20
REST = 0.05  # seconds, before the calls of a way
CACHE_BYTES = 256 << 20  # more than any second-level cache
SECONDS_OF_A_ROW = 480
AUTOTUNED = "inductor, max-autotune"
Way = Callable[[int], object]  # runs on a set of inputs


def call_us(way: Way, before: Callable[[], object] = lambda: None) -> list[float]:
    times = []
    for k in range(-3, CALLS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        before()
        begin.record()
        way(k % 2)
        end.record()
        end.synchronize()
        if k >= 0:
            times.append(begin.elapsed_time(end) * 1e3)
    return times


def in_a_row_us(way: Way) -> float:
    for k in range(max(CALLS, round(0.5e6 / statistics.median(call_us(way))))):
        way(k % 2)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for k in range(5 * CALLS):
        way(k % 2)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / (5 * CALLS)


def first(result: object) -> torch.Tensor:
    return result[0] if isinstance(result, (tuple, list)) else result


def _autotuned(model: torch.nn.Module, args: tuple[torch.Tensor, ...]) -> Way:
    from torch._inductor import config

    config.freezing = True
    compiled = torch.compile(model, mode="max-autotune", dynamic=False)
    compiled(*args)
    config.freezing = False
    return compiled


def measure(name: str, dtype: torch.dtype, autotunes: bool) -> dict[str, Any]:
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
    ours = torch.compile(model, backend="ingot")
    graph = graph_of(lambda: model(*sets[0]))
    ways: dict[str, Way] = {
        "eager": lambda k: model(*sets[k]),
        "eager + graph": lambda _: graph(),
        "inductor": lambda k: compiled(*sets[k]),
        "ingot": lambda k: engine(*sets[k]),
        "ingot tuned": lambda k: tuned(*sets[k]),
        "ingot, torch.compile": lambda k: ours(*sets[k]),
    }
    if autotunes:
        searched = _autotuned(model, sets[0])
        ways[AUTOTUNED] = lambda k: searched(*sets[k])
    for way in ways.values():
        for k in range(8):
            way(k % 2)
    times: dict[str, list[float]] = {way: [] for way in ways}
    order = list(ways)
    for number in range(ROUNDS):
        for way in order[number % len(order) :] + order[: number % len(order)]:
            time.sleep(REST)
            times[way] += call_us(ways[way])
    other = torch.empty(CACHE_BYTES, dtype=torch.uint8, device="cuda")
    cold = {way: statistics.median(call_us(run, other.zero_)) for way, run in ways.items()}
    in_a_row = {way: in_a_row_us(run) for way, run in ways.items()}
    kernels = [step for step in tuned.inspect()["main"]["steps"] if step["kind"] == "kernel"]
    errors = {
        way: float((first(ways[way](0)).float() - exact).abs().max() / exact.abs().max())
        for way in ("eager", "ingot", "ingot tuned")
    }
    return {
        "model": name,
        "dtype": str(dtype),
        "us": {way: statistics.median(taken) for way, taken in times.items()},
        "cold": cold,
        "in a row": in_a_row,
        "kernels": len(kernels),
        "error": errors,
    }


def _machine() -> dict[str, str]:
    libraries = sorted(Path(ingot.__file__).parent.glob("*.so*"))
    build = hashlib.sha256(b"".join(path.read_bytes() for path in libraries)).hexdigest()[:16]
    return {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "build": build}


def _measured_apart(name: str, dtype: str, autotunes: bool) -> dict[str, Any]:
    words = [
        sys.executable,
        "-m",
        "bench.cuda_peers",
        name,
        "--dtype",
        dtype,
        "--row",
        *["--max-autotune"] * autotunes,
    ]
    run = subprocess.run(
        words, stdout=subprocess.PIPE, text=True, check=False, timeout=SECONDS_OF_A_ROW, env=os.environ
    )
    if run.returncode:
        raise SystemExit(f"{name}: the process that measures it ended with {run.returncode}")
    return json.loads(run.stdout.splitlines()[-1])


def _with_autotuned(row: dict[str, Any], known: list[dict[str, Any]]) -> dict[str, Any]:
    """The row with max-autotune's time: its own, or an earlier one of the same torch and GPU, scaled."""
    if AUTOTUNED in row["us"]:
        return row
    alike = [old for old in known if all(old[key] == row[key] for key in ("model", "dtype", "gpu", "torch"))]
    for old in reversed(alike):
        if AUTOTUNED in old["us"]:
            scale = row["us"]["eager + graph"] / old["us"]["eager + graph"]
            return {**row, "us": {**row["us"], AUTOTUNED + "*": old["us"][AUTOTUNED] * scale}}
    return row


def _print(row: dict[str, Any]) -> None:
    times = "  ".join(f"{way} {us:.1f}" for way, us in row["us"].items())
    cold = "  ".join(f"{way} {row['cold'][way]:.1f}" for way in ("eager + graph", "inductor", "ingot tuned"))
    in_a_row = "  ".join(f"{way} {us:.1f}" for way, us in row["in a row"].items())
    print(
        f"{row['model']:14} us: {times}; in a row: {in_a_row}; cold: {cold}; {row['kernels']} kernels; "
        f"errors {row['error']}",
        flush=True,
    )


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    parser.add_argument("--output", type=Path, help="JSON, of which rows are kept")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg")
    parser.add_argument("--max-autotune", action="store_true")
    parser.add_argument("--row", action="store_true", help="one model, in this process, as a line of JSON")
    given = parser.parse_args()
    torch.set_grad_enabled(False)
    dtype = getattr(torch, given.dtype)
    if given.row:
        print(json.dumps(measure(given.models[0], dtype, given.max_autotune)))
        return
    machine = _machine()
    known = json.loads(given.output.read_text()) if given.output and given.output.exists() else []
    shown = {}
    for name in given.models:
        wanted = {"model": name, "dtype": str(dtype), **machine}
        row = next((old for old in known if wanted.items() <= old.items()), None)
        if row is None or (given.max_autotune and AUTOTUNED not in row["us"]):
            row = {**_measured_apart(name, given.dtype, given.max_autotune), **machine}
            known.append(row)
            if given.output:
                given.output.write_text(json.dumps(known, indent=1))
        shown[name] = _with_autotuned(row, known)
        _print(shown[name])
    if given.plot:
        title = f"Microseconds of a call, {given.dtype}, {machine['gpu']}"
        given.plot.write_text(bars(title, {name: row["us"] for name, row in shown.items()}))


if __name__ == "__main__":
    main()
