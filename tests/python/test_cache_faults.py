# SPDX-License-Identifier: Apache-2.0
"""Servers that die, misbehave, are slow, lose parts of entries or refuse: each call ends by its deadline, and each build is right."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import ingot
import pytest
import torch
from cache_builds import Built, Keys, Machines, address, is_found, needs_nginx, needs_redis, slow_model
from cache_servers import Nginx, Proxy, Redis, free_port, nginx, redis
from torch import nn


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture(params=[pytest.param("redis", marks=needs_redis), pytest.param("http", marks=needs_nginx)])
def running(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Redis | Nginx]]:
    """The scheme, and a server of each kind."""
    context = redis() if request.param == "redis" else nginx(tmp_path / "nginx")
    with context as server:
        yield request.param, server


@pytest.fixture
def server(running: tuple[str, Redis | Nginx]) -> tuple[str, int]:
    return running[0], running[1].port


FAULTS: dict[str, Callable[[int, bytes], bytes | None]] = {
    "killed in mid-reply": lambda sent, piece: None if sent > 0 else piece[: len(piece) // 2],
    "closed at once": lambda sent, piece: None,
    "one byte a second": lambda sent, piece: (time.sleep(1), piece[:1])[1],
    "silent": lambda sent, piece: (threading.Event().wait(), b"")[1],
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
    """And nothing else: every call ends, by the deadline if need be, and none is repeated."""
    first = Built(cache=address(server), **keys.options())
    with closing(Proxy(server[1], FAULTS[fault])) as proxy:
        faulty = {"cache": address((server[0], proxy.port)), "cache_deadline": 1500, **keys.options()}
        built = Built(**faulty)
        assert built.made == first.made > 0
        calls = 2 * (1 + built.made) + 1  # the engine and each kernel are looked up and uploaded; the lease
        assert 0 < proxy.connections <= calls
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
        options = {
            "cache": f"redis://127.0.0.1:{server.port}/team",
            "immutable_weights": True,
            "cache_deadline": 120_000,
        }
        Built(module, x, **options, **keys.options())
        assert len(server.keys("team:cas:*")) > 600 // 34
        assert Built(module, x, **options, **keys.options()).made == 0


@pytest.mark.parametrize("moment", ["while it is read", "while it is written"])
def test_a_server_that_is_killed(running: tuple[str, Redis | Nginx], keys: Keys, moment: str) -> None:
    scheme, server = running
    module, x = big_model(600)
    options = {"immutable_weights": True, **keys.options()}
    is_read = moment == "while it is read"
    if is_read:
        Built(module, x, cache=address((scheme, server.port)), **options)

    def kill(count: int, _piece: bytes = b"") -> bytes:
        if count > 300_000:  # within the engine, of 1.4 MB
            server.process.kill()
        return _piece

    proxy = Proxy(server.port, spoil=kill) if is_read else Proxy(server.port, watch=kill)
    with closing(proxy):
        built = Built(module, x, cache=address((scheme, proxy.port)), **options)
        server.process.wait()
        assert is_read or built.made > 0
        assert Built(module, x, cache=address((scheme, proxy.port)), **options).made > 0


@needs_nginx
def test_an_upload_that_was_cut_off_is_no_entry(keys: Keys, tmp_path: Path) -> None:
    module, x = big_model(600)
    options = {"immutable_weights": True, **keys.options()}
    with nginx(tmp_path / "nginx") as server:

        def kill(count: int) -> None:
            if count > 300_000:
                server.process.kill()

        with closing(Proxy(server.port, watch=kill)) as proxy:
            Built(module, x, cache=address(("http", proxy.port)), **options)
        server.process.wait()
        files = list(server.root.rglob("cas/*"))
    (tmp_path / "nginx" / "root").rename(tmp_path / "kept")
    (tmp_path / "nginx").rename(tmp_path / "old")
    with nginx(tmp_path / "nginx") as server:
        server.root.rmdir()
        (tmp_path / "kept").rename(server.root)
        where = address(("http", server.port))
        Built(module, x, cache=where, strict_cache=True, **options)
        assert len(list(server.root.rglob("cas/*"))) > len(files)
        assert Built(module, x, cache=where, strict_cache=True, **options).made == 0


@needs_nginx
def test_a_content_that_is_gone_is_added_again(keys: Keys, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx") as server:
        options = {"cache": address(("http", server.port)), "strict_cache": True, **keys.options()}
        first = Built(**options)
        contents = sorted(server.root.rglob("cas/*"))
        for content in contents:
            kept = content.read_bytes()
            content.unlink()
            assert Built(**options).engine.to_bytes() == first.engine.to_bytes()
            content.write_bytes(kept)
        for content in contents:
            content.unlink()
        assert Built(**options).made == first.made
        assert sorted(server.root.rglob("cas/*")) == contents
        assert Built(**options).made == 0


@needs_redis
def test_a_server_that_evicts_all_the_time(keys: Keys) -> None:
    with redis("", "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-random") as server:
        options = {"cache": address(("redis", server.port)), "strict_cache": True, **keys.options()}
        made = []
        for seed in range(24):
            torch.manual_seed(seed % 8)
            size = 200 + seed % 8
            module = nn.Sequential(nn.Linear(size, size), nn.Tanh()).eval()
            made.append(Built(module, torch.randn(3, size), immutable_weights=True, **options).made)
        assert int(server.call("INFO", "stats").decode().split("evicted_keys:")[1].split()[0]) > 0
        assert all(made[:8])


@needs_redis
def test_a_server_that_is_full(keys: Keys) -> None:
    with redis("", "--maxmemory", "1500kb", "--maxmemory-policy", "noeviction") as server:
        module, x = big_model(600)
        options = {"cache": address(("redis", server.port)), "immutable_weights": True, **keys.options()}
        assert Built(module, x, **options).made > 0
        with pytest.raises(ingot.UserError, match=r"INGOT-U028.*OOM"):
            Built(module, x, strict_cache=True, **options)


@needs_nginx
def test_a_server_that_takes_no_large_entries(keys: Keys, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", "client_max_body_size 100k;") as server:
        module, x = big_model(600)
        options = {"cache": address(("http", server.port)), "immutable_weights": True, **keys.options()}
        assert Built(module, x, **options).made > 0
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(module, x, strict_cache=True, **options)


@needs_nginx
def test_large_entries_over_http(keys: Keys, tmp_path: Path) -> None:
    _send_and_find(keys, tmp_path, 3000)


@pytest.mark.long
@needs_nginx
def test_an_entry_of_600_mb_over_http(keys: Keys, tmp_path: Path) -> None:
    _send_and_find(keys, tmp_path, 12_300)


def _send_and_find(keys: Keys, folder: Path, size: int) -> None:
    module, x = big_model(size)
    with nginx(folder / "nginx") as server:
        options = {"cache": address(("http", server.port)), "immutable_weights": True, "strict_cache": True}
        options |= {"cache_deadline": 120_000, **keys.options()}
        Built(module, x, **options)
        assert max(path.stat().st_size for path in server.root.rglob("cas/*")) > 4 * size * size
        assert Built(module, x, **options).made == 0


@needs_redis
def test_a_user_who_may_only_read(keys: Keys) -> None:
    with redis() as server:
        server.call("ACL", "SETUSER", "reader", "on", ">pass", "~team:*", "+get")
        writer, reader = (f"redis://{who}127.0.0.1:{server.port}/team" for who in ("", "reader:pass@"))
        assert Built(cache=reader, **keys.options()).made > 0
        with pytest.raises(ingot.UserError, match=r"INGOT-U028.*NOPERM"):
            Built(cache=reader, strict_cache=True, **keys.options())
        Built(cache=writer, **keys.options())
        assert Built(cache=reader, cache_read_only=True, strict_cache=True, **keys.options()).made == 0


@needs_redis
def test_a_server_whose_clock_goes_back(keys: Keys, tmp_path: Path) -> None:
    with redis() as server:
        machines = Machines(slow_model(tmp_path), address(("redis", server.port)), keys, tmp_path)
        first = machines.start(0)
        [lease] = _leases(server, first)
        first.kill()
        first.communicate()
        ten_years = 10 * 365 * 24 * 3600 * 1000
        assert server.call("PEXPIRE", lease, str(ten_years)) == b":1\r\n"
        assert not is_found(machines.start(1)), "it takes over, long before that"


@needs_redis
def test_a_server_whose_clock_goes_forward(keys: Keys, tmp_path: Path) -> None:
    with redis() as server:
        machines = Machines(slow_model(tmp_path), address(("redis", server.port)), keys, tmp_path)
        first = machines.start(0)
        [lease] = _leases(server, first)
        server.call("DEL", lease)  # it has expired, though its holder lives
        second = machines.start(1)
        assert not is_found(first)
        is_found(second)  # built by itself, or found: either is right
        assert machines.engines[0].read_bytes() == machines.engines[1].read_bytes()
        assert is_found(machines.start(2))


def _leases(server: Redis, builder: subprocess.Popen[str]) -> list[str]:
    while not (leases := server.keys("team:lease:*")):
        assert builder.poll() is None, "it was built before"
        time.sleep(0.001)
    return leases
