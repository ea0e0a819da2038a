# SPDX-License-Identifier: Apache-2.0
"""ONNX models for viewers: what onnx reads of them is what the engine and the IR hold."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter as Counts
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from models import MODELS, build
from onnx import AttributeProto, TensorProto, numpy_helper
from onnx_views import DTYPES, attributes, checked, containers, exported, metadata, names, nodes, types
from small_models import Counter, InParts, mlp
from torch import nn

DATA = Path(__file__).parents[1] / "data/pt2"
OWN = {"view", "parts", "unwritten", "state", "update", "output"}  # nodes that are not steps
QUICK = ("mobilenet_v2", "llama_small", "lstm_tagger")


def archive(model: nn.Module, folder: Path, *args: torch.Tensor, **options) -> Path:
    torch.export.save(torch.export.export(model, args, **options), folder / "model.pt2")
    return folder / "model.pt2"


def engine_of(name: str, folder: Path) -> Path:
    subprocess.run(
        [INGOT, "build", DATA / f"{name}.pt2", "-o", folder / "model.ingot"], check=True, capture_output=True
    )
    return folder / "model.ingot"


def ir_types(text: str) -> Counts:
    """(operator, dtype, shape) of the results in the text form of a graph, in which weights and constants are nodes."""
    rows: list[tuple[str, str, str]] = []
    for line in text.splitlines():
        found = re.match(
            r"\s*(?:%\d+, )*%\d+ = (\w+)\(.*\) : (.*)$", line.replace("{", "(").replace("}", ")")
        )
        if found and found[1] not in ("weight", "constant"):
            rows += [(found[1], each[0], each[1]) for each in re.findall(r"(\w+)\[([^\]]*)\]", found[2])]
    return Counts((op, dtype, any_symbols(dims)) for op, dtype, dims in rows)


def any_symbols(dims: str) -> str:
    """Without the names of symbols, which an engine's key replaces."""
    return re.sub(r"\bs\d+\b", "S", dims.replace(" ", ""))


@pytest.mark.parametrize("name", ["pair", "image", "mutation", "weights", "arguments", "control"])
@pytest.mark.parametrize("is_engine", [False, True])
def test_types_of_the_imported_graph_are_those_of_the_ir(name, is_engine, tmp_path) -> None:
    path = engine_of(name, tmp_path)
    key = json.loads(subprocess.check_output([INGOT, "inspect", "--json", path]))["key"]
    own = {number: dtype for dtype, number in DTYPES.items()}
    found: Counts = Counts()
    model = exported(path if is_engine else DATA / f"{name}.pt2", tmp_path, stage="imported")
    without = ("Constant", "output", "branch", "loop")  # the text has the types of the latter on other lines
    for container in containers(model):
        known = types(container)
        for node in (node for node in container.node if node.op_type not in without):
            for dtype, dims in (known[output] for output in node.output):
                found[node.op_type, own[dtype], any_symbols(",".join(map(str, dims)))] += 1
    assert sum(found.values()) > 1
    assert found == ir_types(key)


def test_an_engine_keeps_the_graph_that_it_was_built_from(tmp_path) -> None:
    path = archive(mlp(), tmp_path, torch.randn(3, 8))
    engine = ingot.build(path)
    engine.save(tmp_path / "model.ingot")
    model = exported(engine, tmp_path, stage="imported")
    content = (tmp_path / "view.onnx").read_bytes()
    exported(tmp_path / "model.ingot", tmp_path, stage="imported")
    assert (tmp_path / "view.onnx").read_bytes() == content
    assert [node.op_type for node in model.graph.node] == ["linear", "gelu", "linear"]
    assert names(model.graph.input) == [port.name for port in engine.inputs]
    assert "without the names of its nodes and weights" in model.doc_string
    kinds = types(model.graph)
    shapes = [kinds[name][1] for node in model.graph.node for name in node.input[1:]]
    assert shapes == [[16, 8], [16], [4, 16], [4]]


