# SPDX-License-Identifier: Apache-2.0
"""A model in training mode gets one warning, and only if the mode affects its results."""

from __future__ import annotations

import contextlib

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional

X = torch.randn(1, 4, 8)


class Functional(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.dropout(x, 0.3, training=self.training)


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1 if self.training else 0.0)


WARNED = {
    "dropout": nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.5)),
    "batch norm": nn.Sequential(nn.BatchNorm1d(4)),
    "function": Functional(),
    "attention": Attention(),
    "recurrent": nn.GRU(8, 8, num_layers=2, dropout=0.5),
}
SILENT = {
    "without such layers": nn.Sequential(nn.Linear(8, 8), nn.ReLU()),
    "dropout of nothing": nn.Dropout(0.0),
    "instance norm": nn.InstanceNorm1d(4),
    "batch norm of nothing but the batch": nn.BatchNorm1d(4, track_running_stats=False),
    "recurrent": nn.GRU(8, 8, num_layers=2),
}


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "training mode" in record.getMessage()]


@pytest.mark.parametrize("name", WARNED)
def test_training_mode_is_told_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model = WARNED[name].train()
    program = torch.export.export(model, (X,))
    for build in (
        lambda: ingot.compile(model, inputs=[X]),
        lambda: ingot.dynamo.compile(program),
        lambda: ingot.build(program),
    ):
        caplog.clear()
        with contextlib.suppress(ingot.UnsupportedError):  # random numbers are torch's
            build()
        (message,) = warnings_of(caplog)
        assert "model.eval()" in message
    caplog.clear()
    ingot.compile(model.eval(), inputs=[X])
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("name", SILENT)
def test_training_mode_without_effect_is_not_told(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model = SILENT[name].train()
    ingot.compile(model, inputs=[X])
    ingot.dynamo.compile(torch.export.export(model, (X,)).run_decompositions())
    assert warnings_of(caplog) == []


def test_the_warning_names_the_layer(caplog: pytest.LogCaptureFixture) -> None:
    ingot.compile(WARNED["dropout"].train(), inputs=[X])
    assert "aten.dropout.default of 1 and 1 more" in warnings_of(caplog)[0]
