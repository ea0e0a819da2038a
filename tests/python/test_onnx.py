# SPDX-License-Identifier: Apache-2.0
"""ONNX models through Python and the command line: values, names, dynamic sizes, refits, and files that are wrong."""

from __future__ import annotations

import contextlib
import json
import os
import random as random_numbers
import subprocess
from pathlib import Path

import ingot
import numpy as np
import onnx
import onnx_models as small
import pytest
from errors.inputs import INGOT
from onnx import TensorProto, helper, numpy_helper


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(INGOT), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def close(result: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(result), wanted, rtol=1e-4, atol=1e-5)


def test_mlp_with_any_batch():
    engine = ingot.onnx.compile(small.mlp())
    weights = small.weights_of(small.mlp())
    assert [port.name for port in engine.inputs] == ["x"]
    assert [port.name for port in engine.outputs] == ["y"]
    for batch in (1, 3, 17):
        x = small.random(batch, 8, seed=batch)
        close(engine(x), small.mlp_result(x, weights))
        close(engine(x=x), small.mlp_result(x, weights))


def test_shapes_limit_dims(tmp_path: Path):
    engine = ingot.onnx.compile(small.mlp(), shapes="x:1..4..8x8")
    with pytest.raises(ingot.UserError, match="INGOT-U3"):
        engine(small.random(9, 8))
    assert engine(small.random(8, 8)).shape == (8, 4)


def test_command_line_builds_runs_and_prints(tmp_path: Path):
    onnx.save(small.mlp(), tmp_path / "model.onnx")
    x = small.random(5, 8)
    np.save(tmp_path / "x.npy", x)
    built = run("build", tmp_path / "model.onnx", "-o", tmp_path / "model.ingot", "--shapes", "x:1..4..32x8")
    assert built.returncode == 0, built.stderr
    ran = run(
        "run", tmp_path / "model.ingot", "-i", f"x={tmp_path / 'x.npy'}", "-o", tmp_path / "outputs.npz"
    )
    assert ran.returncode == 0, ran.stderr
    close(np.load(tmp_path / "outputs.npz")["y"], small.mlp_result(x, small.weights_of(small.mlp())))
    text = run("inspect", tmp_path / "model.onnx").stdout
    assert "input x: float[batch,8]" in text
    assert "Gemm(x, first.weight, first.bias)" in text
    assert "Gemm" in json.loads(run("inspect", tmp_path / "model.onnx", "--json").stdout)["program"]
    same = run("compare", tmp_path / "model.onnx", tmp_path / "model.ingot", "-i", f"x={tmp_path / 'x.npy'}")
    assert same.returncode == 0, same.stderr + same.stdout


def test_refit_by_initializer_names():
    engine = ingot.onnx.compile(small.mlp())
    new = {name: value * 2 for name, value in small.weights_of(small.mlp()).items()}
    engine.refit(new)
    x = small.random(3, 8)
    close(engine(x), small.mlp_result(x, new))


