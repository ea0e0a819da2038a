# SPDX-License-Identifier: Apache-2.0
"""Calls on a GPU whose inputs and results are at other addresses each time: kernels of one CUDA graph get them."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from gpu_targets import DEVICE, needs_gpu
from torch import nn

pytestmark = needs_gpu
_CALLS = 24


class Block(nn.Module):
    """Products by tensor maps, a norm, attention over a cache that is an argument, and the argument itself in two kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(256), nn.Linear(256, 1024), nn.Linear(1024, 256)

    def forward(self, x: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.narrow(nn.functional.gelu(self.wide(self.norm(x)))) + x
        heads = y.unflatten(-1, (4, 64)).transpose(1, 2)
        seen = nn.functional.scaled_dot_product_attention(heads, keys, keys)
        return y, seen.transpose(1, 2).flatten(2) + x


def _model() -> nn.Module:
    torch.manual_seed(0)
    return Block().eval().requires_grad_(False).cuda().half()


def _arguments(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    x, keys = torch.randn(2, rows, 256, generator=made), torch.randn(2, 4, 96, 64, generator=made)
    return x.cuda().half(), keys.cuda().half()


def _check(run: Callable, model: nn.Module, sets: list[tuple[torch.Tensor, ...]]) -> None:
    """All calls are enqueued before any result is read, and all results stay, so that none has the place of another."""
    results = [run(*each) for each in sets]
    places = {tuple(each.data_ptr() for each in (*given, *made)) for given, made in zip(sets, results, strict=True)}  # fmt: skip
    assert len(places) == len(sets)
    for given, made in zip(sets, results, strict=True):
        for ours, eager in zip(made, model(*given), strict=True):
            torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("level", [1, 3, 5])
def test_each_call_computes_on_its_own_memory(level: int) -> None:
    model = _model()
    sets = [_arguments(128, seed) for seed in range(_CALLS)]
    run = ingot.compile(model, inputs=list(sets[0]), optimization_level=level)
    _check(run, model, sets)
    _check(run, model, [_arguments(128, 100 + seed) for seed in range(_CALLS)])


def test_sets_that_return_and_new_ones() -> None:
    """The former get graphs of their own, which nothing changes."""
    model = _model()
    kept = [_arguments(128, seed) for seed in range(3)]
    run = ingot.compile(model, inputs=list(kept[0]))
    for round in range(5):
        new = [_arguments(128, 10 * (1 + round) + seed) for seed in range(6)]
        _check(run, model, [kept[0], *new[:3], kept[1], *new[3:], kept[2]])


def test_shapes_that_take_turns() -> None:
    model = _model()
    rows = torch.export.Dim("rows", min=2, max=512)
    example = _arguments(64, 0)
    on_host = tuple(each.cpu().float() for each in example)
    program = torch.export.export(model.cpu().float(), on_host, dynamic_shapes=({1: rows}, None))
    engine = ingot.build(program, device=DEVICE)
    model = model.cuda()
    sets = [
        tuple(each.float() for each in _arguments((2, 64, 200)[seed % 3], seed)) for seed in range(_CALLS)
    ]
    _check(engine, model, sets)


def test_through_torch_compile_and_on_streams() -> None:
    model = _model()
    compiled = torch.compile(model, backend="ingot")
    compiled(*_arguments(128, 0))
    streams = [torch.cuda.Stream() for _ in range(2)]
    for stream in streams * 2:
        sets = [_arguments(128, seed) for seed in range(8)]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            _check(compiled, model, sets)
        stream.synchronize()


def test_inputs_that_are_not_contiguous_are_copied() -> None:
    model = _model()
    x, keys = _arguments(128, 1)
    run = ingot.compile(model, inputs=[x, keys])
    strided = torch.empty(2, 128, 512, device="cuda", dtype=torch.float16)[:, :, ::2].copy_(x)
    turned = keys.transpose(2, 3).contiguous().transpose(2, 3)
    assert not strided.is_contiguous()
    assert not turned.is_contiguous()
    for call in (run, run.engine):
        for ours, eager in zip(call(strided, turned), model(x, keys), strict=True):
            torch.testing.assert_close(ours, eager, rtol=2e-2, atol=2e-2)


class Counted(nn.Module):
    """Integers that histc takes on GPUs alone, and a part that torch runs whose result is not contiguous."""

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counted = torch.histc(ids.int(), 8, 0, 7)
        found = torch.linalg.eigh(x @ x.mT).eigenvectors.mT
        return counted, (found @ x).abs() + 1


def test_what_gpus_take_is_not_refused_by_what_hosts_take() -> None:
    model = Counted().cuda()
    x = torch.randn(6, 6, generator=torch.Generator().manual_seed(1)).cuda()
    ids = torch.tensor([0, 3, 3, 7], device="cuda")
    run = ingot.compile(model, inputs=[x, ids])
    counted, found = run(x, ids)
    assert counted.tolist() == [1, 0, 0, 2, 0, 0, 0, 1]
    torch.testing.assert_close(found, model(x, ids)[1], rtol=1e-3, atol=1e-3)
