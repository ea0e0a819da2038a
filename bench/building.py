# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.building [MODEL ...]`: cold builds, each in a process of its own with empty caches.

Prints two figures per peer: capture (what turns the Python model into a graph) and build (from that graph to something that
runs). Peers take turns in each round; medians. The ratio compares builds only: above 1 means that Ingot builds faster.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

Seconds = tuple[float, float]  # capture, build


def timed(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function(*args)
    return result, time.perf_counter() - start


def ingot(case: Any) -> Seconds:
    import ingot
    import torch

    program, capture = timed(torch.export.export, case.model, case.args)
    return capture, timed(ingot.build, program)[1]


def inductor(case: Any) -> Seconds:
    """With freezing. Capture is Dynamo's part of the first call: all but the compiler and one run."""
    import torch
    import torch._inductor.config as config
    from torch._inductor.compile_fx import compile_fx

    config.freezing = True
    build = 0.0

    def backend(graph: Any, inputs: Any) -> Any:
        nonlocal build
        result, seconds = timed(compile_fx, graph, inputs)
        build += seconds
        return result

    compiled = torch.compile(case.model, backend=backend)
    _, first = timed(lambda: compiled(*case.args))
    _, run = timed(lambda: compiled(*case.args))
    return first - build - run, build


def onnxruntime(case: Any) -> Seconds:
    import onnxruntime
    import torch

    def export() -> bytes:
        file = io.BytesIO()
        torch.onnx.export(case.model, case.args, dynamo=True, verbose=False).save(file)
        return file.getvalue()

    model, capture = timed(export)
    return capture, timed(lambda: onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]))[1]


def openvino(case: Any) -> Seconds:
    import openvino
    import torch

    program, capture = timed(torch.export.export, case.model, case.args)
    precision = {"INFERENCE_PRECISION_HINT": "f32"}
    return capture, timed(lambda: openvino.compile_model(openvino.convert_model(program), "CPU", precision))[
        1
    ]


PEERS = {"ingot": ingot, "inductor": inductor, "onnxruntime": onnxruntime, "openvino": openvino}


def measure(model: str, peer: str, threads: int) -> Seconds | None:
    """In a new process; None if the peer cannot take the model."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {
            **os.environ, "TORCHINDUCTOR_CACHE_DIR": cache, "OMP_NUM_THREADS": str(threads),
            "INGOT_ENGINE_CACHE_DIR": "off",
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "bench.building", "--one", peer, model],
            cwd=ROOT, env=environment, text=True, capture_output=True, check=False,
        )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith("bench:")]
    if done.returncode != 0 or not lines:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        print(f"{model:15} {peer:12} left out: {last[:120]}", flush=True)
        return None
    capture, build = json.loads(lines[-1].removeprefix("bench:"))
    return capture, build


def run_one(model: str, peer: str) -> None:
    import torch
    from models import build

    torch.set_grad_enabled(False)
    print("bench:" + json.dumps(PEERS[peer](build(model))))


def compare(model: str, peers: list[str], rounds: int, threads: int) -> dict[str, dict[str, float]]:
    taken: dict[str, list[Seconds]] = {peer: [] for peer in peers}
    for _ in range(rounds):
        for peer in list(taken):
            seconds = measure(model, peer, threads)
            if seconds is None:
                del taken[peer]
            else:
                taken[peer].append(seconds)
    medians = {
        peer: [statistics.median(part) for part in zip(*times, strict=True)] for peer, times in taken.items()
    }
    return {peer: {"capture_s": capture, "build_s": build} for peer, (capture, build) in medians.items()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.building", description=__doc__)
    parser.add_argument("models", nargs="*", default=["bert_base", "resnet50"], metavar="MODEL")
    parser.add_argument("--engines", default=",".join(PEERS), help="separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--output", default="build/bench_building.json")
    parser.add_argument("--one", help=argparse.SUPPRESS)  # this process builds once
    arguments = parser.parse_args()
    if arguments.one:
        run_one(arguments.models[0], arguments.one)
        return
    results = {}
    for model in arguments.models:
        rows = compare(model, arguments.engines.split(","), arguments.rounds, arguments.threads)
        for peer, row in rows.items():
            ratio = row["build_s"] / rows["ingot"]["build_s"] if "ingot" in rows else float("nan")
            print(f"{model:15} {peer:12} capture {row['capture_s']:7.2f} s  build {row['build_s']:7.2f} s  "
                  f"ratio of builds {ratio:6.2f}", flush=True)  # fmt: skip
        results[model] = rows
    Path(arguments.output).parent.mkdir(parents=True, exist_ok=True)
    Path(arguments.output).write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
