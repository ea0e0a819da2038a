# SPDX-License-Identifier: Apache-2.0
"""ingot.ts.compile: scripted, traced, frozen and saved models give what TorchScript itself gives."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from accuracy import assert_accurate, golden
from ingot.torchscript.builtins import BUILTINS, PROPERTIES
from script_functions import (
    FUNCTIONS,
    Assertion,
    Branches,
    Convolution,
    DataLoop,
    Growing,
    Layers,
    Recurrent,
    Shared,
    Updating,
    branch_returns_numbers,
    makes_an_object,
    sum_of_rows,
)
from small_models import Counter, mlp, tiny_bert
from torch import nn
from torch.utils import _pytree


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def assert_same(actual: Any, expected: Any) -> None:
    """Of results that TorchScript computes with the same operators: structure, dtypes, and values in the rule's tolerance."""
    own, structure = _pytree.tree_flatten(actual)
    theirs, expected_structure = _pytree.tree_flatten(expected)
    assert structure == expected_structure
    for value, other in zip(own, theirs, strict=True):
        if isinstance(other, torch.Tensor):
            assert_accurate(value, other, other.double() if other.is_floating_point() else other)
        else:
            assert value == other


def scripted(model: nn.Module) -> torch.jit.ScriptModule:
    return torch.jit.script(model.eval())


def traced(model: nn.Module, x: torch.Tensor) -> torch.jit.ScriptModule:
    return torch.jit.trace(model.eval(), x)


FORMS: dict[str, Callable[[nn.Module, torch.Tensor], Any]] = {
    "scripted": lambda model, x: scripted(model),
    "traced": traced,
    "frozen": lambda model, x: torch.jit.freeze(scripted(model)),
    "frozen trace": lambda model, x: torch.jit.freeze(traced(model, x)),
}


@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_a_model_in_each_form(form: str, is_saved: bool, tmp_path: Path) -> None:
    model, x = Layers().eval(), torch.randn(3, 2, 8)
    given = FORMS[form](model, x)
    if is_saved:
        torch.jit.save(given, tmp_path / "model.pt")
        given = tmp_path / "model.pt"
    rows = ingot.Input(min_shape=(1, 2, 8), opt_shape=(4, 2, 8), max_shape=(9, 2, 8))
    for compiled in (ingot.ts.compile(given, [x]), ingot.compile(given, ir="default", inputs=[rows])):
        assert_accurate(compiled(x), model(x), golden(model, [x]))
        assert not compiled.report.fallbacks
    wide = torch.randn(9, 2, 8)
    assert_accurate(compiled(wide), model(wide), golden(model, [wide]))


@pytest.mark.parametrize("form", ["scripted", "traced"])
def test_weights_keep_their_names_and_ties(form: str) -> None:
    model, x = Shared().eval(), torch.randn(2, 4)
    compiled = ingot.ts.compile(FORMS[form](model, x), inputs=[x])
    assert set(compiled.state_dict()) == set(model.state_dict())
    new = copy.deepcopy(model)
    for value in new.parameters():
        value.mul_(1.5)
    compiled.refit(new)
    assert_accurate(compiled(x), new(x), golden(new, [x]))


def test_a_frozen_model_can_be_refitted() -> None:
    model, x = mlp().eval(), torch.randn(2, 8)
    compiled = ingot.ts.compile(torch.jit.freeze(scripted(model)), inputs=[x])
    assert set(compiled.engine.weights) == set(model.state_dict())
    new = copy.deepcopy(model)
    for value in new.parameters():
        value.mul_(1.5)
    compiled.refit(new)
    assert_accurate(compiled(x), new(x), golden(new, [x]))


@pytest.mark.parametrize("form", ["scripted", "frozen"])
def test_library_modules(form: str) -> None:
    model, ids = Recurrent().eval(), torch.tensor([[1, 5, 2], [0, 9, 9]])
    compiled = ingot.ts.compile(FORMS[form](model, ids), inputs=[ids])
    assert_accurate(compiled(ids), model(ids), golden(model, [ids]))
    assert not compiled.report.fallbacks


