# SPDX-License-Identifier: Apache-2.0
"""The one client process of `bench.serving`: clients that ask over gRPC without a pause, and their latencies as a line of JSON.

serving_client.py PORT CLIENTS SECONDS REQUEST.npz, which holds a tensor per input; with SECONDS 0 it only prints the checksum of an answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

import numpy as np
import tritonclient.grpc.aio as grpc

KINDS = {"int64": "INT64", "float32": "FP32"}
SETTLE_S = 1.0  # queues and plans settle


def inputs_of(path: str) -> list[grpc.InferInput]:
    rows = []
    with np.load(path) as arrays:
        for name, value in arrays.items():
            row = grpc.InferInput(name, value.shape, KINDS[value.dtype.name])
            row.set_data_from_numpy(value)
            rows.append(row)
    return rows


class Load:
    def __init__(self, server: grpc.InferenceServerClient, inputs: list[grpc.InferInput]) -> None:
        self._server, self._inputs = server, inputs

    async def checksum(self) -> float:
        result = (await self._server.infer("model", self._inputs)).as_numpy("output_0")
        return float(np.abs(result).sum())

    async def ask_for(self, clients: int, duration: float) -> tuple[list[float], float]:
        """Latencies in seconds, and how long the last client took."""
        kept: list[float] = []
        begin = time.perf_counter()
        await asyncio.gather(*(self._ask(begin + duration, kept) for _ in range(clients)))
        return kept, time.perf_counter() - begin

    async def _ask(self, until: float, kept: list[float]) -> None:
        while time.perf_counter() < until:
            begin = time.perf_counter()
            await self._server.infer("model", self._inputs)
            kept.append(time.perf_counter() - begin)


async def measure(port: int, clients: int, seconds: float, path: str) -> None:
    async with grpc.InferenceServerClient(f"127.0.0.1:{port}") as server:
        load = Load(server, inputs_of(path))
        figures = {"checksum": await load.checksum()}
        if seconds > 0:
            await load.ask_for(clients, SETTLE_S)
            used = time.process_time()
            latencies, wall = await load.ask_for(clients, seconds)
            used = time.process_time() - used
            figures |= {"seconds": wall, "client_cpu": used / wall}
            figures["latencies_ms"] = [round(latency * 1e3, 2) for latency in latencies]
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    port, clients, seconds, path = sys.argv[1:]
    asyncio.run(measure(int(port), int(clients), float(seconds), path))
