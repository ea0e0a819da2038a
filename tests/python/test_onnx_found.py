# SPDX-License-Identifier: Apache-2.0
"""ONNX operators whose results have as many elements as a run finds, against numpy."""

from __future__ import annotations

from pathlib import Path

import ingot
import numpy as np
import onnx
import onnx_models as small
import pytest
import torch
from onnx import TensorProto, helper

_KINDS = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64, "int32": TensorProto.INT32,
          "bool": TensorProto.BOOL, "float16": TensorProto.FLOAT16}  # fmt: skip


def _values(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    """Small integers, about half of them 0."""
    random = np.random.default_rng(seed)
    return (random.integers(-2, 3, shape) * random.integers(0, 2, shape)).astype(dtype)


def _model(
    op: str, inputs: dict[str, list], outputs: list[str], dtype: str = "float32", **attributes: object
) -> onnx.ModelProto:
    node = helper.make_node(op, list(inputs), outputs, name="the node", **attributes)
    return small.model([node], inputs, [name for name in outputs if name], dtype=_KINDS[dtype])


def _run(engine: ingot.Engine, *inputs: np.ndarray) -> list[np.ndarray]:
    results = engine(*inputs)
    return list(results) if isinstance(results, (list, tuple)) else [results]


def _check(engine: ingot.Engine, inputs: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for result, want in zip(_run(engine, *inputs), wanted, strict=True):
        assert result.dtype == want.dtype
        np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("dtype", _KINDS)
@pytest.mark.parametrize("dims", [["n"], ["n", 3], [2, "n", 3]], ids=str)
def test_nonzero(dtype, dims):
    engine = ingot.onnx.compile(_model("NonZero", {"x": dims}, ["y"], dtype))
    for n in (1, 4, 0, 9):
        x = _values(tuple(n if size == "n" else size for size in dims), dtype, n)
        for values in (x, np.zeros_like(x), np.ones_like(x)):
            _check(engine, [values], [np.stack(values.nonzero())])


def test_nonzero_of_a_scalar():
    engine = ingot.onnx.compile(_model("NonZero", {"x": []}, ["y"]))
    for value, count in ((2, 1), (0, 0), (np.nan, 1)):
        _check(engine, [np.float32(value)], [np.zeros((0, count), np.int64)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("count", [3, 2, "m"])  # a condition may be shorter than the axis
def test_compress(axis, count):
    attributes = {} if axis is None else {"axis": axis}
    model = _model("Compress", {"x": ["n", 3], "chosen": [count]}, ["y"], **attributes)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    engine = ingot.onnx.compile(model)
    for n in (3, 5):
        x = _values((n, 3), "float32", n)
        for seed in range(4):
            chosen = _values((3 if count == "m" else count,), "bool", seed)
            _check(engine, [x, chosen], [np.compress(chosen, x, axis)])
        none = np.zeros(3 if count == "m" else count, bool)
        _check(engine, [x, none], [np.compress(none, x, axis)])


def _distinct(x: np.ndarray, axis: int | None, is_sorted: bool) -> list[np.ndarray]:
    values, firsts, inverse, counts = np.unique(x, True, True, True, axis)
    inverse = inverse.reshape(-1)
    if is_sorted:
        return [values, firsts, inverse, counts]
    order = np.argsort(firsts)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order))
    return [np.take(values, order, axis or 0), firsts[order], ranks[inverse], counts[order]]


@pytest.mark.parametrize("dtype", [kind for kind in _KINDS if kind != "bool"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_unique(dtype, axis, is_sorted):
    attributes = {} if axis is None else {"axis": axis}
    dims = ["n", 2, 3] if axis in (None, 0) else [2, "n", 3] if axis == 1 else [2, 3, "n"]
    names = ["y", "firsts", "inverse", "counts"]
    model = _model("Unique", {"x": dims}, names, dtype, sorted=int(is_sorted), **attributes)
    engine = ingot.onnx.compile(model)
    for n in (1, 7, 40):
        x = _values(tuple(n if size == "n" else size for size in dims), dtype, n)
        _check(engine, [x], _distinct(x, axis, is_sorted))


@pytest.mark.parametrize("kept", range(4))
def test_single_results_of_unique(kept):
    names = ["y" if i == kept else "" for i in range(4)]
    engine = ingot.onnx.compile(_model("Unique", {"x": ["n"]}, names, "int64"))
    for x in (np.array([3, 1, 3, 2, 1]), np.array([5]), np.array([], np.int64)):
        _check(engine, [x], [_distinct(x, None, True)[kept]])


def test_what_follows_computes_with_found_sizes(tmp_path: Path):
    """Rows chosen twice, their sizes, and sums; the engine of a file, too."""
    nodes = [
        helper.make_node("ReduceSum", ["x", "last"], ["sums"], keepdims=0),
        helper.make_node("Greater", ["sums", "zero"], ["chosen"]),
        helper.make_node("Compress", ["x", "chosen"], ["rows"], axis=0),
        helper.make_node("NonZero", ["rows"], ["found"]),
        helper.make_node("Transpose", ["found"], ["pairs"], perm=[1, 0]),
        helper.make_node("GatherND", ["rows", "pairs"], ["elements"]),
        helper.make_node("Shape", ["found"], ["sizes"]),
        helper.make_node("ReduceSum", ["elements"], ["total"], keepdims=0),
        helper.make_node("Reshape", ["rows", "flat"], ["line"]),
    ]
    values = {"last": np.array([1]), "zero": np.float32(0), "flat": np.array([-1])}
    model = small.model(nodes, {"x": ["n", 4]}, ["rows", "elements", "sizes", "total", "line"], values)
    model.graph.output[2].type.tensor_type.elem_type = TensorProto.INT64
    engine = ingot.onnx.compile(model)
    engine.save(tmp_path / "found.ingot")
    for each in (engine, ingot.load(tmp_path / "found.ingot")):
        for n in (1, 3, 8):
            for x in (_values((n, 4), "float32", n), -np.ones((n, 4), np.float32)):
                rows = x[x.sum(1) > 0]
                elements = rows[rows != 0]
                sizes = np.array([2, len(elements)])
                _check(each, [x], [rows, elements, sizes, elements.sum(dtype=np.float32), rows.reshape(-1)])


def test_masks_that_the_build_knows_have_known_sizes():
    """Also within branches, which have no sizes of their own."""
    mask = np.array([True, False, True, True])

    def chosen(name: str) -> list[onnx.NodeProto]:
        return [
            helper.make_node("NonZero", ["mask"], [f"{name}_found"]),
            helper.make_node("Reshape", [f"{name}_found", "flat"], [f"{name}_list"]),
            helper.make_node("Gather", ["x", f"{name}_list"], [name], axis=1),
        ]

    inner = helper.make_graph([*chosen("then"), helper.make_node("Abs", ["then"], ["t"])], "then", [],
                              [helper.make_tensor_value_info("t", TensorProto.FLOAT, None)])  # fmt: skip
    other = helper.make_graph([helper.make_node("Compress", ["x", "mask"], ["e"], axis=1)], "else", [],
                              [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)])  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["a"], then_branch=inner, else_branch=other),
        *chosen("b"),
        helper.make_node("Unique", ["codes"], ["distinct"]),
    ]
    values = {"mask": mask, "flat": np.array([-1]), "zero": np.float32(0), "codes": np.array([4, 2, 4])}
    model = small.model(nodes, {"x": [2, 4]}, ["a", "b", "distinct"], values)
    model.graph.output[2].type.tensor_type.elem_type = TensorProto.INT64
    engine = ingot.onnx.compile(model)
    assert [output.shape for output in engine.outputs] == [(2, 3), (2, 3), (2,)]
    for x in (_values((2, 4), "float32", 1) + 3, _values((2, 4), "float32", 2) - 3):
        kept = x[:, mask]
        _check(engine, [x], [np.abs(kept) if x.sum() > 0 else kept, kept, np.array([2, 4])])


def _refused(model: onnx.ModelProto, code: str, message: str) -> None:
    with pytest.raises(ingot.Error, match=message) as caught:
        ingot.onnx.compile(model)
    assert caught.value.code == code
    assert caught.value.node == "the node"


def test_what_engines_do_not_have():
    body = helper.make_graph([helper.make_node("NonZero", ["x"], ["t"], name="the node")], "then", [],
                             [helper.make_tensor_value_info("t", TensorProto.INT64, None)])  # fmt: skip
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["sum"], keepdims=0),
        helper.make_node("Greater", ["sum", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body),
    ]
    _refused(small.model(nodes, {"x": [2, 4]}, ["y"], {"zero": np.float32(0)}), "INGOT-N541",
             "whose size a run finds, in the graph of a branch or loop")  # fmt: skip
    _refused(_model("Unique", {"x": [3, 65]}, ["y"], axis=0), "INGOT-N541", "slices of more than 64 elements")
    _refused(_model("Unique", {"x": [3, "n"]}, ["y"], axis=0), "INGOT-N541", "changes with the sizes")
    _refused(_model("Unique", {"x": [3]}, ["y"], axis=1), "INGOT-U543", "axis 1 of a tensor with 1 dims")
    long = _model("Compress", {"x": [2, 4], "chosen": [3]}, ["y"], axis=0)
    _refused(long, "INGOT-U543", "its condition is not a list of bools")
    long.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    _refused(long, "INGOT-U543", "its condition has 3 elements for 2")


