# SPDX-License-Identifier: Apache-2.0
"""Triton through PyTriton, by its own client: run in the folder that served_models.py wrote, in its environment."""

from __future__ import annotations

import os
import shutil
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http
from answers import Answers, error_of, free_port, wait_for
from ingot.serving import Model
from ingot.serving.metrics_page import MetricsPage
from ingot.serving.triton import bind, server, unload
from pytriton.triton import TritonConfig
from tritonclient.utils import InferenceServerException

ANSWERS = Answers()
HTTP, GRPC, METRICS = free_port(), free_port(), free_port()
CURRENT = Path("current.safetensors").resolve()


def ask(client: Any, module: Any, arrays: dict[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    kinds = {"int64": "INT64", "float32": "FP32", "float64": "FP64"}
    rows = []
    for name, value in arrays.items():
        row = module.InferInput(name, value.shape, kinds[value.dtype.name])
        row.set_data_from_numpy(value, **options)
        rows.append(row)
    result = client.infer("scorer", rows)
    # Triton's batches have at least two dims.
    return {"weights": result.as_numpy("weights"), "total": result.as_numpy("total")[:, 0]}


def check_answers(http: Any, grpc: Any, model: Model) -> None:
    for number in range(ANSWERS.count):
        ANSWERS.check(number, ask(http, by_http, ANSWERS.request(number)))
        ANSWERS.check(number, ask(http, by_http, ANSWERS.request(number), binary_data=False))
        ANSWERS.check(number, ask(grpc, by_grpc, ANSWERS.request(number)))
    numbers = [number % ANSWERS.count for number in range(60)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda number: ask(grpc, by_grpc, ANSWERS.request(number)), numbers))
    for number, answer in zip(numbers, answers, strict=True):
        ANSWERS.check(number, answer)
    batched = 'ingot_serving_batched_requests_total{engine="scorer"} '
    (line,) = [line for line in model.metrics().splitlines() if line.startswith(batched)]
    assert float(line.removeprefix(batched)) > 0


def check_wrong_requests(http: Any, grpc: Any) -> None:
    """What Triton's configuration says is checked by Triton; what only the engine knows, by the engine."""
    good = ANSWERS.request(1)
    for wrong, text in (
        ({**good, "mask": good["mask"].astype(np.float64)}, "expects"),
        ({name: np.repeat(value, 20, 0) for name, value in good.items()}, "batch-size"),
        ({**good, "mask": good["mask"][:, 0]}, "unexpected shape"),
        ({"ids": good["ids"]}, "expected 2 inputs"),
        ({**good, "mask": good["mask"][:, :2]}, "INGOT-U304"),
        ({name: np.repeat(value, 40, 1) for name, value in good.items()}, "INGOT-U305"),
    ):
        for client, module in ((http, by_http), (grpc, by_grpc)):
            error = error_of(InferenceServerException, ask, client, module, wrong)
            assert error is not None, text
            assert text in error.message(), error
    ANSWERS.check(1, ask(http, by_http, good))


def check_metadata(http: Any) -> None:
    metadata = http.get_model_metadata("scorer")
    assert [(row["name"], row["datatype"], row["shape"]) for row in metadata["inputs"]] == [
        ("ids", "INT64", [-1, -1]),
        ("mask", "FP32", [-1, -1]),
    ]
    assert http.get_model_config("scorer")["max_batch_size"] == 16
    assert http.get_model_config("slow").get("max_batch_size", 0) == 0


def check_refit(grpc: Any) -> None:
    shutil.copy("other.safetensors", "new.safetensors")
    os.replace("new.safetensors", CURRENT)
    wait_for("the refit", lambda: ANSWERS.is_of(2, ask(grpc, by_grpc, ANSWERS.request(2)), "other"))


def check_state(http: Any) -> None:
    x = by_http.InferInput("x", (1024, 1024), "FP32")
    x.set_data_from_numpy(np.zeros((1024, 1024), np.float32))
    assert [float(http.infer("slow", [x]).as_numpy("output_0")[0]) for _ in range(2)] == [1, 2]


def check_integers(http: Any) -> None:
    """Each request chooses one, of one dim of size 1: Triton has no tensors without dims."""
    for number, k in enumerate((3, -5, 0), start=1):
        x = by_http.InferInput("x", (number, 3), "FP32")
        x.set_data_from_numpy(np.full((number, 3), number, np.float32))
        chosen = by_http.InferInput("k", (1,), "INT64")
        chosen.set_data_from_numpy(np.array([k]))
        result = http.infer("scaled", [x, chosen])
        np.testing.assert_array_equal(result.as_numpy("output_0"), np.full((number, 3), number * k + k // 2))
        assert result.as_numpy("output_1").tolist() == [2 * k]


def check_unload_and_reload(triton: Any, http: Any, grpc: Any, models: list[Model]) -> None:
    """Under load: each request has an answer, or an error that says that there is no such model; the other model goes on."""
    refused: list[str] = []
    stop = threading.Event()

    def ask_on() -> int:
        answered = 0
        while not stop.is_set():
            with by_grpc.InferenceServerClient(f"127.0.0.1:{GRPC}") as client:
                try:
                    ANSWERS.check(2, ask(client, by_grpc, ANSWERS.request(2)), "other")
                    answered += 1
                except InferenceServerException as error:
                    refused.append(str(error))
        return answered

    for _ in range(2):
        with ThreadPoolExecutor(4) as pool:
            stop.clear()
            asking = [pool.submit(ask_on) for _ in range(4)]
            try:
                before = counted(models[0])
                wait_for("answers", lambda before=before: counted(models[0]) > before + 20)
                unload(triton, models[0])
                assert not http.is_model_ready("scorer")
                error = error_of(InferenceServerException, ask, http, by_http, ANSWERS.request(2))
                assert "unknown model" in str(error), error
                check_is_alive(http)
                models[0] = bind(triton, "scorer", "other.ingot", threads=1)
                assert http.is_model_ready("scorer")
                wait_for("answers of the new one", lambda: counted(models[0]) > 20)
            finally:
                stop.set()
            assert all(future.result(60) > 0 for future in asking)
    assert all("scorer" in text and ("unknown model" in text or "not ready" in text) for text in refused), (
        set(refused)
    )
    for number in range(ANSWERS.count):
        ANSWERS.check(number, ask(grpc, by_grpc, ANSWERS.request(number)), "other")
    unload(triton, models[0])
    unload(triton, models[0])  # nothing is left to do
    models[0] = bind(triton, "scorer", "scorer.ingot", threads=1)
    ANSWERS.check(1, ask(http, by_http, ANSWERS.request(1)))
    assert triton.is_alive()


def counted(model: Model) -> float:
    """Requests that were answered."""
    key = 'ingot_serving_requests_total{engine="scorer",outcome="ok"} '
    (line,) = [line for line in model.metrics().splitlines() if line.startswith(key)]
    return float(line.removeprefix(key))


def check_is_alive(http: Any) -> None:
    x = by_http.InferInput("x", (1024, 1024), "FP32")
    x.set_data_from_numpy(np.zeros((1024, 1024), np.float32))
    assert float(http.infer("slow", [x]).as_numpy("output_0")[0]) > 2


def check_page(config: TritonConfig) -> None:
    """The code of docs/servers.md."""
    names: dict[str, Any] = {}
    code = Path("page.py").read_text()
    exec(code.replace("8000", str(HTTP)).replace("server()", "server(config)"), {"config": config}, names)
    assert (names["answer"]["output_0"] == 2).all()


def check_metrics(models: list[Model]) -> None:
    with MetricsPage(models, port=0) as page:
        url = f"http://127.0.0.1:{page.port}/metrics"
        text = urllib.request.urlopen(url, timeout=10).read().decode()
    assert text.count("# TYPE ingot_serving_requests_total") == 1
    assert 'ingot_calls_total{engine="slow"} 2' in text


def check_all(triton: Any, http: Any, grpc: Any, models: list[Model]) -> None:
    wait_for("the server", lambda: http.is_model_ready("scorer") and http.is_model_ready("slow"))
    check_metadata(http)
    check_answers(http, grpc, models[0])
    check_wrong_requests(http, grpc)
    check_refit(grpc)
    check_state(http)
    check_integers(http)
    check_metrics(models)
    check_unload_and_reload(triton, http, grpc, models)


if __name__ == "__main__":
    config = TritonConfig(
        http_port=HTTP,
        grpc_port=GRPC,
        metrics_port=METRICS,
        http_address="127.0.0.1",
        grpc_address="127.0.0.1",
    )
    shutil.copy("scorer.safetensors", CURRENT)
    with server(config) as triton:
        models = [
            bind(triton, "scorer", "scorer.ingot", weights=CURRENT, threads=1, queue_delay_s=0.02),
            bind(triton, "slow", "slow.ingot", threads=1),
            bind(triton, "scaled", "scaled.ingot", threads=1),
        ]
        triton.run()
        http = by_http.InferenceServerClient(f"127.0.0.1:{HTTP}", concurrency=4)
        grpc = by_grpc.InferenceServerClient(f"127.0.0.1:{GRPC}")
        try:
            check_all(triton, http, grpc, models)
        finally:
            http.close()
            grpc.close()
    for model in models:
        model.close()
    if Path("page.py").exists():
        check_page(config)
    print("Triton works with Ingot inside")
