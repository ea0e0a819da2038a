# SPDX-License-Identifier: Apache-2.0
"""ingot.compile(model, ir="dynamo", inputs=...): calling conventions, shapes, errors."""

from __future__ import annotations

import copy
import random
import re
from collections.abc import Iterator
from typing import Any

import ingot
import lacking
import pytest
import torch
from accuracy import assert_accurate, golden
from small_models import Counter, InParts, mlp, tiny_bert
from torch import nn


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(scope="module")
def dynamic_mlp() -> tuple[nn.Module, ingot.Engine]:
    model = mlp()
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(16, 8), max_shape=(300, 8))
    return model, ingot.compile(model, inputs=[rows]).engine


def test_random_shapes_need_no_new_memory(dynamic_mlp: tuple[nn.Module, ingot.Engine]) -> None:
    model, engine = dynamic_mlp
    sizes = random.Random(0).choices(range(1, 301), k=200)
    engine(torch.randn(300, 8))
    for rows in sizes[:100]:
        engine(torch.randn(rows, 8))
    before = engine.memory()
    for rows in sizes[100:]:
        x = torch.randn(rows, 8)
        assert_accurate(engine(x), model(x), golden(model, [x]))
    assert engine.memory() == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((torch.zeros(301, 8),), r"dim 0 of input 'input'.* is 301, outside of the range 1\.\.300"),
        ((torch.zeros(3, 9),), r"dim 1 of input 'input'.*9"),
        ((torch.zeros(3, 8, 1),), r"input 'input' has 3 dims"),
        ((torch.zeros(3, 8, dtype=torch.float64),), r"input 'input' is f64"),
        ((torch.zeros(3, 8), torch.zeros(3, 8)), r"exported with 1 argument by position, but got 2"),
        ((), r"argument input is missing"),
        (([1, 2],), r"list"),
    ],
)
def test_bad_arguments(dynamic_mlp: tuple[nn.Module, ingot.Engine], arguments: tuple, says: str) -> None:
    with pytest.raises(ingot.UserError, match=says):
        dynamic_mlp[1](*arguments)


def test_torch_decomposes_only_where_it_must(monkeypatch: pytest.MonkeyPatch) -> None:
    programs = []
    decompose = torch.export.ExportedProgram.run_decompositions

    def spied(program: torch.export.ExportedProgram, *args: Any) -> torch.export.ExportedProgram:
        programs.append(program)
        return decompose(program, *args)

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", spied)
    model, x = mlp(), torch.randn(3, 8)
    assert_accurate(ingot.build(torch.export.export(model, (x,)))(x), model(x), golden(model, [x]))
    assert programs == []
    counter, y = Counter(), torch.randn(3, 4)
    program = torch.export.export(counter, (y,))
    torch.testing.assert_close(ingot.dynamo.compile(program)(y), counter(y))
    assert programs == [program]


class Averages(nn.Module):
    """Returns the statistics that its norm has gathered in earlier calls, too."""

    def __init__(self, norm: nn.Module) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        before = self.norm.running_mean.clone()
        return self.norm(x).relu(), before


@pytest.mark.parametrize(
    "norm", [nn.BatchNorm1d(4), nn.InstanceNorm1d(4, affine=True, track_running_stats=True)]
)
def test_norms_that_learn(norm: nn.Module) -> None:
    """Their calls write buffers, although the schemas do not declare it."""
    torch.manual_seed(0)
    model, x = Averages(norm).train(), torch.randn(6, 4, 5)
    module = ingot.dynamo.compile(torch.export.export(copy.deepcopy(model), (x,)))
    for _ in range(3):
        torch.testing.assert_close(module(x), model(x))


class Structured(nn.Module):
    """Takes and returns nested structures; returns an argument as it came, None and a number."""

    def forward(self, pair: tuple, named: dict, scale: float = 2.0, *, bias: torch.Tensor) -> dict:
        total = pair[0] + pair[1][0] * scale
        return {"total": total, "rest": (named["a"] - bias, [named["b"]], None, 3)}


def test_structures() -> None:
    a, b = torch.randn(2, 3), torch.randn(2, 3)
    args, kwargs = ((a, [b]), {"a": a, "b": b}, 4.0), {"bias": b}
    program = torch.export.export(Structured(), args, kwargs)
    module = ingot.dynamo.compile(program, require_full_compilation=True)
    got, want = module(*args, **kwargs), Structured()(*args, **kwargs)
    assert list(got) == ["total", "rest"]
    torch.testing.assert_close(got["total"], want["total"])
    torch.testing.assert_close(got["rest"][0], want["rest"][0])
    torch.testing.assert_close(got["rest"][1], [b])
    assert got["rest"][2:] == (None, 3)
    with pytest.raises(ingot.UserError, match=r"was 4\.0 when the model was exported"):
        module((a, [b]), {"a": a, "b": b}, 5.0, bias=b)
    with pytest.raises(ingot.UserError, match="expected the keys"):
        module((a, [b]), {"a": a}, 4.0, bias=b)


