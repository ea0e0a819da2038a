# SPDX-License-Identifier: Apache-2.0
"""Ray Serve on a cluster of two nodes of this machine: run in the folder that served_models.py wrote, in the environment of Ray."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import ray
from answers import Answers, error_of, free_port, wait_for
from ingot.errors import DeviceError, Error, UserError
from ingot.serving.ray import Client, Deployment
from ingot.serving.ray_replica import assigned_gpu
from ray import serve
from ray.cluster_utils import Cluster

FOLDER = Path.cwd()
ANSWERS = Answers()
WEIGHTS = FOLDER / "current.safetensors"
PORT = free_port()
FAST = {"health_check_period_s": 1, "max_replicas_per_node": 1}


@contextmanager
def cluster() -> Iterator[None]:
    """Two nodes; the second has two GPUs by name, which nothing looks for."""
    config = {"metrics_report_interval_ms": 1000}
    nodes = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 2, "_system_config": config, "include_dashboard": False},
    )
    nodes.add_node(num_cpus=2, num_gpus=2)
    ray.init(nodes.address, log_to_driver=False)
    serve.start(http_options={"host": "127.0.0.1", "port": PORT})
    try:
        yield
    finally:
        serve.shutdown()
        ray.shutdown()
        nodes.shutdown()


def deploy(engine: str, application: str = "scorer", route: str = "/", **options: Any) -> Client:
    serve.run(
        Deployment(FOLDER / engine, name="scorer", threads=1, deployment=FAST, **options),
        name=application,
        route_prefix=route,
    )
    return Client(application)


def replicas(application: str) -> list[str]:
    rows = ray.util.list_named_actors(all_namespaces=True)
    return sorted(
        row["name"] for row in rows if row["name"].startswith(f"SERVE_REPLICA::{application}#replicas#")
    )


def kill(name: str) -> None:
    ray.kill(ray.get_actor(name, namespace="serve"), no_restart=True)


class Load:
    """Threads that ask without a pause; each answer is right, or the error is kept."""

    def __init__(self, client: Client, models: tuple[str, ...] = ("scorer",), threads: int = 6) -> None:
        self.answered: list[int] = []
        self.errors: list[BaseException] = []
        self._client, self._models = client, models
        self._end = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(k,)) for k in range(threads)]

    def _ask(self, thread: int) -> None:
        number = thread
        while not self._end.is_set():
            number = (number + 1) % ANSWERS.count
            try:
                answer = self._client.infer(ANSWERS.request(number))
                assert any(ANSWERS.is_of(number, answer, model) for model in self._models), number
                self.answered.append(number)
            except BaseException as error:
                self.errors.append(error)

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(120)
        assert self.errors == []

    def wait_for_more(self, count: int = 30) -> None:
        begin = len(self.answered)
        wait_for("answers under load", lambda: self.errors or len(self.answered) >= begin + count)


def http(path: str, body: Any = None, headers: dict[str, str] | None = None) -> tuple[int, bytes, Any]:
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read(), response.headers
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers


def in_json(number: int, **changes: Any) -> dict[str, Any]:
    kinds = {"ids": "INT64", "mask": "FP32"}
    rows = [
        {"name": name, "shape": list(value.shape), "datatype": kinds[name], "data": value.tolist(), **changes}
        for name, value in ANSWERS.request(number).items()
    ]
    return {"inputs": rows}


def check_answers(client: Client) -> None:
    for number in range(ANSWERS.count):
        ANSWERS.check(number, client.infer(ANSWERS.request(number)))
    with ThreadPoolExecutor(8) as pool:
        numbers = [number % ANSWERS.count for number in range(40)]
        for number, answer in zip(
            numbers, pool.map(lambda k: client.infer(ANSWERS.request(k)), numbers), strict=True
        ):
            ANSWERS.check(number, answer)


def check_http() -> None:
    status, body, _ = http("/v2/models/scorer")
    metadata = json.loads(body)
    assert (status, metadata["inputs"][0]["shape"]) == (200, [-1, -1])
    assert http("/v2/health/ready")[0] == 200
    assert http("/elsewhere")[0] == 404
    status, body, _ = http("/v2/models/scorer/infer", in_json(4))
    outputs = {
        row["name"]: np.array(row["data"], np.float32).reshape(row["shape"])
        for row in json.loads(body)["outputs"]
    }
    ANSWERS.check(4, outputs)
    for wrong, code in (
        (in_json(4, shape=[1]), "INGOT-U370"),
        (in_json(4, datatype="FP64"), "INGOT-U302"),
        ({"inputs": in_json(4)["inputs"][:1]}, "INGOT-U318"),
    ):
        status, body, _ = http("/v2/models/scorer/infer", wrong)
        assert (status, json.loads(body)["code"]) == (400, code), body
    late = {**in_json(4), "parameters": {"timeout": 0}}
    status, body, _ = http("/v2/models/scorer/infer", late)
    assert (status, json.loads(body)["code"]) == (504, "INGOT-U317"), body


def check_wrong_requests(client: Client) -> None:
    good = ANSWERS.request(1)
    for wrong, code in (
        ({**good, "ids": good["ids"].astype(np.float64)}, "INGOT-U302"),
        ({"ids": good["ids"]}, "INGOT-U318"),
        ({name: np.repeat(value, 20, 0) for name, value in good.items()}, "INGOT-U305"),
    ):
        error = error_of(Error, client.infer, wrong)
        assert isinstance(error, UserError), error
        assert error.code == code, error
    late = error_of(Error, client.infer, good, timeout_s=0)
    assert isinstance(late, UserError), late
    assert late.code == "INGOT-U317"


def check_killed_replica(client: Client) -> None:
    """Requests wait for others in the replicas, so that one that dies has some."""
    with Load(client) as load:
        for attempt in range(
            8
        ):  # a busy machine, or a router that prefers one of the two, may leave one without requests
            names = wait_for("two replicas", lambda: len(found := replicas("scorer")) == 2 and found)
            load.wait_for_more()
            name = names[attempt % 2]
            kill(name)
            load.wait_for_more()
            wait_for("a new replica", lambda name=name: len(set(replicas("scorer")) - {name}) == 2)
            load.wait_for_more()
            if client.repeated:
                break
    assert client.repeated > 0, "no request was in flight"
    print(f"killed replica: {len(load.answered)} answered, {client.repeated} asked twice")


def check_refit(client: Client) -> None:
    names = replicas("scorer")
    with Load(client, ("scorer", "other")) as load:
        load.wait_for_more()
        shutil.copy("other.safetensors", "new.safetensors")
        os.replace("new.safetensors", WEIGHTS)
        wait_for("a refit of both replicas", lambda: client.refit() == 2)
        load.wait_for_more()
    assert replicas("scorer") == names, "a refit must not replace replicas"
    kill(names[0])  # one that begins later has the new weights too
    wait_for("a new replica", lambda: len(set(replicas("scorer")) - {names[0]}) == 2)
    for _ in range(10):
        ANSWERS.check(2, client.infer(ANSWERS.request(2)), "other")


def check_another_engine(client: Client) -> None:
    """Replicas end after the requests that they have."""
    names = replicas("scorer")
    with Load(client, ("scorer", "other")) as load:
        load.wait_for_more()
        deploy("other.ingot", num_replicas=2, batch_wait_s=0.1)
        load.wait_for_more()
    assert not set(replicas("scorer")) & set(names)
    ANSWERS.check(3, client.infer(ANSWERS.request(3)), "other")
    error = error_of(Error, client.refit)  # there is no file to refit from
    assert getattr(error, "code", "") == "INGOT-U371", error


def check_cancelled(client: Client) -> None:
    """One that waits for others leaves its batch; Ray's own metrics count it, beside those of the engine."""
    handle = client._replicas

    def cancel_one() -> bool:
        response = handle.infer.remote(ANSWERS.request(1), None)
        kept = handle.infer.remote(ANSWERS.request(1), None)
        time.sleep(0.03)
        response.cancel()
        ANSWERS.check(1, kept.result(), "other")
        return metric("ingot_serving_requests", 'outcome="cancelled"') >= 1

    wait_for("the metric of a cancelled request", cancel_one)
    assert metric("ingot_serving_requests", 'outcome="ok"') > 0
    assert metric("ingot_calls", 'engine="scorer"') > 0
    assert metric("ingot_weight_bytes", 'engine="scorer"') > 0


