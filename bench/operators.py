# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.operators [WORD ...]`: single operators in engines compared with eager, interleaved in one process.

Prints eager's time divided by the engine's, each the smallest of its turns: 1 is as fast as eager. On a machine that others use
too, `--threads 1` counts this process's own processor time. WORDs choose the cases whose
names contain one of them. Every operator runs in an engine, also those that hybrid compilation would leave to torch.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import torch

from bench.function_cases import function_cases
from bench.matrix_cases import matrix_cases
from bench.operator_cases import Case, cases

ROUNDS = 7
TURN_MS = 25


Clock = Callable[[], float]


def seconds_of(run: Callable[[], Any], count: int, clock: Clock) -> float:
    start = clock()
    for _ in range(count):
        run()
    return (clock() - start) / count


def smallest_times(ways: list[Callable[[], Any]], rounds: int, clock: Clock) -> list[float]:
    """Milliseconds of one call of each way: the smallest of the turns, which go round."""
    counts = []
    for way in ways:
        way()
        counts.append(max(1, min(1000, int(TURN_MS * 1e-3 / max(1e-6, seconds_of(way, 1, clock))))))
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, count, taken in zip(ways, counts, times, strict=True):
            taken.append(seconds_of(way, count, clock))
    return [min(taken) * 1e3 for taken in times]


def measure(case: Case, rounds: int, clock: Clock) -> dict[str, Any]:
    module, args = case.make()
    compiled = ingot.compile(module.eval(), inputs=list(args), require_full_compilation=True)
    eager, engine = smallest_times([lambda: module(*args), lambda: compiled(*args)], rounds, clock)
    slow = [node.op for node in getattr(compiled.report, "slow", [])]
    return {"eager_ms": eager, "ingot_ms": engine, "ratio": eager / engine, "declared_slow": slow}


def measured_or_error(case: Case, rounds: int, clock: Clock) -> dict[str, Any]:
    try:
        return measure(case, rounds, clock)
    except ingot.Error as error:
        return {"error": str(error).splitlines()[0]}


def line_of(name: str, row: dict[str, Any]) -> str:
    if "error" in row:
        return f"{name:42} {row['error']}"
    times = f"eager {row['eager_ms']:9.3f} ms  ingot {row['ingot_ms']:9.3f} ms  ratio {row['ratio']:6.3f}"
    return f"{name:42} {times}{' (declared slow)' if row['declared_slow'] else ''}"


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.operators", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", default="build/operators.json")
    parser.add_argument("--continue", dest="goes_on", action="store_true", help="keep the rows of the output")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    ingot.set_threads(arguments.threads)
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    logging.getLogger("ingot").setLevel(logging.ERROR)  # this table says it all
    torch.manual_seed(0)
    every = [*cases(), *function_cases(), *matrix_cases()]
    words = arguments.words
    chosen = [case for case in every if not words or any(word in case.name for word in words)]
    output = Path(arguments.output)
    output.parent.mkdir(parents=True, exist_ok=True)
    machine = {"processor": processor(), "threads": arguments.threads, "torch": torch.__version__}
    goes_on = arguments.goes_on and output.exists()
    rows: dict[str, Any] = json.loads(output.read_text())["rows"] if goes_on else {}
    with torch.no_grad():
        for case in chosen:
            if case.name in rows:
                continue
            rows[case.name] = row = measured_or_error(case, arguments.rounds, clock)
            print(line_of(case.name, row), flush=True)
            output.write_text(json.dumps({**machine, "rows": rows}, indent=2) + "\n")
    ratios = [row["ratio"] for row in rows.values() if "ratio" in row]
    print(
        f"{len(ratios)} cases ran: {sum(r < 1 for r in ratios)} behind eager, {sum(r < 0.9 for r in ratios)} by more than 10 %"
    )


if __name__ == "__main__":
    main()
