# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.staged [MODEL ...]`: the time to the first answer and to full speed, of staged builds beside inductor.

Each way runs in a process of its own with empty caches, one process after another: torch.compile with Ingot in stages, with Ingot
at once, and with inductor. A process calls the model again and again with a pause before each call, in which staged builds may time
tactics. Seconds are counted from the call of torch.compile, after imports and the making of the model; full speed is the first of the
calls from which on all medians of 5 are within 5 % of the last. One run says little on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

MODELS = ("bert_base", "resnet50")
WAYS: dict[str, dict[str, Any]] = {
    "ingot, staged": {"backend": "ingot", "options": {"staged": True}},
    "ingot": {"backend": "ingot"},
    "inductor": {"backend": "inductor"},
}
_AFTER_S = 5.0  # of calls after the last stage
_PAUSE_S = 0.1  # before each call
_WINDOW, _NEAR = 5, 1.05


def full_speed(ends: list[float], times: list[float]) -> float:
    """When the last speed began."""
    count = max(len(times) - _WINDOW + 1, 1)
    medians = [statistics.median(times[k : k + _WINDOW]) for k in range(count)]
    first = count - 1
    while first > 0 and medians[first - 1] <= medians[-1] * _NEAR:
        first -= 1
    return ends[first]


def run(model: str, way: str, most_s: float) -> dict[str, Any]:
    """In a process of its own."""
    import ingot
    import torch
    from models import build

    torch.set_grad_enabled(False)
    case = build(model)
    start = time.perf_counter()
    call = torch.compile(case.model, **WAYS[way])
    ends, times, last = [], [], None
    while True:
        begin = time.perf_counter()
        call(*case.args)
        ends.append(time.perf_counter() - start)
        times.append(time.perf_counter() - begin)
        is_tuned = "staged" not in way or ingot.wait_until_tuned(call, _PAUSE_S)
        if is_tuned:
            last = ends[-1] if last is None else last
            time.sleep(_PAUSE_S)
        if (ends[-1] > most_s and len(times) > 1) or (last is not None and ends[-1] > last + _AFTER_S):
            break
    row = {
        "first_s": ends[0],
        "second_ms": times[1] * 1e3,
        "full_s": full_speed(ends[1:], times[1:]),
        "last_ms": statistics.median(times[-_WINDOW:]) * 1e3,
        "calls": len(times),
    }
    if "staged" in way:
        row["stages"] = [str(stage) for stage in ingot.report(call).stages]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.staged", description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--most", type=float, default=120, help="seconds per process")
    parser.add_argument("--way", choices=list(WAYS), help="only this one, in this process; prints JSON")
    arguments = parser.parse_args()
    if arguments.way:
        print("bench:" + json.dumps(run(arguments.models[0], arguments.way, arguments.most)))
        return
    for model in arguments.models:
        for way in WAYS:
            with tempfile.TemporaryDirectory() as folder:
                caches = {
                    "INGOT_ENGINE_CACHE_DIR": f"{folder}/ingot",
                    "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
                }
                command = [
                    sys.executable,
                    "-m",
                    "bench.staged",
                    model,
                    "--way",
                    way,
                    "--most",
                    str(arguments.most),
                ]
                done = subprocess.run(
                    command, env=os.environ | caches, cwd=ROOT, capture_output=True, text=True, check=False
                )
            found = [line[6:] for line in done.stdout.splitlines() if line.startswith("bench:")]
            if not found:
                print(f"{model:10} {way:14} failed: {done.stderr.strip().splitlines()[-1:]}")
                continue
            row = json.loads(found[-1])
            print(
                f"{model:10} {way:14} first answer {row['first_s']:6.2f} s, then {row['second_ms']:7.2f} ms; "
                f"full speed after {row['full_s']:6.2f} s, {row['last_ms']:7.2f} ms ({row['calls']} calls)",
                flush=True,
            )
            for stage in row.get("stages", ()):
                print(f"{'':25} {stage}")


if __name__ == "__main__":
    main()
