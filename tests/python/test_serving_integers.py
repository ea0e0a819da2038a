# SPDX-License-Identifier: Apache-2.0
"""Requests that choose integers: those of equal ones share calls."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from ingot.serving import BatchAxis, Model
from serving_models import ROWS, Gate, Scaled, take_all

pytestmark = pytest.mark.usefixtures("binding")


def scaled(folder: Path) -> Path:
    program = torch.export.export(
        Scaled(), (2, torch.randn(3, 4)), dynamic_shapes={"k": torch.export.Dim.DYNAMIC, "x": {0: ROWS}}
    )
    ingot.build(program).save(folder / "scaled.ingot")
    return folder / "scaled.ingot"


def asked_together(model: Model, numbers: list[int]) -> list[int]:
    """Answers are those of calls of their own; the numbers of rows of the calls."""
    gate = Gate(model)
    rows = [np.random.default_rng(k).standard_normal((2, 4), np.float32) for k in range(len(numbers))]
    requests = [{"k": np.array(k), "x": x} for k, x in zip(numbers, rows, strict=True)]
    answers = [gate.block(model, requests[0]), *(model.submit(each) for each in requests[1:])]
    gate.open.set()
    for k, x, answer in zip(numbers, rows, answers, strict=True):
        np.testing.assert_allclose(answer.result(60)["output_0"], x * k - x.mean(0) * (k // 3), atol=1e-5)
    return gate.rows


def test_requests_of_equal_integers_share_calls(tmp_path: Path, opened: Callable[..., Model]) -> None:
    model = opened(scaled(tmp_path))
    assert isinstance(model.batching, BatchAxis)
    take_all(model)
    for k in (1, 2):  # found to be independent
        asked_together(model, [k] * 3)
    assert asked_together(model, [2, 1, 2, 1, 1, 2, 2]) == [2, 6, 6]
    assert isinstance(model.batching, BatchAxis)
    with pytest.raises(ingot.UserError, match="INGOT-U301"):
        model.infer({"k": np.array([1]), "x": np.ones((2, 4), np.float32)}, 60)


def test_integers_that_make_rows_change_each_other_are_found(
    tmp_path: Path, opened: Callable[..., Model]
) -> None:
    model = opened(scaled(tmp_path))
    asked_together(model, [1] * 3)
    assert isinstance(model.batching, BatchAxis)
    asked_together(model, [3] * 4)
    assert model.batching == "rows of one call change each other's results"
