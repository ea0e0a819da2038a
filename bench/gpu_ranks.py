# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.gpu_ranks llama_1b llama_8b --ranks 1 2 --output rows.json`: tensor-parallel decoding: one token a step,
batch 1, bf16, 1,024 cached positions, on one GPU and on several, in one process per GPU. `--prefill 512`: so many tokens at once,
from position 0 on.

Ways, in turns: eager in a CUDA graph, inductor's code in a CUDA graph (both with torch's NCCL), and an engine. A time is the median of
a step with a synchronization after each, of the slowest rank; `queued` is that of steps that are enqueued one after another. Weights
are random numbers from seeds, made on the GPU: ranks have slices of the same. The error is the largest difference of logits to eager
over the largest logit, when all are forced to decode the same 8 tokens; `other words`: how often the rank's best word was another one
than eager's, whose two best differ by more than that error. A row that the output file has is not measured again, unless its time
ran out; then it has the ways and rounds that there were.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
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
BEGUN = time.monotonic()
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


def way_of(name: str, model: Step, args: tuple[torch.Tensor, ...], rank: int) -> Way:
    if name == "eager":
        return graph_of(lambda: model(*args))
    if name == "inductor":
        compiled = torch.compile(model)
        return graph_of(lambda: compiled(*args))
    import ingot
    from ingot.devices import architecture

    program = torch.export.export(model, args)
    say("exported")
    engine = ingot.build(program, device=f"cuda:{architecture(rank)}", gpu=rank, rank=str(rank))
    return lambda: engine(*args)


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


def say(text: str) -> None:
    """How far this rank is; stdout has its rows."""
    print(
        f"  rank {os.environ.get('RANK', 0)}, {time.monotonic() - BEGUN:.0f} s: {text}",
        file=sys.stderr,
        flush=True,
    )


def measure(name: str, rank: int, size: int, wanted: list[str], tokens: int) -> None:
    """Prints this rank's row as often as it knows more: when a way is there, and after each round. All ranks are in the same call at the
    same time."""
    torch.cuda.set_device(rank)
    if size > 1:
        dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    ranks = Ranks(rank, size)
    ways: dict[str, Way] = {}
    row: dict = {kind: {} for kind in ("error", "other words", "seconds_to_build")}
    times: dict[str, list[float]] = {way: [] for way in wanted}
    queued: dict[str, list[float]] = {way: [] for way in wanted}

    def go_round() -> None:
        for way, run in ways.items():
            times[way] += synchronized_us(run)
            queued[way].append(queued_us(run))
        row["us"] = {way: statistics.median(times[way]) for way in ways}
        row["queued"] = {way: statistics.median(queued[way]) for way in ways}
        row["rounds"] = len(queued[wanted[-1]])
        print(json.dumps(row), flush=True)

    with torch.no_grad():
        model = Step(**SHAPES[name], ranks=ranks).eval().requires_grad_(False)
        positions = torch.arange(tokens) if tokens > 1 else torch.tensor([CACHED - 1])
        args = (torch.arange(7, 7 + tokens).unsqueeze(0).to(ranks.device), positions.to(ranks.device))
        say("has its weights")
        for way in wanted:
            begun = time.perf_counter()
            ways[way] = way_of(way, model, args, rank)
            row["seconds_to_build"][way] = time.perf_counter() - begun
            errors, others = errors_of(model, args, {way: ways[way]})
            row["error"] |= errors
            row["other words"] |= others
            go_round()
            say(f"has {way}")
        for _ in range(ROUNDS - 1):
            go_round()


def slowest(rows: list[dict]) -> dict:
    """Of each time and error, that of the slowest rank; what all ranks have measured, if time ran out."""
    ways = [way for way in rows[0]["us"] if all(way in row["us"] for row in rows)]
    kinds = ("us", "queued", "error", "other words", "seconds_to_build")
    worst = {kind: {way: max(row[kind][way] for row in rows) for way in ways} for kind in kinds}
    return {**worst, "rounds": min(row["rounds"] for row in rows)}


def start(name: str, size: int, wanted: list[str], tokens: int, seconds: float) -> dict:
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
    limit = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        rows = [Path(folder) / f"{rank}" for rank in range(size)]
        processes = []
        for rank in range(size):
            with rows[rank].open("w") as output:
                own = {**os.environ, **common, "RANK": str(rank)}
                processes.append(subprocess.Popen([*command, str(rank)], stdout=output, env=own))
        try:
            codes = [process.wait(max(1, limit - time.monotonic())) for process in processes]
        except subprocess.TimeoutExpired:
            codes = []
            print(f"  {name} on {size} GPUs: {seconds} s are over", flush=True)
        finally:
            for process in processes:
                process.kill()
        texts = [[line for line in path.read_text().splitlines() if line.startswith("{")] for path in rows]
    if any(codes) or not all(texts):
        raise SystemExit(f"{name} on {size} GPUs failed")
    row = slowest([json.loads(lines[-1]) for lines in texts])
    return {"model": name, "gpus": size, "tokens": tokens, **row}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", choices=SHAPES)
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--ways", nargs="+", default=["ingot", "eager", "inductor"])
    parser.add_argument(
        "--prefill",
        type=int,
        nargs="+",
        default=[1],
        metavar="TOKENS",
        help="so many tokens a step (1: decoding)",
    )
    parser.add_argument(
        "--seconds", type=float, default=ROW_SECONDS, help="for a row, with the builds of all its ways"
    )
    parser.add_argument("--output", type=Path, help="JSON; rows that it has are not measured again")
    parser.add_argument("--rank", type=int, help="of this process, which another one has started")
    given = parser.parse_args()
    if given.rank is not None:
        measure(given.models[0], given.rank, int(os.environ["WORLD_SIZE"]), given.ways, given.prefill[0])
        os._exit(0)  # graphs hold torch's communicator, whose end would wait for them
    known = given.output is not None and given.output.exists()
    content = json.loads(given.output.read_text()) if known else {"rows": []}
    content |= {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, size, tokens in itertools.product(given.models, given.ranks, given.prefill):
        wanted = {"model": name, "gpus": size, "tokens": tokens, "rounds": ROUNDS}
        known = [row for row in content["rows"] if wanted.items() <= {"rounds": ROUNDS, **row}.items()]
        if any(set(given.ways) <= set(row["us"]) for row in known):
            continue
        row = start(name, size, given.ways, tokens, given.seconds)
        place = {"model": name, "gpus": size, "tokens": tokens}
        content["rows"] = [each for each in content["rows"] if not place.items() <= each.items()] + [row]
        times = "  ".join(
            f"{way} {us:8.1f} ({row['queued'][way]:.1f} queued)" for way, us in row["us"].items()
        )
        print(f"{name}, {tokens} tokens, on {size} GPUs, us: {times}  errors {row['error']}", flush=True)
        built = ", ".join(f"{way} {seconds:.0f}" for way, seconds in row["seconds_to_build"].items())
        print(f"  {row['rounds']} rounds, other words {row['other words']}, s to build: {built}", flush=True)
        if given.output:
            given.output.write_text(json.dumps(content))


if __name__ == "__main__":
    main()