def metric(name: str, label: str) -> float:
    """Summed up over the nodes, as Prometheus would scrape them."""
    total = 0.0
    for node in ray.nodes():
        url = f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                lines = response.read().decode().splitlines()
        except OSError:
            continue
        total += sum(
            float(line.split()[-1]) for line in lines if line.startswith(f"ray_{name}") and label in line
        )
    return total


def check_state() -> None:
    client = deploy("slow.ingot", "slow", "/slow")
    x = {"x": np.zeros((1024, 1024), np.float32)}
    assert client.infer(x)["output_0"] == 1
    is_killed = threading.Event()

    def ask() -> BaseException | None:
        """However long one request takes, there is always another."""
        while not is_killed.is_set():
            try:
                client.infer(x)
            except BaseException as error:
                return error
        return None

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask) for _ in range(4)]
        time.sleep(0.5)
        (name,) = replicas("slow")
        kill(name)
        wait_for("the end of the replica", lambda: name not in replicas("slow"))
        is_killed.set()
        lost = [error for future in asked if (error := future.result(120)) is not None]
    assert lost, "no request was in flight"
    assert client.repeated == 0
    for error in lost:
        assert isinstance(error, DeviceError), error
        assert error.code == "INGOT-D362", error
        assert "the engine has state" in str(error)
    wait_for("a new replica", lambda: error_of(Error, client.infer, x) is None)
    serve.delete("slow")


