# SPDX-License-Identifier: Apache-2.0
"""Errors of a build inside of torch.compile arrive with their class, text and attributes."""

from __future__ import annotations

import ingot
import pytest
import torch

KINDS = [kind for kind in vars(ingot).values() if isinstance(kind, type) and issubclass(kind, ingot.Error)]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_class(kind: type[ingot.Error], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise kind("a text", code="INGOT-I002", node="add", source="model.py:7", advice="a remedy")

    monkeypatch.setattr("ingot.torch_backend._compile_aot", fails)
    torch._dynamo.reset()
    with pytest.raises(kind) as raised:
        torch.compile(lambda x: x + 1, backend="ingot")(torch.ones(2))
    error = raised.value
    assert (error.code, error.node, error.source, error.advice) == (
        "INGOT-I002",
        "add",
        "model.py:7",
        "a remedy",
    )
    assert str(error).startswith("[INGOT-I002] a text")