def test_steps_of_an_engine_by_the_command_line(tmp_path) -> None:
    path = engine_of("weights", tmp_path)
    done = subprocess.run(
        [INGOT, "export", path, "--onnx", tmp_path / "view.onnx", "--json"], check=True, capture_output=True
    )
    content = (tmp_path / "view.onnx").read_bytes()
    assert json.loads(done.stdout) == {"output": str(tmp_path / "view.onnx"), "bytes": len(content)}
    model, engine = checked(tmp_path / "view.onnx"), ingot.Engine.load(path)
    held = engine.inspect()
    steps = [node for node in model.graph.node if node.op_type not in OWN]
    assert [node.op_type for node in steps] == [step["name"] for step in held["main"]["steps"]]
    assert names(model.graph.input) == [port.name for port in engine.inputs]
    assert [port.doc_string for port in model.graph.output] == [
        f"the result {port.name}" for port in engine.outputs
    ]
    for step, node in zip(held["main"]["steps"], steps, strict=True):
        values = attributes(node)
        assert values["kind"].decode() == step["kind"]
        operators = [held["nodes"][number] for number in step["nodes"]]
        assert [text.decode().split()[0] for text in values.get("operators", [])] == [
            each["op"] for each in operators
        ]
        assert metadata(node).get("nodes", "") == ", ".join(each["name"] for each in operators)
        assert all(each["source"] in node.doc_string for each in operators)
    found = metadata(model)
    assert found["target"] == engine.target
    assert found["shows"] == "steps"
    assert found["ingot"] == ingot.__version__
    assert found["key_sha256"] == held["key_sha256"]


def test_equal_engines_give_equal_bytes(tmp_path) -> None:
    path = engine_of("control", tmp_path)
    engine = ingot.Engine.load(path)
    again = ingot.Engine.from_bytes(path.read_bytes())
    contents = []
    for source in (path, str(path), engine, again):
        ingot.export_onnx(source, tmp_path / "view.onnx")
        contents.append((tmp_path / "view.onnx").read_bytes())
    assert len(set(contents)) == 1
    for stage in ("imported", "optimized"):
        for name in ("one", "two"):
            ingot.export_onnx(DATA / "control.pt2", tmp_path / name, stage=stage)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_fused_regions_are_functions(tmp_path) -> None:
    path = archive(mlp(), tmp_path, torch.randn(3, 8))
    model = exported(path, tmp_path)
    regions = [each for each in model.functions if each.domain == "ingot.region"]
    inner = {node.op_type for each in regions for node in each.node}
    assert {"linear", "gelu"} <= inner
    called = [node for node in model.graph.node if node.domain == "ingot.region"]
    assert {node.op_type for node in called} == {each.name for each in regions}
    for node in called:
        region = next(each for each in regions if each.name == node.op_type)
        assert (len(node.input), len(node.output)) == (len(region.input), len(region.output))
        outer, inside = types(model.graph), types(region)
        assert [outer[name] for name in node.input] == [inside[name] for name in region.input]
        assert [outer[name] for name in node.output] == [inside[name] for name in region.output]
    plain = exported(path, tmp_path, optimization_level=0)
    assert not [each for each in plain.functions if each.domain == "ingot.region"]
    kept = exported(path, tmp_path, disable_passes="fuse")
    assert not [each for each in kept.functions if each.domain == "ingot.region"]


def test_names_and_lines_of_the_model(tmp_path) -> None:
    path = archive(Counter().eval(), tmp_path, torch.randn(3, 4))
    for stage in ("imported", "optimized"):
        found = {metadata(node).get("node") for node in nodes(exported(path, tmp_path, stage=stage))}
        assert {"linear", "mean"} <= found
    imported = exported(path, tmp_path, stage="imported")
    linear = next(node for node in nodes(imported) if node.op_type == "linear")
    assert re.search(r"small_models\.py:\d+ in forward", linear.doc_string)
    assert metadata(linear)["source"] == linear.doc_string
    assert metadata(linear)["module"].endswith("linear")
    assert metadata(linear)["input_names"] == "['x', 'weight', 'bias']"
    assert set(linear.input[1:]) == {"linear.weight", "linear.bias"}
    assert imported.graph.output[0].doc_string == "the result output_0"


