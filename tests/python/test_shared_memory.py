# SPDX-License-Identifier: Apache-2.0
"""Results that share memory with operands: writes to one of them are visible in the other, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional

# Calls that return their operand or a view of it, with operands for which they do, and calls that look like it and copy.
CALLS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "einsum_transposes": lambda y: torch.einsum("ij->ji", y),
    "einsum_takes_the_diagonal": lambda y: torch.einsum("ii->i", y),
    "einsum_without_result": lambda y: torch.einsum("ba", y),
    "einsum_ellipsis": lambda y: torch.einsum("...j->j...", y),
    "einsum_sums": lambda y: torch.einsum("ij->i", y),
    "einsum_sums_the_diagonal": lambda y: torch.einsum("ii", y),
    "einsum_sums_the_ellipsis": lambda y: torch.einsum("...j->j", y),
    "einsum_of_two": lambda y: torch.einsum("ij,jk->ik", y, y),
    "meshgrid": lambda y: torch.meshgrid(y[0], torch.zeros(1), indexing="ij")[0],
    "meshgrid_of_one": lambda y: torch.meshgrid(y[0], indexing="ij")[0],
    "broadcast_tensors": lambda y: torch.broadcast_tensors(torch.zeros(()), y)[1],
    "atleast_1d": lambda y: torch.atleast_1d(y),
    "atleast_2d": lambda y: torch.atleast_2d(y[0]),
    "atleast_3d": lambda y: torch.atleast_3d(y),
    "atleast_2d_of_two": lambda y: torch.atleast_2d(y[0], y[1])[1],
    "dropout": lambda y: functional.dropout(y, 0.5, False),
    "feature_dropout": lambda y: functional.dropout2d(y[None, None], 0.5, False),
    "alpha_dropout": lambda y: functional.alpha_dropout(y, 0.5, False),
    "feature_alpha_dropout": lambda y: functional.feature_alpha_dropout(y[None, None], 0.5, False),
    "dropout_of_nothing": lambda y: functional.dropout(y, 0.0, True),
    "dropout_of_all": lambda y: functional.dropout(y, 1.0, True),
    "type_as": lambda y: y.type_as(y),
    "to": lambda y: y.to(torch.float32),
    "contiguous": lambda y: y.contiguous(),
    "contiguous_copy": lambda y: y.t().contiguous(),
    "flatten": lambda y: y.flatten(),
    "flatten_copy": lambda y: y.t().flatten(),
    "expand_as": lambda y: y.expand_as(y),
    "transposed": lambda y: y.T,
    "diagonal": lambda y: y.diagonal(),
    "index_copy": lambda y: y[torch.tensor([2, 1])],
    "cat_of_one": lambda y: torch.cat([y]),
    "pad_nothing": lambda y: functional.pad(y, (0, 0)),
}


class Writer(nn.Module):
    """Writes into results, operands, both and an argument."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.call = CALLS[name]

    def forward(self, x: torch.Tensor, written: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b, c = x * 2, x * 3, x * 4
        self.call(a).add_(1)
        of_b = self.call(b)
        b.add_(1)
        of_c = self.call(c)
        of_c.mul_(3)
        c.add_(1)
        of_argument = self.call(written)
        of_argument.sub_(2)
        return a + 1, of_b + 1, of_c + 1, c + 1, of_argument * 2


def just_in_time(model: nn.Module, example: tuple[torch.Tensor, ...], folder: Path) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(model, backend="ingot", options={"random_seed": 0})


def ahead_of_time(model: nn.Module, example: tuple[torch.Tensor, ...], folder: Path) -> Callable[..., Any]:
    return ingot.compile(model, inputs=list(example), random_seed=0)


def from_a_file(model: nn.Module, example: tuple[torch.Tensor, ...], folder: Path) -> Callable[..., Any]:
    torch.export.save(torch.export.export(model, example), folder / "model.pt2")
    return ingot.build(folder / "model.pt2", random_seed=0)


WAYS = {"torch.compile": just_in_time, "compile": ahead_of_time, "pt2": from_a_file}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("way", ["torch.compile", "compile", "pt2"])
def test_writes_show_where_memory_is_shared(name: str, way: str, tmp_path: Path) -> None:
    x, written = torch.arange(9.0).reshape(3, 3), torch.arange(9.0).reshape(3, 3) + 20
    model, expected_argument = Writer(name), written.clone()
    with torch.no_grad():
        expected = model(x, expected_argument)
        results = WAYS[way](model, (x, written.clone()), tmp_path)(x, written)
    for result, wanted in zip(results, expected, strict=True):
        torch.testing.assert_close(result, wanted, rtol=0, atol=1e-4)
    torch.testing.assert_close(written, expected_argument, rtol=0, atol=0)


class KeepsAView(nn.Module):
    """One memory under two names, of which one shows a part."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        table = torch.zeros(4)
        if kind == "parameter":
            self.table = nn.Parameter(torch.ones(4))
            self.register_buffer("part", self.table.detach()[:2])
        elif kind == "constant":
            self.table, self.part = table, table[1:]
        else:
            self.register_buffer("table", table)
            self.register_buffer(
                "part", {"slice": table[1:3], "whole": table, "square": table.view(2, 2)}[kind]
            )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = self.part + 0
        self.part.add_(1)
        return x * self.table, before, self.part * 2


# Torch joins them for torch.compile; one whole tensor under two names is one value.
@pytest.mark.parametrize("kind", ["slice", "whole", "square", "parameter", "constant"])
@pytest.mark.parametrize("way", ["torch.compile", "compile", "pt2"])
def test_views_that_a_model_keeps_are_right_or_refused(kind: str, way: str, tmp_path: Path) -> None:
    x, model = torch.arange(4.0), KeepsAView(kind)
    if (way, kind) == ("torch.compile", "parameter"):
        pytest.skip("torch itself refuses it")
    if way == "pt2" and kind != "whole":
        with pytest.raises(ingot.UnsupportedError, match="INGOT-N525"):
            WAYS[way](model, (x,), tmp_path)
        return
    with torch.no_grad():
        wanted = [model(x), model(x)]
        compiled = WAYS[way](KeepsAView(kind), (x,), tmp_path)
        for each in (
            wanted if (way, kind) != ("compile", "constant") else []
        ):  # torch.export writes the constant
            torch.testing.assert_close(compiled(x), each)
    if way == "compile" and kind != "whole":
        assert all("INGOT-N525" in node.reason for node in compiled.report.fallbacks)
        with pytest.raises(ingot.UnsupportedError, match="INGOT-N525"):
            ingot.compile(model, inputs=[x], require_full_compilation=True)
