# SPDX-License-Identifier: Apache-2.0
"""Profiles of engines, modules and torch.compile."""

import json
import subprocess
import sys
from pathlib import Path

import ingot
import pytest
import torch
from ingot.profiling import StepTime
from lacking import negated

pytestmark = pytest.mark.usefixtures("binding")

INGOT = Path(sys.executable).with_name("ingot")


class Block(torch.nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, 4 * width)
        self.down = torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sort(self.down(torch.relu(self.up(x))), dim=-1).values


def compiled_block() -> ingot.Engine:
    batch = ingot.Input(min_shape=(1, 32), opt_shape=(4, 32), max_shape=(8, 32))
    return ingot.compile(Block().eval(), inputs=[batch])


def step_of(profile: ingot.profiling.Profile, op: str) -> StepTime:
    return next(step for step in profile.steps if any(found == op for found, _, _ in step.operators))


def test_names_operators_and_lines_and_counts_work() -> None:
    profile = ingot.profile(compiled_block(), torch.randn(5, 32), runs=4)
    up = step_of(profile, "linear")
    assert "forward" in up.source
    # bias and relu are one operation each
    assert up.operations == pytest.approx(2 * 5 * 32 * 128 + 2 * 5 * 128, rel=0.05)
    assert up.bytes >= 4 * (5 * 32 + 32 * 128 + 128 + 5 * 128)
    assert profile.runs == 4
    assert sum(step.share for step in profile.steps) == pytest.approx(1)
    assert profile.in_engines <= profile.microseconds


def test_every_step_stands_in_the_table_and_in_the_trace(tmp_path) -> None:
    profile = ingot.profile(compiled_block(), torch.randn(5, 32), runs=2)
    table = profile.table(top=100)
    assert all(step.name in table for step in profile.steps)
    profile.save_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [event["name"] for event in events] == [step.name for step in profile.steps]
    assert all(event["ts"] >= 0 and event["dur"] >= 0 for event in events)
    starts = [event["ts"] for event in events]
    assert starts == sorted(starts)


def test_engine_without_its_module() -> None:
    engine = compiled_block().engine
    assert len(ingot.profile(engine, torch.randn(2, 32), runs=1).steps) == len(
        engine.inspect()["main"]["steps"]
    )


def test_just_in_time_and_hybrid() -> None:
    class Hybrid(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return negated(x @ x.T + 1) * 2

    for compiled in (
        torch.compile(Block().eval(), backend="ingot"),
        torch.compile(Hybrid().eval(), backend="ingot"),
        ingot.compile(Hybrid().eval(), inputs=[torch.randn(32, 32)]),
    ):
        with torch.no_grad():
            profile = ingot.profile(compiled, torch.randn(32, 32), runs=2)
        assert profile.steps
        assert profile.microseconds > 0
    assert ingot.report(compiled).fallbacks  # the last one, in part


def test_results_and_states_do_not_change() -> None:
    module = compiled_block()
    x = torch.randn(3, 32)
    before = module(x)
    ingot.profile(module, x, runs=3)
    assert torch.equal(module(x), before)


def test_refuses_what_has_no_engine() -> None:
    with pytest.raises(ingot.UserError, match="no report"):
        ingot.profile(torch.nn.Linear(2, 2), torch.randn(1, 2))
    with pytest.raises(ingot.UserError, match="runs must be a positive"):
        ingot.profile(compiled_block(), torch.randn(5, 32), runs=0)
    for other in (None, 3, "model", [torch.nn.Linear(3, 3)]):
        with pytest.raises(ingot.UserError, match="INGOT-U007"):
            ingot.profile(other, torch.randn(3))


@pytest.mark.parametrize("command", ["bench", "profile"])
def test_commands_name_the_sizes_that_they_measure(command: str, tmp_path: Path) -> None:
    ingot.save(compiled_block(), tmp_path / "any.ingot", output_format="engine")
    fixed = ingot.compile(Block().eval(), inputs=[torch.randn(5, 32)])
    ingot.save(fixed, tmp_path / "fixed.ingot", output_format="engine")

    def output(*arguments: str) -> str:
        options = ["--seconds", "0.01", "--warmup", "1"]
        done = subprocess.run(
            [INGOT, command, *arguments, *options], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "shapes: x:1x32\n" in output("any.ingot")
    assert "shapes: x:7x32\n" in output("any.ingot", "--shapes", "x:7x32")
    assert "shapes" not in output("fixed.ingot")
