# SPDX-License-Identifier: Apache-2.0
"""Entries on servers: what one machine built is found by others, only what trusted keys signed counts, and no server, however it
behaves, fails a build or makes it wrong."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from cache_servers import Proxy, find_program, free_port, nginx, redis
from torch import nn

INGOT = Path(sys.executable).with_name("ingot")
X = torch.randn(6, 24, generator=torch.Generator().manual_seed(1))

needs_redis = pytest.mark.skipif(not find_program("redis-server"), reason="redis-server is not installed")
needs_nginx = pytest.mark.skipif(not find_program("nginx"), reason="nginx is not installed")


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 8)).eval()


class Keys:
    """A key to sign with, and a file of trusted keys that has it."""

    def __init__(self, folder: Path, name: str = "key") -> None:
        self.secret = folder / name
        subprocess.run([INGOT, "cache", "keygen", self.secret], check=True, capture_output=True)
        self.trusted = Path(f"{self.secret}.pub")

    def options(self) -> dict[str, Any]:
        return {"cache_signing_key": str(self.secret), "trusted_keys": str(self.trusted)}


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


class Built:
    """A build as another machine would make it: nothing in memory, nothing on disk; checked against the model."""

    def __init__(self, module: nn.Module | None = None, x: torch.Tensor = X, **options: Any) -> None:
        module = module or model()
        with torch.no_grad(), ingot.Session() as session:
            program = torch.export.export(module, (x,))
            start = time.monotonic()
            settings = {"engine_cache_dir": "off", "verify_kernels": False, **options}
            self.engine = ingot.build(program, **settings)
            self.seconds = time.monotonic() - start
            self.stats = session.cache_stats()
            torch.testing.assert_close(self.engine(x), module(x))

    @property
    def made(self) -> int:
        return self.stats["made"]


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), pytest.param("http", marks=needs_nginx)])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """(scheme, port) of a server of each kind."""
    context = redis() if request.param == "redis" else nginx(tmp_path / "nginx")
    with context as running:
        yield request.param, running.port


def address(server: tuple[str, int], space: str = "team") -> str:
    return f"{server[0]}://127.0.0.1:{server[1]}/{space}"


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


def test_the_environment_says_the_same(
    server: tuple[str, int], keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INGOT_CACHE", address(server))
    monkeypatch.setenv("INGOT_CACHE_SIGNING_KEY", str(keys.secret))
    monkeypatch.setenv("INGOT_TRUSTED_KEYS", str(keys.trusted))
    assert Built().made > 0
    assert Built().made == 0
    assert Built(cache="off").made > 0
    monkeypatch.setenv("INGOT_CACHE_READ_ONLY", "true")
    assert Built(model()[:1]).made > 0
    assert Built(model()[:1]).made > 0
    Built(model()[:1], cache_read_only=False)  # what is passed counts
    assert Built(model()[:1]).made == 0


def test_deadline_variable(server: tuple[str, int], keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    Built(cache=address(server), **keys.options())
    monkeypatch.setenv("INGOT_CACHE_DEADLINE", "100")
    with closing(Proxy(server[1], lambda sent, piece: (time.sleep(0.5), piece)[1])) as proxy:
        slow = {"cache": address((server[0], proxy.port)), "strict_cache": True, **keys.options()}
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(**slow)
        assert Built(cache_deadline=60_000, **slow).made == 0, "what is passed counts"


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


FAULTS: dict[str, Callable[[int, bytes], bytes | None]] = {
    "killed in mid-reply": lambda sent, piece: None if sent > 0 else piece[: len(piece) // 2],
    "closed at once": lambda sent, piece: None,
    "one byte a second": lambda sent, piece: (time.sleep(1), piece[:1])[1],
    "silent": lambda sent, piece: (time.sleep(60), b"")[1],
    "wrong bytes": lambda sent, piece: bytes(byte ^ 1 for byte in piece),
    "wrong content": lambda sent, piece: piece.replace(b"INGOTENT", b"INGOTENE"),
    "not the protocol": lambda sent, piece: b"SSH-2.0-OpenSSH_9.2\r\n",
    "a huge list": lambda sent, piece: b"*2147483647\r\n",
    "endless": lambda sent, piece: b"$9999999999\r\n" + bytes(1 << 20),
    "errors": lambda sent, piece: b"HTTP/1.1 500 no\r\nContent-Length: 0\r\n\r\n",
    "elsewhere": lambda sent, piece: b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_cost_a_compilation(server: tuple[str, int], keys: Keys, fault: str) -> None:
    Built(cache=address(server), **keys.options())
    with closing(Proxy(server[1], FAULTS[fault])) as proxy:
        faulty = {"cache": address((server[0], proxy.port)), "cache_deadline": 1500, **keys.options()}
        built = Built(**faulty)
        assert built.made > 0
        assert built.seconds < 30, "one deadline, a build, and a slow machine"
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(strict_cache=True, **faulty)


def test_a_server_that_is_not_there(keys: Keys) -> None:
    for scheme in ("redis", "http"):
        assert Built(cache=f"{scheme}://127.0.0.1:{free_port()}/x", **keys.options()).made > 0


@needs_redis
def test_passwords_of_redis(keys: Keys) -> None:
    with redis(password="s3cret@") as server:
        right = f"redis://:s3cret%40@127.0.0.1:{server.port}/team"
        assert Built(cache=right, **keys.options()).made > 0
        assert Built(cache=right, **keys.options()).made == 0
        for wrong in ("", ":other@"):
            options = {"cache": f"redis://{wrong}127.0.0.1:{server.port}/team", **keys.options()}
            assert Built(**options).made > 0
            with pytest.raises(ingot.UserError, match=r"NOAUTH|WRONGPASS") as error:
                Built(strict_cache=True, **options)
            assert "other" not in str(error.value)


@needs_nginx
def test_passwords_of_http(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "users").write_text("me:{PLAIN}s3cret\n")
    more = f'auth_basic "cache"; auth_basic_user_file {tmp_path}/users;'
    with nginx(tmp_path / "nginx", more) as server:
        right = f"http://me:s3cret@127.0.0.1:{server.port}/team"
        assert Built(cache=right, **keys.options()).made > 0
        assert Built(cache=right, **keys.options()).made == 0
        wrong = f"http://me:other@127.0.0.1:{server.port}/team"
        with pytest.raises(ingot.UserError, match="status 401"):
            Built(cache=wrong, strict_cache=True, **keys.options())


def big_model(size: int) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Linear(size, size, bias=False).eval(), torch.randn(1, size)


@needs_redis
def test_entries_of_many_chunks_and_the_loss_of_one(keys: Keys) -> None:
    module, x = big_model(3000)
    with redis() as server:
        options = {"cache": f"redis://127.0.0.1:{server.port}/team", "immutable_weights": True}
        first = Built(module, x, **options, **keys.options())
        chunks = server.keys("team:cas:*:1")
        assert chunks, "an engine of more than one chunk"
        assert Built(module, x, **options, **keys.options()).made == 0
        server.call("DEL", chunks[0])  # as eviction does
        again = Built(module, x, **options, trusted_keys=str(keys.trusted))
        assert again.made == 0, "its kernels were found"
        assert again.stats["from_tiers"] > 0
        assert again.engine.to_bytes() == first.engine.to_bytes()


@pytest.mark.long
@needs_redis
def test_an_entry_of_600_mb(keys: Keys) -> None:
    module, x = big_model(12_300)
    with redis() as server:
        options = {"cache": f"redis://127.0.0.1:{server.port}/team", "immutable_weights": True}
        Built(module, x, **options, **keys.options())
        assert len(server.keys("team:cas:*")) > 600 // 34
        assert Built(module, x, **options, **keys.options()).made == 0


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose layers all differ, so that its build takes a while."""
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    layers = [nn.Sequential(nn.Linear(24 + i, 25 + i), nn.GELU()) for i in range(60)]
    torch.export.save(torch.export.export(nn.Sequential(*layers).eval(), (X,)), path)
    return path


class Machines:
    """Processes that build the same model; each machine has a folder of its own."""

    def __init__(self, archive: Path, server: str, keys: Keys, folder: Path) -> None:
        self._archive, self._folder = archive, folder
        self._options = [f"--cache={server}", "--threads=1"]
        self._options += [f"--{name.replace('_', '-')}={value}" for name, value in keys.options().items()]
        self._started = 0

    def start(self, machine: int) -> Any:
        self._started += 1
        output = self._folder / f"engine{self._started}.ingot"
        folder = f"--engine-cache-dir={self._folder}/machine{machine}"
        command = [INGOT, "build", self._archive, "-o", output, "--json", folder, *self._options]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def is_found(process: Any) -> bool:
    return json.loads(process.communicate()[0])["is_from_cache"]


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


def test_a_store_of_the_wrong_type() -> None:
    class Texts(Store):
        def load(self, key: str) -> Any:
            return key

    assert Built(custom_engine_cache=Texts()).made > 0
    with pytest.raises(ingot.UserError, match=r"INGOT-U002.*save\(key, bytes\)"):
        Built(custom_engine_cache={})
