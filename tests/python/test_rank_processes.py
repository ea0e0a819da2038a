# SPDX-License-Identifier: Apache-2.0
"""Ranks as processes: by the environment, on the command line, as docs/ranks.md shows it, and what happens when one fails."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import rank_engines
from rank_engines import free_address, run_program


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rank_engines.make(tmp_path_factory.mktemp("engines"))


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
        (["--ranks", "2", "--deadline", "1e300"], "more than a day"),
    ):
        done = run_program(folder, "run", "any.ingot", "-i", "x=x.npy", *usage)
        assert done.returncode == 2, done.stderr
        assert message in done.stderr
    done = run_program(folder, "build", "model.pt2")
    assert "INGOT-U354" in done.stderr
    done = run_program(folder, "build", "model.pt2", "--rank", "any", "-o", "built.ingot")
    assert done.returncode == 0, done.stderr
    assert (folder / "built.ingot").read_bytes() == (folder / "any.ingot").read_bytes()


PAGE = (Path(__file__).parents[2] / "docs" / "ranks.md").read_text(encoding="utf-8")


def blocks(language: str, word: str) -> list[str]:
    return [text for text in re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL) if word in text]


def test_the_page_has_commands(folder: Path, tmp_path: Path) -> None:
    for source, name in (
        ("model.pt2",) * 2,
        ("x.npy",) * 2,
        ("whole.safetensors",) * 2,
        ("0.ingot", "part0.ingot"),
        ("1.ingot", "part1.ingot"),
    ):
        shutil.copy(folder / source, tmp_path / name)
    texts = blocks("sh", "--ranks")
    assert len(texts) == 2
    for text in texts:
        for line in text.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            assert program == "ingot"
            done = run_program(tmp_path, *arguments)
            assert done.returncode == 0, done.stderr
        for rank in range(2):
            with np.load(tmp_path / f"out{rank}.npz") as outputs:
                (result,) = outputs.values()
            np.testing.assert_allclose(result, np.load(folder / "expected.npy"), rtol=1e-5)
            (tmp_path / f"out{rank}.npz").unlink()


def test_torchrun_starts_the_model_of_the_page(tmp_path: Path) -> None:
    (text,) = blocks("python", "model = parallelize_module")
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    (command,) = re.findall(r"`torchrun (.* model\.py)`", PAGE)
    torchrun = [Path(sys.executable).with_name("torchrun"), "--master-port", free_address().split(":")[1]]
    done = subprocess.run(
        [*torchrun, *command.split()], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    printed = "tensor(True)"  # lines of two processes may run into each other
    assert (done.stdout.count(printed), done.stdout.replace(printed, "").strip()) == (2, "")
