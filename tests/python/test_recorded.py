# SPDX-License-Identifier: Apache-2.0
"""Results of converters are compared with the program's records: a node with a difference runs in torch, and the error is not silent."""

from __future__ import annotations

import logging

import ingot
import pytest
import torch
from ingot import dynamo
from torch import nn


class Small(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x.sum(1) * 2).relu()


@pytest.fixture(autouse=True)
def _as_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch's decompositions would record the results anew."""
    monkeypatch.setattr(dynamo, "functional", lambda program: program)


def _program_with(name: str, wrong: torch.Tensor) -> torch.export.ExportedProgram:
    """A program whose node `name` has another recorded result; its meaning is as before."""
    program = torch.export.export(Small(), (torch.randn(3, 4),))
    node = next(node for node in program.graph.nodes if node.name.startswith(name))
    with torch._subclasses.FakeTensorMode() as mode:
        node.meta["val"] = mode.from_tensor(wrong)
    return program


@pytest.mark.parametrize("wrong", [torch.zeros(3, dtype=torch.float64), torch.zeros(4), torch.zeros(3, 1)])
def test_a_difference_leaves_the_node_to_torch(wrong: torch.Tensor, caplog: pytest.LogCaptureFixture) -> None:
    program = _program_with("sum", wrong)
    with caplog.at_level(logging.WARNING, logger="ingot"):
        module = dynamo.compile(program)
    x = torch.randn(3, 4)
    assert torch.allclose(module(x), Small()(x))
    fallbacks = ingot.report(module).fallbacks
    assert fallbacks[0].name.startswith("sum")  # its users may follow: they see the record
    assert "recorded" in fallbacks[0].reason
    assert "bug in Ingot" in caplog.text


def test_an_engine_of_the_whole_is_refused_by_name() -> None:
    with pytest.raises(ingot.UnsupportedError, match="sum") as caught:
        ingot.build(_program_with("sum", torch.zeros(4)))
    assert caught.value.node.startswith("sum")


def test_sizes_that_are_equal_in_another_form_are_no_difference() -> None:
    class Halves(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            first, second = x.chunk(2, 0)
            return torch.cat([second, first]).unfold(0, 2, 1).flatten(1).repeat(2, 1)[: x.shape[0]]

    inputs = [ingot.Input(min_shape=(4, 3), opt_shape=(8, 3), max_shape=(40, 3))]
    module = ingot.compile(Halves(), inputs=inputs, require_full_compilation=True)
    for size in (4, 7, 13, 40):
        x = torch.randn(size, 3)
        assert torch.equal(module(x), Halves()(x))
