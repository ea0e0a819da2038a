# SPDX-License-Identifier: Apache-2.0
"""Entries on servers: what one machine built is found by others, only what trusted keys signed counts, and no server, however it
behaves, fails a build or makes it wrong."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from cache_builds import (
    INGOT,
    Built,
    Keys,
    Machines,
    X,
    address,
    is_found,
    model,
    needs_nginx,
    needs_redis,
    slow_model,
)
from cache_servers import Proxy, nginx, redis


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), pytest.param("http", marks=needs_nginx)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """(scheme, port) of a server of each kind."""
    context = redis() if request.param == "redis" else nginx(tmp_path / "nginx")
    with context as running:
        yield request.param, running.port


def test_another_machine_finds_what_one_built(server: tuple[str, int], keys: Keys) -> None:
    first = Built(cache=address(server), **keys.options())
    assert first.made > 0
    found = Built(cache=address(server), trusted_keys=str(keys.trusted))
    assert found.made == 0
    assert found.engine.to_bytes() == first.engine.to_bytes()
    # Another model with the same kernels.
    part = Built(model()[:2], cache=address(server), trusted_keys=str(keys.trusted))
    assert part.stats["from_tiers"] > 0


def test_what_a_server_has_is_kept_on_disk(server: tuple[str, int], keys: Keys, tmp_path: Path) -> None:
    Built(cache=address(server), **keys.options())
    folder = str(tmp_path / "cache")
    Built(cache=address(server), engine_cache_dir=folder, trusted_keys=str(keys.trusted))
    assert Built(engine_cache_dir=folder).made == 0


def test_what_is_on_disk_goes_to_no_server(server: tuple[str, int], keys: Keys, tmp_path: Path) -> None:
    folder = str(tmp_path / "cache")
    Built(engine_cache_dir=folder)
    Built(engine_cache_dir=folder, cache=address(server), **keys.options())
    assert Built(cache=address(server), trusted_keys=str(keys.trusted)).made > 0


def test_namespaces_do_not_mix(server: tuple[str, int], keys: Keys) -> None:
    Built(cache=address(server), **keys.options())
    assert Built(cache=address(server, "other"), trusted_keys=str(keys.trusted)).made > 0


@pytest.mark.parametrize("how", ["no key", "read only", "cache_built_engines"])
def test_a_server_that_is_only_read(server: tuple[str, int], keys: Keys, how: str) -> None:
    options: dict[str, Any] = {
        "no key": {"trusted_keys": str(keys.trusted)},
        "read only": {**keys.options(), "cache_read_only": True},
        "cache_built_engines": {**keys.options(), "cache_built_engines": False},
    }[how]
    Built(cache=address(server), **options)
    assert Built(cache=address(server), trusted_keys=str(keys.trusted)).made > 0


def test_entries_of_foreign_keys_are_misses(server: tuple[str, int], keys: Keys, tmp_path: Path) -> None:
    Built(cache=address(server), **keys.options())
    other = Keys(tmp_path, "other")
    built = Built(cache=address(server), trusted_keys=str(other.trusted))
    assert built.made > 0
    with pytest.raises(ingot.UserError, match=r"INGOT-U028.*none of the 1 trusted"):
        Built(cache=address(server), trusted_keys=str(other.trusted), strict_cache=True)


def test_without_trusted_keys_a_server_is_not_used(server: tuple[str, int], keys: Keys) -> None:
    Built(cache=address(server), **keys.options())
    assert Built(cache=address(server)).made > 0


def test_the_environment_says_the_same(server: tuple[str, int], keys: Keys, tmp_path: Path) -> None:
    torch.export.save(torch.export.export(model(), (X,)), tmp_path / "model.pt2")
    variables = {"INGOT_CACHE": address(server), "INGOT_TRUSTED_KEYS": str(keys.trusted)}
    signing = {"INGOT_CACHE_SIGNING_KEY": str(keys.secret)}

    def is_found(*words: str, **more: str) -> bool:
        environment = {"INGOT_ENGINE_CACHE_DIR": "off", "PATH": "/usr/bin", **variables, **more}
        command = [INGOT, "build", tmp_path / "model.pt2", "-o", tmp_path / "e.ingot", "--json", *words]
        return json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)[
            "is_from_cache"
        ]

    assert not is_found(**signing, INGOT_CACHE_READ_ONLY="true")
    assert not is_found(), "nothing was added"
    assert not is_found("--cache-read-only=false", **signing, INGOT_CACHE_READ_ONLY="true")
    assert is_found(), "what is passed counts"
    assert not is_found("--cache=off")
    with closing(Proxy(server[1], lambda sent, piece: (time.sleep(0.5), piece)[1])) as proxy:
        slow = {"INGOT_CACHE": address((server[0], proxy.port)), "INGOT_CACHE_DEADLINE": "100"}
        assert not is_found(**slow)
        assert is_found("--cache-deadline=60000", **slow)


def test_the_log_says_what_to_set(server: tuple[str, int], keys: Keys, tmp_path: Path) -> None:
    torch.export.save(torch.export.export(model(), (X,)), tmp_path / "model.pt2")

    def log(**options: str) -> str:
        words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
        command = [INGOT, "build", tmp_path / "model.pt2", "-o", tmp_path / "e.ingot", *words]
        environment = {"INGOT_LOG": "info", "INGOT_ENGINE_CACHE_DIR": "off", "PATH": "/usr/bin"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stderr

    assert "set INGOT_TRUSTED_KEYS" in log(cache=address(server))
    assert "set INGOT_CACHE_SIGNING_KEY" in log(cache=address(server), trusted_keys=str(keys.trusted))
    complete = {name: str(value) for name, value in keys.options().items()}
    assert "set INGOT" not in log(cache=address(server), **complete)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return slow_model(tmp_path_factory.mktemp("model"))


@needs_redis
def test_of_eight_processes_on_four_machines_one_builds(archive: Path, keys: Keys, tmp_path: Path) -> None:
    with redis() as server:
        machines = Machines(archive, address(("redis", server.port)), keys, tmp_path)
        processes = [machines.start(i % 4) for i in range(8)]
        assert sorted(is_found(process) for process in processes) == [False] + [True] * 7


@needs_redis
def test_another_takes_over_from_a_builder_that_is_killed(archive: Path, keys: Keys, tmp_path: Path) -> None:
    with redis() as server:
        machines = Machines(archive, address(("redis", server.port)), keys, tmp_path)
        first = machines.start(0)
        while not server.keys("team:lease:*"):
            assert first.poll() is None
            time.sleep(0.001)
        first.kill()
        first.communicate()
        assert server.keys("team:lease:*"), "it was killed while it built"
        assert not is_found(machines.start(1))


@needs_nginx
def test_processes_that_share_an_http_server(archive: Path, keys: Keys, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx") as server:
        machines = Machines(archive, address(("http", server.port)), keys, tmp_path)
        processes = [machines.start(i % 2) for i in range(4)]
        found = [is_found(process) for process in processes]
        assert sum(found) >= 2, "one process of each machine builds"
        assert is_found(machines.start(3))


class Store(dict[str, bytes]):
    """What `custom_engine_cache` takes."""

    def save(self, key: str, blob: bytes) -> None:
        self[key] = blob

    def load(self, key: str) -> bytes | None:
        return self.get(key)


def test_a_store_of_the_caller() -> None:
    store = Store()
    first = Built(custom_engine_cache=store)
    assert len(store) == first.made + 1, "the kernels and the engine"
    assert all(len(key) == 64 for key in store)
    found = Built(custom_engine_cache=store)
    assert found.made == 0
    assert found.engine.to_bytes() == first.engine.to_bytes()


def test_a_store_of_the_caller_in_torch_compile() -> None:
    store = Store()
    with torch.no_grad(), ingot.Session():
        options = {"custom_engine_cache": store, "engine_cache_dir": "off"}
        torch._dynamo.reset()
        torch.testing.assert_close(torch.compile(model(), backend="ingot", options=options)(X), model()(X))
    assert store


@pytest.mark.parametrize("spoil", ["flip", "cut", "swap", "empty"])
def test_a_store_that_returns_something_else(spoil: str) -> None:
    store = Store()
    Built(custom_engine_cache=store)
    values = list(store.values())
    for i, (key, value) in enumerate(list(store.items())):
        store[key] = {
            "flip": value[:-20] + bytes([value[-20] ^ 4]) + value[-19:],
            "cut": value[:-1],
            "swap": values[i - 1],
            "empty": b"",
        }[spoil]
    assert Built(custom_engine_cache=Store(store)).made > 0
    with pytest.raises(ingot.UserError, match=r"INGOT-U028.*cannot use entry"):
        Built(custom_engine_cache=Store(store), strict_cache=True)


@pytest.mark.parametrize("method", ["save", "load"])
def test_a_store_that_raises(method: str) -> None:
    class Broken(Store):
        pass

    def fail(*_: Any) -> None:
        raise ValueError("the store is closed")

    setattr(Broken, method, fail)
    assert Built(custom_engine_cache=Broken()).made > 0
    with pytest.raises(ingot.UserError, match="the store is closed"):
        Built(custom_engine_cache=Broken(), strict_cache=True)


@pytest.mark.parametrize("method", ["save", "load"])
def test_a_store_that_is_interrupted(method: str) -> None:
    """Ctrl-C, while a store waits for its server, ends the build too."""

    class Slow(Store):
        pass

    def interrupt(*_: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    setattr(Slow, method, interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            Built(custom_engine_cache=Slow())
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_store_of_the_wrong_type() -> None:
    class Texts(Store):
        def load(self, key: str) -> Any:
            return key

    assert Built(custom_engine_cache=Texts()).made > 0
    with pytest.raises(ingot.UserError, match=r"INGOT-U002.*save\(key, bytes\)"):
        Built(custom_engine_cache={})
