# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_ranks llama_1b llama_8b --ranks 1 2 --output rows.json`: tensor-parallel decoding: one token a step,
batch 1, bf16, 1,024 cached positions, on one GPU and on several, in one process per GPU. `--prefill 512`: so many tokens at once,
from position 0 on.

Ways, in turns: eager in a CUDA graph, inductor's code in a CUDA graph (both with torch's NCCL), and an engine. A time is the median of
a step with a synchronization after each, of the slowest rank; `queued` is that of steps that are enqueued one after another. Weights
are random numbers from seeds, made on the GPU: ranks have slices of the same. The error is the largest difference of logits to eager
over the largest logit, when all are forced to decode the same 8 tokens; `other words`: how often the rank's best word was another one
than eager's, whose two best differ by more than that error. A row that the output file has is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from torch import nn
from torch.nn import functional

from bench.cuda_graphs import graph_of

ROUNDS, CALLS, CACHED, FORCED = 10, 20, 1024, 8
ROW_SECONDS = 480
SHAPES = {
    "tiny": {"words": 1024, "width": 256, "layers": 2, "heads": 8, "pairs": 2, "inner": 512},
    "llama_1b": {"words": 128256, "width": 2048, "layers": 16, "heads": 32, "pairs": 8, "inner": 8192},
    "llama_8b": {"words": 128256, "width": 4096, "layers": 32, "heads": 32, "pairs": 8, "inner": 14336},
}
Way = Callable[[], torch.Tensor]


