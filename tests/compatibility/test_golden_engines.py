# SPDX-License-Identifier: Apache-2.0
"""Engines that earlier builds wrote compute what they did, or say which format they have and what to do.

format_N/ holds engines of format N with inputs and results of torch; tools/make_golden_engines.py wrote them, and they never change.
"""

from __future__ import annotations

import gzip
import importlib.util
import subprocess
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from golden_models import MODELS, MULTIPLES, MULTIPLES_FORMAT, RANKS, RANKS_FORMAT, SEVERAL_LEVELS
from python.accuracy import assert_accurate
from python.rank_engines import as_ranks, join

HERE = Path(__file__).resolve().parent
FILES = sorted(HERE.glob("format_*/*.ingot.gz"))
SCRIPT = HERE.parents[1] / "tools/make_golden_engines.py"


def todays_format(**options: Any) -> int:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    content = ingot.build(torch.export.export(Model(), (torch.ones(2),)), **options).to_bytes()
    return int.from_bytes(content[8:12], "little")


@pytest.fixture(scope="session")
def current() -> int:
    return todays_format()


@pytest.fixture(scope="session")
def of_levels() -> int:
    return todays_format(cpu=["x86-64-v3", "aarch64"])


def check_outputs(engine: ingot.Engine, kept: dict[str, np.ndarray]) -> None:
    calls = 1 + max(int(name.split(".")[0].removeprefix("call")) for name in kept)
    for call in range(calls):
        inputs = [torch.from_numpy(kept[f"call{call}.input{i}"]) for i in range(len(engine.inputs))]
        outputs = engine(*inputs)
        outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
        assert f"call{call}.eager{len(outputs)}" not in kept
        for i, output in enumerate(outputs):
            eager = torch.from_numpy(kept[f"call{call}.eager{i}"])
            if output.is_floating_point():  # numpy has no bf16: its values were kept as f32
                eager = eager.to(output.dtype)
            assert_accurate(output, eager, torch.from_numpy(kept[f"call{call}.exact{i}"]))


def check_ranks(path: Path, kept: dict[str, np.ndarray]) -> None:
    """Two threads, each with the whole weights, of which it takes its own."""
    weights = {name.removeprefix("weight."): kept.pop(name) for name in [*kept] if name.startswith("weight.")}
    address = ingot.distributed.listen()

    def run(rank: int) -> object:
        engine = ingot.Engine.load(path, verify="full", weights=weights, rank=rank)
        ingot.distributed.bind(engine, join(address, rank, deadline=20))
        check_outputs(engine, kept)
        return rank

    assert as_ranks(2, run) == [0, 1]


def test_the_formats_of_today_have_all_golden_engines(current: int, of_levels: int) -> None:
    for form, models in ((current, MODELS), (of_levels, SEVERAL_LEVELS), (RANKS_FORMAT, [RANKS]),
                         (MULTIPLES_FORMAT, MULTIPLES)):  # fmt: skip
        folder = f"format_{form}"
        names = {path.name.removesuffix(".ingot.gz") for path in FILES if path.parent.name == folder}
        assert names == set(models), f"run {SCRIPT.name}"
    assert all(path.stat().st_size < 40_000 for path in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda path: f"{path.parent.name}-{path.name.split('.')[0]}")
def test_golden_engines_compute_what_they_did(
    file: Path, current: int, of_levels: int, tmp_path: Path
) -> None:
    path = tmp_path / "golden.ingot"
    path.write_bytes(gzip.decompress(file.read_bytes()))
    form = int(file.parent.name.removeprefix("format_"))
    if form not in (current, of_levels, RANKS_FORMAT, MULTIPLES_FORMAT):
        with pytest.raises(
            ingot.UserError, match=rf"(?s)format {form} .* format {current}; .*build the model again"
        ):
            ingot.Engine.load(path)
        return
    kept = dict(np.load(file.with_name(file.name.replace("ingot.gz", "npz"))))
    if form == RANKS_FORMAT:
        check_ranks(path, kept)
        return
    for cpu in ("", "x86-64-v3"):  # the best level, and the one that every machine with AVX2 has
        check_outputs(ingot.Engine.load(path, verify="full", cpu=cpu), kept)


@pytest.mark.parametrize(("form", "word"), [(1, "earlier"), (1_000_000, "later")])
def test_an_engine_of_another_format_names_both(form: int, word: str, current: int) -> None:
    path = HERE / f"header_of_format_{form}.ingot"  # with its checksum
    nearest = MULTIPLES_FORMAT if word == "later" else current
    with pytest.raises(ingot.UserError) as error:
        ingot.Engine.load(path)
    assert error.value.code == "INGOT-U201"
    for command in ("run", "inspect", "verify"):
        done = subprocess.run([INGOT, command, path], capture_output=True, text=True)
        assert done.returncode == 1
        text = " ".join(done.stderr.split())
        assert text.count("INGOT-U201") == 1
        assert f"has format {form} (section 'header'), which is {word} than format {nearest}; " in text
        assert "build the model again" in text


def test_the_script_makes_what_the_test_reads(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("make_golden_engines", SCRIPT)
    assert spec
    assert spec.loader
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    script.write("cache", tmp_path)
    content = gzip.decompress((tmp_path / "cache.ingot.gz").read_bytes())
    check_outputs(ingot.Engine.from_bytes(content), dict(np.load(tmp_path / "cache.npz")))
    assert str(HERE.parents[1]).encode() not in content
