# SPDX-License-Identifier: Apache-2.0
"""What the integrations of model servers share: batches by the engine's ranges, deadlines, errors and health."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from ingot.serving import BatchAxis, Model
from safetensors.torch import save_file
from serving_models import (
    COLUMNS,
    ROWS,
    Centred,
    Gate,
    Looked,
    Masked,
    request,
    resident,
    saved,
    take_all,
)
from small_models import Counter, mlp
from test_metrics import samples

pytestmark = pytest.mark.usefixtures("binding")


@pytest.fixture
def masked(tmp_path: Path) -> Path:
    dims = {name: {0: ROWS, 1: COLUMNS} for name in ("ids", "mask")}
    return saved(tmp_path, Masked(), torch.randn(2, 5), torch.ones(2, 5), dims=dims)


def test_requests_of_equal_sizes_share_calls(masked: Path, opened: Callable[..., Model]) -> None:
    model = opened(masked)
    assert isinstance(model.batching, BatchAxis)
    assert (model.batching.minimum, model.batching.maximum) == (1, 16)
    take_all(model)
    gate = Gate(model)
    first = gate.block(model, request(1))
    sizes = [(3, 5), (2, 7), (12, 5), (1, 5), (4, 7), (16, 5), (1, 7)]
    asked = [request(*size, seed=k) for k, size in enumerate(sizes)]
    answers = [model.submit(inputs) for inputs in asked]
    gate.open.set()
    results = [answer.result(60) for answer in [first, *answers]]
    # 3 + 12 + 1 rows of 5 columns fit into 16, then 2 + 4 + 1 of 7, then the 16 that had no space.
    assert gate.rows == [1, 16, 7, 16]
    engine = ingot.Engine.load(masked)
    for group in ((0, 2, 3), (1, 4, 6), (5,)):
        inputs = [np.concatenate([asked[k][name] for k in group]) for name in ("ids", "mask")]
        together = engine.run(inputs)
        start = 0
        for k in group:
            end = start + sizes[k][0]
            for port, output in zip(model.outputs, together, strict=True):
                np.testing.assert_array_equal(results[1 + k][port.name], output[start:end])
            start = end
    for inputs, result in zip(asked, results[1:], strict=True):
        alone = engine.run([inputs["ids"], inputs["mask"]])
        for port, output in zip(model.outputs, alone, strict=True):
            np.testing.assert_allclose(result[port.name], output, rtol=1e-4, atol=1e-5)


def test_a_smaller_limit(masked: Path, opened: Callable[..., Model]) -> None:
    model = opened(masked, max_batch_size=4)
    take_all(model)
    gate = Gate(model)
    first = gate.block(model, request(1))
    answers = [model.submit(request(2, seed=k)) for k in range(3)] + [model.submit(request(9))]
    gate.open.set()
    assert [len(answer.result(60)["total"]) for answer in [first, *answers]] == [1, 2, 2, 2, 9]
    assert gate.rows == [1, 4, 2, 9]


def test_waiting_for_others(masked: Path, opened: Callable[..., Model]) -> None:
    """A free thread waits for a full batch, up to the time that it may."""
    model = opened(masked, max_batch_size=4, batch_wait_s=50)
    take_all(model)
    gate = Gate(model)
    gate.open.set()
    answers = [model.submit(request(2, seed=k)) for k in range(2)]
    for answer in answers:
        answer.result(30)
    assert gate.rows == [4]


def test_a_wrong_request_fails_alone(masked: Path, opened: Callable[..., Model]) -> None:
    model = opened(masked)
    gate = Gate(model)
    first = gate.block(model, request(1))
    good = [model.submit(request(2, seed=k)) for k in range(3)]
    double = {name: value.astype(np.float64) for name, value in request(2).items()}
    wrong = {
        "INGOT-U302": double,
        "INGOT-U305": request(17),
        "INGOT-U301": {"ids": request(2)["ids"][:, 0], "mask": request(2)["mask"]},
        "INGOT-U304": {"ids": request(2)["ids"], "mask": request(3)["mask"]},
    }
    bad = {code: model.submit(inputs) for code, inputs in wrong.items()}
    gate.open.set()
    for answer in [first, *good]:
        assert answer.result(60)["total"].dtype == np.float32
    for code, answer in bad.items():
        error = answer.exception(60)
        assert isinstance(error, ingot.UserError)
        assert error.code == code
        with pytest.raises(ingot.UserError) as alone:
            ingot.Engine.load(masked).run([wrong[code]["ids"], wrong[code]["mask"]])
        assert (alone.value.code, str(alone.value)) == (error.code, str(error))
    for inputs in ({}, {"ids": request(1)["ids"]}, {**request(1), "other": request(1)["ids"]}):
        with pytest.raises(ingot.UserError, match=r"the engine has 'ids', 'mask'") as raised:
            model.submit(inputs)
        assert raised.value.code == "INGOT-U318"


def test_values_that_fail_in_a_batch_fail_alone(tmp_path: Path, opened: Callable[..., Model]) -> None:
    path = saved(tmp_path, Looked(), torch.zeros(2, 3, dtype=torch.int64), dims=[{0: ROWS}])
    model = opened(path)
    name = model.inputs[0].name
    take_all(model)
    gate = Gate(model)
    first = gate.block(model, {name: np.zeros((1, 3), np.int64)})
    values = [1, 2, 77, 3]
    answers = [model.submit({name: np.full((1, 3), value, np.int64)}) for value in values]
    gate.open.set()
    first.result(60)
    failed = [answer.exception(60) is not None for answer in answers]
    engine = ingot.Engine.load(path)
    try:
        engine.run([np.full((1, 3), 77, np.int64)])
    except ingot.Error:
        assert failed == [False, False, True, False]
    else:
        assert failed == [False] * 4


def test_cancelled_and_late_requests_leave_the_batch(masked: Path, opened: Callable[..., Model]) -> None:
    model = opened(masked)
    take_all(model)
    gate = Gate(model)
    first = gate.block(model, request(1))
    kept = [model.submit(request(2, seed=1))]
    cancelled = model.submit(request(4, seed=2))
    late = model.submit(request(5, seed=3), timeout_s=0)
    kept.append(model.submit(request(3, seed=4), timeout_s=300))
    assert cancelled.cancel()
    gate.open.set()
    first.result(60)
    assert [len(answer.result(60)["total"]) for answer in kept] == [2, 3]
    error = late.exception(60)
    assert isinstance(error, ingot.UserError)
    assert error.code == "INGOT-U317"
    with pytest.raises(CancelledError):
        cancelled.result(0)
    assert gate.rows == [1, 5]
    counted = samples(model.metrics())
    outcomes = {
        key: counted["ingot_serving_requests_total", ("engine", "model"), ("outcome", key)]
        for key in ("ok", "cancelled", "expired")
    }
    assert outcomes == {"ok": 3, "cancelled": 1, "expired": 1}
    assert counted["ingot_serving_batches_total", ("engine", "model")] == 2
    assert counted["ingot_calls_total", ("engine", "model")] == 2


def test_rows_that_change_each_other_are_found(tmp_path: Path, opened: Callable[..., Model]) -> None:
    model = opened(saved(tmp_path, Centred(), torch.randn(3, 4), dims=[{0: ROWS}]))
    assert isinstance(model.batching, BatchAxis)
    gate = Gate(model)
    asked = [np.random.default_rng(k).standard_normal((2, 4), np.float32) for k in range(5)]
    answers = [gate.block(model, {"x": asked[0]}), *(model.submit({"x": x}) for x in asked[1:])]
    gate.open.set()
    for x, answer in zip(asked, answers, strict=True):
        np.testing.assert_allclose(answer.result(60)["output_0"], x - x.mean(0), atol=1e-5)
    assert model.batching == "rows of one call change each other's results"


def test_a_batch_that_failed_says_nothing_about_rows(tmp_path: Path, opened: Callable[..., Model]) -> None:
    model = opened(saved(tmp_path, Centred(), torch.randn(3, 4), dims=[{0: ROWS}]))
    run, fails = model.engine._run, [False, True]  # from the end

    def once(tensors: list[np.ndarray]) -> list[np.ndarray]:
        if len(tensors[0]) > 2 and fails.pop():
            raise ingot.UserError("a value is out of range", code="INGOT-U313")
        return run(tensors)

    model.engine._run = once
    for is_batched in (True, False):
        gate = Gate(model)
        asked = [np.random.default_rng(k).standard_normal((2, 4), np.float32) for k in range(3)]
        answers = [gate.block(model, {"x": asked[0]}), *(model.submit({"x": x}) for x in asked[1:])]
        gate.open.set()
        for x, answer in zip(asked, answers, strict=True):
            np.testing.assert_allclose(answer.result(60)["output_0"], x - x.mean(0), atol=1e-5)
        assert isinstance(model.batching, BatchAxis) == is_batched


@pytest.mark.parametrize(
    ("model", "inputs", "dims", "why"),
    [
        (Counter(), [torch.ones(2, 4)], None, "the engine has state"),
        (mlp(), [torch.ones(2, 8)], None, "is not dynamic"),
        (mlp(), [torch.ones(2, 8)], [{0: torch.export.Dim("one", min=3, max=5)}], "3 to 5 rows"),
    ],
)
def test_engines_that_run_requests_singly(
    tmp_path: Path, opened: Callable[..., Model], model: torch.nn.Module, inputs: list, dims: Any, why: str
) -> None:
    if dims is not None:
        inputs = [torch.ones(4, 8)]
    served = opened(saved(tmp_path, model, *inputs, dims=dims))
    assert why in served.batching
    gate = Gate(served)
    name = served.inputs[0].name
    answers = [gate.block(served, {name: inputs[0].numpy()})]
    answers += [served.submit({name: inputs[0].numpy()}) for _ in range(3)]
    gate.open.set()
    for answer in answers:
        answer.result(60)
    assert gate.rows == [len(inputs[0])] * 4


def test_refit_and_drain(masked: Path, tmp_path: Path, opened: Callable[..., Model]) -> None:
    rows = [{0: ROWS}]
    model = opened(saved(tmp_path, mlp(), torch.randn(4, 8), dims=rows))
    x = np.ones((2, 8), np.float32)
    before = model.infer({"input": x})["output_0"]
    fresh = {name: torch.randn_like(value) for name, value in mlp().state_dict().items()}
    model.refit(fresh)
    other = mlp()
    other.load_state_dict(fresh)
    after = model.infer({"input": x})["output_0"]
    np.testing.assert_allclose(after, other(torch.from_numpy(x)).detach().numpy(), rtol=1e-4, atol=1e-5)
    assert not np.array_equal(before, after)
    gate = Gate(model)
    answers = [gate.block(model, {"input": x})] + [model.submit({"input": x}) for _ in range(3)]
    closing = threading.Thread(target=model.close)
    closing.start()

    def submit_until_it_closes() -> None:
        while True:
            answers.append(model.submit({"input": x}))

    with pytest.raises(ingot.DeviceError) as raised:
        submit_until_it_closes()
    assert raised.value.code == "INGOT-D360"
    gate.open.set()
    closing.join(60)
    assert all(answer.result(0)["output_0"].shape == (2, 4) for answer in answers)


def test_a_file_of_weights(
    tmp_path: Path, opened: Callable[..., Model], caplog: pytest.LogCaptureFixture
) -> None:
    """A replaced file is taken; one that does not fit changes nothing, and the next one is taken again."""
    path = saved(tmp_path, mlp(), torch.randn(4, 8), dims=[{0: ROWS}])
    weights = tmp_path / "current.safetensors"

    def replace(model: torch.nn.Module) -> None:
        save_file(model.state_dict(), tmp_path / "new.safetensors")
        os.replace(tmp_path / "new.safetensors", weights)

    def count(outcome: str) -> float:
        return samples(served.metrics())[
            "ingot_serving_refits_total", ("engine", "model"), ("outcome", outcome)
        ]

    def wait_for(outcome: str, wanted: int) -> None:
        end = time.monotonic() + 60
        while count(outcome) < wanted and time.monotonic() < end:
            time.sleep(0.01)
        assert count(outcome) == wanted

    def answer() -> np.ndarray:
        return served.infer({"input": np.ones((2, 8), np.float32)})["output_0"]

    models = [mlp(), mlp()]
    for model, scale in zip(models, (0.5, 2.0), strict=True):
        model[0].weight.data.mul_(scale)
    replace(models[0])
    served = opened(path, weights=weights)
    want = [model(torch.ones(2, 8)).detach().numpy() for model in models]
    np.testing.assert_allclose(answer(), want[0], rtol=1e-4, atol=1e-5)
    replace(torch.nn.Linear(3, 3))
    wait_for("failed", 1)
    np.testing.assert_allclose(answer(), want[0], rtol=1e-4, atol=1e-5)
    assert "were not taken" in caplog.text
    replace(models[1])
    wait_for("ok", 2)
    np.testing.assert_allclose(answer(), want[1], rtol=1e-4, atol=1e-5)
    with pytest.raises(ingot.UserError) as raised:
        opened(path).refit()
    assert raised.value.code == "INGOT-U371"


def test_health(masked: Path, opened: Callable[..., Model]) -> None:
    model = opened(masked, stall_s=0.0)

    def fail(tensors: Any) -> Any:
        raise ingot.DeviceError("the device is gone", code="INGOT-D403")

    model.check()
    gate = Gate(model)
    answer = gate.block(model, request(1))
    with pytest.raises(ingot.DeviceError, match="has run for") as raised:
        model.check()
    assert raised.value.code == "INGOT-D361"
    gate.open.set()
    answer.result(60)
    run, model.engine._run = model.engine._run, fail
    for _ in range(3):
        model.check()
        with pytest.raises(ingot.DeviceError, match="the device is gone"):
            model.infer(request(1))
    with pytest.raises(ingot.DeviceError, match="its last 3 calls failed"):
        model.check()
    model.engine._run = run
    model.infer(request(1))
    model.check()


@pytest.mark.parametrize(
    "options",
    [
        {"max_batch_size": 0},
        {"max_batch_size": "8"},
        {"batch_wait_s": -1},
        {"workers": True},
        {"stall_s": None},
    ],
)
def test_wrong_options(masked: Path, options: dict) -> None:
    with pytest.raises(ingot.UserError, match=f"{next(iter(options))} must be") as raised:
        Model(masked, **options)
    assert raised.value.code == "INGOT-U002"


def test_unknown_options(masked: Path) -> None:
    with pytest.raises(ingot.UserError, match='the nearest is "max_batch_size"') as raised:
        Model(masked, max_batch_sise=3)
    assert raised.value.code == "INGOT-U001"


@pytest.mark.parametrize(
    "inputs",
    [None, 5, [1, 2], {"ids": 1}, {1: 2}, {"ids": [[1], [2, 3]], "mask": 1}, {"ids": "a", "mask": None}],
)
def test_what_is_no_request(masked: Path, opened: Callable[..., Model], inputs: Any) -> None:
    with pytest.raises(ingot.UserError) as raised:
        opened(masked).infer(inputs)
    assert raised.value.code in ("INGOT-U309", "INGOT-U318")


def test_many_sizes_compile_nothing_and_memory_is_flat(masked: Path, opened: Callable[..., Model]) -> None:
    """200 shapes, mixed by four clients: the engine's kernels are those of its file, and plans are dropped."""
    model = opened(masked)
    sizes = [(1 + k % 10, 1 + k // 10) for k in range(200)]
    asked = [request(*size) for size in sizes]
    assert len(set(sizes)) == 200

    def compiled() -> float:
        return samples(ingot.metrics())["ingot_cache_requests_total", ("found", "nowhere")]

    def ask(k: int) -> None:
        assert model.infer(asked[k])["total"].shape == (sizes[k][0],)

    before = compiled()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(200)))
        settled = resident()
        for _ in range(9):
            list(pool.map(ask, range(200)))
    assert compiled() == before
    assert resident() < settled + (16 << 20)
    assert samples(model.metrics())["ingot_cached_plans", ("engine", "model")] <= 64
