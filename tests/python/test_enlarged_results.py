# SPDX-License-Identifier: Apache-2.0
"""Results of packages without the extension, which are in memory of the library."""

from __future__ import annotations

from pathlib import Path

import ingot
import pytest
import torch
from bindings import call_engines_by_ctypes
from small_models import mlp


def test_a_result_that_its_caller_enlarges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is in memory of the library: torch's error says that this cannot grow; a clone can."""
    ingot.compile(mlp(), inputs=[torch.ones(2, 8)]).engine.save(tmp_path / "engine.ingot")
    call_engines_by_ctypes(monkeypatch)
    engine, x = ingot.Engine.load(tmp_path / "engine.ingot"), torch.ones(2, 8)
    for enlarge in (
        lambda result: result.resize_(100, 100),
        lambda result: result.untyped_storage().resize_(1 << 20),
    ):
        with pytest.raises(RuntimeError, match="resize storage that is not resizable"):
            enlarge(engine(x))
        enlarge(engine(x).clone())
    values = engine(x)
    assert torch.equal(engine(x).resize_(1, 2), values.flatten()[:2][None])
