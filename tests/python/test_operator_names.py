# SPDX-License-Identifier: Apache-2.0
"""Operators in each spelling that users have; one that torch does not have is an error with the nearest."""

from __future__ import annotations

import operator
from typing import Any

import ingot
import pytest
import torch
from ingot.operators import operator_names
from torch import nn


class Distance(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2).abs() + 1


ABS = [
    "aten.abs.default", "torch.ops.aten.abs.default", "aten::abs", "aten.abs", "torch.ops.aten.abs", "aten::abs.default",
    "aten::abs(Tensor self) -> Tensor", torch.ops.aten.abs.default, torch.ops.aten.abs,
]  # fmt: skip


@pytest.mark.parametrize("spelling", ABS, ids=str)
@pytest.mark.parametrize("ir", ["default", "ts", "fx", "torch_compile"])
def test_every_spelling_stays_in_torch(spelling: Any, ir: str) -> None:
    x = torch.randn(3)
    torch._dynamo.reset()
    compiled = ingot.compile(Distance(), ir=ir, inputs=[x], torch_executed_ops={spelling})
    assert torch.equal(compiled(x), Distance()(x))
    fallbacks = ingot.report(compiled).fallbacks
    assert [node.op for node in fallbacks if "torch_executed_ops" in node.reason] == ["aten.abs.default"]


def test_every_operator_of_torch_by_each_spelling() -> None:
    for name in dir(torch.ops.aten):
        packet = getattr(torch.ops.aten, name)
        for overload in packet.overloads() if isinstance(packet, torch._ops.OpOverloadPacket) else []:
            expected = (f"aten.{name}.{overload}",)
            schema = f"aten::{name}" if overload == "default" else f"aten::{name}.{overload}"
            spellings = (
                *expected,
                f"torch.ops.{expected[0]}",
                getattr(packet, overload),
                f"aten::{name}.{overload}",
            )
            assert {operator_names(spelling) for spelling in spellings} == {expected}
            assert expected[0] in operator_names(schema)


@pytest.mark.parametrize(
    ("spelling", "names"),
    [
        (operator.add, ("_operator.add",)),
        ("operator.add", ("_operator.add",)),
        (torch.sym_max, ("torch.sym_max",)),
        (torch.ops.higher_order.cond, ("higher_order.cond",)),
        ("torch.ops.higher_order.cond", ("higher_order.cond",)),
        ("math.floor", ("math.floor",)),
    ],
)
def test_functions_in_graphs(spelling: Any, names: tuple) -> None:
    assert operator_names(spelling) == names


@pytest.mark.parametrize(
    ("spelling", "nearest"),
    [
        ("aten.soft_max.int", '"aten.softmax"'),
        ("aten.add.Tensr", '"aten.add.Tensor"'),
        ("torch.ops.aten.add.Tensr", '"aten.add.Tensor"'),
        ("aten::leakyrelu", '"aten.leaky_relu"'),
        ("abs", '"aten.abs"'),
        ("torch.abs", '"aten.abs"'),
        (torch.abs, '"aten.abs"'),
        ("_operator.addd", '"aten.add"'),
        ("", "write"),
        (3, "write"),
        (None, ""),
    ],
)
def test_what_torch_does_not_have(spelling: Any, nearest: str) -> None:
    for ir in ("default", "torch_compile"):
        with pytest.raises(ingot.UserError) as error:
            ingot.compile(Distance(), ir=ir, inputs=[torch.ones(3)], torch_executed_ops=[spelling])
        assert error.value.code == "INGOT-U002"
        assert nearest in error.value.advice
