# SPDX-License-Identifier: Apache-2.0
"""Staged builds whose stages a test lets go on one by one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import ingot
import pytest
import torch
from ingot import background, staging
from ingot.staged_part import StagedPart
from torch import nn

PATIENCE = 120  # seconds; nothing takes as long


@pytest.fixture(autouse=True)
def no_grad() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch.no_grad():
        yield


class Held:
    """Builds in the background wait at the beginning, until the test lets one go."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.may_go = threading.Semaphore(0), threading.Semaphore(0)
        self.levels: list[int] = []
        build = StagedPart.better

        def better(part: StagedPart, level: int, *rest: Any) -> Any:
            self.levels.append(level)
            self.begun.release()
            while not self.may_go.acquire(timeout=0.05):
                if not rest[2]():
                    raise staging.StoppedError
            return build(part, level, *rest)

        patch.setattr(StagedPart, "better", better)

    def wait_until_begun(self) -> None:
        assert self.begun.acquire(timeout=PATIENCE)

    def let_go(self, count: int = 100) -> None:
        self.may_go.release(count)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.fixture(autouse=True)
def times_are_predictable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "times_of", lambda *_rest: (2.0, 1.0))


@pytest.fixture(autouse=True)
def tests_do_not_wait_for_others(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "priority" not in request.node.name:
        monkeypatch.setattr(background, "_lower_priority", lambda: None)


def staged(model: nn.Module, x: torch.Tensor, level: int = 3, **options: Any) -> Any:
    options = {"staged": True, "staged_first_level": 1, **options}
    return ingot.compile(model, inputs=[x], optimization_level=level, **options)


def states_of(module: Any) -> list[tuple[int, str]]:
    return [(stage.level, stage.state) for stage in ingot.report(module).stages]


def mlp_of(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)).eval()


def mlp_like(module: Any, x: torch.Tensor) -> torch.Tensor:
    model = mlp_of(16)
    model.load_state_dict(module.state_dict())
    return model(x)