def test_keywords_and_output_objects() -> None:
    model = tiny_bert()
    tokens = ingot.Input(min_shape=(1, 2), opt_shape=(2, 12), max_shape=(4, 64), dtype=torch.int64)
    module = ingot.compile(model, kwarg_inputs={"input_ids": tokens, "attention_mask": tokens})
    for batch, length in ((2, 12), (1, 5), (4, 64)):
        ids = torch.randint(0, 99, (batch, length))
        mask = torch.ones_like(ids)
        got, want = module(input_ids=ids, attention_mask=mask), model(input_ids=ids, attention_mask=mask)
        assert type(got) is type(want)
        torch.testing.assert_close(got.last_hidden_state, want.last_hidden_state, rtol=1e-4, atol=1e-5)


class Extremes(nn.Module):
    """Returns what torch's own calls return."""

    def forward(self, x: torch.Tensor) -> dict:
        return {"highest": x.max(0), "sorted": [x.sort(1)], "sum": x.sum()}


@pytest.mark.parametrize("executed", [[], ["aten.sum.default"]], ids=["whole", "in_parts"])
def test_results_of_torchs_own_types(executed: list[str]) -> None:
    x = torch.randn(3, 5)
    module = ingot.compile(Extremes(), inputs=[x], torch_executed_ops=executed)
    got, want = module(x), Extremes()(x)
    assert type(got["highest"]) is type(want["highest"])
    assert torch.equal(got["highest"].indices, want["highest"].indices)
    assert torch.equal(got["sorted"][0].values, want["sorted"][0].values)


class Nothing(nn.Module):
    """Takes no tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.arange(3.0))

    def forward(self) -> torch.Tensor:
        return self.table * 2


def test_programs_without_inputs_return_tensors() -> None:
    module = ingot.compile(Nothing(), inputs=[])
    torch.testing.assert_close(module(), Nothing()())
    torch.testing.assert_close(module.engine(), Nothing()())


def test_state_lives_in_the_engine() -> None:
    model, x = Counter(), torch.randn(3, 4)
    engine = ingot.compile(model, inputs=[x]).engine
    first = engine(x)
    second = engine(x)
    torch.testing.assert_close(first, model(x))
    torch.testing.assert_close(second, model(x))
    engine.reset_states()
    torch.testing.assert_close(engine(x), first)


def test_torch_runs_what_engines_cannot() -> None:
    model, x = InParts(), torch.randn(5, 4)
    module = ingot.compile(model, inputs=[x])
    for _ in range(2):
        torch.testing.assert_close(module(x), model(x))
    assert [node.op for node in ingot.report(module).fallbacks] == [lacking.NAME]
    with pytest.raises(ingot.UnsupportedError, match="not a single engine"):
        _ = module.engine
    with pytest.raises(ingot.UnsupportedError, match=re.escape(lacking.NAME)):
        ingot.compile(model, inputs=[x], require_full_compilation=True)


def test_chosen_operators_stay_in_torch() -> None:
    model, x = mlp(), torch.randn(3, 8)
    module = ingot.compile(model, inputs=[x], torch_executed_ops=["aten.gelu.default"])
    assert_accurate(module(x), model(x), golden(model, [x]))
    assert [segment.backend for segment in module.report.segments] == ["cpu", "torch", "cpu"]


def test_refit() -> None:
    model, x = mlp(), torch.randn(3, 8)
    module = ingot.compile(model, inputs=[x])
    other = {name: torch.randn_like(value) for name, value in model.state_dict().items()}
    module.refit(other)
    model.load_state_dict(other)
    assert_accurate(module(x), model(x), golden(model, [x]))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"min_blok_size": 3}, 'the nearest is "min_block_size"'),
        ({"kwargs": {}}, 'the nearest is "kwarg_inputs"'),
        ({"min_block_size": "3"}, "must be of type int"),
        ({"ir": "onnx"}, "torch_compile"),
        ({"inputs": []}, "needs inputs"),
        ({"inputs": [{"x"}]}, "is a set"),
    ],
)
def test_bad_options(options: dict, says: str) -> None:
    with pytest.raises(ingot.UserError, match=says):
        ingot.compile(mlp(), **{"inputs": [torch.randn(3, 8)], **options})


@pytest.mark.parametrize("name", ["logger", "x", "loudness", "halve_double"])
def test_an_option_that_none_resembles_gets_no_suggestion(name: str) -> None:
    with pytest.raises(
        ingot.UserError, match=rf'no option "{name}"\n.*lists all options; .*check_speed'
    ) as error:
        ingot.compile(mlp(), inputs=[torch.randn(3, 8)], **{name: True})
    assert "nearest" not in str(error.value)


class _TwoWays(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


def test_models_that_torch_cannot_export() -> None:
    with pytest.raises(Exception, match="data-dependent") as error:
        ingot.compile(_TwoWays(), inputs=[torch.ones(3)])
    assert 'ir="torch_compile"' in error.value.__notes__[-1]
    compiled = ingot.compile(_TwoWays(), "torch_compile")
    assert [compiled(torch.full((1,), x)).item() for x in (2.0, -2.0)] == [3.0, -3.0]


def test_bad_input_range() -> None:
    with pytest.raises(ingot.UserError, match="does not hold"):
        ingot.Input(min_shape=(4,), opt_shape=(2,), max_shape=(8,))
