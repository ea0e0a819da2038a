# SPDX-License-Identifier: Apache-2.0
"""ONNX nodes with more inputs than their operator takes are errors, not operators that ignore some."""

from __future__ import annotations

import re
from pathlib import Path

import ingot
import onnx
import onnx_models as small
import pytest
from onnx import defs, helper

ROOT = Path(__file__).parents[2] / "src/importers/onnx/converters"
VARIADIC = 2**31 - 1


def table() -> dict[str, int]:
    rows = re.findall(r"MOST_INPUTS\((\d+),((?:\s*\"[^\"]*\")+)\)", (ROOT / "most_inputs.def").read_text())
    return {name: int(most) for most, names in rows for name in re.findall(r"\w+", names)}


def test_the_table_is_that_of_the_standard() -> None:
    standard: dict[str, int] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "":
            standard[schema.name] = max(standard.get(schema.name, 0), schema.max_input)
    sources = " ".join(path.read_text() for path in ROOT.glob("*.cpp"))
    imported = {name for name in re.findall(r"\{\"([A-Z]\w+)\",", sources) if name in standard}
    assert len(imported) > 100
    assert table() == {name: standard[name] for name in imported if standard[name] < VARIADIC}


def model(operator: str, inputs: list[str]) -> onnx.ModelProto:
    return small.model(
        [helper.make_node(operator, inputs, ["y"], name="here")], {"x": [4, 4]}, ["y"], opset=23
    )


@pytest.mark.parametrize("operator", sorted(set(table()) - {"Constant", "If"}))
def test_more_inputs_are_rejected(operator: str) -> None:
    most = table()[operator]
    with pytest.raises(
        ingot.UserError, match=f"INGOT-U543.*{most + 1} inputs, and {operator} takes at most {most}"
    ) as caught:
        ingot.onnx.compile(model(operator, ["x"] * (most + 1)))
    assert caught.value.node == "here"


@pytest.mark.parametrize("operator", ["Relu", "Add", "Clip"])
def test_empty_names_are_not_inputs(operator: str) -> None:
    most = table()[operator]
    given = ["x"] * min(most, 2) + [""] * (most - min(most, 2) + 3)
    if operator == "Clip":
        given[1] = ""
    ingot.onnx.compile(model(operator, given))


def test_functions_of_the_model() -> None:
    def made(inputs: list[str]) -> onnx.ModelProto:
        call = helper.make_node("Twice", inputs, ["y"], name="call", domain="own")
        result = small.model([call], {"x": [3]}, ["y"])
        function = helper.make_function(
            "own",
            "Twice",
            ["a"],
            ["b"],
            [helper.make_node("Add", ["a", "a"], ["b"])],
            [helper.make_opsetid("", 20)],
        )
        result.functions.append(function)
        result.opset_import.append(helper.make_opsetid("own", 1))
        return result

    ingot.onnx.compile(made(["x"]))
    with pytest.raises(ingot.UserError, match="2 inputs, and Twice takes at most 1"):
        ingot.onnx.compile(made(["x", "x"]))
