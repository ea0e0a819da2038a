# SPDX-License-Identifier: Apache-2.0
"""`ingot.metrics`: text that Prometheus reads, of engines and compiled modules, while threads call them."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer

import ingot
import numpy as np
import pytest
import torch
from prometheus_client.parser import text_string_to_metric_families
from small_models import Counter, InParts, mlp

pytestmark = pytest.mark.usefixtures("binding")


def samples(text: str) -> dict[tuple, float]:
    """Each sample by its name and labels; the text is valid, and no sample is there twice."""
    families = list(text_string_to_metric_families(text))
    for family in families:
        assert family.documentation
        assert family.type in ("counter", "gauge")
        is_total = family.type == "counter"
        assert all(sample.name.endswith("_total") == is_total for sample in family.samples)
    rows = [(sample.name, *sorted(sample.labels.items())) for family in families for sample in family.samples]
    assert len(set(rows)) == len(rows)
    values = [sample.value for family in families for sample in family.samples]
    return dict(zip(rows, values, strict=True))


def of(text: str, name: str, engine: str, **labels: str) -> float | None:
    return samples(text).get((f"ingot_{name}", *sorted({"engine": engine, **labels}.items())))


@pytest.fixture
def engine(tmp_path) -> ingot.Engine:
    rows = torch.export.Dim("rows", min=1, max=16)
    program = torch.export.export(mlp(), (torch.randn(4, 8),), dynamic_shapes=[{0: rows}])
    ingot.build(program).save(tmp_path / "model.ingot")
    return ingot.Engine.load(tmp_path / "model.ingot", threads=1)


def test_calls_errors_and_memory(engine: ingot.Engine) -> None:
    for rows in (1, 2, 1):
        engine(np.ones((rows, 8), np.float32))
    for bad in (np.ones((17, 8), np.float32), np.ones((1, 9), np.float32), np.ones((1, 8))):
        with pytest.raises(ingot.UserError):
            engine(bad)
    text = ingot.metrics({"mlp": engine})
    assert of(text, "calls_total", "mlp") == 6
    assert {
        code: of(text, "call_errors_total", "mlp", code=f"INGOT-U{code}") for code in (302, 303, 305)
    } == {302: 1, 303: 1, 305: 1}
    assert of(text, "plan_cache_misses_total", "mlp") == 2
    assert of(text, "plan_cache_hits_total", "mlp") == 1
    assert of(text, "contexts", "mlp") == 1
    assert of(text, "arena_bytes", "mlp") == engine.memory()["arena"] > 0
    assert of(text, "weight_bytes", "mlp") == engine.memory()["weights"] > 0
    assert of(text, "state_bytes", "mlp") == 0


def test_names_of_any_kind(engine: ingot.Engine) -> None:
    names = ['quotes " and \\ and\nlines', "größe 模型 {}", "", "a=b,c"]
    text = ingot.metrics(dict.fromkeys(names, engine))
    assert [of(text, "calls_total", name) for name in names] == [0, 0, 0, 0]


def test_the_process_alone() -> None:
    found = samples(ingot.metrics())
    assert not [row for row in found if any(label == "engine" for label, _ in row[1:])]
    assert found["ingot_info", ("abi", "2"), ("version", ingot.__version__)] == 1
    places = {row[1][1] for row in found if row[0] == "ingot_cache_requests_total"}
    assert places == {"memory", "disk", "server", "other_thread", "nowhere"}


def test_what_builds_found_in_the_cache(binding: str) -> None:
    if binding == "ctypes":
        pytest.skip("builds are the extension's")
    before = samples(ingot.metrics())
    for _ in range(2):
        ingot.build(torch.export.export(torch.nn.Linear(7, 13), (torch.ones(3, 7),)))
    after = samples(ingot.metrics())
    gained = {row[1][1]: after[row] - before[row] for row in after if row[0] == "ingot_cache_requests_total"}
    assert sum(gained.values()) > 0
    assert gained["memory"] + gained["disk"] > 0


def test_compiled_modules_and_their_parts() -> None:
    whole = ingot.compile(Counter(), inputs=[torch.ones(2, 4)])
    parts = ingot.compile(InParts(), inputs=[torch.ones(2, 4)], min_block_size=1)
    torch._dynamo.reset()
    lazy = torch.compile(mlp(), backend="ingot")
    for _ in range(3):
        whole(torch.ones(2, 4))
        parts(torch.ones(2, 4))
        lazy(torch.ones(2, 8))
    text = ingot.metrics({"whole": whole, "parts": parts, "lazy": lazy})
    assert of(text, "calls_total", "whole") == 3
    assert of(text, "state_bytes", "whole") == 16
    count = len(parts.engines)
    assert count > 1
    assert [of(text, "calls_total", f"parts.{i}") for i in range(count)] == [3] * count
    assert of(text, "calls_total", "lazy") == 3


def test_weights_of_modules_that_share_a_graph(binding: str) -> None:
    sets = [1, 1, 1] if binding == "ctypes" else [1, 2, 3]  # the former refits one set of weights
    torch._dynamo.reset()
    modules = [torch.compile(mlp(), backend="ingot") for _ in range(3)]

    def bytes_after(module: torch.nn.Module) -> float | None:
        with torch.no_grad():
            module(torch.ones(2, 8))
        return of(ingot.metrics({"shared": modules[0]}), "weight_bytes", "shared")

    counts = [bytes_after(module) for module in modules]
    assert counts == [number * counts[0] for number in sets]
    assert [bytes_after(module) for module in modules] == [counts[2]] * 3


def test_two_engines_of_one_name(engine: ingot.Engine) -> None:
    parts = ingot.compile(InParts(), inputs=[torch.ones(2, 4)], min_block_size=1)
    text = ingot.metrics({"a": parts, "b": engine})
    assert of(text, "calls_total", "a.0") == 0
    with pytest.raises(ingot.UserError, match=r"two engines have the name 'a\.0'"):
        ingot.metrics({"a.0": engine, "a": parts})


def test_threads_and_scrapes(engine: ingot.Engine) -> None:
    """A server of Python's own library exposes the text; four threads call the engine meanwhile."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = ingot.metrics({"mlp": engine}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    def scrape() -> float | None:
        connection = HTTPConnection("127.0.0.1", server.server_port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return of(text, "calls_total", "mlp")

    def call() -> None:
        for _ in range(50):
            engine(np.ones((2, 8), np.float32))

    with HTTPServer(("127.0.0.1", 0), Handler) as server, ThreadPoolExecutor(5) as pool:
        serving = pool.submit(server.serve_forever)
        try:
            callers = [pool.submit(call) for _ in range(4)]
            counts = [scrape() for _ in range(5)]
            for caller in callers:
                caller.result()
        finally:
            server.shutdown()
        serving.result()
    assert counts == sorted(counts)
    assert of(ingot.metrics({"mlp": engine}), "calls_total", "mlp") == 200


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_counts_on(engine: ingot.Engine) -> None:
    engine(np.ones((2, 8), np.float32))
    child = os.fork()
    if child == 0:
        try:
            engine(np.ones((2, 8), np.float32))
            os._exit(int(of(ingot.metrics({"m": engine}), "calls_total", "m") or 0))
        finally:
            os._exit(99)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
    assert of(ingot.metrics({"m": engine}), "calls_total", "m") == 1
