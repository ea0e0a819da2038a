# SPDX-License-Identifier: Apache-2.0
"""Engines that several ranks run: against torch with gloo, and by threads.

pytest tests/python/test_ranks.py -k block
"""

import functools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import ingot
import numpy as np
import pytest
import rank_checks
import rank_engines
import torch.distributed as dist
from rank_engines import as_ranks, join

CHECKS = [(size, name) for size in (2, 4) for name in rank_checks.checks_of(size)]
FOLDER = Path(__file__).parent


def launch(size: int, folder: Path) -> list[dict[str, str]]:
    """What each rank says of each check."""
    results = [folder / f"{rank}.json" for rank in range(size)]
    processes = [
        subprocess.Popen([sys.executable, FOLDER / "rank_checks.py", str(rank), str(size), folder / "store", results[rank]])
        for rank in range(size)
    ]  # fmt: skip
    try:
        assert [process.wait(900) for process in processes] == [0] * size
    finally:
        for process in processes:
            process.kill()
    return [json.loads(result.read_text(encoding="utf-8")) for result in results]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], list[dict[str, str]]]:
    return functools.cache(lambda size: launch(size, tmp_path_factory.mktemp(f"ranks{size}")))


@pytest.mark.parametrize(("size", "check"), CHECKS)
def test_torch(outcomes: Callable[[int], list[dict[str, str]]], size: int, check: str) -> None:
    for rank, outcome in enumerate(outcomes(size)):
        assert not outcome[check], f"rank {rank}: {outcome[check]}"


# ---- without torch ----


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rank_engines.make(tmp_path_factory.mktemp("engines"))


