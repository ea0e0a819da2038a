# SPDX-License-Identifier: Apache-2.0
"""ingot.save(..., output_format="torchscript"): files that torch.jit.load runs after `import ingot`."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from ingot import run_op
from small_models import Around, Counter, InParts, mlp, tiny_bert
from torch import nn
from torch.utils import _pytree


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


class Structured(nn.Module):
    """Arguments that are fixed, left out, and hold tensors; a result of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(
        self, x: torch.Tensor, other: torch.Tensor | None, pair: list[torch.Tensor], k: int = 2
    ) -> tuple[Any, ...]:
        y = self.linear(x) * k + pair[0].sum(0)
        return y, [x.sum(-1), pair[1]], {"a": y * 2, "b": x}


class Mixed(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        return {"a": x * 2, "b": [x]}


def reloaded(compiled: Any, path: Path) -> torch.jit.ScriptModule:
    ingot.save(compiled, path, output_format="torchscript")
    return torch.jit.load(path)


def assert_equal(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(_pytree.tree_leaves(actual), _pytree.tree_leaves(expected), rtol=0, atol=0)
    assert _pytree.tree_structure(actual) == _pytree.tree_structure(expected)


PARTS = pytest.mark.parametrize(
    "options", [{}, {"torch_executed_ops": ["aten.sum"]}], ids=["whole", "in parts"]
)


@PARTS
def test_any_size_of_the_range(options: dict, tmp_path: Path) -> None:
    rows = ingot.Input(min_shape=(1, 4), opt_shape=(3, 4), max_shape=(9, 4))
    pair = [torch.randn(2, 4), torch.randn(3)]
    compiled = ingot.compile(Structured(), inputs=[rows, None, pair], **options)
    assert (compiled.compiled.graph is None) == (not options)
    script = reloaded(compiled, tmp_path / "model.pt")
    for size in (1, 3, 9):
        x = torch.randn(size, 4)
        assert_equal(script(x, pair), compiled(x, None, pair))
        assert_equal(script(x=x, pair=pair), compiled(x, None, pair))
    for bad in (torch.randn(10, 4), torch.randn(3, 5), torch.randn(3, 4).double()):
        with pytest.raises(RuntimeError, match=r"INGOT-U3\d\d"):
            script(bad, pair)


@PARTS
def test_in_another_process(options: dict, tmp_path: Path) -> None:
    model, x = nn.Sequential(*mlp(), nn.Softmax(-1)), torch.randn(2, 8)
    compiled = ingot.compile(
        model, inputs=[x], **({"torch_executed_ops": ["aten.softmax"]} if options else {})
    )
    ingot.save(compiled, tmp_path / "model.pt", output_format="torchscript")
    torch.save((x, compiled(x)), tmp_path / "values.pt")
    program = "import torch\n{}x, y = torch.load('values.pt')\nassert torch.equal(torch.jit.load('model.pt')(x), y)\n"
    for imports, is_right in (("import ingot\n", True), ("", False)):
        command = [sys.executable, "-W", "ignore", "-c", program.format(imports)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode == 0) == is_right, done.stderr
        assert is_right or "ingot::run" in done.stderr


def test_a_model_that_torch_runs_in_part(tmp_path: Path) -> None:
    compiled = ingot.compile(InParts(counts=False), inputs=[torch.randn(3, 4)])
    x = torch.randn(3, 4)
    assert_equal(reloaded(compiled, tmp_path / "model.pt")(x), compiled(x))
    with pytest.raises(ingot.UnsupportedError, match="changes tensors"):
        ingot.save(ingot.compile(InParts(), inputs=[x]), tmp_path / "bad.pt", output_format="torchscript")
    assert not (tmp_path / "bad.pt").exists()


def test_each_loaded_module_has_its_own_state(tmp_path: Path) -> None:
    x = torch.randn(2, 4)
    compiled = ingot.compile(Counter(), inputs=[x])
    first, second = reloaded(compiled, tmp_path / "model.pt"), torch.jit.load(tmp_path / "model.pt")
    expected = [compiled(x) for _ in range(3)]
    assert_equal([first(x) for _ in range(3)], expected)
    assert_equal([second(x) for _ in range(3)], expected)


@pytest.mark.parametrize("load", [torch.jit.load, lambda path: torch.export.load(path).module()])
def test_an_engine_is_opened_once_and_closed_with_its_module(load: Callable, tmp_path: Path) -> None:
    compiled, x = ingot.compile(mlp(), inputs=[torch.randn(2, 8)]), torch.randn(2, 8)
    form = "torchscript" if load is torch.jit.load else "exported_program"
    ingot.save(compiled, tmp_path / "model.pt2", output_format=form)
    script = load(tmp_path / "model.pt2")
    script(x)
    gc.collect()
    opened = list(run_op._opened)
    for _ in range(3):
        script(x)
    assert list(run_op._opened) == opened
    del script
    gc.collect()
    assert len(run_op._opened) == len(opened) - 1


def test_in_a_script_of_the_user(tmp_path: Path) -> None:
    compiled, x = ingot.ts.compile(torch.jit.script(mlp()), inputs=[torch.randn(2, 8)]), torch.randn(2, 8)
    around = torch.jit.script(Around(reloaded(compiled, tmp_path / "model.pt")))
    assert_equal(around(x), compiled(x * 2) + 1)


def test_a_transformer(tmp_path: Path) -> None:
    ids = torch.arange(12).reshape(2, 6)
    compiled = ingot.compile(tiny_bert(), inputs=[ids])
    assert_equal(
        reloaded(compiled, tmp_path / "model.pt")(ids)["last_hidden_state"],
        compiled(ids)["last_hidden_state"],
    )


def test_ingot_load_opens_it(tmp_path: Path) -> None:
    compiled, x = ingot.compile(mlp(), inputs=[torch.randn(2, 8)]), torch.randn(2, 8)
    reloaded(compiled, tmp_path / "model.pt")
    assert_equal(ingot.load(tmp_path / "model.pt")(x), compiled(x))


def test_what_torchscript_cannot_say(tmp_path: Path) -> None:
    compiled = ingot.compile(Mixed(), inputs=[torch.randn(3)])
    with pytest.raises(ingot.UnsupportedError, match="INGOT-N009"):
        ingot.save(compiled, tmp_path / "model.pt", output_format="torchscript")
    with pytest.raises(ingot.UserError, match="state_dict"):
        ingot.save(compiled, tmp_path / "model.pt", output_format="torchscript", state_dict=True)
    assert list(tmp_path.iterdir()) == []


_SIZES = [ingot.Input(min_shape=(1, 4), opt_shape=(2, 4), max_shape=(8, 4))]
_IN_PARTS: dict[str, Any] = {"torch_executed_ops": ["aten.relu"], "min_block_size": 1}


def _layers() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)).eval()


