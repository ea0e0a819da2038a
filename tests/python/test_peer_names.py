# SPDX-License-Identifier: Apache-2.0
"""Programs as users of Torch-TensorRT write them: arguments with nothing to do are accepted once, missing names say what to use."""

from __future__ import annotations

import importlib
import io
import re
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot.peer_names import NAMES, REFIT, SAVE
from small_models import mlp
from test_torch_tensorrt_page import PAGE, exists

X = torch.randn(3, 8)


@pytest.mark.parametrize("path", NAMES)
def test_missing_names_say_what_to_use(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.raises(AttributeError, match=re.escape(NAMES[path])):
        getattr(importlib.import_module(module), name)
    assert not hasattr(importlib.import_module(module), name)
    for used in re.findall(r"ingot\.[\w.]*\w", NAMES[path]):
        assert exists(used), used


@pytest.mark.parametrize("module", ["ingot", "ingot.dynamo", "ingot.runtime", "ingot.ts"])
def test_other_names_are_missing_as_usual(module: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(importlib.import_module(module), "nothing")  # noqa: B009
    assert str(caught.value) == f"module '{module}' has no attribute 'nothing'"


def test_names_are_on_the_page() -> None:
    text = PAGE.read_text()
    assert [path for path in NAMES if path.rpartition(".")[2] not in text] == []


def test_a_program_that_compiles_saves_and_loads(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    model, inputs = mlp(), [ingot.Input(shape=X.shape, dtype=torch.float32, format=torch.contiguous_format)]
    program = ingot.dynamo.trace(model, inputs)
    compiled = ingot.dynamo.compile(
        program, inputs=inputs, enabled_precisions={torch.float32}, min_block_size=1, truncate_double=True
    )
    caplog.clear()
    ingot.save(
        compiled, tmp_path / "model.ep", output_format="exported_program", inputs=inputs, retrace=False
    )
    notices = [record.getMessage() for record in caplog.records if record.name == "ingot"]
    assert len(notices) == 1
    assert "inputs, retrace" in notices[0]
    for loaded in (ingot.load(tmp_path / "model.ep"), ingot.load(tmp_path / "model.ep").module()):
        torch.testing.assert_close(loaded(X), model(X))
    torch.testing.assert_close(torch.export.load(tmp_path / "model.ep").module()(X), model(X))


@pytest.mark.parametrize("name", SAVE)
def test_arguments_of_save(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    compiled = ingot.compile(mlp(), inputs=[X])
    ingot.save(compiled, tmp_path / "model.pt2", **{name: None})
    assert any(SAVE[name] in record.getMessage() for record in caplog.records)
    with pytest.raises(ingot.UserError, match='save has no argument "retrase"'):
        ingot.save(compiled, tmp_path / "model.pt2", retrase=True)


@pytest.mark.parametrize("name", REFIT)
def test_arguments_of_refits(name: str, caplog: pytest.LogCaptureFixture) -> None:
    compiled, other = ingot.compile(mlp(), inputs=[X]), mlp()
    program = torch.export.export(other, (X,))
    refitted = ingot.dynamo.refit_module_weights(
        compiled_module=compiled, new_weight_module=program, **{name: [X]}
    )
    torch.testing.assert_close(refitted(X), other(X))
    assert any(REFIT[name] in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    "given", [{}, {"new_weights": {}, "new_weight_module": {}}, {"new_weights": {}, "weights": {}}]
)
def test_refits_take_new_weights_once(given: dict[str, Any]) -> None:
    with pytest.raises(ingot.UserError, match="refit_module_weights"):
        ingot.refit_module_weights(ingot.compile(mlp(), inputs=[X]), **given)


def test_inputs_from_tensors() -> None:
    for dtype in (torch.float32, torch.int64, torch.bool):
        given = ingot.Input.from_tensor(torch.zeros(2, 3).to(dtype))
        assert (given.min_shape, given.max_shape, given.dtype) == ((2, 3), (2, 3), dtype)
    with pytest.raises(ingot.UserError, match="INGOT-U006"):
        ingot.Input.from_tensor([1, 2])  # type: ignore[arg-type]
    with pytest.raises(ingot.UserError, match="calls take tensors of any layout"):
        ingot.Input((2, 3, 4, 4), format=torch.channels_last)


def test_buffers_are_no_paths() -> None:
    with pytest.raises(ingot.UserError, match="INGOT-U006"):
        ingot.save(ingot.compile(mlp(), inputs=[X]), io.BytesIO())  # type: ignore[arg-type]