def test_dynamic_sizes(tmp_path) -> None:
    batch = torch.export.Dim("batch", min=2, max=64)
    path = archive(mlp(), tmp_path, torch.randn(3, 8), dynamic_shapes=({0: batch},))
    model = exported(path, tmp_path, shapes="input:2..4..16x8")
    symbol = model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert metadata(model.graph)[f"symbol {symbol}"] == "2..16, typical 4"
    assert types(model.graph)[model.graph.output[0].name] == (TensorProto.FLOAT, [symbol, 4])
    engine = exported(ingot.build(path), tmp_path)
    dims = types(engine.graph)[engine.graph.output[0].name][1]
    assert dims == [engine.graph.input[0].type.tensor_type.shape.dim[0].dim_param, 4]


class _Control(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))
        return torch._higher_order_ops.while_loop(lambda x: x.sum() < 9, lambda x: (x + 1,), (x,))[0]


def test_control_flow_has_graphs(tmp_path) -> None:
    path = archive(_Control(), tmp_path, torch.randn(3, 4))
    engine = ingot.build(path)
    for model in (
        exported(path, tmp_path, stage="imported"),
        exported(path, tmp_path),
        exported(engine, tmp_path),
    ):
        graphs = [
            {item.name for item in node.attribute if item.type == AttributeProto.GRAPH}
            for node in nodes(model)
        ]
        assert {"then", "otherwise"} in graphs
        assert {"body"} in graphs
        inner = {node.op_type for each in containers(model) if each is not model.graph for node in each.node}
        assert {"sin", "cos"} <= set(re.findall(r"\w+", " ".join(inner)))


@pytest.mark.parametrize("stage", ["imported", "optimized", "steps"])
def test_states(stage, tmp_path) -> None:
    path = archive(Counter().eval(), tmp_path, torch.randn(3, 4))
    model = exported(ingot.build(path) if stage == "steps" else path, tmp_path, stage=stage)
    state = next(node for node in model.graph.node if node.op_type == "state")
    assert attributes(state)["name"].decode() == "total"
    assert types(model.graph)[state.output[0]] == (TensorProto.FLOAT, [4])
    if stage != "steps":
        update = next(node for node in model.graph.node if node.op_type == "update")
        assert update.input[0] == state.output[0]
        assert update.input[1] in {name for node in model.graph.node for name in node.output}


def test_weights_carry_small_values_alone(tmp_path) -> None:
    net = nn.Sequential(nn.Linear(8, 2), nn.Linear(2, 3000)).eval()
    model = exported(archive(net, tmp_path, torch.randn(1, 8)), tmp_path, stage="imported")
    dense = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    assert set(dense) == {"0.weight", "0.bias"}
    np.testing.assert_array_equal(dense["0.weight"], net[0].weight.detach().numpy())
    left_out = {tensor.values.name: tensor for tensor in model.graph.sparse_initializer}
    assert set(left_out) == {"1.weight", "1.bias"}
    assert list(left_out["1.weight"].dims) == [3000, 2]
    assert left_out["1.weight"].values.doc_string == "f32[3000,2]; its values are left out"


def test_two_programs(tmp_path) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(64, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x)

    path = archive(Net().eval(), tmp_path, torch.randn(32, 64))
    for source in (path, ingot.build(path)):
        model = exported(source, tmp_path)
        init = next(each for each in model.functions if (each.domain, each.name) == ("ingot.program", "init"))
        assert init.node
        read = {name for node in model.graph.node for name in node.input}
        prepared = {name: kind for name, kind in types(model.graph).items() if name.startswith("init.")}
        assert set(prepared) == set(init.output) & read
        assert prepared == {name: types(init)[name] for name in prepared}
        assert {node.output[0] for node in init.node if node.op_type == "Constant"} >= {"linear.weight"}


def test_quantized_models(tmp_path) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).eval()
    program = ingot.quantize(net, [(torch.randn(32, 64),) for _ in range(2)])
    path = archive(program, tmp_path, torch.randn(32, 64))
    imported = exported(path, tmp_path, stage="imported")
    assert {"quantize", "dequantize"} <= {node.op_type for node in imported.graph.node}
    quantize = next(node for node in imported.graph.node if node.op_type == "quantize")
    assert types(imported.graph)[quantize.output[0]][0] in (TensorProto.INT8, TensorProto.UINT8)
    exported(path, tmp_path)
    exported(ingot.build(path), tmp_path)


