# SPDX-License-Identifier: Apache-2.0
"""The innermost loops of products have the multiplications of their tile, and no more loads and moves than those need.

Counts of instructions stand for speed, which a busy machine cannot measure; nothing of it runs, so that every processor is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from inner_loops import can_disassemble, disassembled, main_loop
from torch import nn

_X = torch.linspace(-1, 1, 48 * 256).reshape(48, 256)


def _linear() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(256, 240).eval()


def _exported(module: nn.Module, x: torch.Tensor) -> Any:
    return torch.export.export(module, (x,))


PROGRAMS: dict[str, Callable[[], Any]] = {
    "f32": lambda: _exported(_linear(), _X),
    "bf16": lambda: _exported(_linear().bfloat16(), _X.bfloat16()),
    "convolution": lambda: _exported(nn.Conv2d(64, 96, 1).eval(), torch.ones(1, 64, 16, 16)),
    "int8": lambda: _exported(ingot.quantize(_linear(), [(_X,)]), _X),
    "float8": lambda: _exported(ingot.quantize(_linear(), inputs=[_X[:1]], weights="float8"), _X[:1]),
    "int4": lambda: _exported(ingot.quantize(_linear(), inputs=[_X[:1]], weights="int4"), _X[:1]),
}
_TILES = {"x86-64-v3": (12, 8, 0, 6), "x86-64-v4+vnni+bf16": (24, 11, 0, 6), "aarch64": (24, 8, 0, 5)}
_MATRICES = "amx-tile+amx-bf16+amx-int8"
# Multiplications, and at most so many loads, spills and others.
LIMITS = {
    **{(name, cpu): limits for name in ("f32", "bf16", "convolution") for cpu, limits in _TILES.items()},
    ("int8", "x86-64-v3"): (16, 6, 0, 36),
    ("int8", "x86-64-v4"): (36, 9, 0, 64),
    ("int8", "x86-64-v4+vnni+bf16"): (24, 11, 0, 6),
    ("int8", "aarch64"): (64, 6, 8, 58),
    **{(name, f"x86-64-v4+{_MATRICES}"): (4, 4, 0, 16) for name in ("bf16", "int8")},
    ("int4", "x86-64-v3"): (16, 10, 3, 47),
    ("int4", "x86-64-v4"): (24, 11, 0, 49),
    ("float8", "x86-64-v4+vbmi"): (4, 3, 0, 14),
}


@pytest.mark.parametrize(("name", "cpu"), LIMITS)
def test_counts(name: str, cpu: str, tmp_path: Path) -> None:
    if not can_disassemble(cpu):
        pytest.skip(f"there is no objdump for {cpu}")
    ingot.build(PROGRAMS[name](), cpu=cpu).save(tmp_path / "model.ingot")
    loop = main_loop(disassembled(tmp_path / "model.ingot", cpu))
    multiplications, loads, spills, others = LIMITS[name, cpu]
    assert loop.multiplications == multiplications, loop
    assert loop.loads <= loads, loop
    assert loop.spills <= spills, loop
    assert loop.others <= others, loop
