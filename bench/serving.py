# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.serving [--model minilm]`: MLServer with Ingot, torch.compile (inductor) and ONNX Runtime inside, under load.

Each runtime has a server of its own, one call at a time and one thread per call; Ingot batches by itself, the others by MLServer. One
client process asks with 1, 8 and 64 clients over gRPC; its share of a processor is printed: the server has the rest. Rows go to
build/serving.json as they are measured, and a run that was cut off goes on from there (`--again` begins anew). Weights are random or
real, as the model of tests/models has them; runtimes whose answers differ are an error.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/serving")]

RUNTIMES = {
    "ingot": ("ingot.serving.mlserver.Runtime", "model.ingot"),
    "inductor": ("bench.serving_runtimes.Inductor", "model.pt2"),
    "onnxruntime": ("bench.serving_runtimes.OnnxRuntime", "model.onnx"),
}
CLIENTS = (1, 8, 64)
MOST_ROWS = 64
COLUMNS = 32
WAIT_S = 0.001  # of MLServer's batcher, which has no other way to batch


def write_models(name: str, folder: Path) -> list[str]:
    """The same model in three files; returns the names of its inputs."""
    import ingot
    import torch
    from models import build

    folder.mkdir(parents=True, exist_ok=True)
    model = build(name).model.eval()
    ids = torch.randint(1, 1000, (2, COLUMNS))
    rows = torch.export.Dim("rows", min=1, max=MOST_ROWS)
    program = torch.export.export(model, (ids, torch.ones_like(ids)), dynamic_shapes=({0: rows}, {0: rows}))
    engine = ingot.build(program)
    engine.save(folder / "model.ingot")
    torch.export.save(program, folder / "model.pt2")
    torch.onnx.export(program, dynamo=True, verbose=False, output_names=["output_0"]).save(
        folder / "model.onnx"
    )
    return [port.name for port in engine.inputs]


@contextmanager
def server(runtime: str, files: Path, ports: list[int]) -> Iterator[None]:
    from answers import wait_for
    from environments import environment

    implementation, file = RUNTIMES[runtime]
    folder = files / runtime
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    http, grpc, metrics = ports
    settings = {
        "host": "127.0.0.1",
        "http_port": http,
        "grpc_port": grpc,
        "metrics_port": metrics,
        "parallel_workers": 0,
        "debug": False,
    }
    model = {
        "name": "model", "implementation": implementation, "max_batch_size": MOST_ROWS, "max_batch_time": WAIT_S,
        "parameters": {"uri": str(files / file)},
    }  # fmt: skip
    if runtime == "ingot":
        model["parameters"]["extra"] = {"threads": 1, "batch_wait_s": 0}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "model-settings.json").write_text(json.dumps(model))
    python = environment("mlserver")
    code = "import sys; from mlserver.cli import main; sys.argv[1:] = ['start', '.']; main()"
    # Packages of this environment come after those of the server's own.
    code = f"import sys; sys.path += [{str(ROOT)!r}, {packages()!r}]; {code}"
    with open(folder / "log", "w") as log:
        process = subprocess.Popen(
            [python, "-c", code], cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")},
        )  # fmt: skip
    try:
        wait_for(f"a server ({folder / 'log'})", lambda: process.poll() is not None or is_ready(http), 900)
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {folder / 'log'}")
        yield
    finally:
        process.terminate()
        process.wait(60)


def packages() -> str:
    import torch

    return str(Path(torch.__file__).parents[1])


def is_ready(port: int) -> bool:
    import urllib.request

    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/model/ready", timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def measure(runtime: str, files: Path, names: list[str], seconds: float) -> list[dict[str, Any]]:
    from answers import free_port
    from environments import environment

    ports = [free_port() for _ in range(3)]
    rows = []
    with server(runtime, files, ports):
        for clients in CLIENTS:
            command = [environment("mlserver"), ROOT / "bench/serving_client.py"]
            arguments = [ports[1], clients, seconds, COLUMNS, *names]
            done = subprocess.run(
                [*command, *map(str, arguments)], stdout=subprocess.PIPE, text=True, check=True
            )
            rows.append({"runtime": runtime, "clients": clients, **json.loads(done.stdout)})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    print(
        f"{'runtime':12} {'clients':>7} {'answers/s':>10} {'p50 ms':>8} {'p99 ms':>8} {'answers':>8} {'client cpu':>10}"
    )
    for row in sorted(rows, key=lambda row: row["clients"]):
        figures = f"{row['per_s']:10.1f} {row['p50_ms']:8.2f} {row['p99_ms']:8.2f} {row['answers']:8} {row['client_cpu']:10.2f}"
        print(f"{row['runtime']:12} {row['clients']:7} {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Model servers under load")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--seconds", type=float, default=10, help="of each measurement")
    parser.add_argument("--again", action="store_true", help="forget the rows of a former run")
    options = parser.parse_args()
    path = ROOT / "build/serving.json"
    if options.again:
        path.unlink(missing_ok=True)
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    files = ROOT / "build/serving"
    names = write_models(options.model, files)
    for runtime in RUNTIMES:
        if any(row["runtime"] == runtime for row in rows):
            continue
        begin = time.monotonic()
        rows += measure(runtime, files, names, options.seconds)
        path.write_text(json.dumps(rows, indent=1))
        print(f"{runtime}: {time.monotonic() - begin:.0f} s", flush=True)
    show(rows)
    sums = [row["checksum"] for row in rows]
    if max(sums) > min(sums) * 1.001:
        sys.exit(f"the runtimes answer differently: {sums}")


if __name__ == "__main__":
    main()