def test_a_traced_transformer() -> None:
    model, ids = tiny_bert(), torch.arange(12).reshape(2, 6)
    given = torch.jit.trace(model, (ids,), strict=False)
    compiled = ingot.ts.compile(given, inputs=[ids])
    assert_same(compiled(ids), given(ids))
    assert not compiled.report.fallbacks


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_language(name: str) -> None:
    function, inputs = FUNCTIONS[name]
    given = torch.jit.script(function)
    compiled = ingot.ts.compile(given, inputs=copy.deepcopy(inputs))
    assert_same(compiled(*copy.deepcopy(inputs)), given(*copy.deepcopy(inputs)))


def halves(x: torch.Tensor) -> torch.Tensor:
    """Sizes, which traces have as 0-d tensors."""
    rows, columns = x.shape
    return x.reshape(rows * 2, columns // 2)[: rows - 1] * (rows / columns) + (rows + columns) * torch.arange(
        columns // 2
    )


def test_sizes_of_a_trace() -> None:
    given = torch.jit.trace(halves, torch.ones(4, 6))
    rows = ingot.Input(min_shape=(2, 6), opt_shape=(4, 6), max_shape=(9, 6))
    compiled = ingot.ts.compile(given, inputs=[rows])
    for size in (2, 5, 9):
        x = torch.randn(size, 6)
        assert_same(compiled(x), given(x))


def test_each_builtin_is_tried() -> None:
    def kinds(block: Any) -> Iterator[str]:
        for node in block.nodes():
            yield node.kind()
            for inner in node.blocks():
                yield from kinds(inner)

    graphs = [torch.jit.script(function).inlined_graph for function, _ in FUNCTIONS.values()]
    graphs.append(torch.jit.freeze(scripted(Recurrent())).graph)
    graphs.append(torch.jit.trace(halves, torch.ones(4, 4)).graph)
    tried = {kind for graph in graphs for kind in kinds(graph)}
    assert sorted(set(BUILTINS) - tried) == []
    assert sorted({f"prim::{name}" for name in PROPERTIES} - tried) == []


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_branch_on_data(sign: float) -> None:
    model, x = Branches().eval(), torch.rand(2, 4)
    compiled = ingot.ts.compile(scripted(model), inputs=[x])
    assert_accurate(compiled(sign * x), model(sign * x), golden(model, [sign * x]))
    assert "higher_order.cond" in {node.op for node in compiled.report.fallbacks}
    assert any("script_functions.py" in node.source for node in compiled.report.fallbacks)
    with pytest.raises(ingot.UnsupportedError, match="INGOT-N001"):
        ingot.ts.compile(scripted(model), inputs=[x], require_full_compilation=True)


def test_an_assertion_on_data() -> None:
    compiled = ingot.ts.compile(scripted(Assertion()), inputs=[torch.ones(3)])
    assert_same(compiled(torch.ones(3)), Assertion()(torch.ones(3)))
    with pytest.raises(ingot.UserError, match="an assertion of the program failed") as info:
        compiled(-torch.ones(3))
    assert info.value.code == "INGOT-U313"


def test_state() -> None:
    for model, x in ((Counter(), torch.randn(2, 4)), (Updating(), torch.randn(3))):
        compiled = ingot.ts.compile(scripted(copy.deepcopy(model)), inputs=[x])
        for _ in range(3):
            assert_same(compiled(x), model(x))


@pytest.mark.parametrize(
    ("model", "inputs", "says"),
    [
        (makes_an_object, [torch.rand(3)], "prim::CreateObject.*class script_functions.Custom"),
        (DataLoop(), [torch.rand(3)], "prim::Loop.*number of its turns"),
        (sum_of_rows, [ingot.Input(min_shape=(2, 3), max_shape=(5, 3))], "prim::Loop.*dynamic size"),
        (Growing(), [torch.rand(3)], "prim::SetAttr.*attribute calls"),
        (branch_returns_numbers, [torch.rand(3)], "prim::If.*does not return tensors alone"),
        (Assertion(), [torch.ones(3, 3)], r"the model raises 'one dim alone'"),
        (nn.Linear(3, 3), [torch.rand(2, 4)], "aten::linear"),
    ],
)
def test_errors_name_the_line(model: Any, inputs: list, says: str) -> None:
    with pytest.raises(ingot.UnsupportedError, match=says) as error:
        ingot.ts.compile(torch.jit.script(model), inputs=inputs)
    assert error.value.code == "INGOT-N008"
    assert ".py:" in error.value.source


