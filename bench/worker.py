# SPDX-License-Identifier: Apache-2.0
"""A process that runs one model with one engine: `python -m bench.worker MODEL ENGINE THREADS`.

Says {"build_s", "rss_mb"} when it is ready, or {"error"}; then, for each line "N" on stdin, runs N times and says the
milliseconds.
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


def say(message: object) -> None:
    print("bench:" + json.dumps(message), flush=True)  # libraries print too: the mark identifies our lines


def difference(actual: Any, expected: Any) -> float:
    """The largest difference relative to the root mean square of the expected values."""
    expected = expected[0] if isinstance(expected, tuple) else expected
    actual = actual[0] if isinstance(actual, tuple) else actual
    if actual.shape != expected.shape:
        return math.inf
    return float((actual - expected).abs().max() / expected.square().mean().sqrt())


def prepare(model: str, engine: str, threads: int) -> tuple[Callable[[], Any], float]:
    """A function that runs the model, after its first run, and the time of that. Raises if the result is wrong."""
    import torch
    from models import build

    from bench.engines import ENGINES

    torch.set_grad_enabled(False)
    case = build(model)
    expected = (copy.deepcopy(case.model) if case.has_state else case.model)(*case.args)
    start = time.perf_counter()
    run = ENGINES[engine](case, threads)
    result = run()
    seconds = time.perf_counter() - start
    if not difference(result, expected) < LIKE:
        raise RuntimeError(f"its result differs from eager's by {difference(result, expected):.3g} x RMS")
    return run, seconds


def main() -> None:
    model, engine, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    try:
        run, seconds = prepare(model, engine, threads)
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return
    say({"build_s": seconds, "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024})
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
