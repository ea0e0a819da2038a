# SPDX-License-Identifier: Apache-2.0
"""A process that runs one model with one engine: `python -m bench.worker MODEL ENGINE THREADS`.

Says {"build_s", "rss_mb"} when it is ready; then, for each line "N" on stdin, runs N times and says the milliseconds.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))


def say(message: object) -> None:
    print("bench:" + json.dumps(message), flush=True)  # libraries print, too: the mark tells ours


def main() -> None:
    model, engine, threads = sys.argv[1], sys.argv[2], int(sys.argv[3])
    import torch
    from models import build

    from bench.engines import ENGINES

    torch.set_grad_enabled(False)
    case = build(model)
    start = time.perf_counter()
    run = ENGINES[engine](case, threads)
    run()
    say(
        {
            "build_s": time.perf_counter() - start,
            "rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        }
    )
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            before = time.perf_counter()
            run()
            times.append((time.perf_counter() - before) * 1e3)
        say(times)


if __name__ == "__main__":
    main()
