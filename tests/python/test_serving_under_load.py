# SPDX-License-Identifier: Apache-2.0
"""Requests of many clients at once, wrong and cancelled ones among them, while the engine's weights are replaced: each answer is that of
the model with one of the weights, whatever was in its batch."""

from __future__ import annotations

import collections
import random
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from ingot.serving import Model
from serving_models import COLUMNS, ROWS, saved

pytestmark = pytest.mark.usefixtures("binding")

CLIENTS, REQUESTS = 6, 60


class Scored(torch.nn.Module):
    """Two outputs, of which one has no columns."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.table, self.layer = torch.nn.Embedding(10, 4), torch.nn.Linear(4, 3)

    def forward(self, ids: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = self.table(ids)
        return self.layer(rows) * scale, rows.sum(1)


Arrays = dict[str, np.ndarray]
# What is wrong with a request, and the code of its error.
WRONG: list[tuple[Callable[[Arrays], Arrays], str]] = [
    (lambda given: {**given, "ids": given["ids"].astype(np.int32)}, "INGOT-U302"),
    (lambda given: {**given, "ids": given["ids"] + 10}, "INGOT-U310"),
    (lambda given: {**given, "scale": given["scale"][:, :, :2]}, "INGOT-U303"),
    (lambda given: {**given, "scale": np.concatenate([given["scale"]] * 2)}, "INGOT-U304"),
    (lambda given: {name: np.concatenate([value] * 20) for name, value in given.items()}, "INGOT-U305"),
    (lambda given: {name: value[:0] for name, value in given.items()}, "INGOT-U305"),
    (lambda given: {**given, "scale": given["scale"].astype(object)}, "INGOT-U309"),
    (lambda given: {"ids": given["ids"]}, "INGOT-U318"),
]


def request(generator: random.Random) -> Arrays:
    rows, columns = generator.randint(1, 5), generator.choice([1, 4, 7])
    numbers = np.random.default_rng(generator.randrange(1 << 30))
    scale = numbers.standard_normal((rows, columns, 3), dtype=np.float32)
    return {"ids": numbers.integers(0, 10, (rows, columns)), "scale": scale}


def is_answer(found: list[np.ndarray], given: Arrays, models: list[Scored]) -> bool:
    with torch.no_grad():
        wanted = [model(*map(torch.from_numpy, given.values())) for model in models]
    return any(
        all(torch.allclose(torch.from_numpy(a), b, atol=1e-5) for a, b in zip(found, each, strict=True))
        for each in wanted
    )


@pytest.mark.parametrize(
    "options", [{}, {"check_indices": "sync"}, {"workers": 2}, {"batch_wait_s": 1e-3}], ids=str
)
def test_each_request_has_its_own_answer(options: dict, tmp_path: Path, opened: Callable[..., Model]) -> None:
    models = [Scored(seed).eval() for seed in range(2)]
    dims = {"ids": {0: ROWS, 1: COLUMNS}, "scale": {0: ROWS, 1: COLUMNS}}
    path = saved(tmp_path, models[0], torch.zeros(2, 5, dtype=torch.int64), torch.ones(2, 5, 3), dims=dims)
    served = opened(path, **options)
    outcomes: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()

    def ask(generator: random.Random) -> str:
        given, kind = request(generator), generator.random()
        change, code = generator.choice(WRONG) if kind < 0.3 else (dict, "")
        try:
            answer = served.submit(change(given), timeout_s=60)
            if kind > 0.8:
                answer.cancel()
            found = answer.result(60)
        except CancelledError:
            return "cancelled"
        except ingot.UserError as error:
            return "rejected" if error.code == code else f"{code or 'right'}: {error}"
        return "answered" if not code and is_answer(list(found.values()), given, models) else f"wrong {code}"

    def work(seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(REQUESTS):
            outcome = ask(generator)
            with lock:
                outcomes[outcome] += 1

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(CLIENTS)]
    for thread in threads:
        thread.start()
    count = 0
    while any(thread.is_alive() for thread in threads):
        served.refit(dict(models[count % 2].named_parameters()))
        count += 1
    assert outcomes.keys() <= {"answered", "rejected", "cancelled"}, outcomes
    assert outcomes.total() == CLIENTS * REQUESTS
    assert min(outcomes["answered"], outcomes["rejected"]) > 0
    served.check()