class Ranks:
    """Which part of each tensor this rank has."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size, self.device = rank, size, torch.device("cuda", rank)

    def part(
        self, name: str, shape: tuple[int, ...], axis: int | None = None, scale: float = 0.02
    ) -> torch.Tensor:
        """Of random numbers that all ranks agree on."""
        generator = torch.Generator(self.device).manual_seed(zlib.crc32(name.encode()))
        whole = torch.randn(shape, generator=generator, device=self.device, dtype=torch.bfloat16) * scale
        return whole if axis is None else whole.chunk(self.size, axis)[self.rank].clone()

    def sum(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.size == 1 else funcol.all_reduce(x, "sum", dist.group.WORLD)


class Step(nn.Module):
    """A Llama with this rank's heads, hidden columns and words. forward(tokens [1, n], positions [n]) -> this rank's logits."""

    def __init__(
        self, words: int, width: int, layers: int, heads: int, pairs: int, inner: int, ranks: Ranks
    ) -> None:
        super().__init__()
        self.tokens = nn.Parameter(ranks.part("tokens", (words, width)))
        self.head = nn.Parameter(ranks.part("tokens", (words, width), 0))
        self.blocks = nn.ModuleList(
            Block(f"block{k}", width, heads, pairs, inner, ranks) for k in range(layers)
        )
        self.norm = norm_of(width, ranks)
        half = width // heads // 2
        angles = torch.outer(torch.arange(CACHED), 500000.0 ** (-torch.arange(half) / half)).to(ranks.device)
        self.register_buffer("cosines", angles.cos().repeat(1, 2).bfloat16())
        self.register_buffer("sines", angles.sin().repeat(1, 2).bfloat16())

    def forward(self, token: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        hidden = functional.embedding(token, self.tokens)
        turn = (self.cosines[position], self.sines[position])
        mask = torch.arange(CACHED, device=token.device) <= position.unsqueeze(1)
        for block in self.blocks:
            hidden = block(hidden, position, turn, mask)
        return functional.linear(self.norm(hidden), self.head)


class Block(nn.Module):
    def __init__(self, name: str, width: int, heads: int, pairs: int, inner: int, ranks: Ranks) -> None:
        super().__init__()
        self.size, self.ranks = width // heads, ranks

        def weight(kind: str, rows: int, columns: int, axis: int) -> nn.Parameter:
            return nn.Parameter(ranks.part(f"{name}.{kind}", (rows, columns), axis))

        self.norm_1, self.norm_2 = norm_of(width, ranks), norm_of(width, ranks)
        self.q, self.k, self.v = (
            weight(kind, count * self.size, width, 0)
            for kind, count in (("q", heads), ("k", pairs), ("v", pairs))
        )
        self.out, self.down = weight("out", width, width, 1), weight("down", width, inner, 1)
        self.gate, self.up = weight("gate", inner, width, 0), weight("up", inner, width, 0)
        for kind in ("keys", "values"):
            self.register_buffer(kind, ranks.part(f"{name}.{kind}", (1, pairs, CACHED, self.size), 1, 1.0))

    def forward(
        self, hidden: torch.Tensor, position: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor], mask: torch.Tensor
    ) -> torch.Tensor:  # fmt: skip
        x = self.norm_1(hidden)
        query, key, value = (self.cut(functional.linear(x, each)) for each in (self.q, self.k, self.v))
        self.keys.index_copy_(2, position, turned(key, turn))
        self.values.index_copy_(2, position, value)
        mixed = functional.scaled_dot_product_attention(
            turned(query, turn), self.keys, self.values, attn_mask=mask, enable_gqa=True
        )
        mixed = mixed.transpose(1, 2).flatten(2)
        hidden = hidden + self.ranks.sum(functional.linear(mixed, self.out))
        x = self.norm_2(hidden)
        inner = functional.silu(functional.linear(x, self.gate)) * functional.linear(x, self.up)
        return hidden + self.ranks.sum(functional.linear(inner, self.down))

    def cut(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, self.size)).transpose(1, 2)


def norm_of(width: int, ranks: Ranks) -> nn.RMSNorm:
    return nn.RMSNorm(width, eps=1e-5, device=ranks.device, dtype=torch.bfloat16)


def turned(x: torch.Tensor, turn: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * turn[0] + torch.cat([-second, first], dim=-1) * turn[1]


def synchronized_us(way: Way) -> list[float]:
    times = []
    for k in range(-3, CALLS):
        start = time.perf_counter()
        way()
        torch.cuda.synchronize()
        if k >= 0:
            times.append((time.perf_counter() - start) * 1e6)
    return times


def queued_us(way: Way) -> float:
    way()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        way()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) * 1e6 / CALLS


def ways_of(model: Step, args: tuple[torch.Tensor, ...], rank: int, wanted: list[str]) -> dict[str, Way]:
    import ingot
    from ingot.devices import architecture

    ways: dict[str, Way] = {}
    if "ingot" in wanted:
        program = torch.export.export(model, args)
        engine = ingot.build(program, device=f"cuda:{architecture(rank)}", gpu=rank, rank=str(rank))
        del program
        ways["ingot"] = lambda: engine(*args)
    if "eager" in wanted:
        ways["eager"] = graph_of(lambda: model(*args))
    if "inductor" in wanted:
        compiled = torch.compile(model)
        ways["inductor"] = graph_of(lambda: compiled(*args))
    return ways


def errors_of(
    model: Step, args: tuple[torch.Tensor, ...], ways: dict[str, Way]
) -> tuple[dict[str, float], dict[str, int]]:
    """Of each way, at tokens that all are forced to take: the error, and how often its best word is clearly another one."""
    tokens, positions = args
    errors, others = dict.fromkeys(ways, 0.0), dict.fromkeys(ways, 0)
    for k in range(FORCED if tokens.numel() == 1 else 1):
        tokens.copy_((tokens * 31 + 7 * k) % 1000)
        if tokens.numel() == 1:
            positions.fill_(CACHED - FORCED + k)
        exact = model(*args).float()
        for way, run in ways.items():
            got = run().float()
            off = float((got - exact).abs().max())
            errors[way] = max(errors[way], off / float(exact.abs().max()))
            best, best_of_eager = got[0, -1].argmax(), exact[0, -1].topk(2)
            is_clear = float(best_of_eager.values[0] - best_of_eager.values[1]) > 2 * off
            others[way] += int(is_clear and best != best_of_eager.indices[0])
    return errors, others


def measure(name: str, rank: int, size: int, wanted: list[str], tokens: int) -> dict:
    """This rank's times; all ranks are in the same call at the same time."""
    torch.cuda.set_device(rank)
    if size > 1:
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    with torch.no_grad():
        model = Step(**SHAPES[name], ranks=Ranks(rank, size)).eval().requires_grad_(False)
        positions = torch.arange(tokens) if tokens > 1 else torch.tensor([CACHED - 1])
        args = (torch.arange(7, 7 + tokens, device="cuda").unsqueeze(0), positions.cuda())
        begun = time.perf_counter()
        ways = ways_of(model, args, rank, wanted)
        built = time.perf_counter() - begun
        errors, others = errors_of(model, args, ways)
        times: dict[str, list[float]] = {way: [] for way in ways}
        queued: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(ROUNDS):
            for way, run in ways.items():
                times[way] += synchronized_us(run)
                queued[way].append(queued_us(run))
    row = {"us": {way: statistics.median(taken) for way, taken in times.items()},
           "queued": {way: statistics.median(taken) for way, taken in queued.items()},
           "error": errors, "other words": others, "seconds_to_build": built}  # fmt: skip
    if size > 1:
        dist.barrier()
    return row


