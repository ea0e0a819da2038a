# SPDX-License-Identifier: Apache-2.0
"""How many rows batches of a served model have, by what calls of each size took."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from ingot.serving import BatchAxis, Model
from ingot.serving.batches import key_of
from ingot.serving.pace import Pace, Paces
from serving_models import ROWS, Gate, saved
from small_models import mlp

Cost = Callable[[int], float]


def flat(rows: int) -> float:
    return rows


def fixed(rows: int) -> float:
    return 20 + rows


def weights_once(rows: int) -> float:
    """As a product whose weights do not fit into a cache: rows are nearly free up to 8."""
    return max(8, rows)


def loses(rows: int) -> float:
    """From 16 rows on, values between layers leave a cache."""
    return 2 + rows * (1 if rows < 16 else 1.4)


def odd(rows: int) -> float:
    return rows * (2 if rows == 8 else 1) + 30


def run(pace: Pace, cost: Cost, queued: int, batches: int) -> list[int]:
    """The sizes of batches of single rows, where the queue always holds as many."""
    sizes = []
    for _ in range(batches):
        sizes.append(min(pace.limit(queued), queued))
        pace.add(sizes[-1], cost(sizes[-1]))
    return sizes


@pytest.mark.parametrize("cost", [flat, fixed, weights_once, loses, odd])
@pytest.mark.parametrize("queued", [1, 3, 8, 40, 500])
@pytest.mark.parametrize(("minimum", "maximum"), [(1, 64), (1, 24), (2, 7), (3, 48)])
def test_the_size_near_the_best_of_those_that_can_be_filled(
    cost: Cost, queued: int, minimum: int, maximum: int
) -> None:
    pace = Pace(minimum, maximum)
    sizes = run(pace, cost, queued, 400)
    assert max(sizes) <= maximum
    assert sizes[:5] == [min(minimum, queued)] * 5
    possible = {min(size, queued) for size in pace._sizes}  # powers of two, and what is queued
    best = min(cost(rows) / rows for rows in possible)
    settled = sizes[-63:]
    usual = max(set(settled), key=settled.count)
    assert cost(usual) / usual <= best * 1.05 + 1e-9
    total = sum(map(cost, sizes[60:])) / sum(sizes[60:])  # with the sizes that are tried now and then
    assert total <= best * 1.2


def test_sizes_that_lose_are_not_tried() -> None:
    assert run(Pace(1, 64), flat, 64, 60) == [1] * 5 + [2] * 5 + [4] * 5 + [1] * 45
    assert max(run(Pace(1, 64), loses, 64, 60)) == 32
    assert run(Pace(1, 64), fixed, 64, 60)[-30:] == [64] * 30


def test_of_equal_sizes_the_smallest() -> None:
    assert run(Pace(1, 64), flat, 64, 100)[-1] == 1
    assert run(Pace(1, 64), weights_once, 64, 100)[-1] == 8


def test_conditions_that_change() -> None:
    pace = Pace(1, 64)
    assert run(pace, flat, 64, 200)[-1] == 1
    assert run(pace, fixed, 64, 2000)[-1] == 64
    assert run(pace, loses, 64, 2000)[-1] <= 15


def test_what_is_worth_waiting_for() -> None:
    pace = Pace(1, 64)
    run(pace, flat, 8, 60)
    assert pace.worth_waiting_for() == 1
    pace = Pace(1, 64)
    run(pace, fixed, 8, 60)  # more than 8 may be better still
    assert pace.worth_waiting_for() == 16


def test_another_key_begins_where_the_last_one_is() -> None:
    paces = Paces(1, 64)
    run(paces.of(("short",)), fixed, 64, 60)
    longer = paces.of(("long",))
    assert run(longer, lambda rows: 7 * fixed(rows), 64, 60) == [64] * 60
    size = run(longer, flat, 64, 1000)[-1]
    assert run(paces.of(("other",)), flat, 64, 10) == [size] * 10


def test_keys_are_forgotten() -> None:
    paces = Paces(1, 16)
    first = paces.of((0,))
    for k in range(1, 200):
        paces.of((k,))
    assert len(paces._of) == 64
    assert paces.of((0,)) is not first


@pytest.mark.usefixtures("binding")
def test_batches_are_limited_by_what_was_measured(tmp_path: Path) -> None:
    model = Model(saved(tmp_path, mlp(), torch.randn(4, 8), dims=[{0: ROWS}]))
    assert isinstance(model.batching, BatchAxis)
    model._batcher._checked.add(())
    x = np.ones((1, 8), np.float32)
    pace = model._batcher._paces.of(key_of([x]))
    for size in (1, 2, 4, 8, 16):
        for _ in range(5):
            pace.add(size, size if size != 4 else size / 2)
    gate = Gate(model)
    answers = [gate.block(model, {"input": x})] + [model.submit({"input": x}) for _ in range(9)]
    gate.open.set()
    for answer in answers:
        assert answer.result(60)["output_0"].shape == (1, 4)
    model.close()
    assert gate.rows == [1, 4, 4, 1]
