# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.staged [MODEL ...]`: the time to the first answer and to full speed, of staged builds beside inductor.

Each way runs in a process of its own with empty caches, one process after another, in rounds whose medians are printed: torch.compile
with Ingot in stages, with Ingot at once, with inductor, and with inductor that tunes (mode="max-autotune"); inductor freezes weights. A
process calls the model again and again with a pause before each call, in which staged builds may time tactics. Seconds are counted from
the call of torch.compile, after imports and the making of the model.

Full speed is each way's own: the first of the calls from which on all medians of 5 are within 5 % of the last, after all that it builds
has been built. Since one way may be faster in the end than another, there is also the time from which on all medians are below the last
of inductor's (without tuning).
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
    "inductor, tuned": {"backend": "inductor", "mode": "max-autotune"},
}
_AFTER_S = 5.0  # of calls after the last stage
_PAUSE_S = 0.1  # before each call
_WINDOW, _NEAR = 5, 1.05


def medians(times: list[float]) -> list[float]:
    count = max(len(times) - _WINDOW + 1, 1)
    return [statistics.median(times[k : k + _WINDOW]) for k in range(count)]


def since(ends: list[float], times: list[float], limit: float) -> float:
    """The end of the first call from which on all medians are within the limit; infinity if the last is not."""
    slow = [k for k, median in enumerate(medians(times)) if median > limit]
    first = slow[-1] + 1 if slow else 0
    return ends[first] if first < len(medians(times)) else float("inf")


def run(model: str, way: str, most_s: float) -> dict[str, Any]:
    """In a process of its own."""
    import ingot
    import torch
    import torch._inductor.config
    from models import build

    torch.set_grad_enabled(False)
    torch._inductor.config.freezing = True
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
    last_s = medians(times[1:])[-1]
    row: dict[str, Any] = {
        "first_s": ends[0],
        "second_ms": times[1] * 1e3,
        "full_s": since(ends[1:], times[1:], last_s * _NEAR),
        "last_ms": last_s * 1e3,
        "calls": len(times),
        "ends": ends,
        "times": times,
    }
    if "staged" in way:
        row["stages"] = [str(stage) for stage in ingot.report(call).stages]
    return row


def run_apart(model: str, way: str, most_s: float) -> dict[str, Any] | None:
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "INGOT_ENGINE_CACHE_DIR": f"{folder}/ingot",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        }
        command = [sys.executable, "-m", "bench.staged", model, "--way", way, "--most", str(most_s)]
        done = subprocess.run(
            command, env=os.environ | caches, cwd=ROOT, capture_output=True, text=True, check=False
        )
    found = [line[6:] for line in done.stdout.splitlines() if line.startswith("bench:")]
    if not found:
        print(f"{model} {way} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
        return None
    row: dict[str, Any] = json.loads(found[-1])
    for stage in row.get("stages", ()):
        print(f"{'':12} {stage}", flush=True)
    return row


def show(model: str, way: str, rows: list[dict[str, Any]], peers: list[dict[str, Any]]) -> None:
    """peers: inductor's rows of the same rounds."""
    even = [
        since(row["ends"], row["times"], peer["last_ms"] / 1e3)
        for row, peer in zip(rows, peers, strict=False)
    ]
    of = {
        name: statistics.median(row[name] for row in rows)
        for name in ("first_s", "second_ms", "full_s", "last_ms")
    }
    even_s = statistics.median(even) if even else float("inf")
    print(
        f"{model:10} {way:16} first answer {of['first_s']:6.2f} s, then {of['second_ms']:7.2f} ms; full speed after {of['full_s']:6.2f} s, "
        f"{of['last_ms']:7.2f} ms; as fast as inductor after {even_s:6.2f} s ({len(rows)} rounds)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench.staged", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(MODELS), metavar="MODEL")
    parser.add_argument("--most", type=float, default=120, help="seconds per process")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--way", choices=list(WAYS), help="only this one, in this process; prints JSON")
    arguments = parser.parse_args()
    if arguments.way:
        print("bench:" + json.dumps(run(arguments.models[0], arguments.way, arguments.most)))
        return
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for _ in range(arguments.rounds):
        for model in arguments.models:
            for way in arguments.ways:
                row = run_apart(model, way, arguments.most)
                rows.setdefault((model, way), []).extend([row] if row else [])
            for way in arguments.ways:
                if rows[model, way]:
                    show(model, way, rows[model, way], rows.get((model, "inductor"), []))


if __name__ == "__main__":
    main()