def test_threads_are_ranks(folder: Path, binding: str) -> None:
    address = ingot.distributed.listen()
    x, expected = np.load(folder / "x.npy"), np.load(folder / "expected.npy")

    def work(rank: int) -> np.ndarray:
        engine = ingot.Engine.load(folder / "any.ingot")
        ingot.distributed.bind(engine, join(address, rank, deadline=5))
        first = engine(x)
        np.testing.assert_array_equal(engine(x), first)
        return first

    for result in as_ranks(2, work):
        assert isinstance(result, np.ndarray), result
        np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_groups_of_before_come_back(folder: Path, binding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ingot.Engine.load(folder / "any.ingot")
    alone, other = (ingot.distributed.join("127.0.0.1:1", 0, 1) for _ in range(2))
    ingot.distributed.bind(engine, alone)
    monkeypatch.setattr(ingot.distributed, "connect", lambda group: group)
    with ingot.distributed.distributed_context(other, engine):
        inner = engine._core.groups()
    assert list(inner) == list(engine._core.groups()) == ["0"]
    x = np.load(folder / "x.npy")
    for given in ({"typo": alone}, {"0": alone, "1": other}):
        with pytest.raises(ingot.UserError, match=r"the module has no group '(typo|1)'") as info:
            ingot.distributed.bind(engine, given)
        assert info.value.code == "INGOT-U352"
    with pytest.raises(ingot.UserError, match="group '0' has 1 ranks"):  # what was bound is bound again
        engine(x)


def test_calls_under_way_keep_their_groups_and_later_ones_get_new_ones(folder: Path, binding: str) -> None:
    """Rank 0 binds a second group while its call waits for rank 1 in the first one; the pair meets in the second one."""
    first, second = ingot.distributed.listen(), ingot.distributed.listen()
    x, expected = np.load(folder / "x.npy"), np.load(folder / "expected.npy")
    ready = threading.Event()

    def work(rank: int) -> object:
        engine = ingot.Engine.load(folder / "any.ingot")
        groups = [join(address, rank, deadline=5) for address in (first, second)]
        ingot.distributed.bind(engine, groups.pop(0))
        if rank == 1:
            assert ready.wait(10)
            time.sleep(0.2)  # rank 0 is in its call
            begun = engine(x)
            ingot.distributed.bind(engine, groups.pop(0))
            return begun, engine(x)
        begun: list[np.ndarray] = []
        caller = threading.Thread(target=lambda: begun.append(engine(x)))
        caller.start()
        time.sleep(0.1)
        ingot.distributed.bind(engine, groups.pop(0))
        ready.set()
        caller.join(10)
        return begun[0], engine(x)

    for results in as_ranks(2, work):
        for result in results:
            np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_rank_zero_listens_where_it_reaches_the_store() -> None:
    from ingot import ranks

    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    assert ranks._own_host(dist.PrefixStore("a", dist.PrefixStore("b", store))) in ("127.0.0.1", "[::1]")
    assert ranks._own_host(dist.HashStore()) == "127.0.0.1"

    class Far:
        host = "no-such-host.invalid"

    with pytest.raises(ingot.UserError, match="no-such-host") as info:
        ranks._own_host(Far())
    assert info.value.code == "INGOT-U353"
    assert "address=" in str(info.value)


def test_a_group_is_missing(folder: Path, binding: str) -> None:
    engine = ingot.Engine.load(folder / "any.ingot")
    assert ingot.distributed.group_names(engine) == ["0"]
    with pytest.raises(ingot.UserError, match="no group of ranks is bound to '0'") as info:
        engine(np.load(folder / "x.npy"))
    assert info.value.code == "INGOT-U350"
    assert info.value.node == "all_reduce"


def test_a_group_does_not_fit(folder: Path) -> None:
    alone = ingot.distributed.join("127.0.0.1:1", 0, 1)
    engine = ingot.Engine.load(folder / "0.ingot")
    ingot.distributed.bind(engine, alone)
    with pytest.raises(ingot.UserError, match="group '0' has 1 ranks, the engine is for 2"):
        engine(np.load(folder / "x.npy"))


def test_each_rank_has_its_engine(folder: Path) -> None:
    address, x = ingot.distributed.listen(), np.load(folder / "x.npy")

    def work(rank: int) -> object:
        group = join(address, rank, deadline=5)
        other = ingot.Engine.load(folder / f"{1 - rank}.ingot")
        ingot.distributed.bind(other, group)
        with pytest.raises(ingot.UserError) as info:
            other(x)
        assert info.value.code == "INGOT-U351"
        own = ingot.Engine.load(folder / f"{rank}.ingot")
        ingot.distributed.bind(own, group)
        return own(x)

    for result in as_ranks(2, work):
        np.testing.assert_allclose(result, np.load(folder / "expected.npy"), rtol=1e-5)


def test_another_engine_is_noticed(folder: Path) -> None:
    address, x = ingot.distributed.listen(), np.load(folder / "x.npy")

    def work(rank: int) -> object:
        engine = ingot.Engine.load(folder / ("any.ingot" if rank == 0 else "another.ingot"))
        ingot.distributed.bind(engine, join(address, rank, name="tp", deadline=5))
        return engine(x)

    errors = as_ranks(2, work)
    assert [getattr(error, "code", error) for error in errors] == ["INGOT-D351"] * 2
    assert all("another engine than rank" in str(error) for error in errors)


def test_a_call_that_fails_before_its_first_collective_may_be_repeated(folder: Path) -> None:
    address, x = ingot.distributed.listen(), np.load(folder / "x.npy")

    def work(rank: int) -> object:
        engine = ingot.Engine.load(folder / "any.ingot")
        ingot.distributed.bind(engine, join(address, rank, deadline=5))
        if rank == 1:
            with pytest.raises(ingot.UserError):
                engine(x[:, :3])
        return engine(x)

    for result in as_ranks(2, work):
        np.testing.assert_allclose(result, np.load(folder / "expected.npy"), rtol=1e-5)


def test_the_rank_of_a_file_must_be_given(folder: Path) -> None:
    with pytest.raises(ingot.UserError, match="traced by one rank") as info:
        ingot.build(folder / "model.pt2")
    assert (info.value.code, info.value.node) == ("INGOT-U354", "all_reduce")
    for rank, code in (("first", "INGOT-U002"), ("-1", "INGOT-U002"), ("other:1", "INGOT-U354")):
        with pytest.raises(ingot.UserError) as info:
            ingot.build(folder / "model.pt2", rank=rank)
        assert info.value.code == code