def slowest(rows: list[dict]) -> dict:
    """Of each time and error, that of the slowest rank."""
    return {
        kind: {way: max(row[kind][way] for row in rows) for way in rows[0][kind]}
        for kind in ("us", "queued", "error", "other words")
    }


def start(name: str, size: int, wanted: list[str], tokens: int) -> dict:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    common = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": str(size),
        "NCCL_NVLS_ENABLE": "0",
    }
    command = [
        sys.executable,
        "-m",
        "bench.gpu_ranks",
        name,
        "--ways",
        *wanted,
        "--prefill",
        str(tokens),
        "--rank",
    ]
    limit = time.monotonic() + ROW_SECONDS
    processes = [
        subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True,
                         env={**os.environ, **common, "RANK": str(rank)})
        for rank in range(size)
    ]  # fmt: skip
    try:
        outputs = [process.communicate(timeout=max(1, limit - time.monotonic()))[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
    if any(process.returncode for process in processes):
        raise SystemExit(f"{name} on {size} GPUs failed")
    rows = [json.loads(output.splitlines()[-1]) for output in outputs]
    return {
        "model": name,
        "gpus": size,
        "tokens": tokens,
        **slowest(rows),
        "seconds_to_build": rows[0]["seconds_to_build"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=SHAPES)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--ways", nargs="+", default=["ingot", "eager", "inductor"])
    parser.add_argument(
        "--prefill", type=int, default=1, metavar="TOKENS", help="so many tokens a step (1: decoding)"
    )
    parser.add_argument("--output", type=Path, help="JSON; rows that it has are not measured again")
    parser.add_argument("--rank", type=int, help="of this process, which another one has started")
    given = parser.parse_args()
    if given.rank is not None:
        row = measure(given.models[0], given.rank, int(os.environ["WORLD_SIZE"]), given.ways, given.prefill)
        print(json.dumps(row), flush=True)
        os._exit(0)  # graphs hold torch's communicator, whose end would wait for them
    known = given.output is not None and given.output.exists()
    content = json.loads(given.output.read_text()) if known else {"rows": []}
    content |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name in given.models:
        for size in given.ranks:
            wanted = {"model": name, "gpus": size, "tokens": given.prefill}
            if any(wanted.items() <= row.items() for row in content["rows"]):
                continue
            row = start(name, size, given.ways, given.prefill)
            content["rows"].append(row)
            times = "  ".join(
                f"{way} {us:8.1f} ({row['queued'][way]:.1f} queued)" for way, us in row["us"].items()
            )
            print(
                f"{name}, {given.prefill} tokens, on {size} GPUs, us: {times}  errors {row['error']}",
                flush=True,
            )
            print(f"  other words {row['other words']}, {row['seconds_to_build']:.0f} s to build", flush=True)
            if given.output:
                given.output.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
