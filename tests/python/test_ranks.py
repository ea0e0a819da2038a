# SPDX-License-Identifier: Apache-2.0
"""Engines that several ranks run: against torch with gloo, by threads, on the command line, and what happens when a rank fails.

pytest tests/python/test_ranks.py -k block
"""

import functools
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import ingot
import numpy as np
import pytest
import rank_checks
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from errors.inputs import INGOT
from torch import nn

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


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(6, 8), nn.Linear(8, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = funcol.all_reduce(self.down(torch.relu(self.up(x))), "sum", dist.group.WORLD)
        return funcol.all_gather_tensor(total, 0, dist.group.WORLD)


class Another(Model):
    """The same collectives, of another model."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(torch.sigmoid(x))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """model.pt2, traced by rank 0 of 2; the engines any.ingot, 0.ingot, 1.ingot, another.ingot; x.npy, expected.npy."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    folder = tmp_path_factory.mktemp("engines")
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    try:
        torch.manual_seed(1)
        model, x = Model().eval(), torch.randn(3, 6)
        program = torch.export.export(model, (x,))
        torch.export.save(program, folder / "model.pt2")
        torch.export.save(torch.export.export(Another().eval(), (x,)), folder / "another.pt2")
        with torch.no_grad():
            own = model.down(torch.relu(model.up(x)))
    finally:
        dist.destroy_process_group()
    for rank in ("any", "0", "1"):
        ingot.build(folder / "model.pt2", rank=rank).save(folder / f"{rank}.ingot")
    ingot.build(folder / "another.pt2", rank="any").save(folder / "another.ingot")
    np.save(folder / "x.npy", x.numpy())
    np.save(folder / "expected.npy", torch.cat([2 * own, 2 * own]).numpy())
    return folder


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def join(listener: object, rank: int, **options: object) -> object:
    """One of two ranks that meet where rank 0 listens."""
    return ingot.distributed.join(listener if rank == 0 else listener.address(), rank, 2, **options)


def as_ranks(count: int, work: Callable[[int], object]) -> list[object]:
    """Results, or errors, of `work(rank)` in a thread per rank."""
    results: list[object] = [None] * count

    def run(rank: int) -> None:
        try:
            results[rank] = work(rank)
        except ingot.Error as error:
            results[rank] = error

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


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


# ---- processes ----

RANK = """
import sys
import numpy as np
import ingot
engine = ingot.Engine.load(sys.argv[1])
x = np.load(sys.argv[2])
print("ready", flush=True)
for line in sys.stdin:
    try:
        print("sum", engine(x).sum(), flush=True)
    except ingot.Error as error:
        print(error.code, str(error).replace(chr(10), " "), flush=True)
"""


class Ranks:
    """Processes that run an engine each time that they are told to."""

    def __init__(self, folder: Path, count: int, deadline: int, started: Sequence[int] | None = None) -> None:
        address = free_address()
        self.processes = {
            rank: subprocess.Popen(
                [sys.executable, "-c", RANK, folder / "any.ingot", folder / "x.npy"],
                env={**os.environ, "INGOT_RANK": str(rank), "INGOT_WORLD_SIZE": str(count), "INGOT_ADDRESS": address,
                     "INGOT_GROUP_DEADLINE": str(deadline)},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            for rank in (range(count) if started is None else started)
        }  # fmt: skip
        for process in self.processes.values():
            assert process.stdout.readline() == "ready\n"

    def __enter__(self) -> "Ranks":
        return self

    def __exit__(self, *unused: object) -> None:
        for process in self.processes.values():
            process.kill()
            process.communicate()

    def tell(self, *ranks: int) -> None:
        for rank in ranks:
            self.processes[rank].stdin.write("run\n")
            self.processes[rank].stdin.flush()

    def answers(self, *ranks: int) -> list[str]:
        return [self.processes[rank].stdout.readline() for rank in ranks]


def test_processes_find_each_other_by_their_environment(folder: Path) -> None:
    with Ranks(folder, 2, 5000) as ranks:
        for _ in range(2):
            ranks.tell(0, 1)
            sums = [float(answer.removeprefix("sum ")) for answer in ranks.answers(0, 1)]
            np.testing.assert_allclose(sums, np.load(folder / "expected.npy").sum(), rtol=1e-4)


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGSTOP])
def test_a_rank_that_stops_is_named(folder: Path, stop: signal.Signals) -> None:
    """A killed one before the deadline, one that hangs at it; then the others may meet anew."""
    with Ranks(folder, 2, 1500) as ranks:
        ranks.tell(0, 1)
        assert all(answer.startswith("sum") for answer in ranks.answers(0, 1))
        ranks.processes[1].send_signal(stop)
        ranks.tell(0)
        (answer,) = ranks.answers(0)
        assert answer.startswith("INGOT-D350")
        assert (
            "rank 1 ended" if stop == signal.SIGKILL else "rank 1 did not answer within 1500 ms"
        ) in answer
        # A new context asks for a new meeting, to which rank 1 does not come
        ranks.tell(0)
        assert "rank 1 did not come within 1500 ms" in ranks.answers(0)[0]