def test_bad_models(tmp_path: Path) -> None:
    bad = tmp_path / "bad.pt"
    bad.write_bytes(b"nothing of the kind")
    for given, code in (
        (3, "INGOT-U006"),
        (bad, "INGOT-U006"),
        (tmp_path / "none.pt", "INGOT-U120"),
        (abs, "INGOT-U006"),
    ):
        with pytest.raises(ingot.UserError) as error:
            ingot.ts.compile(given, inputs=[torch.ones(3)])
        assert error.value.code == code
    with pytest.raises(ingot.UserError, match='ir="ts"'):
        ingot.compile(scripted(mlp()), ir="dynamo", inputs=[torch.ones(2, 8)])
    with pytest.raises(ingot.UserError, match="missing an input for the model's argument y"):
        ingot.ts.compile(torch.jit.script(FUNCTIONS["optionals"][0]), inputs=[torch.ones(3)])


def test_a_saved_file_is_not_mistaken(tmp_path: Path) -> None:
    torch.jit.save(scripted(mlp()), tmp_path / "model.pt")
    with pytest.raises(ingot.UserError, match="TorchScript") as error:
        ingot.build(tmp_path / "model.pt")
    assert error.value.code == "INGOT-U501"
    assert "ingot.ts.compile" in error.value.advice


def test_other_functions_take_the_script_too() -> None:
    model, x = scripted(mlp()), torch.randn(4, 8)
    compiled = ingot.ts.compile(model, inputs=[x])
    assert max(value.error for value in ingot.compare(model, compiled, [x]).nodes) < 1e-6
    program = ingot.quantize(model, [(x,)])
    quantized = ingot.compile(program, inputs=[x])
    assert not quantized.report.fallbacks
    assert (quantized(x) - model(x)).abs().max() < 0.1
    with pytest.raises(ingot.UnsupportedError, match="mkldnn"):
        ingot.ts.compile(
            torch.jit.optimize_for_inference(torch.jit.script(Convolution().eval())),
            inputs=[torch.ones(1, 3, 8, 8)],
        )


def test_a_plain_module_is_scripted() -> None:
    model, x = mlp().eval(), torch.randn(2, 8)
    compiled = ingot.compile(model, ir="torchscript", inputs=[x])
    assert_accurate(compiled(x), model(x), golden(model, [x]))


class Numbers(nn.Module):
    """Traces have tensors of 0 dims for these numbers, and TorchScript has numbers for these tensors."""

    def __init__(self) -> None:
        super().__init__()
        kinds = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.uint8)
        self.constants = [torch.tensor(3, dtype=kind) for kind in kinds]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*self.results(x), *self.results(x.sum()))

    def results(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        numbers = (
            x + 2.5,
            x * 2,
            x / 2.5,
            x - 2.5,
            2.5 - x,
            2.5 / x,
            x // 2.5,
            torch.floor_divide(x, 2),
            torch.add(x, 2.5, alpha=2),
        )
        first = self.constants[0]
        others = (
            first * x,
            torch.div(x, first, rounding_mode="floor"),
            torch.multiply(x, first),
            torch.maximum(x, first),
        )
        sums = [f(x, c) for c in self.constants for f in (torch.add, torch.sub, torch.mul, torch.true_divide)]
        return (*numbers, *others, *sums, torch.where(x > 1, x, first))  # fmt: skip


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("is_saved", [False, True])
@pytest.mark.parametrize("form", ["traced", "frozen trace"])
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32, torch.bfloat16])
def test_constants_that_are_numbers(dtype: torch.dtype, form: str, is_saved: bool, tmp_path: Path) -> None:
    """Also those of 0-dim results, whose dtypes tensors of 0 dims would decide."""
    x = torch.full((3,), 5, dtype=dtype)
    model = FORMS[form](Numbers(), x)
    if is_saved:
        torch.jit.save(model, tmp_path / "model.ts")
        model = torch.jit.load(tmp_path / "model.ts")
    assert_same(ingot.ts.compile(model, inputs=[x])(x), model(x))
