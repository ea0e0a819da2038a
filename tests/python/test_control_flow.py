# SPDX-License-Identifier: Apache-2.0
"""torch.cond, while_loop, scan and map, wholly in engines, against eager."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import lacking
import pytest
import torch
from lacking import negated
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from whole_models import WHOLE, ahead_of_time, assert_same, check, each_way


class _Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos() - 1, (x,))


class _Weights(torch.nn.Module):
    """Layers in both branches, and around them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.before, self.after = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)
        self.one, self.other = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)
        self.register_buffer("steps", torch.tensor([1, 2, 3]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.before(x)
        h = torch.cond(
            h.mean() > 0,
            lambda h: torch.relu(self.one(h)) + self.steps[1],
            lambda h: self.other(h) * self.steps[2],
            (h,),
        )
        return self.after(h)


class _Several(torch.nn.Module):
    """Several results, one of them an operand, and a condition of one element."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        a, b = torch.cond(
            (x[0, 0] > 0).reshape(1)[0],
            lambda x, y: (x + y, y.clone()),
            lambda x, y: (x.clone(), x * y),
            (x, y),
        )
        return a * 2, b, a + b


class _Nested(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def positive(x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.max() > 2, lambda x: x - 2, lambda x: x + 2, (x,))

        return torch.cond(x.min() > 0, positive, lambda x: -x, (x,))


class _Sizes(torch.nn.Module):
    """A condition on a size."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] > 4, lambda x: x.sum(0), lambda x: x.sum(0) * 10, (x,))


class _Loop(torch.nn.Module):
    """Newton's square root, for as long as it takes."""

    def forward(self, x: torch.Tensor) -> Any:
        def is_far(steps: torch.Tensor, guess: torch.Tensor) -> torch.Tensor:
            return ((guess * guess - x).abs().max() > 1e-4) & (steps < 30)

        def improve(steps: torch.Tensor, guess: torch.Tensor) -> Any:
            return steps + 1, (guess + x / guess) / 2

        steps = torch.zeros((), dtype=torch.int64, device=x.device)
        return while_loop(is_far, improve, (steps, torch.ones_like(x)))


class _LoopOfLayers(torch.nn.Module):
    """A recurrent layer, until its state is large."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.norm = torch.nn.Linear(16, 16), torch.nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> Any:
        def goes_on(steps: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
            return (h.abs().sum() < 60) & (steps < 5)

        def step(steps: torch.Tensor, h: torch.Tensor) -> Any:
            return steps + 1, self.norm(h + torch.relu(self.layer(h)))

        return while_loop(goes_on, step, (torch.tensor(0), x))


class _LoopWithBranch(torch.nn.Module):
    """Collatz: how many steps to 1."""

    def forward(self, n: torch.Tensor) -> torch.Tensor:
        def step(n: torch.Tensor, count: torch.Tensor) -> Any:
            n = torch.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, (n,))
            return n, count + 1

        return while_loop(lambda n, count: n != 1, step, (n.clone(), torch.zeros_like(n)))[1]


class _Swap(torch.nn.Module):
    """Carried values that change places."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, count: torch.Tensor) -> Any:
        return while_loop(
            lambda i, a, b: i < count,
            lambda i, a, b: (i + 1, b.clone(), a + 1),
            (torch.zeros_like(count), a, b),
        )


class _Scan(torch.nn.Module):
    """A recurrent layer by hand: its last state, and all of them."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, state: torch.Tensor, rows: torch.Tensor) -> Any:
        def step(state: torch.Tensor, row: torch.Tensor) -> Any:
            state = torch.tanh(self.layer(state) + row)
            return state, state * 2

        return scan(step, state, rows, dim=0)


class _Map(torch.nn.Module):
    def forward(self, rows: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return map_rows(lambda row, other: (row @ other).softmax(-1), rows, other)


@each_way
@pytest.mark.parametrize("model", [_Branch, _Nested], ids=lambda model: model.__name__)
def test_branches(model: Callable[[], torch.nn.Module], way: Callable[..., Any]) -> None:
    check(model(), way, [(torch.full((3, 4), value),) for value in (1.0, -1.0, 3.0)])


@each_way
def test_branches_with_weights(way: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    x = torch.randn(5, 8)
    check(_Weights(), way, [(x,), (-x,), (x * 3,), (x - 1,), (x + 1,)])


class _Layouts(torch.nn.Module):
    """Operands of branches and loops that are stored in another order of dims: of convolutions, and permuted ones."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = (torch.nn.Conv2d(4, 4, 3, padding=1) for _ in range(2))

    def inner(self, x: torch.Tensor) -> torch.Tensor:
        turned = x.permute(0, 1, 3, 2) * 2
        return torch.cond(x.mean() > 0, lambda x: self.second(x) + 1, lambda x: self.first(x) - 1, (turned,))

    def forward(self, x: torch.Tensor) -> Any:
        h = self.first(x)
        a = torch.cond(
            h.sum() > 0, lambda h: torch.relu(self.second(h)), lambda h: self.inner(self.first(h)), (h,)
        )
        _, b = while_loop(
            lambda i, h: i < 3,
            lambda i, h: (i + 1, self.first(h).tanh()),
            (torch.zeros((), dtype=torch.int64), h),
        )
        return a, b


@each_way
def test_operands_in_other_layouts(way: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    x = torch.randn(2, 4, 8, 8)
    check(_Layouts(), way, [(x,), (-x,), (x + 1,), (x - 1,)])


@each_way
def test_several_results(way: Callable[..., Any]) -> None:
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    check(_Several(), way, [(x, y), (-x, y)])


def test_condition_on_a_size() -> None:
    rows = torch.export.Dim("rows", min=1, max=32)
    program = torch.export.export(_Sizes(), (torch.randn(6, 3),), dynamic_shapes=({0: rows},))
    run = ingot.compile(program, **WHOLE)
    for count in (1, 3, 4, 5, 6, 32):
        x = torch.randn(count, 3)
        assert_same(run(x), _Sizes()(x))


@each_way
def test_loops(way: Callable[..., Any]) -> None:
    calls = [(torch.rand(7) * 100 + 0.5,), (torch.ones(7),), (torch.full((7,), 1e4),)]
    check(_Loop(), way, calls)


@each_way
def test_loops_with_weights(way: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    check(_LoopOfLayers(), way, [(torch.randn(4, 16) * scale,) for scale in (0.1, 1.0, 10.0)])


@each_way
def test_branch_in_a_loop(way: Callable[..., Any]) -> None:
    check(_LoopWithBranch(), way, [(torch.tensor(n),) for n in (6, 1, 27, 97)])


@each_way
def test_carried_values_change_places(way: Callable[..., Any]) -> None:
    a, b = torch.randn(3), torch.randn(3)
    check(_Swap(), way, [(a, b, torch.tensor(n)) for n in (3, 0, 1, 4)])


@each_way
def test_scan(way: Callable[..., Any]) -> None:
    torch.manual_seed(1)
    check(
        _Scan(), way, [(torch.randn(3, 8), torch.randn(6, 3, 8)), (torch.zeros(3, 8), torch.randn(6, 3, 8))]
    )


def test_scan_of_one_row() -> None:
    check(_Scan(), ahead_of_time, [(torch.randn(3, 8), torch.randn(1, 3, 8))])


@each_way
def test_map(way: Callable[..., Any]) -> None:
    check(_Map(), way, [(torch.randn(5, 4, 3), torch.randn(3, 7)), (torch.zeros(5, 4, 3), torch.randn(3, 7))])


def test_maps_over_batches_are_exported() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return torch.vmap(lambda a, b: (a @ b.T).softmax(-1), in_dims=(0, 1))(x, y)

    check(Model(), ahead_of_time, [(torch.randn(4, 3, 5), torch.randn(2, 4, 5)) for _ in range(2)])


def test_symbolic_sizes() -> None:
    rows = torch.export.Dim("rows", min=1, max=64)
    model = _LoopOfLayers().eval()
    program = torch.export.export(model, (torch.randn(4, 16),), dynamic_shapes=({0: rows},))
    run = ingot.compile(program, **WHOLE)
    with torch.no_grad():
        for count in (1, 2, 7, 64):
            x = torch.randn(count, 16)
            assert_same(run(x), model(x))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32], ids=str)
def test_dtypes(dtype: torch.dtype) -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 2 + 1, lambda x: x - 3, (x,))

    check(Model(), ahead_of_time, [(torch.full((2, 3), value).to(dtype),) for value in (2, -2, 0)])


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (1, 1)], ids=str)
def test_empty_and_single(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape)
    check(_Branch(), ahead_of_time, [(x,), (-x,)])


