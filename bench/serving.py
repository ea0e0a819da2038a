# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.serving [--model minilm]`: MLServer with Ingot, torch.compile (inductor) and ONNX Runtime inside, under load.

Each runtime has a server of its own, one call at a time and one thread per call; Ingot batches by itself, the others by MLServer. All
servers are up, and one client process asks one of them after the other, with 1, 8 and 64 clients over gRPC, in rounds whose order
changes; its share of a processor is printed: the server has the rest. Throughput, p50, p99 are medians of the rounds, p99.9 is that of
all answers. Rounds go to build/serving-MODEL.json as they are measured, and a run that was cut off goes on from there (`--again` begins
anew). Runtimes whose answers differ are an error.

`--requests 100000` asks Ingot's server alone, and prints its memory after each tenth.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from bench.serving_models import ROOT, write_models
from bench.serving_servers import RUNTIMES, Server

CLIENTS = (1, 8, 64)
Rows = list[dict[str, Any]]


def ask(server: Server, clients: int, seconds: float) -> dict[str, Any]:
    """What serving_client.py prints."""
    command = [server.python, ROOT / "bench/serving_client.py", server.port, clients, seconds, server.request]
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def measure(servers: list[Server], options: argparse.Namespace, path: Path) -> Rows:
    rows: Rows = json.loads(path.read_text()) if path.exists() else []
    measured = {(row["round"], row["clients"], row["runtime"]) for row in rows}
    for number in range(options.rounds):
        for clients in options.clients:
            first = number % len(servers)
            for server in servers[first:] + servers[:first]:
                cell = {"round": number, "clients": clients, "runtime": server.runtime}
                if tuple(cell.values()) in measured or has_enough(rows, cell, options.answers):
                    continue
                rows.append(cell | ask(server, clients, options.seconds))
                path.write_text(json.dumps(rows))
        show(rows)
    return rows


def has_enough(rows: Rows, cell: dict[str, Any], answers: int) -> bool:
    same = [row for row in rows if all(row[key] == cell[key] for key in ("clients", "runtime"))]
    return 0 < answers <= sum(len(row["latencies_ms"]) for row in same)


def summary(rows: Rows) -> dict[str, float]:
    """Of one cell."""
    latencies = [row["latencies_ms"] for row in rows]
    every = np.concatenate(latencies)
    return {
        "per_s": statistics.median(len(row["latencies_ms"]) / row["seconds"] for row in rows),
        "p50": statistics.median(np.percentile(each, 50) for each in latencies),
        "p99": statistics.median(np.percentile(each, 99) for each in latencies),
        "p99.9": float(np.percentile(every, 99.9)),
        "answers": len(every),
        "rounds": len(rows),
        "client_cpu": statistics.median(row["client_cpu"] for row in rows),
    }


def show(rows: Rows) -> None:
    print(
        "| clients | | answers/s | p50 ms | p99 ms | p99.9 ms | answers | rounds | client's CPU |\n|---|---|---|---|---|---|---|---|---|"
    )
    for clients, runtime in sorted({(row["clients"], row["runtime"]) for row in rows}):
        cell = [row for row in rows if (row["clients"], row["runtime"]) == (clients, runtime)]
        of = summary(cell)
        print(
            f"| {clients} | {runtime} | {of['per_s']:.1f} | {of['p50']:.0f} | {of['p99']:.0f} | {of['p99.9']:.0f} | {of['answers']} | "
            f"{of['rounds']} | {of['client_cpu']:.0%} |"
        )
    sys.stdout.flush()


def measure_memory(server: Server, requests: int) -> None:
    """In ten parts, by 64 clients."""
    asked, part = 0, 0
    while asked < requests:
        answers = ask(server, 64, 10.0)["latencies_ms"]
        asked += len(answers)
        if asked * 10 >= part * requests:
            part += 1
            print(f"{asked:7} requests: {server.resident() >> 20} MiB", flush=True)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Model servers under load")
    parser.add_argument("--model", default="minilm", choices=("minilm", "resnet50"))
    parser.add_argument("--clients", type=int, nargs="+", default=list(CLIENTS))
    parser.add_argument("--runtimes", nargs="+", default=list(RUNTIMES), choices=list(RUNTIMES))
    parser.add_argument("--seconds", type=float, default=10, help="per cell and round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--answers", type=int, default=0, help="a cell that has as many is not measured again"
    )
    parser.add_argument("--requests", type=int, default=0, help="only these many, to Ingot, and its memory")
    parser.add_argument("--again", action="store_true", help="forget the rounds of a former run")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    path = ROOT / f"build/serving-{options.model}.json"
    if options.again:
        path.unlink(missing_ok=True)
    files = ROOT / f"build/serving-{options.model}"
    if options.again:
        shutil.rmtree(files, ignore_errors=True)
    if not (files / "request.npz").exists():
        write_models(options.model, files)
    with ExitStack() as stack:
        wanted = ["ingot"] if options.requests else options.runtimes
        servers = [stack.enter_context(Server(runtime, files)) for runtime in wanted]
        if options.requests:
            measure_memory(servers[0], options.requests)
            return
        sums = {server.runtime: ask(server, 1, 0)["checksum"] for server in servers}
        if max(sums.values()) > min(sums.values()) * 1.001:
            sys.exit(f"the runtimes answer differently: {sums}")
        measure(servers, options, path)


if __name__ == "__main__":
    main()
