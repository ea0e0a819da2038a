# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="ingot")."""

from __future__ import annotations

import importlib.metadata
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import lacking
import pytest
import torch
import torch.nn.functional as functional
from accuracy import assert_accurate, golden
from ingot.torch_backend import backend
from lacking import negated
from small_models import Counter, InParts, mlp, tiny_bert


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def assert_same(compiled: torch.nn.Module, model: torch.nn.Module, x: torch.Tensor) -> None:
    assert_accurate(compiled(x), model(x), golden(model, [x]))


def test_entry_point() -> None:
    try:
        importlib.metadata.distribution("ingot")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed")
    assert "ingot" in torch._dynamo.list_backends()
    model, x = mlp(), torch.randn(3, 8)
    assert_same(torch.compile(model, backend="ingot"), model, x)


def test_sizes_become_dynamic() -> None:
    model = mlp()
    compiled = ingot.compile(model, ir="torch_compile")
    for rows in (3, 5, 7, 9, 33):
        assert_same(compiled, model, torch.randn(rows, 8))
    assert len(ingot.report(compiled).segments) == 2  # one graph for 3 rows, one for any number of rows


def test_reports_of_torch_compile() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + negated(x)

    for model in (function, mlp()):
        compiled = torch.compile(model, backend=backend)
        with pytest.raises(ingot.UserError, match="after its first call"):
            ingot.report(compiled)
        compiled(torch.eye(8))
        assert "cpu" in {segment.backend for segment in ingot.report(compiled).segments}
    assert not ingot.report(compiled).fallbacks
    with pytest.raises(ingot.UserError, match="no report for this function"):
        ingot.report(function)


