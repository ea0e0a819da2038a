# SPDX-License-Identifier: Apache-2.0
"""A process that runs one model with one engine: `python -m bench.worker MODEL ENGINE THREADS [int8]`.

Says {"build_s", "rss_mb", "error"} when it is ready, or {"reason"} if it cannot run; then, for each line "N" on stdin, runs N times
and says the milliseconds. The error is the norm of the difference to eager's result in f32, divided by that result's norm.
"""

from __future__ import annotations

import copy
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

LIKE = 1e-2  # results that differ by more are other work
TOKENS = 128  # of sequences in int8


def say(message: object) -> None:
    print("bench:" + json.dumps(message), flush=True)  # libraries print too: the mark identifies our lines


def difference(actual: Any, expected: Any) -> float:
    """The largest difference relative to the root mean square of the expected values."""
    expected = expected[0] if isinstance(expected, tuple) else expected
    actual = actual[0] if isinstance(actual, tuple) else actual
    if actual.shape != expected.shape:
        return math.inf
    return float((actual - expected).abs().max() / expected.square().mean().sqrt())


def error(actual: Any, expected: Any) -> float:
    expected = expected[0] if isinstance(expected, tuple) else expected
    actual = actual[0] if isinstance(actual, tuple) else actual
    return float((actual - expected).norm() / expected.norm())


def prepare(
    model: str, engine: str, threads: int, is_int8: bool
) -> tuple[Callable[[], Any], dict[str, float]]:
    """A function that runs the model, after its first run, the time of that, and its error. Raises if the result is wrong."""
    import torch
    from models import build

    from bench import engines, quantized_engines

    torch.set_grad_enabled(False)
    case = quantized_engines.longer(build(model), TOKENS) if is_int8 else build(model)
    known = quantized_engines.ENGINES if is_int8 else engines.ENGINES
    expected = (copy.deepcopy(case.model) if case.has_state else case.model)(*case.args)
    start = time.perf_counter()
    run = known[engine](case, threads)
    result = run()
    seconds = time.perf_counter() - start
    if not is_int8 and not difference(result, expected) < LIKE:
        raise RuntimeError(f"its result differs from eager's by {difference(result, expected):.3g} x RMS")
    return run, {"build_s": seconds, "error": error(result, expected)}


def main() -> None:
    model, engine, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        run, ready = prepare(model, engine, threads, is_int8="int8" in sys.argv[4:])
    except Exception as problem:
        say({"reason": f"{type(problem).__name__}: {problem}"})
        return
    say({**ready, "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
    clock = (
        time.process_time if threads == 1 else time.perf_counter
    )  # the former sees no other process's turns
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            before = clock()
            run()
            times.append((clock() - before) * 1e3)
        say(times)


if __name__ == "__main__":
    main()
