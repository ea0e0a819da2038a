# SPDX-License-Identifier: Apache-2.0
"""Conditions on sizes from data that torch.export asserts: errors with the node and line of the model, however a program runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from small_models import Function
from torch import nn

_TWO = torch.tensor([3, 4])
# Sums with two elements that broadcast: torch.export takes the size for 2, and eager takes 1, too.
_FOUND: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "in torch": lambda x: torch.bincount(x) + _TWO,
    "in an engine": lambda x: torch.unique(x) + _TWO,
    "in both": lambda x: torch.unique(x) + torch.bincount(x).relu() + _TWO,
}
_FITS, _OTHER = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 0])


def _exported(model: nn.Module) -> Any:
    return ingot.compile(torch.export.export(model, (_FITS,)))


def _traced(model: nn.Module) -> Any:
    return ingot.ts.compile(torch.jit.trace(model, (_FITS,), check_trace=False), inputs=[_FITS])


_WAYS = {"export": _exported, "trace": _traced}


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("name", _FOUND)
def test_other_sizes_than_torch_exported(name: str, way: str, tmp_path: Path) -> None:
    model = Function(_FOUND[name])
    compiled = _WAYS[way](model)
    ingot.save(compiled, str(tmp_path / "model.pt2"))
    for module in (compiled, ingot.load(str(tmp_path / "model.pt2"))):
        assert torch.equal(module(_FITS), model(_FITS))
        with pytest.raises(ingot.UserError) as raised:
            module(_OTHER)
        assert raised.value.code in ("INGOT-U312", "INGOT-U313")
        assert raised.value.node
        assert ".py:" in raised.value.source or module is not compiled
        assert "saving.py" not in raised.value.source
        assert torch.equal(module(_FITS), model(_FITS))


def test_the_error_names_the_size() -> None:
    compiled = _exported(Function(_FOUND["in torch"]))
    with pytest.raises(ingot.UserError, match=r"INGOT-U312.*asserts bincount.shape\[0\] >= 2"):
        compiled(_OTHER)


def test_files_that_torch_runs_have_the_same_text(tmp_path: Path) -> None:
    compiled = _exported(Function(_FOUND["in torch"]))
    ingot.save(compiled, str(tmp_path / "model.pt2"))
    ingot.save(compiled, str(tmp_path / "model.pt"), output_format="torchscript")
    for module in (
        torch.export.load(str(tmp_path / "model.pt2")).module(),
        torch.jit.load(str(tmp_path / "model.pt")),
    ):
        assert torch.equal(module(_FITS), torch.bincount(_FITS) + _TWO)
        with pytest.raises(RuntimeError, match=r"INGOT-U312.*bincount.shape\[0\] >= 2"):
            module(_OTHER)


def test_checks_of_the_model() -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        counts = torch.bincount(x)
        torch._check(counts.shape[0] <= 2)
        return counts * 2

    compiled = _exported(Function(checked))
    assert torch.equal(compiled(_FITS), checked(_FITS))
    with pytest.raises(ingot.UserError, match=r"INGOT-U312.*asserts bincount.shape\[0\] <= 2"):
        compiled(torch.tensor([0, 1, 2]))
