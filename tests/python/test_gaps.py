# SPDX-License-Identifier: Apache-2.0
"""Views with gaps in memory, where torch or the caller reads them: their strides are eager's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import ingot
import lacking
import pytest
import torch
from ingot.views import has_gaps
from torch import nn


@torch.library.custom_op("gaps::layout_of", mutates_args=())
def layout_of(x: torch.Tensor) -> torch.Tensor:
    """The strides of a tensor."""
    return torch.tensor(x.stride())


@layout_of.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty(x.dim(), dtype=torch.int64)


# Views of values of shape [2, 4, 6].
VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "step": lambda y: y[:, ::2],
    "step_of_the_last": lambda y: y[..., 1::3],
    "columns": lambda y: y[..., 1:3],
    "column": lambda y: y[..., 2],
    "one_column": lambda y: y[..., 2:3],
    "transposed": lambda y: y.mT[:, 1:4],
    "expanded": lambda y: y[:, :1].expand(-1, 5, -1),
    "expanded_rows": lambda y: y[0, 0].expand(3, -1),
    "expanded_scalar": lambda y: y[1, 2, 3].expand(4),
    "diagonal": lambda y: y.diagonal(0, 1, 2),
    "windows": lambda y: y.unfold(2, 3, 1),
    "part": lambda y: y.split([2, 4], 2)[1],
    "chunk": lambda y: y.chunk(2, 1)[0],
    "unbound": lambda y: y.unbind(1)[3],
    "reshaped": lambda y: y[..., :3].flatten(0, 1),
    "of_a_view": lambda y: y.flatten(0, 1)[1:, ::2].unsqueeze(0).transpose(1, 2),
    "swapped": lambda y: y.permute(2, 0, 1)[1:5].squeeze(0),
}
DENSE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rows": lambda y: y[1:],
    "flat": lambda y: y.reshape(-1),
    "permuted": lambda y: y.permute(2, 0, 1),
    "copied": lambda y: y[:, ::2].contiguous(),
    "widened": lambda y: y[:, ::2] + 1,
}


class Layouts(nn.Module):
    """Torch reads a view of an input, of a result of an engine, and of one of torch; engines read the same views."""

    def __init__(self, view: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.view = view

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        computed, inner = x * 2 + 1, lacking.negated(x.sin())
        read = self.view(computed)
        shown = [layout_of(self.view(x)), layout_of(read), layout_of(read), layout_of(self.view(inner))]
        following = lacking.negated(read) * 2
        return *shown, lacking.negated(self.view(computed * 3)), read.cos(), following, computed.exp()


def just_in_time(model: nn.Module, x: torch.Tensor, folder: Path) -> Callable:
    torch._dynamo.reset()
    return torch.compile(model, backend="ingot", dynamic=False)


def with_sizes_of_calls(model: nn.Module, x: torch.Tensor, folder: Path) -> Callable:
    torch._dynamo.reset()
    return torch.compile(model, backend="ingot", dynamic=True)


def ahead_of_time(model: nn.Module, x: torch.Tensor, folder: Path) -> Callable:
    return ingot.compile(model, inputs=[x])


def saved(model: nn.Module, x: torch.Tensor, folder: Path) -> Callable:
    ingot.save(ingot.compile(model, inputs=[x]), folder / "model.pt2")
    return ingot.load(folder / "model.pt2")


WAYS = [just_in_time, with_sizes_of_calls, ahead_of_time, saved]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("name", VIEWS | DENSE)
@torch.no_grad()
def test_torch_reads_eagers_strides(name: str, way: Callable, tmp_path: Path) -> None:
    model = Layouts((VIEWS | DENSE)[name])
    x = torch.randn(2, 4, 6)
    assert has_gaps(model.view(x)) == (name in VIEWS)
    compiled = way(model, x, tmp_path)
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x))


@pytest.mark.parametrize("name", VIEWS | DENSE)
@torch.no_grad()
def test_results_of_torch_compile_have_eagers_strides(name: str) -> None:
    view = (VIEWS | DENSE)[name]

    def function(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return view(x * 2), view(x.mT.contiguous().mT * 3)

    for dynamic in (False, True):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="ingot", dynamic=dynamic)
        x = torch.randn(2, 4, 6)
        for actual, eager in zip(compiled(x), function(x), strict=True):
            torch.testing.assert_close(actual, eager, check_stride=True)
        assert not ingot.report(compiled).fallbacks


@pytest.mark.parametrize("name", ["step", "expanded", "part"])
@torch.no_grad()
def test_engines_keep_what_they_read_themselves(name: str) -> None:
    """A view that torch reads does not divide an engine, and the report says why torch makes it."""

    def function(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x.sin()
        read = VIEWS[name](y)
        return (y * 2 + read.mean()).exp(), lacking.negated(read)

    torch._dynamo.reset()
    compiled, x = torch.compile(function, backend="ingot"), torch.randn(2, 4, 6)
    torch.testing.assert_close(compiled(x), function(x))
    report = ingot.report(compiled)
    assert len(report.engines) == 1
    views = [node for node in report.fallbacks if node.op != lacking.NAME]
    assert views
    assert all("gaps in memory" in node.reason for node in views)
