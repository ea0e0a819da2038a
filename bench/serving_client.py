# SPDX-License-Identifier: Apache-2.0
"""The one client process of `bench.serving`: clients that ask over gRPC without a pause, and their latencies as a line of JSON.

serving_client.py PORT CLIENTS SECONDS COLUMNS NAME...
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import numpy as np
import tritonclient.grpc.aio as grpc


def requests(names: list[str], columns: int) -> list[grpc.InferInput]:
    values = np.random.default_rng(0).integers(1, 1000, (1, columns))
    rows = []
    for name in names:
        row = grpc.InferInput(name, values.shape, "INT64")
        row.set_data_from_numpy(np.ones_like(values) if "mask" in name else values)
        rows.append(row)
    return rows


async def measure(port: int, clients: int, seconds: float, columns: int, names: list[str]) -> None:
    server = grpc.InferenceServerClient(f"127.0.0.1:{port}")
    inputs = requests(names, columns)
    latencies: list[float] = []

    async def ask(until: float, kept: list[float]) -> None:
        while time.perf_counter() < until:
            begin = time.perf_counter()
            await server.infer("model", inputs)
            kept.append(time.perf_counter() - begin)

    async def ask_for(duration: float, kept: list[float]) -> float:
        begin = time.perf_counter()
        await asyncio.gather(*(ask(begin + duration, kept) for _ in range(clients)))
        return time.perf_counter() - begin

    await ask_for(1.0, [])  # queues and plans settle
    used = time.process_time()
    wall = await ask_for(seconds, latencies)
    used = time.process_time() - used
    result = (await server.infer("model", inputs)).as_numpy("output_0")
    await server.close()
    p50, p99 = np.percentile(latencies, [50, 99])
    figures = {
        "answers": len(latencies), "per_s": len(latencies) / wall, "p50_ms": p50 * 1e3, "p99_ms": p99 * 1e3,
        "client_cpu": used / wall, "checksum": float(np.abs(result).sum()),
    }  # fmt: skip
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    port, clients, seconds, columns, *names = sys.argv[1:]
    asyncio.run(measure(int(port), int(clients), float(seconds), int(columns), names))
