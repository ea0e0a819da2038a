# SPDX-License-Identifier: Apache-2.0
"""What `ingot.export_onnx` writes, as onnx reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import ingot
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

DTYPES = {
    "bool": TensorProto.BOOL, "u8": TensorProto.UINT8, "i8": TensorProto.INT8, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
    "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f32": TensorProto.FLOAT, "f64": TensorProto.DOUBLE,
}  # fmt: skip


def checked(path: Path) -> onnx.ModelProto:
    """The model of a file, after what holds for each of them."""
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(path)
    assert [(each.domain, each.version) for each in model.opset_import][1] == ("ingot", 1)
    assert model.producer_name == "ingot"
    assert "No runtime of ONNX runs it" in model.doc_string
    functions = {(each.domain, each.name) for each in model.functions}
    assert len(functions) == len(model.functions)
    for container in containers(model):
        typed = set(types(container))
        for node in container.node:
            assert all(name in typed for name in [*node.input, *node.output] if name), node.name
            assert node.domain != "ingot.region" or (node.domain, node.op_type) in functions
        assert all(name in typed for name in names(container.output))
    return model


def exported(source: object, folder: Path, **arguments) -> onnx.ModelProto:
    ingot.export_onnx(source, folder / "view.onnx", **arguments)
    return checked(folder / "view.onnx")


def containers(model: onnx.ModelProto) -> Iterator[GraphProto | FunctionProto]:
    """All graphs and functions of a model."""
    waiting: list[GraphProto | FunctionProto] = [model.graph, *model.functions]
    while waiting:
        container = waiting.pop()
        yield container
        waiting += [
            item.g for node in container.node for item in node.attribute if item.type == AttributeProto.GRAPH
        ]


def names(ports) -> list[str]:
    return [port if isinstance(port, str) else port.name for port in ports]


def types(container: GraphProto | FunctionProto) -> dict[str, tuple[int, list[int | str]]]:
    """Dtype and shape of each value."""
    found = {}
    ports = [] if isinstance(container, FunctionProto) else [*container.input, *container.output]
    for value in [*container.value_info, *ports]:
        tensor = value.type.tensor_type
        dims = [dim.dim_param or dim.dim_value for dim in tensor.shape.dim]
        found[value.name] = (tensor.elem_type, dims)
    for tensor in getattr(container, "initializer", []):
        found[tensor.name] = (tensor.data_type, list(tensor.dims))
    for tensor in getattr(container, "sparse_initializer", []):
        found[tensor.values.name] = (tensor.values.data_type, list(tensor.dims))
    for node in container.node:
        if node.op_type == "Constant":
            item = node.attribute[0]
            dtype = item.t.data_type if item.name == "value" else item.sparse_tensor.values.data_type
            found[node.output[0]] = (
                dtype,
                list((item.t if item.name == "value" else item.sparse_tensor).dims),
            )
    return found


def nodes(model: onnx.ModelProto) -> list[NodeProto]:
    return [node for container in containers(model) for node in container.node]


def metadata(message) -> dict[str, str]:
    return {entry.key: entry.value for entry in message.metadata_props}


def attributes(node: NodeProto) -> dict[str, object]:
    return {item.name: onnx.helper.get_attribute_value(item) for item in node.attribute}