def test_external_data(tmp_path: Path):
    path = tmp_path / "model.onnx"
    onnx.save(small.mlp(), path, save_as_external_data=True, location="values.bin", size_threshold=0)
    x = small.random(2, 8)
    wanted = small.mlp_result(x, small.weights_of(small.mlp()))
    close(ingot.build(path)(x), wanted)
    content = path.read_bytes()
    close(ingot.onnx.compile(content, folder=tmp_path)(x), wanted)
    with pytest.raises(ingot.UserError, match="INGOT-U542"):
        ingot.onnx.compile(content)
    values = (tmp_path / "values.bin").read_bytes()
    (tmp_path / "values.bin").write_bytes(values[: len(values) // 2])
    with pytest.raises(ingot.UserError, match="INGOT-U542"):
        ingot.build(path)
    (tmp_path / "values.bin").unlink()
    with pytest.raises(ingot.UserError, match="INGOT-U542"):
        ingot.build(path)


@pytest.mark.parametrize(
    "location", ["../secret.bin", "/etc/passwd", "a/../../secret.bin", "", "link.bin", "."]
)
def test_external_data_stays_in_the_folder(tmp_path: Path, location: str):
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(4096))
    os.symlink(tmp_path / "secret.bin", folder / "link.bin")
    made = small.mlp()
    for tensor in made.graph.initializer:
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    (folder / "model.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(ingot.UserError, match="INGOT-U542"):
        ingot.build(folder / "model.onnx")


def test_shape_chains_are_symbols():
    """Flattening as exporters write it: Shape, Gather, Mul, Concat, Reshape; and back."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["batch"]),
        helper.make_node("Gather", ["shape", "one"], ["length"]),
        helper.make_node("Mul", ["batch", "length"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["rows_1"]),
        helper.make_node("Concat", ["rows_1", "rest"], ["flat_shape"], axis=0),
        helper.make_node("Reshape", ["x", "flat_shape"], ["flat"]),
        helper.make_node("Softmax", ["flat"], ["soft"], axis=-1),
        helper.make_node("Reshape", ["soft", "shape"], ["y"]),
    ]
    numbers = {"zero": np.array(0), "one": np.array(1), "axis": np.array([0]), "rest": np.array([-1])}
    engine = ingot.onnx.compile(small.model(nodes, {"x": ["batch", "length", 6]}, ["y"], numbers))
    for shape in ((1, 2, 6), (3, 5, 6)):
        x = small.random(*shape)
        wanted = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
        close(engine(x), wanted)


def test_slices_of_dynamic_dims():
    """To the end, from the end, and up to a size of another dim: rows of a table for as many positions."""
    nodes = [
        helper.make_node("Slice", ["x", "one", "far", "last"], ["rest"]),
        helper.make_node("Slice", ["x", "minus", "far", "last"], ["tail"]),
        helper.make_node("Shape", ["x"], ["length"], start=1),
        helper.make_node("Slice", ["table", "zero", "length", "zero"], ["rows"]),
        helper.make_node("Add", ["x", "rows"], ["sum"]),
        helper.make_node("Concat", ["rest", "tail", "sum"], ["y"], axis=1),
    ]
    far = np.array([np.iinfo(np.int64).max])
    numbers = {
        "zero": np.array([0]),
        "one": np.array([1]),
        "minus": np.array([-1]),
        "last": np.array([1]),
        "far": far,
    }
    table = small.random(8, seed=9)
    engine = ingot.onnx.compile(
        small.model(nodes, {"x": ["n", "length"]}, ["y"], {**numbers, "table": table})
    )
    for length in (1, 5, 8):
        x = small.random(2, length)
        close(engine(x), np.concatenate([x[:, 1:], x[:, -1:], x + table[:length]], axis=1))
    with pytest.raises(ingot.UserError, match="INGOT-U312"):
        engine(small.random(2, 9))


def test_errors_name_the_node_and_the_operator():
    bad = small.model([helper.make_node("Det", ["x"], ["y"], name="determinant")], {"x": [3, 3]}, ["y"])
    with pytest.raises(ingot.UnsupportedError, match="ONNX Det: Ingot has no such operator") as caught:
        ingot.onnx.compile(bad)
    assert caught.value.node == "determinant"
    assert caught.value.code == "INGOT-N541"
    cubic = small.model([helper.make_node("Gemm", ["x", "x"], ["y"], name="square")], {"x": [2, 3]}, ["y"])
    with pytest.raises(ingot.UnsupportedError, match=r"ONNX Gemm: .*inner size"):
        ingot.onnx.compile(cubic)
    old = small.model([helper.make_node("Relu", ["x"], ["y"])], {"x": [2]}, ["y"], opset=30)
    with pytest.raises(ingot.UnsupportedError, match="INGOT-N542"):
        ingot.onnx.compile(old)


def test_cycles_and_missing_values_are_errors():
    cycle = [helper.make_node("Add", ["x", "b"], ["a"], name="first"), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(ingot.UserError, match=r"INGOT-U543.*'b' is used before") as caught:
        ingot.onnx.compile(small.model(cycle, {"x": [2]}, ["b"]))
    assert caught.value.node == "first"
    twice = [helper.make_node("Relu", ["x"], ["y"]), helper.make_node("Abs", ["x"], ["y"])]
    with pytest.raises(ingot.UserError, match=r"INGOT-U543.*computed twice"):
        ingot.onnx.compile(small.model(twice, {"x": [2]}, ["y"]))
    with pytest.raises(ingot.UserError, match="INGOT-U543"):
        ingot.onnx.compile(small.model([], {"x": [2]}, ["nowhere"]))


def test_branches_with_known_conditions():
    def branch(op: str) -> onnx.GraphProto:
        value = helper.make_tensor_value_info(f"{op}_y", TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [value])

    def made(condition: str, extra: dict[str, np.ndarray]) -> onnx.ModelProto:
        node = helper.make_node(
            "If", [condition], ["y"], name="choice", then_branch=branch("Neg"), else_branch=branch("Abs")
        )
        return small.model([node], {"x": [3]}, ["y"], extra)

    x = np.array([1, -2, 3], np.float32)
    close(ingot.onnx.compile(made("c", {"c": np.array(True)}))(x), -x)
    close(ingot.onnx.compile(made("c", {"c": np.array(False)}))(x), np.abs(x))


def test_functions_of_the_model_are_expanded():
    body = [
        helper.make_node("LeakyRelu", ["a"], ["b"]),
        helper.make_node("Add", ["b", "a"], ["c"]),
    ]
    slope = body[0].attribute.add()
    slope.name, slope.type, slope.ref_attr_name = "alpha", onnx.AttributeProto.FLOAT, "slope"
    function = helper.make_function(
        "own", "Leaky", ["a"], ["c"], body, [helper.make_opsetid("", 18)], ["slope"]
    )
    node = helper.make_node("Leaky", ["x"], ["y"], domain="own", slope=0.5)
    made = small.model([node], {"x": [4]}, ["y"])
    made.functions.append(function)
    made.opset_import.append(helper.make_opsetid("own", 1))
    x = np.array([-4, -1, 0, 2], np.float32)
    close(ingot.onnx.compile(made)(x), np.where(x < 0, x * 0.5, x) + x)


def test_quantized_linear_layer():
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "x_scale", "x_zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "x_scale", "x_zero"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "w_scale"], ["dw"], axis=0),
        helper.make_node("Gemm", ["d", "dw"], ["y"], transB=1),
    ]
    weight = np.random.default_rng(1).integers(-127, 128, (5, 6)).astype(np.int8)
    scales = np.linspace(0.01, 0.05, 5).astype(np.float32)
    values = {"x_scale": np.float32(0.02), "x_zero": np.uint8(128), "w": weight, "w_scale": scales}
    arrays = {name: np.asarray(value) for name, value in values.items()}
    x = small.random(7, 6)
    steps = np.clip(np.rint(x / np.float32(0.02)) + 128, 0, 255) - 128
    wanted = (steps * 0.02) @ (weight * scales[:, None]).T
    close(ingot.onnx.compile(small.model(nodes, {"x": ["n", 6]}, ["y"], arrays))(x), wanted)


@pytest.mark.parametrize("numpy_dtype", [np.float64, np.float16, np.int64, np.int32, np.int8, np.uint8])
def test_dtypes(numpy_dtype: type):
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(numpy_dtype))
    made = small.model([helper.make_node("Add", ["x", "c"], ["y"])], {"x": ["n", 3]}, ["y"],
                       {"c": np.array([1, 2, 3], numpy_dtype)}, dtype=dtype)  # fmt: skip
    x = np.arange(6).reshape(2, 3).astype(numpy_dtype)
    result = np.asarray(ingot.onnx.compile(made)(x))
    assert result.dtype == x.dtype
    assert np.array_equal(result, x + np.array([1, 2, 3], numpy_dtype))


def test_truncated_and_damaged_files_are_errors():
    """Every prefix, and thousands of flipped bits: an error of the user's kind, or an engine; nothing else."""
    content = small.mlp().SerializeToString()
    for length in range(0, len(content), 7):
        with pytest.raises((ingot.UserError, ingot.UnsupportedError)):
            ingot.onnx.compile(content[:length])
    generator = random_numbers.Random(5)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(generator.randint(1, 4)):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        with contextlib.suppress(ingot.UserError, ingot.UnsupportedError):
            ingot.onnx.compile(bytes(damaged), optimization_level=0)


@pytest.mark.parametrize("dims", [[1 << 62, 1 << 62], [-1], [1 << 40], [1 << 63]])
def test_sizes_that_do_not_fit_are_errors(dims: list[int]):
    made = small.mlp()
    weight = made.graph.initializer[0]
    del weight.dims[:]
    weight.dims.extend([size if size < 1 << 63 else -(1 << 63) for size in dims])
    with pytest.raises(ingot.UserError, match="INGOT-U541"):
        ingot.onnx.compile(made)


def test_files_of_other_kinds_are_rejected(tmp_path: Path):
    for name, content in {
        "empty": b"",
        "text": b"hello",
        "zip": b"PK\x03\x04" + bytes(64),
        "zeros": bytes(64),
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ingot.UserError):
            ingot.build(tmp_path / name)
    with pytest.raises(ingot.UserError, match="INGOT-U006"):
        ingot.onnx.compile(3)


def test_numpy_helper_lists(tmp_path: Path):
    """Values in the lists of a TensorProto instead of its raw bytes."""
    made = small.mlp()
    for tensor in made.graph.initializer:
        values = numpy_helper.to_array(tensor)
        tensor.CopyFrom(
            helper.make_tensor(tensor.name, TensorProto.FLOAT, values.shape, values.ravel().tolist())
        )
    x = small.random(2, 8)
    close(ingot.onnx.compile(made)(x), small.mlp_result(x, small.weights_of(small.mlp())))