def check_integers() -> None:
    """Each request chooses one: an array without dims, or a number."""
    client = deploy("scaled.ingot", "scaled", "/scaled")
    x = np.ones((2, 3), np.float32)
    for k in (3, -5, np.int64(0)):
        answer = client.infer({"x": x, "k": k})
        assert (answer["output_0"] == x * k + k // 2).all()
        assert (answer["output_1"].shape, int(answer["output_1"])) == ((), 2 * k)
    rows = [
        {"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]},
        {"name": "k", "shape": [], "datatype": "INT64", "data": [-5]},
    ]
    status, body, _ = http("/scaled/v2/models/scorer/infer", {"inputs": rows})
    assert status == 200, body
    assert [row["data"] for row in json.loads(body)["outputs"]] == [[-8.0, -13.0, -18.0], [-10]]
    serve.delete("scaled")


@ray.remote(num_gpus=1, num_cpus=0)
class OnGpu:
    def where(self) -> tuple[int | None, str | None]:
        return assigned_gpu(), os.environ.get("CUDA_VISIBLE_DEVICES")


def check_gpus() -> None:
    actors = [OnGpu.remote(), OnGpu.remote()]
    found = ray.get([actor.where.remote() for actor in actors])
    assert sorted(found) == [(0, "0"), (0, "1")], found
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)
    assert assigned_gpu() is None
    for actor in actors:
        ray.kill(actor)


def check_page() -> None:
    """The code and the commands of docs/servers.md."""
    names: dict[str, Any] = {}
    exec(Path("page.py").read_text(), names)
    assert (names["answer"]["output_0"] == 2).all()
    done = subprocess.run(
        ["bash", "-euc", Path("page.sh").read_text().replace("8000", str(PORT))],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    metadata, answer = (json.loads(line) for line in done.stdout.splitlines())
    assert metadata["inputs"][0]["datatype"] == "FP32"
    assert answer["outputs"][0]["data"] == [2.0] * 64


def timed(check: Callable[..., None], *arguments: Any) -> None:
    begin = time.monotonic()
    check(*arguments)
    print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)


if __name__ == "__main__":
    with cluster():
        begin = time.monotonic()
        shutil.copy("scorer.safetensors", WEIGHTS)
        client = deploy("scorer.ingot", num_replicas=2, batch_wait_s=0.1, weights=str(WEIGHTS))
        print(f"deployed: {time.monotonic() - begin:.1f} s")
        timed(check_answers, client)
        timed(check_http)
        timed(check_wrong_requests, client)
        timed(check_killed_replica, client)
        timed(check_refit, client)
        timed(check_another_engine, client)
        timed(check_cancelled, client)
        timed(check_state)
        timed(check_integers)
        timed(check_gpus)
        serve.delete("scorer")
        timed(check_page)
    print("Ray Serve works with Ingot inside")