class Breaks(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        torch._dynamo.graph_break()
        return negated(y) + self.linear(y).relu()


def test_reports_have_totals_and_graph_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = torch.compile(Breaks(), backend=backend)
    compiled(torch.eye(8))
    monkeypatch.chdir(Path(__file__).parents[1])
    report = ingot.report(compiled)
    text = str(report)
    nodes = [node for segment in report.segments for node in segment.nodes]
    share = 100 * (len(nodes) - len(report.fallbacks)) // len(nodes)
    assert text.startswith(
        f"{share} % of the nodes ({len(nodes) - len(report.fallbacks)} of {len(nodes)}), 2 engines, 1 torch partition\n"
    )
    assert "graph break: Call to `torch._dynamo.graph_break()` -- python/test_torch_compile.py:" in text
    assert str(Path.cwd()) not in text
    whole = torch.compile(mlp(), backend=backend)
    whole(torch.randn(3, 8))
    assert str(ingot.report(whole)).startswith("100 % of the nodes (3 of 3), 1 engine, 0 torch partitions\n")
    assert "graph break" not in str(ingot.report(whole))


class Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.GRU(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


@pytest.mark.parametrize("kind", [lambda: torch.nn.GRU(8, 4), Recurrent])
def test_a_model_that_torch_runs_without_a_graph_is_told_with_the_reason(
    kind: Callable[[], torch.nn.Module],
) -> None:
    compiled = torch.compile(kind().eval(), backend=backend)
    compiled(torch.randn(3, 1, 8))
    with pytest.raises(ingot.UserError, match="nothing of it has reached Ingot") as error:
        ingot.report(compiled)
    assert error.value.code == "INGOT-U007"
    assert "RNN, GRU, or LSTM" in str(error.value)
    assert "Set torch._dynamo.config.allow_rnn=True" in str(error.value)
    assert "allow_rnn=True" in str(error.value)


def test_changed_parameters_are_noticed() -> None:
    model, x = mlp(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=backend)
    assert_same(compiled, model, x)
    model[0].weight.add_(1)
    assert_same(compiled, model, x)
    model[0].weight.data[0, 0] = 100  # does not change the version
    assert_same(compiled, model, x)
    model.load_state_dict({name: torch.randn_like(value) for name, value in model.state_dict().items()})
    assert_same(compiled, model, x)
    model[0].weight = torch.nn.Parameter(torch.randn(16, 8))
    assert_same(compiled, model, x)


@pytest.mark.parametrize("chosen", [set(), {"aten.mul.Tensor"}], ids=["whole", "parts"])
def test_changed_integers_are_noticed(chosen: set[str]) -> None:
    """Engines hold buffers of integers as constants."""

    class Shifted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("by", torch.tensor([1, 2]))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + self.by) * 2 + 1

    model, x = Shifted(), torch.randn(3, 2)
    compiled = ingot.compile(model, ir="torch_compile", torch_executed_ops=chosen)
    for value in (1, 5, 7):
        model.by.fill_(value)
        torch.testing.assert_close(compiled(x), model(x))
        torch.testing.assert_close(compiled(x), model(x))
    assert len(ingot.report(compiled).segments) == (3 if chosen else 1)


def test_transformer_with_output_object() -> None:
    model = tiny_bert()
    tokens = torch.arange(24).reshape(2, 12)
    mask = torch.ones(2, 12, dtype=torch.int64)
    mask[1, 7:] = 0
    got = torch.compile(model, backend=backend)(input_ids=tokens, attention_mask=mask)
    want = model(input_ids=tokens, attention_mask=mask)
    assert type(got) is type(want)
    torch.testing.assert_close(got.last_hidden_state, want.last_hidden_state, rtol=1e-4, atol=1e-5)


def test_mutated_buffer_is_updated_in_place() -> None:
    model, twin, x = Counter(), Counter(), torch.randn(3, 4)
    twin.load_state_dict(model.state_dict())
    compiled, memory = torch.compile(model, backend=backend), model.total.data_ptr()
    for _ in range(3):
        torch.testing.assert_close(compiled(x), twin(x))
    torch.testing.assert_close(model.total, twin.total)
    assert model.total.data_ptr() == memory


def test_mutated_argument() -> None:
    def push(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        x.add_(y)
        return x * 2

    x, y = torch.randn(4), torch.randn(4)
    want = x + y
    torch.testing.assert_close(torch.compile(push, backend=backend)(x, y), want * 2)
    torch.testing.assert_close(x, want)


def test_torch_runs_what_engines_cannot() -> None:
    model, twin, x = InParts(), InParts(), torch.randn(5, 4)
    twin.load_state_dict(model.state_dict())
    compiled = ingot.compile(model, ir="torch_compile")
    for _ in range(2):
        torch.testing.assert_close(compiled(x), twin(x))
    torch.testing.assert_close(model.calls, twin.calls)
    report = ingot.report(compiled)
    assert [segment.backend for segment in report.segments].count("torch") == 1
    (node,) = report.fallbacks
    assert node.op == lacking.NAME
    assert node.reason
    assert "small_models.py" in node.source
    assert node.op in str(report)


def test_sizes_that_torch_parts_need() -> None:
    def scaled(x: torch.Tensor) -> torch.Tensor:
        values = negated(x + 1)
        return values.reshape(-1, 1) * x.shape[0] * 2

    x = torch.randn(5, 5)
    torch.testing.assert_close(torch.compile(scaled, backend=backend, dynamic=True)(x), scaled(x))


def test_full_compilation_is_refused_by_name() -> None:
    compiled = torch.compile(InParts(), backend=backend, options={"require_full_compilation": True})
    with pytest.raises(ingot.UnsupportedError, match=re.escape(lacking.NAME)):
        compiled(torch.randn(5, 4))


def test_unknown_option_names_the_nearest() -> None:
    compiled = torch.compile(mlp(), backend=backend, options={"optimisation_level": 1})
    with pytest.raises(ingot.UserError, match='the nearest is "optimization_level"'):
        compiled(torch.randn(3, 8))


def test_unknown_mode() -> None:
    compiled = torch.compile(mlp(), backend=backend, mode="fastest")
    with pytest.raises(ingot.UserError, match="max-autotune"):
        compiled(torch.randn(3, 8))


def test_gradients() -> None:
    model, x = mlp(), torch.randn(3, 8)
    with torch.enable_grad():
        torch.compile(model, backend=backend)(x).sum().backward()
        got = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        model(x).sum().backward()
    for parameter, gradient in zip(model.parameters(), got, strict=True):
        torch.testing.assert_close(gradient, parameter.grad)


def test_what_has_no_row_is_decomposed_by_torch() -> None:
    class Rare(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.hardshrink(torch.logit(x.sigmoid())) + x.nan_to_num(1.0)

    model, x = Rare(), torch.randn(3, 8)
    for ir in ("dynamo", "torch_compile"):
        compiled = ingot.compile(model, ir=ir, inputs=[x], require_full_compilation=True)
        assert_same(compiled, model, x)


@pytest.mark.parametrize("dynamic", [False, True])
def test_returned_views_of_what_is_written_through_expanded_views(dynamic: bool) -> None:
    class Grid(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("grid", torch.arange(4.0))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            rows = self.grid.view(-1, 1).expand(4, x.shape[0])
            rows.index_fill_(1, torch.arange(1), 3)
            return rows, x * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, of index_fill_ on expanded tensors
        model, compiled = Grid(), torch.compile(Grid(), backend="ingot", dynamic=dynamic)
        for size in (3, 7):
            for result, expected in zip(compiled(torch.ones(size)), model(torch.ones(size)), strict=True):
                torch.testing.assert_close(result, expected)
                assert result.stride() == expected.stride()


def test_an_error_of_torch_without_a_message_leaves_the_graph_to_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(**_kwargs: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr("torch._dynamo.backends.common.aot_autograd", refuse)
    torch._dynamo.reset()
    model, x = mlp(), torch.randn(3, 8)
    with torch.no_grad():
        compiled = torch.compile(model, backend=backend)
        torch.testing.assert_close(compiled(x), model(x))
    reasons = {node.reason for node in ingot.report(compiled).fallbacks}
    assert reasons == {"torch cannot trace the graph for a backend: AssertionError"}


@pytest.mark.parametrize("function", [
    lambda x, number: functional.scaled_dot_product_attention(x, x, x, scale=number),
    lambda x, number: functional.layer_norm(x, x.shape[-1:], eps=number) * number,
    lambda x, number: functional.elu(x, alpha=number),
])  # fmt: skip
def test_numbers_that_torch_has_to_fix_do_not_end_engines(function: Callable) -> None:
    """torch.compile(dynamic=True) makes numbers symbols; what needs a value traces once more."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="ingot", dynamic=True)
    for rows, number in ((5, 0.25), (7, 0.25), (7, 0.75)):
        x = torch.randn(2, rows, 8)
        torch.testing.assert_close(compiled(x, number), function(x, number), rtol=1e-4, atol=1e-5)
    assert "cannot trace" not in str(ingot.report(compiled))


def _files_of_call(call: Callable[[], object]) -> set[str]:
    files = set()
    sys.setprofile(lambda frame, event, argument: files.add(frame.f_code.co_filename))
    try:
        call()
    finally:
        sys.setprofile(None)
    return files


def test_a_plain_graph_is_called_without_the_wrapper_of_aot_autograd() -> None:
    """It takes longer than a small graph. What writes its inputs, or returns views of them, needs it."""
    compiled = torch.compile(torch.nn.Linear(4, 4).eval(), backend="ingot")
    x = torch.randn(2, 4)
    compiled(x)
    assert not any("runtime_wrappers" in file for file in _files_of_call(lambda: compiled(x)))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: (x.t(), x + y),
        lambda x, y: (x.mul_(2), y + 1),
        lambda x, y: (x.resize_(4), y * 2),
        lambda x, y: (x + y, (x + y).t(), y),
    ],
)
def test_graphs_that_need_the_wrapper_have_it(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function, backend="ingot")
    for seed in range(3):
        given = torch.randn(2, 2, 2, generator=torch.Generator().manual_seed(seed))
        expected_inputs, inputs = list(given.clone()), list(given.clone())
        expected, results = function(*expected_inputs), compiled(*inputs)
        torch.testing.assert_close(results, expected)
        torch.testing.assert_close(inputs, expected_inputs)
        shared = [value.data_ptr() in {given.data_ptr() for given in inputs} for value in results]
        assert shared == [
            value.data_ptr() in {given.data_ptr() for given in expected_inputs} for value in expected
        ]
