# SPDX-License-Identifier: Apache-2.0
"""MLServer by its own client (tritonclient's, over HTTP and gRPC): run in the folder that served_models.py wrote, in its environment."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import tritonclient.grpc as by_grpc
import tritonclient.http as by_http
from answers import Answers, error_of, free_port, wait_for
from tritonclient.utils import InferenceServerException

ANSWERS = Answers()
HTTP, GRPC, METRICS = free_port(), free_port(), free_port()
MODELS = Path("models")


def write_settings(workers: int) -> None:
    shutil.rmtree(MODELS, ignore_errors=True)
    MODELS.mkdir()
    settings = {
        "host": "127.0.0.1", "http_port": HTTP, "grpc_port": GRPC, "metrics_port": METRICS, "parallel_workers": workers,
        "metrics_dir": str(Path("metrics").resolve()), "debug": False,
    }  # fmt: skip
    (MODELS / "settings.json").write_text(json.dumps(settings))
    folder = MODELS / "scorer"
    folder.mkdir()
    shutil.copy("scorer.ingot", folder / "model.ingot")
    shutil.copy("scorer.safetensors", folder / "current.safetensors")
    model = {
        "name": "scorer",
        "implementation": "ingot.serving.mlserver.Runtime",
        "max_batch_size": 16,
        "max_batch_time": 0.05,
        "parameters": {"uri": ".", "extra": {"weights": "current.safetensors", "threads": 1}},
    }
    (folder / "model-settings.json").write_text(json.dumps(model))
    (MODELS / "scaled").mkdir()
    shutil.copy("scaled.ingot", MODELS / "scaled/model.ingot")
    scaled = {"name": "scaled", "implementation": model["implementation"], "parameters": {"uri": "."}}
    (MODELS / "scaled/model-settings.json").write_text(json.dumps(scaled))
    (MODELS / "page").mkdir()
    shutil.copy("model.ingot", MODELS / "page/model.ingot")
    shutil.copy("page.json", MODELS / "page/model-settings.json")


@contextmanager
def server(workers: int) -> Iterator[None]:
    write_settings(workers)
    with open("server.log", "w") as log:
        process = subprocess.Popen(
            [Path(sys.executable).with_name("mlserver"), "start", str(MODELS)],
            stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        wait_for("the server", lambda: process.poll() is not None or status("/v2/models/scorer/ready") == 200)
        yield
    except BaseException:
        print(Path("server.log").read_text()[-6000:])
        raise
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
    assert process.returncode is not None


def status(path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{HTTP}{path}", timeout=10) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def post(path: str, body: Any) -> tuple[int, Any]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{HTTP}{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def inputs_of(module: Any, arrays: dict[str, np.ndarray], **options: Any) -> list[Any]:
    kinds = {"int64": "INT64", "float32": "FP32", "float64": "FP64"}
    rows = []
    for name, value in arrays.items():
        row = module.InferInput(name, value.shape, kinds[value.dtype.name])
        row.set_data_from_numpy(value, **options)
        rows.append(row)
    return rows


def ask(client: Any, module: Any, arrays: dict[str, np.ndarray], **options: Any) -> dict[str, np.ndarray]:
    outputs = None
    if module is by_http:  # MLServer has no binary tensors over HTTP
        outputs = [by_http.InferRequestedOutput(name, binary_data=False) for name in ("weights", "total")]
    result = client.infer("scorer", inputs_of(module, arrays, **options), outputs=outputs)
    return {name: result.as_numpy(name) for name in ("weights", "total")}


def check_metadata(http: Any, grpc: Any) -> None:
    metadata = http.get_model_metadata("scorer")
    assert [(row["name"], row["datatype"], row["shape"]) for row in metadata["inputs"]] == [
        ("ids", "INT64", [-1, -1]),
        ("mask", "FP32", [-1, -1]),
    ]
    assert [(row.name, list(row.shape)) for row in grpc.get_model_metadata("scorer").outputs] == [
        ("weights", [-1, -1]),
        ("total", [-1]),
    ]


def check_answers(http: Any, grpc: Any) -> None:
    for number in range(ANSWERS.count):
        ANSWERS.check(number, ask(http, by_http, ANSWERS.request(number), binary_data=False))
        ANSWERS.check(number, ask(grpc, by_grpc, ANSWERS.request(number)))
    numbers = [number % ANSWERS.count for number in range(60)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda number: ask(grpc, by_grpc, ANSWERS.request(number)), numbers))
    for number, answer in zip(numbers, answers, strict=True):
        ANSWERS.check(number, answer)


def check_integers(grpc: Any) -> None:
    """Each request chooses one: a tensor without dims, as of results."""
    for number, k in enumerate((3, -5, 0), start=1):
        x = np.full((number, 3), number, np.float32)
        result = grpc.infer("scaled", inputs_of(by_grpc, {"x": x, "k": np.array(k)}))
        np.testing.assert_array_equal(result.as_numpy("output_0"), x * k + k // 2)
        assert (result.as_numpy("output_1").shape, int(result.as_numpy("output_1"))) == ((), 2 * k)


def check_wrong_requests(http: Any, grpc: Any) -> None:
    good = ANSWERS.request(1)
    for wrong, code in (
        ({**good, "mask": good["mask"].astype(np.float64)}, "INGOT-U302"),
        ({name: np.repeat(value, 20, 0) for name, value in good.items()}, "INGOT-U305"),
        ({**good, "mask": good["mask"][:, 0]}, "INGOT-U301"),
        ({"ids": good["ids"]}, "INGOT-U318"),
    ):
        for client, module, wanted, options in (
            (http, by_http, "400", {"binary_data": False}),
            (grpc, by_grpc, "StatusCode.INVALID_ARGUMENT", {}),
        ):
            error = error_of(InferenceServerException, ask, client, module, wrong, **options)
            assert error is not None, code
            assert code in error.message(), error
            assert error.status() == wanted, error
    row = {"name": "ids", "shape": [2, 2], "datatype": "INT64", "data": [1, 2, 3]}
    found, body = post("/v2/models/scorer/infer", {"inputs": [row]})
    assert (found, "INGOT-U370" in body["error"]) == (400, True), body
    whole = [
        {**row, "data": [1, 2, 3, 4]},
        {"name": "mask", "shape": [2, 2], "datatype": "FP32", "data": [1, 1, 1, 1]},
    ]
    found, body = post("/v2/models/scorer/infer", {"inputs": whole, "parameters": {"timeout": 0}})
    assert (found, "INGOT-U317" in body["error"]) == (504, True), body


def check_refit(grpc: Any) -> None:
    shutil.copy("other.safetensors", MODELS / "new.safetensors")
    os.replace(MODELS / "new.safetensors", MODELS / "scorer/current.safetensors")

    def is_new() -> bool:
        return all(ANSWERS.is_of(2, ask(grpc, by_grpc, ANSWERS.request(2)), "other") for _ in range(6))

    wait_for("the refit", is_new)


def check_unload_and_reload(http: Any, grpc: Any) -> None:
    http.unload_model("scorer")
    assert not http.is_model_ready("scorer")
    error = error_of(InferenceServerException, ask, grpc, by_grpc, ANSWERS.request(1))
    assert "NOT_FOUND" in str(error.status()), error
    shutil.copy("scorer.safetensors", MODELS / "scorer/current.safetensors")
    grpc.load_model("scorer")
    ANSWERS.check(1, ask(grpc, by_grpc, ANSWERS.request(1)))
    with ThreadPoolExecutor(4) as pool:  # a reload under load
        asked = [pool.submit(ask, grpc, by_grpc, ANSWERS.request(3)) for _ in range(20)]
        http.load_model("scorer")
        asked += [pool.submit(ask, grpc, by_grpc, ANSWERS.request(3)) for _ in range(20)]
        for future in asked:
            ANSWERS.check(3, future.result(60))


def metrics() -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    return {
        key: float(value)
        for key, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    }


def check_metrics() -> None:
    def of(outcome: str) -> float:
        return metrics().get(f'ingot_serving_requests_total{{engine="scorer",outcome="{outcome}"}}', 0)

    wait_for("the requests among the metrics", lambda: of("ok") >= 60 and of("wrong") >= 6)
    found = metrics()
    assert found['ingot_serving_batched_requests_total{engine="scorer"}'] > 0, found
    assert found['ingot_calls_total{engine="scorer"}'] > 0
    assert found['ingot_weight_bytes{engine="scorer"}'] > 0


def check_many_shapes(grpc: Any) -> None:
    """200 shapes, mixed: no process of the server compiles."""
    sizes = [(1 + k % 10, 1 + k // 10) for k in range(200)]
    random.Random(1).shuffle(sizes)

    def ask_one(size: tuple[int, int]) -> None:
        asked = {name: np.ones(size, dtype) for name, dtype in (("ids", np.int64), ("mask", np.float32))}
        assert ask(grpc, by_grpc, asked)["weights"].shape == size

    def of(name: str) -> float:
        return sum(value for key, value in metrics().items() if key.startswith(name))

    before = of("ingot_calls_total")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask_one, sizes))
    wait_for("the calls among the metrics", lambda: of("ingot_calls_total") > before)
    assert of('ingot_cache_requests_total{found="nowhere"}') == 0, metrics()


def check_page() -> None:
    """The commands of docs/servers.md."""
    script = Path("page.sh").read_text().replace("8080", str(HTTP))
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    metadata, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert (metadata["inputs"][0]["datatype"], metadata["inputs"][0]["shape"]) == ("FP32", [-1, 64])
    assert answer["outputs"][0]["data"] == [2.0] * 64


def check_a_server(workers: int) -> None:
    with server(workers):
        http = by_http.InferenceServerClient(f"127.0.0.1:{HTTP}", concurrency=4)
        grpc = by_grpc.InferenceServerClient(f"127.0.0.1:{GRPC}")
        check_metadata(http, grpc)
        check_answers(http, grpc)
        check_integers(grpc)
        check_wrong_requests(http, grpc)
        check_metrics()
        check_many_shapes(grpc)
        check_page()
        check_refit(grpc)
        check_unload_and_reload(http, grpc)
        http.close()
        grpc.close()
    print(f"with {workers} worker processes: all right")


if __name__ == "__main__":
    for workers in (0, 2):
        check_a_server(workers)
    print("MLServer works with Ingot inside")
