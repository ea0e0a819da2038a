# SPDX-License-Identifier: Apache-2.0
"""torch.cond and torch.while_loop in engines for GPUs: the host waits for conditions, and enqueues what they choose."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import ingot
import pytest
import test_control_flow as models
import torch
from errors.inputs import INGOT
from gpu_targets import needs_gpu, needs_nvrtc
from whole_models import WHOLE, assert_same


@needs_nvrtc
class TestWithoutAGpu:
    @pytest.mark.parametrize(
        ("model", "shape", "kind"),
        [(models._Weights, (5, 8), "branch"), (models._LoopOfLayers, (4, 16), "loop")],
    )
    def test_engines_are_built_whole(
        self,
        model: Any,
        shape: tuple[int, ...],
        kind: str,
        tmp_path: Path,
        fake_driver: Path,
    ) -> None:
        program = torch.export.export(model().eval(), (torch.randn(shape),))
        ingot.build(program, device="cuda:sm_90a").save(tmp_path / "model.ingot")
        done = subprocess.run(
            [INGOT, "inspect", "--json", tmp_path / "model.ingot"], capture_output=True, check=True
        )
        assert kind in [step["kind"] for step in json.loads(done.stdout)["main"]["steps"]]
        for command in ("run", "profile"):  # every condition is false there
            done = subprocess.run(
                [
                    INGOT,
                    command,
                    tmp_path / "model.ingot",
                    *(["--seconds", "0.02"] if command == "profile" else []),
                ],
                env=os.environ | {"LD_LIBRARY_PATH": str(fake_driver)},
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert "0 allocations left" in done.stderr


@needs_gpu
class TestOnAGpu:
    def _check(self, model: torch.nn.Module, calls: list[tuple[torch.Tensor, ...]]) -> None:
        model = model.eval().cuda()
        calls = [tuple(value.cuda() for value in args) for args in calls]
        with torch.no_grad():
            run = ingot.compile(torch.export.export(model, calls[0]), **WHOLE)
            torch._dynamo.reset()
            jit = torch.compile(model, backend="ingot", fullgraph=True, options=WHOLE)
            for _ in range(3):
                for args in calls:
                    assert_same(run(*args), model(*args))
                    assert_same(jit(*args), model(*args))

    @pytest.mark.parametrize("model", [models._Branch, models._Nested], ids=lambda model: model.__name__)
    def test_branches(self, model: Any) -> None:
        self._check(model(), [(torch.full((3, 4), value),) for value in (1.0, -1.0, 3.0)])

    def test_branches_with_weights(self) -> None:
        torch.manual_seed(1)
        x = torch.randn(5, 8)
        self._check(models._Weights(), [(x,), (-x,), (x * 3,), (x - 1,), (x + 1,)])

    def test_loops(self) -> None:
        self._check(
            models._Loop(), [(torch.rand(7) * 100 + 0.5,), (torch.ones(7),), (torch.full((7,), 1e4),)]
        )

    def test_branch_in_a_loop(self) -> None:
        self._check(models._LoopWithBranch(), [(torch.tensor(n),) for n in (6, 1, 27, 97)])

    def test_conditions_that_the_caller_s_stream_still_makes(self) -> None:
        class Chooses(torch.nn.Module):
            def forward(self, x: torch.Tensor, flag: torch.Tensor) -> torch.Tensor:
                return torch.cond(flag, lambda x: x + 1, lambda x: x - 1, (x,))

        x, flag = torch.ones(4, device="cuda"), torch.zeros((), dtype=torch.bool, device="cuda")
        run = ingot.compile(torch.export.export(Chooses().cuda(), (x, flag)), **WHOLE)
        for value in (True, False, True):
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(20_000_000)
                flag.fill_(value)
                assert_same(run(x, flag), x + 1 if value else x - 1)
            torch.cuda.synchronize()

    def test_captures_are_refused(self) -> None:
        """A recording has no conditions: whatever it held would be that of one call."""
        model = models._Branch().cuda()
        x = torch.full((3, 4), 1.0).cuda()
        run = ingot.compile(torch.export.export(model, (x,)), **WHOLE)
        run(x)
        with ingot.runtime.enable_cudagraphs(run) as graphs:
            for _ in range(3):
                assert_same(graphs(x), model(x))
            assert graphs.captured == 0
            assert any(
                "INGOT-D404" in reason or "run on the host" in reason for reason in graphs.reasons.values()
            )
