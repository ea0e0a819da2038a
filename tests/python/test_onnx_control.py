# SPDX-License-Identifier: Apache-2.0
"""Branches and loops of ONNX models, against the reference implementation of the package onnx."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import ingot
import numpy as np
import onnx
import onnx_models as small
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

X = np.array([[1, -2, 3], [4, 5, -6]], np.float32)


def node(op: str, inputs: str, outputs: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(
        op, inputs.split(), outputs.split(), name=f"{op}_{outputs.split()[0]}", **attributes
    )


def graph(nodes: list[onnx.NodeProto], inputs: str, outputs: str, **values: np.ndarray) -> onnx.GraphProto:
    def named(names: str) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names.split()]

    stored = [numpy_helper.from_array(value, name) for name, value in values.items()]
    return helper.make_graph(nodes, "inner", named(inputs), named(outputs), stored)


def check(
    model: onnx.ModelProto, *inputs: np.ndarray, engine: object = None, want: list | None = None
) -> object:
    """The engine, whose results are those of the reference."""
    engine = ingot.onnx.compile(model) if engine is None else engine
    names = [value.name for value in model.graph.input]
    want = (
        ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True))) if want is None else want
    )
    got = engine(*inputs)
    got = got if isinstance(got, (tuple, list)) else [got]
    for mine, other in zip(got, want, strict=True):
        assert mine.dtype == other.dtype
        np.testing.assert_allclose(mine, other, rtol=1e-6)
    return engine


def is_positive(name: str, of: str = "x") -> list[onnx.NodeProto]:
    return [
        node("ReduceSum", of, f"{name}_sum", keepdims=0),
        node("Greater", f"{name}_sum zero", name),
    ]


ZERO = {"zero": np.float32(0)}
W, OWN = np.float32([[1, 2, 3]]), np.float32([[4, 5, 6]])


def branching() -> onnx.ModelProto:
    """Branches that read an input, a computed value, weights of the model and their own, and sizes."""
    then = graph([node("Mul", "doubled w", "t"), node("Shape", "x", "t_shape")], "", "t t_shape")
    otherwise = graph(
        [node("Add", "x own", "e"), node("Shape", "doubled", "e_shape")], "", "e e_shape", own=OWN
    )
    nodes = [*is_positive("c"), node("Add", "x x", "doubled"),
             node("If", "c", "y shape", then_branch=then, else_branch=otherwise)]  # fmt: skip
    return small.model(nodes, {"x": ["n", 3]}, ["y", "shape"], {**ZERO, "w": W})


def test_branches_on_values():
    model = branching()
    engine = ingot.onnx.compile(model)
    for x in (X, -X, np.ones((5, 3), np.float32), -np.ones((1, 3), np.float32)):
        check(model, x, engine=engine)


def test_branches_within_branches():
    inner = node("If", "d", "i", then_branch=graph([node("Neg", "x", "a")], "", "a"),
                 else_branch=graph([node("Mul", "x w", "b")], "", "b"))  # fmt: skip
    outer = node("If", "c", "y", then_branch=graph([*is_positive("d", "x"), inner, node("Abs", "i", "o")], "", "o"),
                 else_branch=graph([node("Identity", "x", "same")], "", "same"))  # fmt: skip
    model = small.model([*is_positive("c"), outer], {"x": [2, 3]}, ["y"], {**ZERO, "w": W})
    engine = check(model, X)
    check(model, -X, engine=engine)


def test_other_weights_reach_branches():
    model = branching()
    engine = ingot.onnx.compile(model)
    assert {"w", "own"} <= set(engine.weights)
    engine.refit({"w": 2 * W, "own": 3 * OWN})
    assert np.array_equal(engine(X)[0], 2 * X * (2 * W))
    assert np.array_equal(engine(-X)[0], 3 * OWN - X)


def loop(
    nodes: list[onnx.NodeProto], carried: str, outputs: str, results: str, given: str, own: str = "i go"
):
    body = graph(nodes, f"{own} {carried}", outputs)
    for value, kind in zip(body.input[:2], (TensorProto.INT64, TensorProto.BOOL), strict=True):
        value.type.tensor_type.elem_type = kind
    return helper.make_node("Loop", ["" if name == "-" else name for name in given.split()], results.split(),
                            name="loop", body=body)  # fmt: skip


STEP = [node("Identity", "go", "go_on"), node("Mul", "s half", "m"), node("Add", "m x", "next")]
HALF = {"half": np.float32(0.5)}
COUNTS: dict[str, Callable[[], tuple[dict, dict]]] = {
    "known": lambda: ({}, {"n": np.array(4)}),
    "one": lambda: ({}, {"n": np.array([3])}),
    "none": lambda: ({}, {"n": np.array(0)}),
    "negative": lambda: ({}, {"n": np.array(-2)}),
    "of a run": lambda: ({"n": []}, {}),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("condition", ["-", "yes", "no"])
def test_loops_that_count(count, condition):
    """Without a condition as if it always held; the reference would not begin."""
    inputs, constants = COUNTS[count]()
    nodes = [loop(STEP, "s", "go_on next", "y", f"n {condition} x")]
    values = {**HALF, **constants, "yes": np.array(True), "no": np.array(False)}
    model = small.model(nodes, {"x": [2, 3], **inputs}, ["y"], values)
    if inputs:
        model.graph.input[1].type.tensor_type.elem_type = TensorProto.INT64
    engine = ingot.onnx.compile(model)
    for n in (0, 1, 5, -1) if inputs else (int(constants["n"].reshape(())),):
        y = X
        for _ in range(0 if condition == "no" else n):
            y = y / 2 + X
        check(model, X, *[np.array(n)] * len(inputs), engine=engine, want=[y])


@pytest.mark.parametrize("count", ["-", "most"])
def test_loops_that_end_by_a_condition(count):
    """Without a limit: no trip count, or the largest one."""
    step = [
        node("Add", "s s", "next"),
        node("ReduceMax", "next", "most", keepdims=0),
        node("Less", "most limit", "go_on"),
    ]
    values = {"limit": np.float32(100), "yes": np.array(True), "most": np.array(2**63 - 1)}
    model = small.model([loop(step, "s", "go_on next", "y", f"{count} yes x")], {"x": [2, 3]}, ["y"], values)
    engine = check(model, X)
    check(model, 50 * X, engine=engine)
    check(model, X / 64, engine=engine)


def test_loops_with_a_row_per_iteration():
    """As many as another tensor has rows: a size that calls choose."""
    nodes = [node("Shape", "x", "n", start=0, end=1), node("ReduceSum", "x axis", "first", keepdims=0)]
    step = [node("Identity", "go", "go_on"), node("Mul", "s half", "next"), node("Cast", "i", "number", to=TensorProto.FLOAT),
            node("Mul", "next number", "row")]  # fmt: skip
    nodes.append(loop(step, "s", "go_on next row number", "y rows numbers", "n - first"))
    values = {**HALF, "axis": np.array([0])}
    model = small.model(nodes, {"x": ["rows", 3]}, ["y", "rows", "numbers"], values)
    engine = ingot.onnx.compile(model)
    for count in (1, 2, 7):
        x = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
        numbers = np.arange(count, dtype=np.float32)
        halves = x.sum(0) * 0.5 ** (numbers[:, None] + 1)
        check(model, x, engine=engine, want=[halves[-1], halves * numbers[:, None], numbers])


# Its values double until one is above the limit.
GROWING = [node("Add", "s s", "next"), node("Mul", "next half", "row"), node("Cast", "i", "number", to=TensorProto.FLOAT),
           node("ReduceMax", "next", "most", keepdims=0), node("Less", "most limit", "go_on")]  # fmt: skip
LIMIT = {**HALF, "limit": np.float32(100), "yes": np.array(True), "no": np.array(False)}


def grown(x: np.ndarray, most: int) -> list[np.ndarray]:
    rows, value = [], x
    while len(rows) < most:
        rows.append(value)
        value = value + value
        if value.max() >= 100:
            break
    return [
        value,
        np.stack(rows) if rows else x[:0].reshape(0, *x.shape),
        np.arange(len(rows), dtype=np.float32),
    ]


@pytest.mark.parametrize("count", ["known", "of sizes", "of a run"])
def test_rows_of_loops_that_end_early(count):
    """As many rows as iterations ran: none, some, or all that the count allows; what follows computes with them."""
    nodes = [node("Shape", "x", "n", start=0, end=1)] if count == "of sizes" else []
    nodes += [loop(GROWING, "s", "go_on next row number", "y rows numbers", "n yes x"),
              node("ReduceSum", "rows", "total", keepdims=0), node("Shape", "rows", "sizes")]  # fmt: skip
    inputs = {"n": []} if count == "of a run" else {}
    values = LIMIT | ({"n": np.array(5)} if count == "known" else {})
    results = ["y", "rows", "numbers", "total", "sizes"]
    model = small.model(nodes, {"x": ["count", 3], **inputs}, results, values)
    for value in model.graph.input[1:]:
        value.type.tensor_type.elem_type = TensorProto.INT64
    model.graph.output[4].type.tensor_type.elem_type = TensorProto.INT64
    engine = ingot.onnx.compile(model)
    for size in (1, 2, 6):
        for scale in (40, 30, 1, -1):
            x = np.full((size, 3), scale, np.float32)
            for most in (0, 1, 4, 9, -3) if inputs else (5 if count == "known" else size,):
                want = grown(x, most)
                want += [want[1].sum(dtype=np.float32), np.array(want[1].shape)]
                check(model, x, *[np.array(most)] * len(inputs), engine=engine, want=want)


@pytest.mark.parametrize("condition", ["of a run", "no"])
def test_rows_of_loops_that_may_not_begin(condition):
    body = [node("Identity", "go", "go_on"), *GROWING[:3]]
    start = is_positive("c") if condition == "of a run" else []
    nodes = [
        *start,
        loop(body, "s", "go_on next row number", "y rows numbers", f"n {'c' if start else 'no'} x"),
    ]
    model = small.model(nodes, {"x": [2, 3]}, ["y", "rows", "numbers"], LIMIT | ZERO | {"n": np.array(3)})
    engine = ingot.onnx.compile(model)
    for x in (X / 100, -X / 100):
        begins = condition == "of a run" and x.sum() > 0
        check(model, x, engine=engine, want=grown(x, 3 if begins else 0))


def test_loops_within_branches_of_loops():
    inner = loop(
        [node("Identity", "go_in", "go_2"), node("Add", "t x", "u")],
        "t",
        "go_2 u",
        "v",
        "two yes s",
        "j go_in",
    )
    choice = node(
        "If",
        "c",
        "w",
        then_branch=graph([inner], "", "v"),
        else_branch=graph([node("Neg", "s", "q")], "", "q"),
    )
    outer = loop(
        [node("Identity", "go", "go_on"), *is_positive("c", "s"), choice], "s", "go_on w", "y", "three yes x"
    )
    values = {**ZERO, "two": np.array(2), "three": np.array(3), "yes": np.array(True)}
    model = small.model([outer], {"x": [2, 3]}, ["y"], values)
    engine = check(model, X)
    check(model, -X, engine=engine)


def scan(axes: list[int], directions: list[int], output_axes: list[int], output_directions: list[int]):
    body = graph([node("Add", "s row", "next"), node("Mul", "next other", "out"), node("Mul", "out w", "out_2")],
                 "s row other", "next out out_2")  # fmt: skip
    return helper.make_node("Scan", ["start", "x", "z"], ["y", "rows", "more"], name="scan", body=body, num_scan_inputs=2,
                            scan_input_axes=axes, scan_input_directions=directions, scan_output_axes=output_axes,
                            scan_output_directions=output_directions)  # fmt: skip


@pytest.mark.parametrize("axes", [[0, 0], [1, 0], [-1, 1]])
@pytest.mark.parametrize("directions", [[0, 0], [1, 0], [1, 1]])
@pytest.mark.parametrize("outputs", [([0, 0], [0, 0]), ([1, -1], [0, 1]), ([-1, 0], [1, 1])])
def test_scans(axes, directions, outputs):
    made = scan(axes, directions, *outputs)
    shapes = [[4, 3] if axis == 0 else [3, 4] for axis in axes]
    model = small.model([made], {"start": [3], "x": shapes[0], "z": shapes[1]}, ["y", "rows", "more"],
                        {"w": np.float32([1, 2, 3])})  # fmt: skip
    values = [np.arange(12, dtype=np.float32).reshape(shape) - 5 for shape in shapes]
    rows = [
        np.moveaxis(value, axis, 0)[:: -1 if way else 1]
        for value, axis, way in zip(values, axes, directions, strict=True)
    ]
    state, results = np.float32([1, 2, 3]), []
    for row, other in zip(*rows, strict=True):
        state = state + row
        results.append((state * other, state * other * np.float32([1, 2, 3])))
    want = [np.moveaxis(np.stack(given[:: -1 if way else 1]), 0, axis)
            for given, axis, way in zip(zip(*results, strict=True), *outputs, strict=True)]  # fmt: skip
    check(model, np.float32([1, 2, 3]), *values, want=[state, *want])


@pytest.mark.parametrize("size", [0, 1, 3, "n"])
def test_rows_of_loops_and_scans_that_have_none(size):
    """A count of 0 that the model knows, or that a call has: rows of other dims than the first, also read by what follows."""
    step = [node("Identity", "go", "go_on"), node("Mul", "s half", "next"), node("Identity", "next", "row")]
    nodes = [node("Shape", "z", "count", start=0, end=1), loop(step, "s", "go_on next row", "y rows", "count yes x"),
             node("ReduceSum", "rows axis", "total", keepdims=0), node("Concat", "rows more", "joined", axis=0)]  # fmt: skip
    values = {**HALF, "yes": np.array(True), "axis": np.array([0])}
    model = small.model(nodes, {"x": ["m", 3], "z": [size], "more": [1, "m", 3]}, ["y", "rows", "total", "joined"], values)  # fmt: skip
    engine = ingot.onnx.compile(model)
    for count in (0, 1, 4) if size == "n" else (size,):
        for rows in (2, 1, 0):
            x, more = np.arange(3 * rows, dtype=np.float32).reshape(rows, 3), np.ones((1, rows, 3), np.float32)  # fmt: skip
            made = np.stack([x / 2 ** (k + 1) for k in range(count)] or [x])[:count]
            want = [x / 2**count, made, made.sum(0), np.concatenate([made, more])]
            check(model, x, np.zeros(count, np.float32), more, engine=engine, want=want)


@pytest.mark.parametrize("size", [0, 1, 3, "n"])
@pytest.mark.parametrize(("axis", "direction"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_scans_of_no_rows(size, axis, direction):
    shapes = [[4, 3] if axis == 0 else [3, 4]] * 2
    shapes = [[size if dim == 4 else dim for dim in shape] for shape in shapes]
    made = scan([axis, axis], [direction] * 2, [axis, 0], [direction, 0])
    model = small.model([made], {"start": [3], "x": shapes[0], "z": shapes[1]}, ["y", "rows", "more"],
                        {"w": np.float32([1, 2, 3])})  # fmt: skip
    engine = ingot.onnx.compile(model)
    for count in (0, 1, 4) if size == "n" else (size,):
        values = np.arange(3 * count, dtype=np.float32).reshape(count, 3)
        given = np.moveaxis(values, 0, axis)
        sums = np.cumsum(values[:: -1 if direction else 1], 0)
        rows = sums * values[:: -1 if direction else 1]
        want = [sums[-1] if count else np.zeros(3, np.float32), np.moveaxis(rows[:: -1 if direction else 1], 0, axis),
                rows * np.float32([1, 2, 3])]  # fmt: skip
        check(model, np.zeros(3, np.float32), given, given, engine=engine, want=want)


def refused(model: onnx.ModelProto, code: str, message: str) -> None:
    with pytest.raises(ingot.Error, match=message) as caught:
        ingot.onnx.compile(model)
    assert caught.value.code == code
    assert caught.value.node


def test_what_engines_do_not_have():
    shapes = node("If", "c", "y", then_branch=graph([node("ReduceSum", "x", "a", keepdims=0)], "", "a"),
                  else_branch=graph([node("Neg", "x", "b")], "", "b"))  # fmt: skip
    refused(
        small.model([*is_positive("c"), shapes], {"x": [2, 3]}, ["y"], ZERO),
        "INGOT-N541",
        r"output 0 is f32\[\] in one",
    )
    grows = loop(
        [node("Identity", "go", "go_on"), node("Concat", "s x", "next", axis=0)],
        "s",
        "go_on next",
        "y",
        "n - x",
    )
    refused(
        small.model([grows], {"x": [2, 3]}, ["y"], {"n": np.array(3)}), "INGOT-N541", "its graph makes f32"
    )
    step = [node("Neg", "s", "next"), node("Abs", "s", "row"), node("ReduceMax", "row", "most", keepdims=0),
            node("Less", "most limit", "go_on")]  # fmt: skip
    limit = {"limit": np.float32(9), "yes": np.array(True), "huge": np.array(2**62)}
    for count in ("-", "huge"):
        rows = loop(step, "s", "go_on next row", "y rows", f"{count} yes x")
        refused(small.model([rows], {"x": [2, 3]}, ["y", "rows"], limit), "INGOT-N541", "has no limit")
    inner = node("If", "c", "z", then_branch=graph([loop(step, "s", "go_on next row", "y rows", "n yes x"),
                 node("ReduceSum", "rows", "a", keepdims=0)], "", "a"),
                 else_branch=graph([node("ReduceSum", "x", "b", keepdims=0)], "", "b"))  # fmt: skip
    refused(
        small.model([*is_positive("c"), inner], {"x": [2, 3]}, ["z"], {**ZERO, **limit, "n": np.array(4)}),
        "INGOT-N541",
        "in the graph of a branch or loop",
    )
    endless = loop(
        [node("Identity", "go", "go_on"), node("Neg", "s", "next")], "s", "go_on next", "y", "- - x"
    )
    refused(
        small.model([endless], {"x": [2, 3]}, ["y"]), "INGOT-U543", "neither a trip count nor a condition"
    )
    old = helper.make_node("Scan", ["", "x"], ["y"], name="scan", num_scan_inputs=1, body=graph([], "x", "x"))
    refused(small.model([old], {"x": [1, 2, 3]}, ["y"], opset=8), "INGOT-N541", "opset 8")


@pytest.mark.parametrize("damage", ["outputs", "inputs", "unknown", "count"])
def test_graphs_that_do_not_fit_their_nodes(damage):
    step = [node("Identity", "go", "go_on"), node("Neg", "nowhere" if damage == "unknown" else "s", "next")]
    outputs = "go_on" if damage == "outputs" else "go_on next"
    made = loop(step, "s more" if damage == "inputs" else "s", outputs, "y", "n - x")
    if damage == "count":
        made = helper.make_node(
            "Scan", ["x"], ["y"], name="scan", num_scan_inputs=2, body=graph([], "x", "x")
        )
    refused(small.model([made], {"x": [2, 3]}, ["y"], {"n": np.array(3)}), "INGOT-U543", "ONNX")


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    changed = bytearray(content)
    for _ in range(random.integers(1, 4)):
        at = random.integers(len(changed))
        if random.integers(2):
            changed[at] ^= 1 << int(random.integers(8))
        else:
            changed[at:at] = content[at : at + random.integers(16)]
    return bytes(changed)


def test_damaged_graphs_are_errors(tmp_path):
    step = loop(STEP, "s", "go_on next", "y", "n - x")
    for number, model in enumerate(
        [branching(), small.model([step], {"x": [2, 3]}, ["y"], {**HALF, "n": np.array(4)})]
    ):
        random = np.random.default_rng(number)
        for _ in range(100):
            (tmp_path / "model.onnx").write_bytes(damaged(model.SerializeToString(), random))
            with contextlib.suppress(ingot.Error):
                ingot.build(str(tmp_path / "model.onnx"))
