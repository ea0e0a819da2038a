# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.cuda_timeline MODEL ...`: what each kernel of an engine adds to a run of the whole graph, in halves, on the first GPU.

A kernel adds the time from the end of the one before it to its own: kernels overlap, so that their durations say more than a run takes.
Times are medians over runs, from torch's profiler (CUPTI), which adds some; the time of a run without it is printed beside their sum.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
from pathlib import Path

import ingot
import torch
from ingot.devices import architecture

from bench import cuda_cases
from bench.cuda_peers import call_us

RUNS = 40


def kernels_of(engine: ingot.Engine, inputs: tuple) -> list[list[dict]]:
    """The kernels of each run, in the order of their beginnings."""
    for _ in range(4):
        engine(*inputs)
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(RUNS):
            engine(*inputs)
            torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    kernels = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: e["ts"])
    count = len(kernels) // RUNS
    if count * RUNS != len(kernels):
        raise SystemExit(f"{len(kernels)} kernels were seen in {RUNS} runs")
    return [kernels[first : first + count] for first in range(0, len(kernels), count)]


def added_us(runs: list[list[dict]]) -> list[float]:
    def of_run(run: list[dict]) -> list[float]:
        ends = [run[0]["ts"], *(kernel["ts"] + kernel["dur"] for kernel in run)]
        return [end - before for before, end in itertools.pairwise(ends)]

    return [statistics.median(times) for times in zip(*map(of_run, runs), strict=True)]


def measure(name: str, dtype: torch.dtype, level: int, without: list[str], top: int) -> None:
    model, args = cuda_cases.in_dtype(cuda_cases.build(name), dtype)
    engine = ingot.build(
        torch.export.export(model, args),
        device=f"cuda:{architecture()}",
        optimization_level=level,
        disable_passes=without,
    )
    inputs = tuple(value.cuda() for value in args)
    whole = statistics.median(call_us(lambda _: engine(*inputs)))
    runs = kernels_of(engine, inputs)
    added = added_us(runs)
    names = [step["name"] for step in engine.inspect()["main"]["steps"] if step["kind"] == "kernel"]
    print(f"{name}: {whole:.1f} us a run, {sum(added):.1f} us in {len(added)} kernels, {len(names)} steps")
    if len(names) != len(added):  # a step on no elements launches nothing
        names = ["?"] * len(added)
    rows: dict[tuple[str, int, int], list[float]] = {}
    for step, kernel, us in zip(names, runs[0], added, strict=True):
        rows.setdefault((step, kernel["args"]["grid"][0], kernel["args"]["block"][0]), []).append(us)
    for (step, blocks, threads), times in sorted(rows.items(), key=lambda row: -sum(row[1]))[:top]:
        print(
            f"{sum(times):8.1f} us {len(times):3} x {statistics.median(times):6.2f}  {step}, {blocks} x {threads}"
        )


def main() -> None:
    parser = cuda_cases.parser(__doc__)
    parser.add_argument("--level", type=int, default=3, choices=range(6))
    parser.add_argument("--without", nargs="+", default=[], metavar="PASS", help="passes that are turned off")
    parser.add_argument("--top", type=int, default=30, help="rows")
    given = parser.parse_args()
    with torch.no_grad():
        for name in given.models:
            measure(name, getattr(torch, given.dtype), given.level, given.without, given.top)


if __name__ == "__main__":
    main()