def test_conditions_that_are_longer_than_their_axis():
    """Sizes of calls: what is chosen beyond the axis is an error of the call."""
    model = _model("Compress", {"x": ["n"], "chosen": ["m"]}, ["y"], axis=0)
    model.graph.input[1].type.tensor_type.elem_type = TensorProto.BOOL
    engine = ingot.onnx.compile(model)
    x = np.arange(3, dtype=np.float32)
    _check(engine, [x, np.array([False, True, False, False])], [x[1:2]])
    with pytest.raises(ingot.UserError, match="index"):
        engine(x, np.array([False, True, False, True]))


class _Chosen(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        chosen = x[x > 0]
        return chosen * 2, torch.nonzero(x > 0), chosen.sum()


def test_models_that_torch_exports(tmp_path: Path):
    model = _Chosen().eval()
    x = torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    sizes = {"x": {0: torch.export.Dim("n", min=1, max=64)}}
    program = torch.onnx.export(model, (x,), dynamo=True, dynamic_shapes=sizes, verbose=False)
    engine = ingot.onnx.compile(program.model_proto)
    for given in (x, -x.abs(), torch.cat([x, x + 1])):
        for result, want in zip(engine(given), model(given), strict=True):
            torch.testing.assert_close(torch.as_tensor(result), want)
