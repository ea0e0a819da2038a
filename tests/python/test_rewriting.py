# SPDX-License-Identifier: Apache-2.0
"""Exported programs of which few nodes need a decomposition: the others are not traced again."""

import ingot
import pytest
import torch
from ingot import dynamo
from ingot.rewriting import rewritten
from lacking import negated
from torch import nn

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Module(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def exported(function, x, dynamic=True):
    shapes = ({0: torch.export.Dim("N", min=3, max=16)},) if dynamic else None
    return torch.export.export(Module(function), (x,), dynamic_shapes=shapes)


def in_place_on_a_product(x):
    scores = x @ x.transpose(-1, -2)
    scores += 1
    scores.mul_(2)
    return scores.softmax(-1)


def in_place_on_a_view_of_a_product(x):
    scores = (x * 2).view(-1)
    scores += 1
    return scores * scores


# torch computes the size of the image as a number of the example.
def in_place_on_a_scaled_image(x):
    image = torch.nn.functional.interpolate(x.view(-1, 1, 2, 4), scale_factor=2)
    image.view(-1)[:2].zero_()
    return x * 2


def composite_without_converter(x):
    return torch.nn.functional.pixel_unshuffle(x.view(-1, 1, 2, 4), 2), torch.trapezoid(x, dim=-1)


def several_results(x):
    return torch.std_mean(x, dim=1), *torch.aminmax(x, dim=1)


LOCAL = [
    in_place_on_a_product,
    in_place_on_a_view_of_a_product,
    composite_without_converter,
    several_results,
]


@pytest.mark.parametrize("function", LOCAL, ids=lambda function: function.__name__)
def test_programs_are_rewritten_node_by_node(function, monkeypatch):
    def whole(program):
        raise AssertionError("the whole program was traced again")

    monkeypatch.setattr(dynamo, "functional", whole)
    x = torch.randn(6, 8)
    program = exported(function, x)
    before = str(program.graph)
    compiled = ingot.dynamo.compile(program)
    assert str(program.graph) == before
    for rows in (6, 3):
        x = torch.randn(rows, 8)
        torch.testing.assert_close(compiled(x), function(x))


def shown_before(x):
    y = x * 2
    view = y[:, 1:]
    y += 1
    return view * 3


def shown_by_a_composite(x):
    y = x * 2
    same = torch.nn.functional.dropout(y, training=False)
    y += 1
    return same + y


def writes_into_a_view(x):
    y = x * 2
    y[0].mul_(5)
    return y


def writes_into_the_argument(x):
    x += 1
    return x * 2


def converts(x):
    y = (x > 0).to(torch.int64) * 3
    y *= 2
    return y + x


SHOWN = [shown_before, shown_by_a_composite, writes_into_a_view, writes_into_the_argument]


@pytest.mark.parametrize("function", SHOWN, ids=lambda function: function.__name__)
def test_memory_that_other_values_show_is_left_to_torch(function):
    x = torch.randn(4, 8)
    assert rewritten(exported(function, x.clone())) is None


# Torch's own decompositions copy what dropout returns, and lose the write.
@pytest.mark.parametrize(
    "function",
    [each for each in [*SHOWN, converts] if each is not shown_by_a_composite],
    ids=lambda function: function.__name__,
)
def test_all_of_them_are_right(function):
    x = torch.randn(4, 8)
    compiled = ingot.dynamo.compile(exported(function, x.clone()))
    for rows in (4, 7):
        x = torch.randn(rows, 8)
        twin = x.clone()
        torch.testing.assert_close(compiled(x), function(twin))
        torch.testing.assert_close(x, twin)


def sizes_of(program):
    return [str(node.meta["val"].shape) for node in program.graph.nodes if node.op == "placeholder"]


@pytest.mark.parametrize(
    "function",
    [*LOCAL, *SHOWN, converts, in_place_on_a_scaled_image],
    ids=lambda function: function.__name__,
)
def test_no_size_is_fixed_by_what_is_asked_of_torch(function):
    program = exported(function, torch.randn(4, 8))
    before = sizes_of(program)
    ingot.dynamo.compile(program)
    assert sizes_of(program) == before
    torch.testing.assert_close(ingot.dynamo.compile(program)(torch.ones(7, 8)), function(torch.ones(7, 8)))


def selected_and_written(x):
    kept = x[x[:, 0] > 0]
    kept = torch.nn.functional.dropout(kept, training=False)
    kept += 1
    return kept.softmax(-1).sum(0)


def written_after_a_selection(x):
    places = torch.nonzero(x > 0)
    y = x * 2
    y[0].mul_(5)
    return y.softmax(-1) + places.sum()


def selected_in_a_composite(x):
    y = x.clone()
    y.view(-1)[:2].zero_()
    return torch.masked_select(y, y > 0).softmax(-1).sum()


@pytest.mark.parametrize(
    "function",
    [selected_and_written, written_after_a_selection, selected_in_a_composite],
    ids=lambda function: function.__name__,
)
def test_sizes_from_data_do_not_keep_programs_from_becoming_functional(function):
    """The trial of one node leaves nothing behind that the trace of the whole program stumbles over."""
    program = exported(function, torch.randn(6, 8).abs(), dynamic=False)
    for graph in (dynamo.importable(program)[1], dynamo.importable(program)[1]):
        targets = [node.target for node in graph.graph.nodes if node.op == "call_function"]
        assert not any(getattr(target, "_schema", None) and target._schema.is_mutable for target in targets)
    compiled = ingot.dynamo.compile(program, torch_executed_ops={"aten.softmax.int", "aten._softmax.default"})
    assert compiled.report.fallbacks
    assert compiled.report.engines
    x = torch.randn(6, 8)
    torch.testing.assert_close(compiled(x), function(x.clone()))


def test_what_needs_nothing_is_taken_as_it_is():
    program = exported(lambda x: (x * 2).relu(), torch.randn(4, 8))
    assert str(rewritten(program).graph) == str(program.graph)


def test_the_program_stays_as_it_is_where_torch_runs_parts():
    program = exported(lambda x: negated(x @ x.T).sum() + x * x.shape[0], torch.randn(6, 8))
    before = str(program.graph)
    compiled = ingot.dynamo.compile(program)
    assert compiled.report.fallbacks
    assert str(program.graph) == before
