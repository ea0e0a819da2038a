# SPDX-License-Identifier: Apache-2.0
"""The command line when memory is short: whatever allocation fails, there is one message and an exit status."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from errors.inputs import INGOT, ROOT

IS_LONG = os.environ.get("INGOT_LONG") == "1"


@pytest.fixture(scope="session")
def preload(tmp_path_factory) -> Path:
    library = tmp_path_factory.mktemp("preload") / "fail_allocation.so"
    source = Path(__file__).with_name("fail_allocation.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture(scope="session")
def engine(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("engines") / "pair.ingot"
    command = [INGOT, "build", ROOT / "tests/data/pt2/pair.pt2", "-o", path]
    subprocess.run(command, check=True, capture_output=True)
    return path


class Failing:
    """Runs a command in which one allocation fails, or all from one on."""

    def __init__(self, preload: Path, folder: Path, command: list, all_after: bool) -> None:
        self.command = [INGOT, *map(str, command)]
        self.mark = folder / "mark"
        self.environment = {
            **os.environ,
            "LD_PRELOAD": str(preload),
            "FAIL_MARK": str(self.mark),
            "FAIL_ALL": "1" if all_after else "0",
            "INGOT_THREADS": "2",
        }

    def run(self, number: int) -> tuple[subprocess.CompletedProcess, bool]:
        """Its result, and whether there was such an allocation."""
        self.mark.unlink(missing_ok=True)
        environment = {**self.environment, "FAIL_ALLOCATION": str(number)}
        done = subprocess.run(self.command, env=environment, capture_output=True, text=True, timeout=120)
        return done, self.mark.exists()

    def count(self) -> int:
        low, high = 0, 1
        while self.run(high)[1]:
            low, high = high, 2 * high
        while high - low > max(1, low // 64):
            middle = (low + high) // 2
            low, high = (middle, high) if self.run(middle)[1] else (low, middle)
        return high

    def numbers(self, most: int) -> Iterator[int]:
        """All allocations of the command, or so many of them, spread evenly."""
        count = self.count()
        step = 1 if IS_LONG else max(1, count // most)
        return range(0, count, step)


COMMANDS = {
    "run": (["run", "{engine}", "--shapes", "x:2x4,y:2x4", "-o", "out.npz"], 150),
    "inspect": (["inspect", "{engine}"], 40),
    "inspect --json": (["inspect", "{engine}", "--json"], 20),
    "verify": (["verify", "{engine}"], 40),
    "build": (["build", str(ROOT / "tests/data/pt2/pair.pt2"), "-o", "out.ingot", "--threads", "2"], 30),
}


@pytest.mark.parametrize("all_after", [False, True], ids=["one", "all after"])
@pytest.mark.parametrize("name", COMMANDS)
def test_each_failure_is_one_message(name, all_after, preload, engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, most = COMMANDS[name]
    failing = Failing(preload, tmp_path, [word.format(engine=engine) for word in words], all_after)
    wrong = []
    for number in failing.numbers(most):
        done, _ = failing.run(number)
        messages = [line for line in done.stderr.splitlines() if line.startswith("ingot: ")]
        told = done.returncode in (1, 2) and len(messages) == 1
        if not told and not (done.returncode == 0 and not messages):
            wrong.append((number, done.returncode, done.stderr[-200:]))
        left = {path.name for path in tmp_path.iterdir()} - {"mark"}
        if done.returncode != 0 and any(path.startswith(".ingot") for path in left):
            wrong.append((number, "left", left))
    assert wrong == []
