# SPDX-License-Identifier: Apache-2.0
"""Results whose sizes follow from data, wholly in engines, against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import lacking
import pytest
import torch
from lacking import negated
from small_models import Function

_Function = Callable[..., Any]

_WHOLE = {"require_full_compilation": True, "check_speed": False}


def _just_in_time(function: _Function, *args: torch.Tensor) -> Callable[..., Any]:
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="ingot", fullgraph=True, options=_WHOLE)

    def run(*args: torch.Tensor) -> Any:
        with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
            return compiled(*args)

    return run


def _exported(function: _Function, *args: torch.Tensor) -> torch.export.ExportedProgram:
    return torch.export.export(Function(function), args, strict=False)


def _ahead_of_time(function: _Function, *args: torch.Tensor) -> Callable[..., Any]:
    return ingot.compile(_exported(function, *args), **_WHOLE)


_WAYS = {"just in time": _just_in_time, "ahead of time": _ahead_of_time}


def _assert_same(actual: Any, expected: Any) -> None:
    actual, expected = (
        value if isinstance(value, (tuple, list)) else (value,) for value in (actual, expected)
    )
    assert len(actual) == len(expected)
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, equal_nan=True)


def _sparse(
    *shape: int, seed: int = 0, share: float = 0.5, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(shape, generator=generator) * 4
    return (values * (torch.rand(shape, generator=generator) < share)).to(dtype)


# Each takes a tensor of shape [6, 5].
_FUNCTIONS: dict[str, _Function] = {
    "nonzero": torch.nonzero,
    "nonzero_as_tuple": lambda x: torch.nonzero(x, as_tuple=True),
    "argwhere": torch.argwhere,
    "where": lambda x: torch.where(x > 0),
    "masked_select": lambda x: x.masked_select(x > 0.5),
    "masked_select_row": lambda x: x.masked_select(x[0] > 0),
    "masked_select_column": lambda x: x.masked_select(x[:, :1] > 0),
    "mask": lambda x: x[x > 0],
    "mask_of_rows": lambda x: x[x[:, 0] > 0],
    "mask_of_columns": lambda x: x[:, x[0] > 0],
    "mask_and_index": lambda x: x[x[:, 0] > 0, torch.tensor([1])],
    "index_and_mask": lambda x: x[torch.tensor([2]), x[0] > 0],
    "two_masks": lambda x: x[x[:, 0] > -100, :][:, x[0] > 0],
    "mask_between": lambda x: x.reshape(2, 3, 5)[:, x[:3, 0] > 0, 1:],
    "mask_of_matrix": lambda x: x.reshape(2, 3, 5)[x.reshape(2, 3, 5)[..., 0] > 0],
    "unique": torch.unique,
    "unique_inverse": lambda x: torch.unique(x.round(), return_inverse=True),
    "unique_counts": lambda x: torch.unique(x.round(), return_counts=True),
    "unique_all": lambda x: torch.unique(x.round(), return_inverse=True, return_counts=True),
    "unique_bool": lambda x: torch.unique(x > 0, return_inverse=True, return_counts=True),
    "unique_consecutive": lambda x: torch.unique_consecutive(
        x.sign(), return_inverse=True, return_counts=True
    ),
    "unique_rows": lambda x: torch.unique(x[:, :2].sign(), dim=0),
    "unique_columns": lambda x: torch.unique(
        x[:2].sign(), dim=1, return_inverse=True, return_counts=True
    ),
    "unique_slices": lambda x: torch.unique(
        x.reshape(2, 3, 5).sign()[:, :2], dim=2, return_inverse=True, return_counts=True
    ),
    "unique_bool_rows": lambda x: torch.unique(x > 0, dim=0, return_inverse=True, return_counts=True),
    "unique_consecutive_rows": lambda x: torch.unique_consecutive(
        x[:, :1].sign().expand(-1, 3), return_inverse=True, return_counts=True, dim=0
    ),
    "unique_consecutive_columns": lambda x: torch.unique_consecutive(x[:1].sign(), dim=1),
    "repeat_interleave": lambda x: torch.repeat_interleave(x[:, 0].abs().long()),
    "repeated_rows": lambda x: torch.repeat_interleave(x, x[:, 0].abs().long(), 0),
    "repeated_columns": lambda x: torch.repeat_interleave(x, x[0].abs().long(), dim=-1) * 2,
    "repeated_elements": lambda x: torch.repeat_interleave(x, x.flatten().abs().long()),
    "repeated_by_one_count": lambda x: torch.repeat_interleave(x, x[0, :1].abs().long(), 1),
    "repeated_known_times": lambda x: torch.repeat_interleave(x, torch.tensor([0, 3, 1, 0, 2, 1]), 0),
    "repeated_found": lambda x: torch.repeat_interleave(x, x[:, 0].abs().long(), 0).nonzero(),
    "repeated_to_a_size": lambda x: torch.repeat_interleave(x, (x[:, 0] * 0 + 2).long(), 0, output_size=12),
    # In composition with what computes, reduces, joins and reshapes.
    "computed": lambda x: (x[x > 0] * 2).exp() + 1,
    "reduced": lambda x: x[x > 0].sum() / x.numel(),
    "softmax": lambda x: x[x[:, 0] > 0].softmax(-1),
    "softmax_of_found": lambda x: x[x > 0].softmax(0),
    "matmul": lambda x: x[x[:, 0] > 0] @ x.T,
    "gram": lambda x: x[x[:, 0] > 0] @ x[x[:, 0] > 0].T,
    "joined": lambda x: torch.cat([x[x > 0], x[x < 0]]),
    "nested": lambda x: torch.unique(x[x > 0].round(), return_counts=True),
    "gathered": lambda x: x[torch.nonzero(x)[:, 0]],
    "sorted": lambda x: x[x > 0].sort(descending=True),
    "filled": lambda x: torch.zeros_like(x[x > 0]) + torch.ones(1),
    "counted": lambda x: torch.arange(x[x > 0].shape[0]) * 2,
    "size_as_value": lambda x: x * x[x > 0].shape[0],
    "written": lambda x: x.masked_scatter(x > 0, x[x > 0] * 2),
    "constants": lambda x: x[torch.tensor([True, False, True, True, False, True])],
    "several": lambda x: (x[x > 0], torch.nonzero(x), x.sum()),
    # Slices of what may have fewer elements, or none.
    "from_second": lambda x: x[x > 0][1:] * 2,
    "last_two": lambda x: x[x > 0][-2:].sum(),
    "without_ends": lambda x: x[x[:, 0] > 0][1:-1].relu(),
    "every_other": lambda x: x[x > 0][1::2] * 2,
    "every_third_of_some": lambda x: x[x > 0][2:9:3].exp(),
    "slice_of_a_slice": lambda x: x[x > 0][3:][1:] + 1,
    "differences": lambda x: (lambda found: found[1:] - found[:-1])(x[x > 0]),
    "written_slice": lambda x: (lambda found: found.slice_scatter(found[1:] * 3, start=1))(x[x > 0]),
    # Ends that follow from data: of either sign, and outside.
    "to_a_count": lambda x: x.flatten()[: (x > 0).sum().item()] * 2,
    "to_a_value": lambda x: x.flatten()[: x[0, 0].long().item()].sin(),
    "columns_to_a_value": lambda x: x[:, : x[0, 1].long().item()].sum(1),
    "part_to_a_value": lambda x: x.flatten()[4 : x[0, 0].long().item()] + 1,
    "to_a_sum": lambda x: x.flatten()[: x[0, 0].long().item() + x[1, 1].long().item()] * 2,
    "found_to_a_count": lambda x: x[x > 0][: (x < 0).sum().item()] * 2,
}  # fmt: skip


@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS.keys())
@pytest.mark.parametrize("name", _FUNCTIONS)
def test_results_are_eagers(name: str, way: Callable[..., Any]) -> None:
    function = _FUNCTIONS[name]
    run = way(function, _sparse(6, 5))
    for seed, share in enumerate((0.5, 0.0, 1.0, 0.1)):
        x = _sparse(6, 5, seed=seed, share=share)
        _assert_same(run(x), function(x))


_DTYPES = [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8]


def _all_positive(x: torch.Tensor) -> torch.Tensor:
    torch._check_tensor_all(x > 0)
    return x.sqrt()


def _none_negative(x: torch.Tensor) -> torch.Tensor:
    torch._check(torch.sym_not((x < 0).any().item()))
    return x.sqrt()


def _branch_on_item(x: torch.Tensor) -> torch.Tensor:
    return torch.cond((x > 0).all().item(), torch.sqrt, lambda x: x * 2, (x,))


def _counted(x: torch.Tensor) -> Any:
    size = torch.sym_ite((x > 0).any().item(), 2, 1) + x.shape[0]
    return x * size, x + torch.sym_ite((x < 0).any().item(), 4, x.shape[0])


@pytest.mark.parametrize("function", [_all_positive, _none_negative], ids=lambda each: each.__name__)
def test_bools_of_tensors_are_required(function: _Function) -> None:
    run = _ahead_of_time(function, torch.ones(4))
    for _ in range(2):
        _assert_same(run(torch.full((4,), 3.0)), torch.full((4,), 3.0).sqrt())
        with pytest.raises(ingot.UserError):
            run(torch.tensor([1.0, 2.0, -1.0, 3.0]))


@pytest.mark.parametrize("function", [_branch_on_item, _counted], ids=lambda each: each.__name__)
def test_bools_of_tensors_choose(function: _Function) -> None:
    run = _ahead_of_time(function, torch.ones(4))
    for x in (torch.full((4,), 3.0), torch.tensor([1.0, 2.0, -1.0, 3.0]), -torch.ones(4), torch.zeros(4)):
        _assert_same(run(x), function(x))


@pytest.mark.parametrize("dtype", [*_DTYPES, torch.bool], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor) -> Any:
        return torch.nonzero(x), x[x != 0], *torch.unique(x, return_inverse=True, return_counts=True)

    run = _ahead_of_time(function, _sparse(6, 5, dtype=dtype))
    for share in (0.5, 0.0, 1.0):
        x = _sparse(6, 5, share=share, dtype=dtype)
        _assert_same(run(x), function(x))


@pytest.mark.parametrize("shape", [(0,), (1,), (0, 3), (3, 0), (1, 1), (2, 1, 3)], ids=str)
@pytest.mark.parametrize("name", ["nonzero", "mask", "unique", "repeat_interleave", "argwhere"])
def test_empty_and_single(name: str, shape: tuple[int, ...]) -> None:
    functions = {
        **_FUNCTIONS,
        "repeat_interleave": lambda x: torch.repeat_interleave(x.flatten().abs().long()),
    }
    x = _sparse(*shape, share=1.0)
    _assert_same(_ahead_of_time(functions[name], x)(x), functions[name](x))


@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS.keys())
@pytest.mark.parametrize("name", ["nonzero", "argwhere"])
def test_tensors_without_dims(name: str, way: Callable[..., Any]) -> None:
    """Their indices have no bytes, but as many rows as the first run finds."""
    function = _FUNCTIONS[name]
    for first in (1.0, 0.0):
        run = way(function, torch.tensor(1.0))
        for value in (first, 1 - first, first):
            x = torch.tensor(value)
            _assert_same(run(x), function(x))


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 0)], ids=str)
def test_known_counts(shape: tuple[int, ...]) -> None:
    x = _sparse(*shape)

    def function(x: torch.Tensor) -> Any:
        return [torch.nonzero_static(x, size=size, fill_value=-5) for size in (0, 2, 5, 20)]

    _assert_same(_just_in_time(function, x)(x), function(x))


def test_special_values() -> None:
    x = torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-40, float("nan"), -0.0, 0.0])

    def function(x: torch.Tensor) -> Any:
        return torch.nonzero(x), x[x != 0], *torch.unique(x, return_inverse=True, return_counts=True)

    _assert_same(_ahead_of_time(function, x)(x), function(x))


@pytest.mark.parametrize("name", ["nonzero", "mask", "mask_of_rows", "unique_all", "matmul"])
def test_strides(name: str) -> None:
    function = _FUNCTIONS[name]
    run = _ahead_of_time(function, _sparse(6, 5))
    for x in (_sparse(5, 6).T, _sparse(12, 10)[::2, ::2], _sparse(6, 1).expand(6, 5)):
        _assert_same(run(x), function(x))


@pytest.mark.parametrize(
    "name", ["nonzero", "mask", "mask_of_rows", "unique_all", "computed", "gram", "softmax_of_found"]
)
def test_symbolic_sizes(name: str) -> None:
    """One build for all numbers of rows, 1 included."""
    function = _FUNCTIONS[name]
    rows = torch.export.Dim("rows", min=1, max=64)
    program = torch.export.export(
        Function(function), (_sparse(6, 5),), dynamic_shapes={"args": ({0: rows},)}, strict=False
    )
    run = ingot.compile(program, **_WHOLE)
    for count in (1, 2, 6, 33):
        x = _sparse(count, 5, seed=count)
        _assert_same(run(x), function(x))


def test_detection() -> None:
    """Boxes above a threshold, sorted by score, with their classes: the end of a detector."""

    def function(boxes: torch.Tensor, scores: torch.Tensor) -> Any:
        best, classes = scores.max(dim=1)
        kept = best > 0.5
        order = best[kept].argsort(descending=True)
        return boxes[kept][order], best[kept][order], classes[kept][order]

    args = (torch.rand(50, 4), torch.rand(50, 7))
    for way in _WAYS.values():
        run = way(function, *args)
        for seed in range(3):
            torch.manual_seed(seed)
            args = (torch.rand(50, 4), torch.rand(50, 7) * (0.4 + 0.3 * seed))
            _assert_same(run(*args), function(*args))


def test_asserted_sizes_are_checked() -> None:
    """What the program asserts of a size that only a run knows holds, or the run fails."""

    def function(x: torch.Tensor) -> torch.Tensor:
        found = x[x > 0]
        torch._check(found.shape[0] >= 3)
        torch._check(found.shape[0] <= 10)
        return found * 2

    for way in _WAYS.values():
        run = way(function, torch.ones(6))
        _assert_same(run(torch.ones(6)), torch.full((6,), 2.0))
        with pytest.raises((ingot.Error, RuntimeError)):
            run(torch.tensor([1.0, -1.0, -1.0, -1.0, -1.0, 2.0]))
        _assert_same(run(torch.ones(6)), torch.full((6,), 2.0))


def _between_checks(x: torch.Tensor) -> Any:
    found = x[x > 0]
    torch._check(found.shape[0] >= 3)
    torch._check(found.shape[0] <= 3)
    return torch.cat([found, found[:3]]), found + torch.ones(3), found.shape[0] * x


def _at_most_one(x: torch.Tensor) -> Any:
    """At most one element is found, and at least one is read."""
    found = torch.where(x.sum() > 1.5)[0].float()
    found.copy_(torch.cat([found.narrow(0, 1, found.shape[0] - 1), found.narrow(0, 0, 1)], 0))
    return found + 1, found.expand(3, -1)


def _read_from_a_tensor(x: torch.Tensor) -> Any:
    count = (x > 0).sum().item()
    torch._check(count >= 3)
    torch._check(count <= 3)
    return torch.arange(count) * 2, x[:count] + torch.ones(3)


def _in_a_branch(x: torch.Tensor) -> Any:
    found = x[x > 0]
    torch._check(found.shape[0] >= 3)
    torch._check(found.shape[0] <= 3)
    return torch.cond(
        found.sum() > 10, lambda x: torch.cat([x, x[:3]]) * 2, lambda x: torch.cat([x[:3], x]), (found,)
    )


@pytest.mark.parametrize("way", _WAYS.values(), ids=_WAYS.keys())
@pytest.mark.parametrize(
    "function",
    [_between_checks, _at_most_one, _read_from_a_tensor, _in_a_branch],
    ids=lambda each: each.__name__,
)
def test_sizes_that_checks_leave_one_value(function: _Function, way: Callable[..., Any]) -> None:
    """torch writes such a size as a symbol in some places of a program, and as a number in others."""
    x = torch.tensor([1.0, -1.0, 2.0, -3.0, 3.0])
    run = way(function, x)
    for y in (x, x.flip(0) * 2):
        _assert_same(run(y), function(y))
    with pytest.raises((ingot.Error, RuntimeError)):
        run(-x.abs())
    _assert_same(run(x), function(x))


def test_negative_repeats_are_rejected() -> None:
    run = _ahead_of_time(torch.repeat_interleave, torch.tensor([1, 2]))
    _assert_same(run(torch.tensor([3, 0])), torch.tensor([0, 0, 0]))
    with pytest.raises(ingot.Error, match="negative"):
        run(torch.tensor([3, -1]))


def test_sizes_that_have_to_be_equal() -> None:
    """torch joins the symbols of two sizes: the second is checked."""

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        found = x[x > 0]
        torch._check(found.shape[0] == y.shape[0])
        return found + y

    program = _exported(function, torch.tensor([1.0, -1.0, 2.0]), torch.ones(2))
    run = ingot.compile(program, **_WHOLE)
    _assert_same(run(torch.tensor([-1.0, 3.0, 2.0]), torch.ones(2)), torch.tensor([4.0, 3.0]))
    with pytest.raises((ingot.Error, RuntimeError)):
        run(torch.tensor([3.0, 3.0, 2.0]), torch.ones(2))


def test_files(tmp_path: Path) -> None:
    """The same from a .pt2 file, without torch's help, and from an engine file."""
    function = _FUNCTIONS["several"]
    torch.export.save(_exported(function, _sparse(6, 5)), tmp_path / "model.pt2")
    ingot.build(tmp_path / "model.pt2").save(tmp_path / "model.ingot")
    engine = ingot.Engine.load(tmp_path / "model.ingot")
    for share in (0.5, 0.0, 1.0):
        x = _sparse(6, 5, share=share)
        _assert_same(list(engine(x)), list(function(x)))


def test_item_in_torch() -> None:
    """Parts around what torch runs pass such sizes on."""

    def function(x: torch.Tensor) -> torch.Tensor:
        found = x[x > 0] * 2
        return negated(found) + found * 2

    program = _exported(function, _sparse(6, 5))
    run = ingot.compile(program, check_speed=False, min_block_size=1)
    assert lacking.NAME in [node.op for node in ingot.report(run).fallbacks]
    for share in (0.5, 0.0, 1.0):
        x = _sparse(6, 5, share=share)
        _assert_same(run(x), function(x))