def test_strides() -> None:
    x = torch.randn(4, 3)
    run = ahead_of_time(_Branch(), torch.randn(3, 4))
    for args in (x.T, torch.randn(6, 8)[::2, ::2], torch.randn(3, 1).expand(3, 4)):
        assert_same(run(args), _Branch()(args))


def test_refit() -> None:
    """New weights reach the graphs of branches."""
    model = _Weights().eval()
    x = torch.randn(5, 8)
    with torch.no_grad():
        module = ingot.compile(torch.export.export(model, (x,)), **WHOLE)
        assert_same(module(x), model(x))
        for parameter in model.parameters():
            parameter.mul_(-0.5).add_(0.1)
        ingot.refit_module_weights(module, model.state_dict(), in_place=True)
        for each in (x, -x):
            assert_same(module(each), model(each))


def test_files(tmp_path: Path) -> None:
    model = _LoopOfLayers().eval()
    x = torch.randn(4, 16)
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "model.pt2")
    ingot.build(tmp_path / "model.pt2").save(tmp_path / "model.ingot")
    engine = ingot.Engine.load(tmp_path / "model.ingot")
    with torch.no_grad():
        for scale in (0.1, 1.0, 10.0):
            assert_same(list(engine(x * scale)), list(model(x * scale)))


def test_what_ingot_lacks_runs_in_torch() -> None:
    """A branch with a call that no engine runs is torch's as a whole, and the report says why."""

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x * 2
            x = torch.cond(x.sum() > 0, negated, torch.cos, (x,))
            return x + 1

    module = ingot.compile(torch.export.export(Model(), (torch.ones(3),)), check_speed=False)
    for x in (torch.ones(3), -torch.ones(3)):
        assert_same(module(x), Model()(x))
    assert lacking.NAME in str(ingot.report(module))


