# SPDX-License-Identifier: Apache-2.0
"""Torch's operator database through Ingot, against eager (operator_database.py): a slice of it, all of it in the long mode.

What Ingot lacks is counted, never a failure; a wrong answer, a crash, or an error other than a refusal is. tests/data/operators.txt
holds what is supported, so that losing it is a failure too: `INGOT_UPDATE=1` writes that file again. Its first line names the
torch that it was written with: another one's database has other operators and samples.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

import operator_workers
import operators_page
import pytest
import run_operators
import torch
from operator_database import Outcome, Sample
from operator_workers import Piece
from run_random_programs import commit_seed

_HERE = Path(__file__).parent
_RECORD = _HERE.parent / "data" / "operators.txt"
_TABLE = _HERE.parent.parent / "build" / "operators.txt"
_EVERYTHING = os.environ.get("INGOT_LONG") == "1"
_TORCH = ".".join(torch.__version__.split(".")[:2])
_HEAD = f"# Of torch {_TORCH}: operator, dtype, samples of the slice that run wholly in Ingot. tests/python/test_ops_against_torch.py"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """All of it takes hours: a run that was cut off goes on in the build folder, with the rows of the same commit."""
    folder = _TABLE.parent if _EVERYTHING else tmp_path_factory.mktemp("operators")
    file = folder / (f"operators_{commit_seed():012x}.jsonl" if _EVERYTHING else "outcomes.jsonl")
    command = [sys.executable, str(_HERE / "run_operators.py"), "--output", str(file)]
    subprocess.run(command + ["--all", "--continue"] * _EVERYTHING, check=True)
    return [Outcome(**json.loads(line)) for line in file.read_text().splitlines()]


def _supported(rows: list[Outcome]) -> dict[str, int]:
    """ "name dtype" -> samples of the slice that run in Ingot; the long mode runs those too, and more."""
    return dict(Counter(f"{row.name} {row.dtype}" for row in rows if row.kind == "right"))


def _recorded() -> dict[str, int]:
    lines = [line.rsplit(" ", 1) for line in _RECORD.read_text().splitlines() if not line.startswith("#")]
    return {name: int(count) for name, count in lines}


def test_no_answer_is_wrong(rows: list[Outcome], capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(_summary(rows))
    failures = [row for row in rows if row.kind in ("wrong", "error")]
    assert not failures, "\n" + "\n".join(map(_line, failures))


def test_nothing_is_lost(rows: list[Outcome]) -> None:
    found = _supported(rows)
    if os.environ.get("INGOT_UPDATE") == "1" and not _EVERYTHING:
        lines = [f"{name} {count}" for name, count in sorted(found.items())]
        _RECORD.write_text("\n".join([_HEAD, *lines, ""]))
    recorded_head = _RECORD.read_text().splitlines()[0]
    if recorded_head != _HEAD:
        pytest.skip(f"torch {_TORCH} has other operators and samples than the record: {recorded_head}")
    lost = [
        f"{name}: {found.get(name, 0)} of {count} samples"
        for name, count in _recorded().items()
        if found.get(name, 0) < count
    ]
    assert not lost, "\n" + "\n".join(lost)


def test_a_run_goes_on_where_it_was_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "outcomes.jsonl"
    assert run_operators._done(str(path)) == {}
    rows = [
        json.dumps(dataclasses.asdict(Outcome(name, "float32", "0", "right"))) for name in ("abs", "acos")
    ]
    path.write_text(rows[0] + "\n" + rows[1] + "\n" + '{"name": "ad')
    assert run_operators._done(str(path)) == {("abs", "float32"): {"0"}, ("acos", "float32"): {"0"}}
    assert path.read_text().splitlines() == rows
    assert list("abcdefg")[run_operators._shard("2/3")] == ["b", "e"]
    with pytest.raises(argparse.ArgumentTypeError, match="a shard is K/N"):
        run_operators._shard("4/3")


def _run_fake_samples(
    monkeypatch: pytest.MonkeyPatch, run_sample: Callable[[Sample], None], pieces: list[Piece]
) -> list[str]:
    """Runs an "operator" of 20 samples, the first in place as well; returns "label kind" of the outcomes."""
    numbered = [Sample(number, torch.abs, None, str(number)) for number in range(20)]
    numbered.insert(1, Sample(0, torch.abs, None, "0!"))

    def run_one(_op: object, dtype: torch.dtype, sample: Sample) -> Outcome:
        run_sample(sample)
        return Outcome("fake", "float32", sample.label, "right")

    monkeypatch.setattr(operator_workers, "operators", lambda: {"fake": None})
    monkeypatch.setattr(operator_workers, "samples", lambda *_: numbered)
    monkeypatch.setattr(operator_workers, "run_sample", run_one)
    rows: list[Outcome] = []
    assert operator_workers.run(operator_workers.Work(deque(pieces), True, rows.extend), jobs=2)
    return sorted(f"{row.sample} {row.kind}" for row in rows)


_LABELS = ["0!", *map(str, range(20))]


def test_a_crash_costs_one_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash_at(sample: Sample) -> None:
        if sample.label in ("0!", "7", "19"):
            os.kill(os.getpid(), signal.SIGKILL)  # SIGSEGV would print a trace

    rows = _run_fake_samples(monkeypatch, crash_at, [Piece("fake", "float32")])
    assert rows == sorted(
        f"{label} {'error' if label in ('0!', '7', '19') else 'right'}" for label in _LABELS
    )


def test_what_remains_of_a_piece_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_workers, "_SECONDS_PER_PIECE", 0.05)
    done = frozenset({"0", "3", "4"})
    rows = _run_fake_samples(
        monkeypatch, lambda _: time.sleep(0.02), [Piece("fake", "float32", skipped=done)]
    )
    assert rows == sorted(f"{label} right" for label in _LABELS if label not in done)


def test_a_sample_that_takes_too_long_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operator_workers, "_SECONDS_PER_SAMPLE", 1)
    rows = _run_fake_samples(
        monkeypatch, lambda sample: time.sleep(60 if sample.number == 5 else 0), [Piece("fake", "float32")]
    )
    assert [row for row in rows if "error" in row] == ["5 error"]
    assert len(rows) == len(_LABELS)


def test_the_page_names_what_is_not_whole() -> None:
    outcomes = [
        Outcome("abs", "float32", "0", "right"),
        Outcome("abs", "float32", "0!", "unsupported", "eager refuses: the dtype"),
        Outcome("cdist", "float32", "0", "right"),
        Outcome("cdist", "float32", "1", "unsupported", "Ingot has no such operator"),
        Outcome("fft.fft", "float32", "0", "unsupported", "complex numbers that enter or leave the engine"),
    ]
    text = operators_page.page(outcomes)
    assert "| float32 | 3 | 1 | 1 | 1 | 0 | 0 | 0 | 50.0 % |" in text
    assert "| `cdist` | partly | Ingot has no such operator |" in text
    assert "`abs`" not in text
    assert "lists what is imported. Run on a Sunday.\n" in operators_page.page(outcomes, "Run on a Sunday.")
    narrow = [
        Outcome("abs", "int8", "0", "right"),
        Outcome("gcd", "int8", "0", "unsupported", "Ingot has no such operator"),
        Outcome("cdist", "int8", "0", "unsupported", "eager refuses: the dtype"),
        Outcome("cdist", "int8", "1", "unsupported", "Ingot has no such operator"),
    ]
    assert "| int8 | 3 | 4 | 1 | 2 | 1 | 0 | 0 | `gcd` |" in operators_page.slice_table(narrow, outcomes)


def _line(row: Outcome) -> str:
    return f"{row.kind:12} {row.name} {row.dtype} {row.sample}: {row.detail}"


def _summary(rows: list[Outcome]) -> str:
    """The counts; build/operators.txt gets every operator with what it lacks."""
    names = {row.name for row in rows}
    whole = {name for name in names if all(row.kind == "right" for row in rows if row.name == name)}
    some = {row.name for row in rows if row.kind == "right"} - whole
    kinds = Counter(row.kind for row in rows)
    missing = Counter((row.name, row.detail) for row in rows if row.kind == "unsupported")
    _TABLE.parent.mkdir(exist_ok=True)
    _TABLE.write_text(
        "".join(f"{name:40} {count:4} {why}\n" for (name, why), count in sorted(missing.items()))
    )
    return (
        f"\noperators: {len(names)} run, {len(whole)} wholly and {len(some)} partly supported; samples: {len(rows)} run, "
        + ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        + f"\nwhat is missing: {_TABLE}"
    )
