# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.incremental`: builds of BERT-base of which all but one layer was built before.

A build's time is that from import to plan, kernels included; capture, the init program's run and the writing of weights do not
count, and are printed beside what copying the file (cp, in the page cache; and until the medium has it) and one SHA-256 of it on all
threads take. Each build is in a process of its own. In turns, medians; the processor time of all threads is beside the wall time, as
other work on the machine disturbs it less:

  cold      with an empty cache
  changed   one layer has another activation, after a build of the model as it was, with other weights
  again     nothing has changed but the weights
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.reuse import ROOT, Clock

WAYS = ("cold", "changed", "again")
_PIECE = 8 << 20


def build(folder: str, seed: int, activation: bool) -> dict[str, Any]:
    """Builds once, in this process, and prints what took how long. A small build before it starts LLVM and torch."""
    import ingot
    import torch
    from models import build as model

    ingot.compile(torch.nn.Linear(3, 3), inputs=[torch.randn(1, 3)], engine_cache_dir="off")
    torch.manual_seed(seed)
    case = model("bert_base")
    if activation:
        case.model.get_submodule("model.encoder.layer.5.intermediate").intermediate_act_fn = torch.nn.Tanh()
    program = torch.export.export(case.model, case.args)
    clock = Clock()
    with ingot.Session() as session, tempfile.TemporaryDirectory() as output:
        path = Path(output) / "bert.ingot"
        start = time.perf_counter()
        engine = ingot.build(program, engine_cache_dir=folder, progress=clock)
        compiled = time.perf_counter() - start
        engine.save(path)
        written = time.perf_counter() - start - compiled
        made = session.cache_stats()["made"]
        copied, synced, hashed = copy_and_hash(path)
    return {
        "build": clock.build(), "processor": clock.build_processor(), "weights": clock.seconds.get("prepare weights", 0.0) + written,
        "copied": copied, "synced": synced, "hashed": hashed, "made": made, "phases": clock.seconds,
    }  # fmt: skip


def copy_and_hash(path: Path) -> tuple[float, float, float]:
    """Seconds of a copy, of one that waits until the medium has it, as saving an engine does, and of a hash."""
    copy = path.with_suffix(".copy")
    start = time.perf_counter()
    shutil.copyfile(path, copy)
    copied = time.perf_counter() - start
    os.sync()
    start = time.perf_counter()
    shutil.copyfile(path, path.with_suffix(".synced"))
    with open(path.with_suffix(".synced"), "rb") as file:
        os.fsync(file.fileno())
    synced = time.perf_counter() - start
    content = path.read_bytes()
    pieces = [memoryview(content)[at : at + _PIECE] for at in range(0, len(content), _PIECE)]
    start = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda piece: hashlib.sha256(piece).digest(), pieces))
    return copied, synced, time.perf_counter() - start


def measure(way: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as parent:
        folder = f"{parent}/cache"
        if way != "cold":
            run(folder, 1, False)
        return run(folder, 0, way == "changed")


def run(folder: str, seed: int, activation: bool) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", "bench.incremental", "--one", json.dumps([folder, seed, activation])],
        cwd=ROOT, env={**os.environ, "INGOT_ENGINE_CACHE_DIR": "off"}, text=True, capture_output=True, check=True,
    )  # fmt: skip
    line = next(line for line in done.stdout.splitlines() if line.startswith("bench:"))
    return json.loads(line.removeprefix("bench:"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.incremental", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print("bench:" + json.dumps(build(*json.loads(arguments.one))))
        return
    rows: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for _ in range(arguments.rounds):
        for way in WAYS:
            rows[way].append(measure(way))

    def median(way: str, name: str) -> float:
        return statistics.median(row[name] for row in rows[way])

    for way in WAYS:
        ratio = median(way, "build") / median("cold", "build")
        processor = median(way, "processor") / median("cold", "processor")
        weights, hashed = median(way, "weights"), median(way, "hashed")
        ratios = [weights / (median(way, copy) + hashed) for copy in ("copied", "synced")]
        print(f"{way:8} build {median(way, 'build') * 1e3:6.1f} ms, {ratio:4.2f} of cold; processor "
              f"{median(way, 'processor') * 1e3:6.1f} ms, {processor:4.2f} of cold; {rows[way][-1]['made']:2} kernels made; "
              f"weights {weights * 1e3:6.0f} ms, {ratios[0]:4.2f} of cp and SHA-256, {ratios[1]:4.2f} if cp is synced")  # fmt: skip
        print(
            "         "
            + ", ".join(f"{phase} {seconds * 1e3:.1f}" for phase, seconds in rows[way][-1]["phases"].items())
        )


if __name__ == "__main__":
    main()