class _ComplexBranch(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> Any:
        return torch.cond(
            x.sum() > 0,
            lambda z, x: (z * 2j, z.abs(), x + 1),
            lambda z, x: (z * z, z.abs() * 2, x.exp()),
            (z, x),
        )


class _ComplexLoop(torch.nn.Module):
    """Iterations of z -> z * z / 2 + c with a parameter c, and a real value that is carried beside them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("c", torch.tensor([0.1 + 0.2j, -0.3j, 0.5]))

    def forward(self, z: torch.Tensor, x: torch.Tensor) -> Any:
        def goes_on(i: torch.Tensor, z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
            return (i < 5) & (z.abs().sum() < 100)

        def step(i: torch.Tensor, z: torch.Tensor, x: torch.Tensor) -> Any:
            return i + 1, z * z * 0.5 + self.c, x + z.imag.sum()

        return while_loop(goes_on, step, (torch.zeros((), dtype=torch.int64), z, x))


class _ComplexScan(torch.nn.Module):
    """A linear recurrence with a complex state."""

    def forward(self, z: torch.Tensor, x: torch.Tensor) -> Any:
        rows = torch.stack([z, z.conj() * 1j, z * x.sum()])
        return scan(lambda state, row: (state * 0.5j + row, (state * row).abs()), z, rows)


class _ComplexMap(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return map_rows(lambda row, z: row * z.conj() + 1j, torch.complex(x, x * 2), z)


class _ComplexScalars(torch.nn.Module):
    def forward(self, z: torch.Tensor, x: torch.Tensor) -> Any:
        return torch.cond(x[0] > 0, lambda z: z.sum() * 1j, lambda z: z.prod() + 2, (z,))


_COMPLEX = [_ComplexBranch, _ComplexLoop, _ComplexScan, _ComplexMap, _ComplexScalars]


@each_way
@pytest.mark.parametrize("make", _COMPLEX)
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_values(
    make: Callable[[], torch.nn.Module], dtype: torch.dtype, way: Callable[..., Any]
) -> None:
    generator = torch.Generator().manual_seed(1)
    real = torch.float32 if dtype == torch.complex64 else torch.float64
    z = torch.view_as_complex(torch.randn(3, 2, generator=generator, dtype=real)) * 0.5
    x = torch.randn(3, generator=generator, dtype=real).abs()
    check(make().to(dtype if make is _ComplexLoop else real), way, [(z, x), (z.conj().resolve_conj(), -x)])
