# SPDX-License-Identifier: Apache-2.0
"""When entries are written, to which of the stores; and that a process which ends early loses entries and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import ingot
import pytest
from cache_builds import Built, Keys, address, needs_redis
from cache_servers import Redis, redis

pytestmark = needs_redis


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


@pytest.fixture
def server() -> Iterator[Redis]:
    with redis() as running:
        yield running


class Store(dict[str, bytes]):
    """What `custom_engine_cache` takes."""

    def save(self, key: str, blob: bytes) -> None:
        self[key] = blob

    def load(self, key: str) -> bytes | None:
        return self.get(key)


def entries(folder: Path) -> int:
    return sum(len(path.name) == 62 for path in folder.glob("??/*"))


# Policy, and which of disk, server and store have the entries in the end.
POLICIES = {
    "through": "disk server store",
    "back": "disk server store",
    "read_only": "",
    "none": "",
    "disk:back,server:none": "disk store",
    "server:back,store:read_only": "disk server",
    "disk:none": "server store",
}


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_of_stores(policy: str, server: Redis, keys: Keys, tmp_path: Path) -> None:
    store, folder = Store(), tmp_path / "cache"
    options = {"cache": address(("redis", server.port)), "engine_cache_dir": folder, **keys.options()}
    first = Built(custom_engine_cache=store, cache_write_policy=policy, **options)
    assert ingot.cache_flush()
    assert ingot.cache_stats()["waiting"] == 0
    has = {"disk": entries(folder), "server": len(server.keys("team:ac:*")), "store": len(store)}
    count = first.made + 1
    assert has == {name: count if name in POLICIES[policy].split() else 0 for name in has}


@pytest.mark.parametrize("policy", ["read_only", "none", "back"])
def test_policies_of_reading(policy: str, server: Redis, keys: Keys, tmp_path: Path) -> None:
    where = {"cache": address(("redis", server.port)), **keys.options()}
    first = Built(**where)
    folder = tmp_path / "cache"
    found = Built(engine_cache_dir=folder, cache_write_policy=policy, **where)
    assert (found.made == 0) == (policy != "none")
    assert found.engine.to_bytes() == first.engine.to_bytes()
    assert ingot.cache_flush()
    assert (entries(folder) > 0) == (policy == "back"), "what the server has is kept above it"


def test_a_strict_build_waits(server: Redis, keys: Keys, tmp_path: Path) -> None:
    options = {"cache": address(("redis", server.port)), **keys.options()}
    server.process.kill()
    assert Built(cache_write_policy="back", **options).made > 0
    with pytest.raises(ingot.UserError, match="INGOT-U028"):
        Built(cache_write_policy="back", strict_cache=True, **options)


def test_unknown_policies_are_refused() -> None:
    for policy in ("write-back", "disk", "tape:back", ""):
        with pytest.raises(ingot.UserError, match=r"(?s)INGOT-U002.*through, back, read_only or none"):
            Built(cache_write_policy=policy)


_BUILD = """
import os, sys, torch, ingot
model = torch.nn.Sequential(*(torch.nn.Linear(24 + i, 25 + i) for i in range(20))).eval()
module = ingot.compile(model, inputs=[torch.ones(2, 24)], cache_write_policy="back", engine_cache_dir=sys.argv[1])
print(torch.allclose(module(torch.ones(2, 24)), model(torch.ones(2, 24)), atol=1e-5))
if sys.argv[2] == "at once":
    sys.stdout.flush()
    os._exit(0)
if sys.argv[2] == "after a flush":
    assert ingot.cache_flush(60)
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.parametrize("end", ["at once", "after a flush", "by itself"])
def test_how_a_process_ends(end: str, tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    command = [sys.executable, "-c", _BUILD, folder, end]
    environment = {"PATH": os.environ["PATH"], "INGOT_ENGINE_CACHE_DIR": "off"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == "True\n"
    verified = subprocess.run(
        [Path(sys.executable).with_name("ingot"), "cache", "verify", "--folder", folder]
    )
    assert end == "at once" or (verified.returncode == 0 and entries(folder) > 1)
    again = subprocess.run(
        [*command[:-1], "by itself"], capture_output=True, text=True, check=True, env=environment
    )
    assert again.stdout == "True\n"
