# SPDX-License-Identifier: Apache-2.0
"""Architectures of transformers and plain models: right by the accuracy rule, and wholly in engines where they were."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers
from child_processes import STOPPED
from models.breadth import CAUSES, NAMES, build
from models.outcomes import Expected, ahead_of_time, expected, just_in_time, tensors

from bench import models_page
from bench.models import Piece, Work, main, read_rows, without_rows

ROOT = Path(__file__).resolve().parents[2]
# Each is the quickest of its kind: encoders, decoders, a decoding step, an encoder with a decoder, vision, and plain models.
SLICE_AHEAD = (
    "bert",
    "gptj",
    "t5",
    "vit",
    "detector",
    "diffusion_block",
    "graph_attention",
    "conditional_random_field",
)
SLICE_JUST_IN_TIME = ("llama_step", "dlrm", "gan_generator", "radiance_field")


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def _params(quick: tuple[str, ...]) -> list:
    return [name if name in quick else pytest.param(name, marks=pytest.mark.long) for name in NAMES]


@pytest.mark.parametrize("name", _params(SLICE_AHEAD))
def test_ahead_of_time(name: str) -> None:
    outcome = ahead_of_time(build(name), timed=False)
    assert outcome.kind in ("right", "torch"), outcome.message
    assert outcome.is_whole or name not in SLICE_AHEAD, outcome.in_torch


@pytest.mark.parametrize("name", _params(SLICE_JUST_IN_TIME))
def test_just_in_time(name: str) -> None:
    outcome = just_in_time(build(name))
    assert outcome.kind in ("right", "torch"), outcome.message
    assert outcome.is_whole or name not in SLICE_JUST_IN_TIME, (outcome.in_torch, outcome.breaks)


def test_a_wrong_result_is_noticed() -> None:
    case = build("flow")
    wanted = expected(case)
    result = list(case.model(**case.arguments()))
    wanted.check(result)
    with pytest.raises(AssertionError, match="tensor 1"):
        wanted.check([result[0], result[1] * 1.001])
    with pytest.raises(AssertionError, match="1 tensors, eager returns 2"):
        wanted.check(result[:1])
    assert not Expected(wanted.eager, wanted.eager, False).has_f64


def test_integers_may_be_as_far_from_exact_ones_as_those_of_eager() -> None:
    eager, exact = [torch.tensor([1, 2, 9, 9])], [torch.tensor([1, 2, 3, 4])]
    wanted = Expected(eager, exact, True)
    wanted.check([torch.tensor([1, 2, 3, 9])])
    wanted.check([torch.tensor([7, 2, 3, 9])])
    with pytest.raises(AssertionError, match="3 of 4 integers are wrong, 2 of eager's"):
        wanted.check([torch.tensor([7, 2, 8, 9])])
    with pytest.raises(AssertionError, match="1 of 4 integers are wrong, 0 of eager's"):
        Expected(eager, eager, False).check([torch.tensor([1, 2, 3, 9])])


def test_tensors_of_caches_are_compared() -> None:
    case = build("llama_step")
    found = list(tensors(case.model(**case.arguments())))
    assert len(found) == 5  # logits; keys and values of two layers
    assert all(each.shape[2] == 8 for each in found[1:])


def test_command_continues_and_writes_the_page(tmp_path: Path) -> None:
    state, page = tmp_path / "rows.jsonl", tmp_path / "models.md"
    command = [sys.executable, "-m", "bench.models", "--state", str(state), "flow", "--ways", "aot"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert "1/1 flow: aot f32 right" in done.stdout
    rows = read_rows(state)
    assert [row["kind"] for row in rows["flow"]] == ["right"]
    wanted = [Piece(name, way, "f32") for name in ("bert", "flow") for way in ("jit", "aot")]
    assert without_rows(state, wanted) == wanted[:3]
    Work([], state).crash(Piece("bert", "jit", "f32"), "SIGSEGV")
    main(["--state", str(state), "--write", str(page)])
    assert "| flow |" in page.read_text()
    assert "bert, jit f32, **crashed**: `SIGSEGV`" in page.read_text()
    assert f"torch {torch.__version__}, transformers {transformers.__version__}: 2 runs" in page.read_text()


def test_what_time_did_not_suffice_for_is_left_to_the_next_run(tmp_path: Path) -> None:
    state = tmp_path / "rows.jsonl"
    state.write_text('{"name": "fl')  # cut off by the end of a machine
    command = [sys.executable, "-m", "bench.models", "--state", str(state), "flow", "--seconds"]
    assert subprocess.run([*command, "0"], cwd=ROOT, check=False).returncode == STOPPED
    assert read_rows(state) == {}
    wanted = [Piece("flow", "jit", "f32"), Piece("flow", "aot", "f32")]
    assert without_rows(state, wanted) == wanted


def test_an_unknown_model_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--state", str(tmp_path / "rows.jsonl"), "bertt"])
    assert "there is no model bertt" in capsys.readouterr().err


def test_the_page_of_gpus_has_what_was_run_there() -> None:
    row = {"name": "bert", "way": "aot", "dtype": "f16", "device": "cuda", "kind": "right", "message": "", "nodes": 7, "in_engines": 7,
           "engines": 1, "breaks": [], "processor": "a GPU", "torch": "2.13", "transformers": "5", "date": "2026-11-30"}  # fmt: skip
    text = models_page.page({"bert": [row]}, NAMES, CAUSES, "cuda")
    assert "--device cuda --write docs/models-on-gpus.md" in text
    assert "| ahead of time, f16 | 1 | 1 | 0 | 0 | 0 | 1 |" in text
    assert "| model | aot f16 |\n| --- | --- |\n| bert | whole |" in text


def test_the_page_has_a_row_per_model_that_was_run() -> None:
    text = (ROOT / "docs/models.md").read_text()
    table = text[text.index("## All models") :].splitlines()[4:]
    assert {line.split("|")[1].strip() for line in table if line} <= set(NAMES)
    assert f"{len(NAMES)} models are in the registry" in text
    assert all(f"- {name}: {cause}." in text for name, cause in CAUSES.items())
    assert models_page.page({}, NAMES, CAUSES).startswith("<!--")
