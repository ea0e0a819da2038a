# SPDX-License-Identifier: Apache-2.0
"""Many runs of engines on a GPU: from threads on streams of their own, and without growth. Skipped where there is no GPU."""

from __future__ import annotations

import os

import ingot
import torch
from gpu_targets import needs_gpu, wrong_turns
from ingot.devices import architecture

pytestmark = needs_gpu
_RUNS = 100_000 if os.environ.get("INGOT_LONG") == "1" else 2_000


def _engine() -> ingot.Engine:
    torch.manual_seed(3)
    layers = [torch.nn.Linear(96, 384), torch.nn.GELU(), torch.nn.Linear(384, 96), torch.nn.LayerNorm(96)]
    model = torch.nn.Sequential(*layers, torch.nn.Softmax(-1)).eval().half()
    rows = torch.export.Dim("rows", min=1, max=512)
    program = torch.export.export(
        model, (torch.zeros(8, 96, dtype=torch.float16),), dynamic_shapes=({0: rows},)
    )
    return ingot.build(program, device=f"cuda:{architecture()}")


def test_threads_on_streams_of_their_own_give_the_same_bits() -> None:
    engine = _engine()
    inputs = [torch.randn(rows, 96, device="cuda").half() for rows in (1, 7, 64, 300)]
    assert wrong_turns(engine, inputs, 200) == []


def test_runs_do_not_grow() -> None:
    """Device memory and that of the process, over sizes that change, and over addresses that do."""
    engine = _engine()
    inputs = [torch.randn(1 + number % 64, 96, device="cuda").half() for number in range(200)]

    def run(count: int) -> None:
        for number in range(count):
            engine(inputs[number % len(inputs)])
        torch.cuda.synchronize()

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    run(_RUNS // 4)
    own, taken = resident(), []
    for _ in range(3):  # other processes may take the GPU's memory meanwhile, but not in each round
        free = torch.cuda.mem_get_info()[0]
        run(_RUNS)
        taken.append(free - torch.cuda.mem_get_info()[0])
    assert min(taken) <= 4 << 20
    assert resident() - own <= 16 << 20
