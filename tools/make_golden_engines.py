#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the golden engines of this version's engine formats, for any x86-64 processor with AVX2.

    .venv/bin/python tools/make_golden_engines.py [FOLDER]

To be run once, when the format has changed: into format_N of tests/compatibility, where they stay as they are. Each engine is compressed
(sections begin at multiples of 64 KiB), and beside it are inputs, and results of torch in the model's precision and in f64.
"""

from __future__ import annotations

import copy
import gzip
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import torch

COMPATIBILITY = Path(__file__).resolve().parents[1] / "tests/compatibility"
sys.path.insert(0, str(COMPATIBILITY))
from golden_models import MODELS, MULTIPLES, RANKS, RANKS_FORMAT, SEVERAL_LEVELS, Golden, Ranked, make  # noqa: E402

_AS_RANK = "--rank"


def export(golden: Golden) -> torch.export.ExportedProgram:
    model = copy.deepcopy(golden.model)
    return without_paths(torch.export.export(model, golden.calls[0], dynamic_shapes=golden.dynamic_shapes))


def without_paths(program: torch.export.ExportedProgram) -> torch.export.ExportedProgram:
    for module in program.graph_module.modules():
        for node in getattr(module, "graph", torch.fx.Graph()).nodes:
            node.meta.pop("stack_trace", None)  # has paths of this machine
    return program


def widen(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


@torch.no_grad()
def results(model: torch.nn.Module, calls: list[tuple[torch.Tensor, ...]]) -> list[list[torch.Tensor]]:
    """The outputs of each call, made in order on one copy of the model."""
    model = copy.deepcopy(model)
    outputs = [model(*arguments) for arguments in calls]
    return [list(output) if isinstance(output, tuple) else [output] for output in outputs]


class Wide(torch.nn.Module):
    """The same model in f64, whatever dtypes it converts to."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = copy.deepcopy(model).double()

    def forward(self, *arguments: torch.Tensor) -> Any:
        return self.model(*map(widen, arguments))


def as_array(tensor: torch.Tensor) -> np.ndarray:
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def arrays(golden: Golden) -> dict[str, np.ndarray]:
    eager = results(golden.model, golden.calls)
    exact = results(Wide(golden.model), golden.calls) if golden.has_exact else eager
    kept = {}
    for call, arguments in enumerate(golden.calls):
        kept |= {f"call{call}.input{i}": as_array(value) for i, value in enumerate(arguments)}
        kept |= {f"call{call}.eager{i}": as_array(value) for i, value in enumerate(eager[call])}
        kept |= {f"call{call}.exact{i}": as_array(value) for i, value in enumerate(exact[call])}
    return kept


def write(name: str, folder: Path) -> None:
    golden = make(name)
    engine = ingot.build(export(golden), **{"cpu": "x86-64-v3", "optimization_level": 3, **golden.options})
    packed = gzip.compress(engine.to_bytes(), compresslevel=9, mtime=0)
    (folder / f"{name}.ingot.gz").write_bytes(packed)
    np.savez_compressed(folder / f"{name}.npz", **arrays(golden))
    print(f"{folder.name}/{name}: {len(packed)} bytes")


def write_ranks(folder: Path) -> None:
    """By two processes, which build the same engine at the same time."""
    with tempfile.TemporaryDirectory() as store:
        command = [sys.executable, __file__, str(folder), _AS_RANK]
        ranks = [subprocess.Popen([*command, str(rank), f"{store}/ranks"]) for rank in range(2)]
        codes = [rank.wait() for rank in ranks]
        if any(codes):
            raise SystemExit("a rank has failed")


@torch.no_grad()
def build_as_rank(folder: Path, rank: int, store: str) -> None:
    torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    model, x = Ranked(rank).eval(), torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    program = without_paths(torch.export.export(copy.deepcopy(model), (x,)))
    engine = ingot.compile(
        program, rank="all", strip_engine_weights=True, require_full_compilation=True, cpu="x86-64-v3"
    ).engine
    exact = copy.deepcopy(model).double()(x.double())
    kept = {"call0.input0": x, "call0.eager0": model(x), "call0.exact0": exact}
    torch.distributed.destroy_process_group()
    if rank == 0:
        packed = gzip.compress(engine.to_bytes(), compresslevel=9, mtime=0)
        (folder / f"{RANKS}.ingot.gz").write_bytes(packed)
        kept |= {f"weight.{name}": value for name, value in model.whole.items()}
        np.savez_compressed(
            folder / f"{RANKS}.npz", **{name: as_array(value) for name, value in kept.items()}
        )
        print(f"{folder.name}/{RANKS}: {len(packed)} bytes")


def main() -> None:
    given = Path(sys.argv[1] if len(sys.argv) > 1 else COMPATIBILITY)
    if _AS_RANK in sys.argv:
        build_as_rank(given, int(sys.argv[3]), sys.argv[4])
    else:
        write_all(given)


def write_all(given: Path) -> None:
    folder = given / f"format_{RANKS_FORMAT}"
    if folder.exists():
        print(f"{folder} exists: golden engines are written once per format")
    else:
        folder.mkdir(parents=True)
        write_ranks(folder)
    for names in (MODELS, SEVERAL_LEVELS, MULTIPLES):
        first = make(next(iter(names)))
        content = ingot.build(export(first), **first.options).to_bytes()
        form = int.from_bytes(content[8:12], "little")
        folder = given / f"format_{form}"
        if folder.exists():
            print(f"{folder} exists: golden engines are written once per format")
            continue
        folder.mkdir(parents=True)
        for name in names:
            write(name, folder)


if __name__ == "__main__":
    main()
