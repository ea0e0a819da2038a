# SPDX-License-Identifier: Apache-2.0
"""Saved forms of modules whose results have sizes that follow from data, or no tensor or a structure of torch's own."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from torch import nn
from torch.export import Dim

_Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


class _Model(nn.Module):
    def __init__(self, function: _Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        return self.function(x.relu() - 0.3, n)


class _Around(nn.Module):
    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        return self.module(x, n)


def _inputs(rows: int = 4) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 5), torch.randint(0, 7, (3 * rows,))


def _exported(model: nn.Module) -> torch.export.ExportedProgram:
    rows = ({0: Dim.DYNAMIC(min=1, max=30)}, {0: Dim.DYNAMIC})
    return torch.export.export(model, _inputs(), dynamic_shapes=rows)


def _forms(compiled: Any, path: Path) -> Iterator[Any]:
    ingot.save(compiled, str(path))
    yield ingot.load(str(path))
    yield torch.export.load(str(path)).module()
    yield pickle.loads(pickle.dumps(compiled))
    ingot.save(compiled, str(path.with_suffix(".pt")), output_format="torchscript")
    yield torch.jit.load(str(path.with_suffix(".pt")))
    yield _exported(_Around(compiled)).module()


_FUNCTIONS: dict[str, _Function] = {
    "mask": lambda x, n: x[x > 0] * 2,
    "several": lambda x, n: (x[x > 0].relu() + 1, x.nonzero(), torch.unique(n) * 2),
    "only in a sum": lambda x, n: torch.cat([x[x > 0], n.float()]) * 2,
    "only in a product": lambda x, n: (x[x > 0].reshape(-1, 1) * x.new_ones(1, 3)).reshape(-1),
    "in a sum and bare": lambda x, n: (torch.cat([x[x > 0], x[x < 0][:2]]), x[x > 0] * 2),
    "counts": lambda x, n: [each * 2 for each in torch.unique(n, return_inverse=True, return_counts=True)],
    "from second": lambda x, n: (x[x > 0] * 2)[1:],
    "last two": lambda x, n: (x[x > 0] * 2)[-2:] + 1,
    "differences": lambda x, n: (lambda found: found[1:] - found[:-1])(x[x > 0]),
    "to a number": lambda x, n: x.flatten()[: n.max().item()] * 2,
    "clipped": lambda x, n: (x[x > 0] * 2)[:3],
    "an unused part": lambda x, n: (torch.bincount(n, minlength=3) * 2).relu() - 1,
}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"torch_executed_ops": ["aten.mul", "aten._unique2"], "min_block_size": 1},
        {"torch_executed_ops": ["aten.nonzero", "aten.bincount"], "min_block_size": 1},
    ],
    ids=["whole", "products in torch", "positions in torch"],
)
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_sizes_that_a_run_finds(name: str, options: dict[str, Any], tmp_path: Path) -> None:
    model = _Model(_FUNCTIONS[name])
    for module in _forms(ingot.compile(_exported(model), **options), tmp_path / "model.pt2"):
        for rows in (4, 9, 1, 30):
            x, n = _inputs(rows)
            x = -x.abs() if rows == 9 else x  # nothing is found
            torch.testing.assert_close(module(x, n), model(x, n), rtol=1e-5, atol=1e-6)


class _Checked(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x.relu() < 3).all(), "large")
        return torch.tanh(x)


def test_a_part_that_only_asserts(tmp_path: Path) -> None:
    compiled = ingot.compile(_exported(_Checked()), torch_executed_ops=["aten.tanh"], min_block_size=1)
    assert sorted(segment.backend for segment in compiled.report.segments) == ["cpu", "torch"]
    for module in (compiled, *_forms(compiled, tmp_path / "model.pt2")):
        x, n = _inputs()
        torch.testing.assert_close(module(x.clamp(max=2), n), x.clamp(max=2).tanh())
        with pytest.raises(Exception, match="large"):
            module(x + 9, n)


class _Largest(nn.Module):
    def forward(self, x: torch.Tensor, n: torch.Tensor) -> Any:
        return {"top": (x * 2).topk(2, -1), "most": (x.tanh().max(0), n + 1)}


@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.tanh"], "min_block_size": 1}])
def test_results_of_torchs_own_classes_become_tuples(options: dict[str, Any], tmp_path: Path) -> None:
    compiled = ingot.compile(_exported(_Largest()), **options)
    ingot.save(compiled, str(tmp_path / "model.pt2"))
    for module in (ingot.load(str(tmp_path / "model.pt2")), pickle.loads(pickle.dumps(compiled))):
        x, n = _inputs()
        found, expected = module(x, n), _Largest()(x, n)
        for a, b in ((found["top"], expected["top"]), (found["most"][0], expected["most"][0])):
            torch.testing.assert_close(tuple(a), tuple(b))
        assert torch.equal(found["most"][1], n + 1)