def test_a_rank_that_does_not_come_is_named(folder: Path) -> None:
    with Ranks(folder, 2, 1000, started=[1]) as ranks:
        ranks.tell(1)
        assert "rank 0 did not come within 1000 ms" in ranks.answers(1)[0]


def run_program(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([INGOT, *arguments], cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_program_starts_ranks(folder: Path) -> None:
    for name in ("any.ingot", "{rank}.ingot"):
        done = run_program(folder, "run", name, "--ranks", "2", "-i", "x=x.npy", "-o", "out{rank}.npy")
        assert done.returncode == 0, done.stderr
        for rank in range(2):
            result = np.load(folder / f"out{rank}.npy")
            np.testing.assert_allclose(result, np.load(folder / "expected.npy"), rtol=1e-5)
            (folder / f"out{rank}.npy").unlink()
    done = run_program(folder, "run", "any.ingot", "--ranks", "2", "-i", "x=x.npy")
    assert done.stdout.count("\n") == 1  # rank 0 alone prints


def test_the_program_reports_ranks_that_fail(folder: Path) -> None:
    done = run_program(folder, "run", "0.ingot", "--ranks", "2", "--deadline", "1.5", "-i", "x=x.npy")
    assert done.returncode == 1
    assert "was built by rank 0 of group '0'" in done.stderr
    assert "ranks 0, 1 failed" in done.stderr
    done = run_program(folder, "run", "any.ingot", "-i", "x=x.npy")
    assert "INGOT-U350" in done.stderr
    for usage, message in (
        (["--ranks", "2", "-o", "out.npz"], "'out.npz' would be written by 2 ranks"),
        (["--deadline", "5"], "--ranks"),
    ):
        done = run_program(folder, "run", "any.ingot", "-i", "x=x.npy", *usage)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
    done = run_program(folder, "build", "model.pt2")
    assert "INGOT-U354" in done.stderr
    done = run_program(folder, "build", "model.pt2", "--rank", "any", "-o", "built.ingot")
    assert done.returncode == 0, done.stderr
    assert (folder / "built.ingot").read_bytes() == (folder / "any.ingot").read_bytes()


# ---- docs/ranks.md ----

PAGE = (FOLDER.parents[1] / "docs" / "ranks.md").read_text(encoding="utf-8")


def block(language: str, word: str) -> str:
    return next(text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in text)


def test_the_page_has_commands(folder: Path, tmp_path: Path) -> None:
    for source, name in (
        ("model.pt2",) * 2,
        ("x.npy",) * 2,
        ("0.ingot", "part0.ingot"),
        ("1.ingot", "part1.ingot"),
    ):
        shutil.copy(folder / source, tmp_path / name)
    for line in block("sh", "--ranks").splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "ingot"
        done = run_program(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "out1.npz").exists()