@pytest.mark.parametrize("hostile", ['"quoted"\n', "a/b", " ", "é", "'], ['", "x" * 3000])
def test_any_name(hostile, tmp_path) -> None:
    from test_report_page import onnx_with_names

    (tmp_path / "model.onnx").write_bytes(onnx_with_names(hostile))
    for stage in ("imported", "optimized"):
        model = exported(tmp_path / "model.onnx", tmp_path, stage=stage)
        assert names(model.graph.input) == [f"x{hostile}"]
        assert any(f"w{hostile}" in types(container) for container in containers(model))
    exported(ingot.build(tmp_path / "model.onnx"), tmp_path)


def test_engines_of_a_model_that_torch_runs_in_part(tmp_path) -> None:
    model = ingot.compile(InParts(counts=False), inputs=[torch.randn(3, 4)])
    with pytest.raises(ingot.UserError, match="the model has 2 engines: engine= is a number from 0 to 1"):
        ingot.export_onnx(model, tmp_path / "view.onnx")
    with pytest.raises(ingot.UserError, match="from 0 to 1, not 2"):
        ingot.export_onnx(model, tmp_path / "view.onnx", engine=2)
    assert not list(tmp_path.iterdir())
    steps = [
        [node.op_type for node in exported(model, tmp_path, engine=number).graph.node] for number in (0, 1)
    ]
    assert [[op for op in ops if op not in OWN] for ops in steps] == [
        [step["name"] for step in engine.inspect()["main"]["steps"]] for engine in model.engines
    ]


def test_a_model_compiled_just_in_time(tmp_path) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(mlp(), backend="ingot")
    with pytest.raises(ingot.UserError, match="nothing of it has reached Ingot"):
        ingot.export_onnx(compiled, tmp_path / "view.onnx")
    compiled(torch.randn(3, 8))
    assert "gelu" in " ".join(node.op_type for node in exported(compiled, tmp_path).graph.node)


def test_rejected_calls(tmp_path) -> None:
    engine, view = ingot.build(DATA / "pair.pt2"), tmp_path / "view.onnx"
    engine.save(tmp_path / "model.ingot")
    program = torch.export.export(mlp(), (torch.randn(1, 8),))
    for arguments, message in [
        ({"source": engine, "shapes": "x:1x4"}, 'the option "shapes" is for model files'),
        ({"source": engine, "stage": "optimized"}, 'no stage "optimized" of an engine'),
        ({"source": tmp_path / "model.ingot", "stage": "optimized"}, 'no stage "optimized" of an engine'),
        ({"source": tmp_path / "model.ingot", "numerics": "strict"}, 'the option "numerics" changes nothing'),
        ({"source": DATA / "pair.pt2", "stage": "steps"}, "the steps of a model are known once it is built"),
        ({"source": DATA / "pair.pt2", "stage": "all"}, 'no stage "all" of a model'),
        ({"source": DATA / "pair.pt2", "engine": 0}, "a file has one engine"),
        ({"source": DATA / "pair.pt2", "nothing": 1}, 'there is no option "nothing"'),
        ({"source": tmp_path / "none.pt2"}, "No such file"),
        ({"source": 7}, "takes an Engine, a compiled model or the path of a file"),
        ({"source": program}, "an ExportedProgram is exported from its file"),
    ]:
        with pytest.raises(ingot.UserError, match=re.escape(message)):
            ingot.export_onnx(path=view, **arguments)
    with pytest.raises(ingot.UserError, match="No such file or directory"):
        ingot.export_onnx(engine, tmp_path / "missing/view.onnx")
    assert not view.exists()


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in MODELS]
)
def test_whole_models(name, tmp_path) -> None:
    case = build(name)
    path = archive(case.model, tmp_path, *case.args)
    calls = {}
    for stage in ("imported", "optimized"):
        model = exported(path, tmp_path, stage=stage)
        calls[stage] = {metadata(node).get("node") for node in nodes(model)} - {None}
        assert (tmp_path / "view.onnx").stat().st_size < 4_000_000
    assert len(calls["imported"]) >= 5
    assert 2 * len(calls["optimized"] & calls["imported"]) > len(calls["imported"])