@pytest.mark.parametrize("wrap", [lambda module: module, Around], ids=["itself", "in a model"])
def test_torch_jit_trace_of_a_compiled_module(wrap: Callable[[nn.Module], nn.Module], tmp_path: Path) -> None:
    model, other = _layers(), _layers()
    compiled = ingot.compile(model, inputs=_SIZES)
    traced = torch.jit.trace(wrap(compiled), (torch.randn(2, 4),))
    torch.jit.save(traced, tmp_path / "traced.ts")
    compiled.refit(other)  # the trace keeps what it recorded
    again = torch.jit.trace(wrap(compiled), (torch.randn(2, 4),))
    for size in (1, 5, 8):
        x = torch.randn(size, 4)
        for form in (traced, torch.jit.load(tmp_path / "traced.ts")):
            torch.testing.assert_close(form(x), wrap(model)(x))
        torch.testing.assert_close(again(x), wrap(other)(x))
    with pytest.raises(Exception, match="INGOT-U305"):
        traced(torch.randn(9, 4))


def test_traces_of_structures() -> None:
    x, pair = torch.randn(3, 4), [torch.randn(2, 4), torch.randn(5)]
    model = Structured()

    class OfTensors(nn.Module):
        def __init__(self, inner: Callable[..., Any]) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, ...]:
            y, (s, t), named = self.inner(x, None, [a, b], k=3)
            return y, s, t, named["a"]

    compiled = ingot.compile(model, inputs=[x, None, pair], kwarg_inputs={"k": 3})
    traced = torch.jit.trace(OfTensors(compiled), (x, *pair))
    other = torch.randn(3, 4)
    torch.testing.assert_close(traced(other, *pair), OfTensors(model)(other, *pair))


def test_traces_of_what_runs_in_parts() -> None:
    compiled = ingot.compile(_layers(), inputs=_SIZES, **_IN_PARTS)
    for model in (compiled, Around(compiled)):
        with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N009.*torch runs in part"):
            torch.jit.trace(model, (torch.randn(2, 4),))
    assert not hasattr(compiled, "engine")
    with pytest.raises(ingot.UnsupportedError, match=r"INGOT-N002.*torch runs 1 of its nodes"):
        _ = compiled.engine
    with pytest.raises(AttributeError, match="no attribute 'engin'"):
        _ = compiled.engin


@pytest.mark.parametrize("options", [{}, _IN_PARTS], ids=["whole", "in parts"])
@pytest.mark.parametrize("front", ["default", "ts"])
def test_torch_jit_save(options: dict[str, Any], front: str, tmp_path: Path) -> None:
    model, x = _layers(), torch.randn(5, 4)
    given = torch.jit.trace(model, x) if front == "ts" else model
    compiled = ingot.compile(given, inputs=_SIZES, **options)
    torch.jit.save(compiled, tmp_path / "model.ts")
    torch.testing.assert_close(torch.jit.load(tmp_path / "model.ts")(x), model(x))
    with pytest.raises(ingot.UserError, match="INGOT-U002"):
        torch.jit.save(compiled, tmp_path / "model.ts", _extra_files={"a": "b"})
