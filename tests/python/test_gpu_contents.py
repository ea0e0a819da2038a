# SPDX-License-Identifier: Apache-2.0
"""Writes to weights on a GPU that leave no trace in a tensor. What needs a GPU is skipped where there is none."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import itertools
import zlib
from collections.abc import Callable

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from ingot import device_contents
from ingot.device_contents import PIECES, DeviceContents, extent, rows_of
from model_changes import CHANGES, IDS, Model, compare
from torch import nn

SIZES = [0, 1, 15, 16, 1023, 1024, 1025, 16384, 16385, 1 << 20, (1 << 20) + 3]


@pytest.mark.parametrize("count", SIZES)
def test_a_whole_weight_is_read_once(count: int) -> None:
    rows = rows_of(7, 1000, count, whole=True)
    read = [at for address, size, _, start in rows for at in range(start, start + size)]
    assert read == list(range(count))
    assert all(address == 1000 + start and weight == 7 for address, _, weight, start in rows)


@pytest.mark.parametrize("count", SIZES)
def test_pieces_are_spread_over_a_weight(count: int) -> None:
    rows = rows_of(0, 4096, count, whole=False)
    assert all(start >= 0 and start + size <= count for _, size, _, start in rows)
    if count <= 1024:
        assert sum(size for _, size, _, _ in rows) == count
        return
    starts = [start for _, _, _, start in rows]
    assert len(starts) == PIECES
    assert starts[0] == 0
    assert starts[-1] == count - 16
    assert max(b - a for a, b in itertools.pairwise(starts)) <= count / (PIECES - 1) + 32


def test_the_extent_of_views() -> None:
    base = torch.zeros(8, 6)
    assert [extent(each) for each in (base, base.t(), base[:, :2], base[2], base[:0], base[0, 0])] == [
        192, 192, 176, 24, 0, 4,
    ]  # fmt: skip


def sum_rows(grid: tuple, block: tuple, args: list) -> None:
    """In place of the kernel, of memory of the host."""
    rows, _, hashes = args
    for address, size, weight, start in rows.tolist():
        hashes[weight] += zlib.crc32(ctypes.string_at(address, size), start)


@pytest.mark.parametrize("whole", [False, True])
def test_weights_are_followed_where_they_go(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_contents, "_kernel", lambda device: sum_rows)
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    weights = {index: torch.randn(64, 48) for index in (1, 4, 5)}
    contents = DeviceContents(dict(weights), whole)
    assert contents.changed([]) is None  # the first look
    assert contents.changed([]) is None
    weights[4] += 1
    twin = contents.copy()
    assert contents.changed([]) == [4]
    assert contents.changed([]) is None
    assert twin.changed([]) == [4]
    moved = torch.randn(96, 64).t()
    weights[1] += 1
    assert contents.changed([(5, moved), (2, moved)]) == [1]  # 2 is on the host
    weights[5] += 1
    assert contents.changed([]) is None
    moved[0, 0] += 1
    assert contents.changed([]) == [5]
    assert twin.changed([]) == [1, 5]


@needs_gpu
@pytest.mark.parametrize("check", ["thorough", "full"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda function: function.__name__)
def test_no_change_is_missed(change: Callable[[nn.Module], object], check: str) -> None:
    if change.__name__ == "array":
        pytest.skip("arrays are on the host")
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, ids = Model().eval().cuda(), IDS.cuda()
    module = ingot.MutableModule(model, check_weights=check)
    compare(module, model, ids)
    change(model)
    compare(module, model, ids)
    for parameter in model.parameters():
        parameter.data.mul_(1.05)
    compare(module, model, ids)


@needs_gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_each_element_is_seen_by_a_full_check(dtype: torch.dtype) -> None:
    torch._dynamo.reset()
    model = nn.Linear(512, 384, device="cuda", dtype=dtype).eval()
    module, x = ingot.MutableModule(model, check_weights="full"), torch.eye(512, device="cuda", dtype=dtype)
    module(x)
    for k in range(0, 512 * 384, 9973):
        model.weight.data.view(-1)[k] += 1
        torch.testing.assert_close(module(x), nn.functional.linear(x, model.weight, model.bias).detach())
    model.weight.data.copy_(model.weight.data.flip(0))  # the same elements elsewhere
    torch.testing.assert_close(module(x), nn.functional.linear(x, model.weight, model.bias).detach())


@needs_gpu
def test_copies_notice_for_themselves() -> None:
    torch._dynamo.reset()
    model, ids = Model().eval().cuda(), IDS.cuda()
    module = ingot.MutableModule(model)
    compare(module, model, ids)
    twin = copy.deepcopy(module)
    model.body[0].weight.data += 0.3
    assert not torch.equal(module(ids), twin(ids))
    compare(module, model, ids)
