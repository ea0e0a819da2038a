# SPDX-License-Identifier: Apache-2.0
"""Numbers beside tensors are in the code of the kernels that read them, with the bits that torch computes with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate
from errors.inputs import INGOT
from gpu_targets import needs_nvrtc
from small_models import Function

FLOATS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
INTEGERS = (torch.int64, torch.int32, torch.int8, torch.uint8)


OF_ALL: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "on the right": lambda x: x * 3 + 2,
    "on the left": lambda x: 7 - x,
    "compared": lambda x: x > 2,
    "equal": lambda x: x == 3,
    "chosen": lambda x: torch.where(x > 2, x, 3),
    "chosen first": lambda x: torch.where(x > 2, 1, x),
    "in a chain": lambda x: (((x + 1) * 2 - 3) * x + 5).clamp(min=2),
    "counted": lambda x: x + torch.arange(x.shape[-1], dtype=x.dtype),
    "before a sum": lambda x: (x * 2 + 1).amax(-1),
    "behind a sum": lambda x: x.amax(-1) * 2 + 1,
}
OF_FLOATS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled and shifted": lambda x: x * 0.5 + 0.25,
    "that no half holds": lambda x: (x * 0.1 - 0.3) / 1.7,
    "over x": lambda x: 1.1 / (x + 4.5),
    "a power": lambda x: 1.5**x,
    "at least": lambda x: x >= 0.1,
    "at most": lambda x: x <= 0.1,
    "the same": lambda x: (x == 0.1) | (x != 0.7),
    "the same as a tensor": lambda x: x == torch.full_like(x, 0.1),
    "the rest": lambda x: x % 0.1,
    "the rest with a sign": lambda x: torch.fmod(x, 0.3),
    "in an exponential": lambda x: torch.exp(x * -0.7).clamp(0.2, 0.9),
    "of a column": lambda x: x + torch.full((x.shape[0], 1), 0.3, dtype=x.dtype),
}
CASES = [(name, function, dtype) for name, function in OF_ALL.items() for dtype in FLOATS + INTEGERS]
CASES += [(name, function, dtype) for name, function in OF_FLOATS.items() for dtype in FLOATS]
each_case = pytest.mark.parametrize(
    ("function", "dtype"), [pytest.param(f, d, id=f"{name}-{d}") for name, f, d in CASES]
)


def values(dtype: torch.dtype) -> torch.Tensor:
    if not dtype.is_floating_point:
        return torch.arange(24, dtype=dtype).view(4, 6) % 7
    spread = torch.linspace(-4, 4, 18, dtype=torch.float64)
    ties = torch.tensor([0.1, 0.7, 0.3, -0.1, 0.0, 1.7], dtype=torch.float64)
    return torch.cat([spread, ties]).view(4, 6).to(dtype)


def steps(engine: ingot.Engine) -> list[str]:
    return [step["name"] for step in engine.inspect()["main"]["steps"]]


def exported(function: Callable[..., Any], x: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(Function(function), (x,))


def scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 + 0.25


@each_case
def test_one_kernel(function: Callable[..., Any], dtype: torch.dtype) -> None:
    x = values(dtype)
    engine = ingot.build(exported(function, x))
    assert len(steps(engine)) == 1
    assert_accurate(engine(x), function(x), function(x.double() if dtype.is_floating_point else x))


@needs_nvrtc
@each_case
def test_one_launch(function: Callable[..., Any], dtype: torch.dtype) -> None:
    engine = ingot.build(exported(function, values(dtype)), device="cuda:sm_90")
    assert len(steps(engine)) == 1


@pytest.mark.parametrize("dtype", FLOATS)
def test_sizes_may_vary(dtype: torch.dtype) -> None:
    x = values(dtype)
    rows = {0: torch.export.Dim("rows", min=1, max=9)}
    program = torch.export.export(Function(scaled), (x,), dynamic_shapes=((rows,),))
    engine = ingot.build(program)
    assert len(steps(engine)) == 1
    for count in (1, 4):
        assert_accurate(engine(x[:count]), scaled(x[:count]), scaled(x[:count].double()))


@pytest.mark.parametrize("level", [0, 1])
def test_lower_levels_fuse_nothing(level: int) -> None:
    engine = ingot.build(exported(scaled, values(torch.float32)), optimization_level=level)
    assert sorted(steps(engine)) == ["add", "full", "full", "multiply"]


def test_fusion_is_turned_off_by_name() -> None:
    x = values(torch.float32)
    program = exported(scaled, x)
    plain = ingot.build(program, disable_passes=["fuse"])
    last = ingot.build(program, disable_passes=["fuse@add"])
    assert sorted(steps(plain)) == ["add", "full", "full", "multiply"]
    assert steps(last)[-1] == "add"
    assert [name for name in steps(last) if name.startswith("fused")] == ["fused[full, multiply]"]
    for engine in (plain, last):
        assert torch.equal(engine(x), scaled(x))


def built(path: Path, *options: str) -> dict[str, Any]:
    command = [INGOT, "build", path, "--json", "-o", path.with_suffix(".ingot"), *options]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_rewrites_are_taken_back_one_by_one(tmp_path: Path) -> None:
    """Each number that a kernel takes in is a rewrite with a name: without it, it is a kernel of its own."""
    path = tmp_path / "scaled.pt2"
    torch.export.save(exported(scaled, values(torch.float32)), path)
    runs = [row for row in built(path)["passes"] if row["is_optional"]]
    fuse = next(k for k, row in enumerate(runs) if row["name"] == "fuse" and row["rewrites"])
    limited = [built(path, "--bisect-passes", f"{fuse}.{kept}") for kept in range(4)]
    assert [report["kernels"] for report in limited] == [4, 3, 2, 1]
    assert {report["last_rewrite"]["pass"] for report in limited[1:]} == {"fuse"}
    assert {report["last_rewrite"]["node"] for report in limited[1:]} >= {"add", "mul"}
