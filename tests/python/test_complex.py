# SPDX-License-Identifier: Apache-2.0
"""Complex numbers inside of engines: operators, views, compositions and models, against eager."""

from __future__ import annotations

import random
from collections.abc import Callable

import ingot
import pytest
import torch
from accuracy import assert_accurate
from whole_functions import in_engine

_Function = Callable[..., torch.Tensor]


def _z(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x)


def _r(z: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(z.resolve_conj())


def _inputs(
    *shapes: tuple[int, ...], dtype: torch.dtype = torch.float32, seed: int = 0
) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes]


# Of complex tensors a and b, both of shape [2, 3, 4].
_OPERATORS: dict[str, _Function] = {
    "add": lambda a, b: a + b,
    "add_alpha": lambda a, b: torch.add(a, b, alpha=2),
    "add_real": lambda a, b: a + b.real,
    "real_add": lambda a, b: a.real + b,
    "add_number": lambda a, b: a + 1.5,
    "rsub_number": lambda a, b: 2 - a,
    "sub": lambda a, b: a - b,
    "sub_number": lambda a, b: a - 3,
    "mul": lambda a, b: a * b,
    "mul_real": lambda a, b: a * b.imag,
    "mul_number": lambda a, b: a * 2.5,
    "mul_integers": lambda a, b: a * torch.arange(4),
    "div": lambda a, b: a / b,
    "div_real": lambda a, b: a / b.real,
    "real_div": lambda a, b: a.real / b,
    "div_number": lambda a, b: a / 4,
    "number_div": lambda a, b: 1 / a,
    "reciprocal": lambda a, b: a.reciprocal(),
    "neg": lambda a, b: -a,
    "square": lambda a, b: a.square(),
    "pow": lambda a, b: a**5,
    "pow_negative": lambda a, b: a**-2,
    "pow_zero": lambda a, b: a**0 + b,
    "pow_fraction": lambda a, b: a**0.3,
    "pow_complex": lambda a, b: a ** (0.5 - 1j),
    "pow_of_number": lambda a, b: 2.5**a,
    "pow_of_complex_number": lambda a, b: (1 + 2j) ** a,
    "pow_tensors": lambda a, b: a**b,
    "real_pow_complex": lambda a, b: a.real.abs() ** b,
    "mul_complex": lambda a, b: a * (2 - 0.5j),
    "real_mul_complex": lambda a, b: a.real * 2j,
    "integers_mul_complex": lambda a, b: torch.arange(4) * 2j + b,
    "add_complex": lambda a, b: a + (1 - 2j),
    "real_add_complex": lambda a, b: a.real + 2j,
    "sub_complex": lambda a, b: a - 2j,
    "rsub_complex": lambda a, b: 2j - a,
    "div_complex": lambda a, b: a / (3 - 4j),
    "complex_div": lambda a, b: (3 - 4j) / a,
    "real_div_complex": lambda a, b: a.real / (3 - 4j),
    "eq_complex": lambda a, b: torch.where(b.real > 0, a, 1 + 2j) == 1 + 2j,
    "ne_complex": lambda a, b: torch.where(b.real > 0, a, 1 + 2j) != 1 + 2j,
    "where_complex": lambda a, b: torch.where(a.real > 0, a, 2 - 1j),
    "full_complex": lambda a, b: a * torch.full((4,), 2 - 1j, dtype=a.dtype),
    "masked_fill_complex": lambda a, b: a.masked_fill(b.real > 0, 7 - 1j),
    "prod": lambda a, b: a.prod(),
    "prod_dim": lambda a, b: a.prod(-1),
    "prod_keepdim": lambda a, b: a.prod(1, keepdim=True),
    "sin": lambda a, b: a.sin(),
    "cos": lambda a, b: a.cos(),
    "tan": lambda a, b: a.tan(),
    "sinh": lambda a, b: a.sinh(),
    "cosh": lambda a, b: a.cosh(),
    "tanh": lambda a, b: a.tanh(),
    "tanh_far": lambda a, b: (a * 40).tanh(),
    "log2": lambda a, b: a.log2(),
    "log10": lambda a, b: a.log10(),
    "expm1": lambda a, b: a.expm1(),
    "rsqrt": lambda a, b: a.rsqrt(),
    "sigmoid": lambda a, b: a.sigmoid(),
    "asin": lambda a, b: a.asin(),
    "acos": lambda a, b: a.acos(),
    "atan": lambda a, b: a.atan(),
    "asinh": lambda a, b: a.asinh(),
    "acosh": lambda a, b: a.acosh(),
    "atanh": lambda a, b: a.atanh(),
    "cumprod": lambda a, b: a.cumprod(-1),
    "cumprod_first": lambda a, b: b.cumprod(0),
    "cumprod_of_real": lambda a, b: a.real.cumprod(1, dtype=a.dtype),
    "inv": lambda a, b: torch.linalg.inv(a[..., :3] + 3 * torch.eye(3)),
    "inv_of_one": lambda a, b: torch.linalg.inv(a[0, 0, 0].reshape(1, 1)),
    "isfinite": lambda a, b: (a / (a.real > 0)).isfinite(),
    "isnan": lambda a, b: (a / (a.real > 0)).isnan(),
    "norm": lambda a, b: torch.linalg.vector_norm(a, dim=-1),
    "addmm": lambda a, b: torch.addmm(a[0], b[0, :, :3], a[1]),
    "baddbmm": lambda a, b: torch.baddbmm(a, b[:, :, :3], a, beta=0.5, alpha=2),
    "vdot": lambda a, b: torch.vdot(a[0, 0], b[1, 1]),
    "abs": lambda a, b: a.abs(),
    "angle": lambda a, b: a.angle(),
    "sgn": lambda a, b: a.sgn(),
    "exp": lambda a, b: a.exp(),
    "log": lambda a, b: a.log(),
    "sqrt": lambda a, b: a.sqrt(),
    "conj": lambda a, b: a.conj() * b,
    "conj_physical": lambda a, b: torch.conj_physical(a),
    "real": lambda a, b: a.real,
    "imag": lambda a, b: a.imag,
    "polar": lambda a, b: torch.polar(a.real, b.imag),
    "polar_broadcast": lambda a, b: torch.polar(a.real[:, :1], b.imag[0]),
    "complex": lambda a, b: torch.complex(a.imag, b.real),
    "complex_broadcast": lambda a, b: torch.complex(a.imag[0], b.real),
    "sum": lambda a, b: a.sum(),
    "sum_dim": lambda a, b: a.sum(1, keepdim=True),
    "mean": lambda a, b: a.mean((0, -1)),
    "cumsum": lambda a, b: a.cumsum(-1),
    "matmul": lambda a, b: a @ b.mT,
    "bmm": lambda a, b: torch.bmm(a, b.transpose(1, 2)),
    "einsum": lambda a, b: torch.einsum("bij,bkj->bik", a, b),
    "einsum_one": lambda a, b: torch.einsum("bij->bji", a),
    "outer": lambda a, b: torch.outer(a[0, 0], b[1, 1]),
    "eq": lambda a, b: a == torch.where(b.real > 0, a, b),
    "ne": lambda a, b: a != torch.where(b.real > 0, a, b),
    "where": lambda a, b: torch.where(a.real > 0, a, b),
    "where_number": lambda a, b: torch.where(a.real > 0, a, 2.0),
    "masked_fill": lambda a, b: a.masked_fill(b.real > 0, 7.0),
    "zeros": lambda a, b: a + torch.zeros(4, dtype=a.dtype),
    "ones": lambda a, b: a * torch.ones(4, dtype=a.dtype),
    "ones_like": lambda a, b: a * torch.ones_like(b),
    "full": lambda a, b: a * torch.full((4,), 2.0, dtype=a.dtype),
    "zeros_like": lambda a, b: torch.zeros_like(a) + b,
    "to_complex": lambda a, b: a.real.to(a.dtype) * b,
    "to_wide": lambda a, b: (a.to(torch.complex128) * b).to(a.dtype),
    "adjoint": lambda a, b: a.mH * b.mT,
    "adjoint_product": lambda a, b: a @ b.mH,
}

_VIEWS: dict[str, _Function] = {
    "none": lambda z: z,
    "reshape": lambda z: z.reshape(4, -1),
    "view": lambda z: z.contiguous().view(2, 12),
    "permute": lambda z: z.permute(2, 0, 1),
    "transpose": lambda z: z.transpose(1, 2),
    "slice": lambda z: z[:, 1:, ::2],
    "select": lambda z: z[:, -1],
    "unsqueeze": lambda z: z.unsqueeze(1).unsqueeze(-1),
    "squeeze": lambda z: z[:, :1].squeeze(1),
    "expand": lambda z: z[:, :1].expand(-1, 5, -1),
    "cat": lambda z: torch.cat([z, z.real, z[:1]], 0),
    "stack": lambda z: torch.stack([z, z.conj()], 2),
    "flatten": lambda z: z.flatten(1),
    "unfold": lambda z: z.unfold(2, 2, 1),
    "chunk": lambda z: z.chunk(2, -1)[1],
    "split": lambda z: z.split([1, 3], -1)[1],
    "index": lambda z: z[:, torch.tensor([2, 0, 1, 1])],
    "index_select": lambda z: z.index_select(2, torch.tensor([3, 0])),
    "gather": lambda z: z.gather(2, torch.tensor([[[0], [1], [2]], [[3], [2], [1]]])),
    "clone": lambda z: z.clone().contiguous(),
    "flip": lambda z: z.flip(1, -1),
    "roll": lambda z: z.roll(1, -1),
    "repeat": lambda z: z.repeat(2, 1, 3),
    "pad": lambda z: torch.nn.functional.pad(z, (1, 2), value=3.0),
    "movedim": lambda z: z.movedim(0, -1),
    "unbind": lambda z: z.unbind(1)[2],
    "diagonal": lambda z: z.diagonal(0, 1, 2),
    "tril": lambda z: z.tril(),
    "conj": lambda z: z.conj(),
    "in_place": lambda z: z.clone().mul_(2).add_(z),
}


def _as_real(result: torch.Tensor) -> torch.Tensor:
    return _r(result) if result.is_complex() else result


def _groups(names: list[str], size: int = 8) -> list[list[str]]:
    """Functions that share an engine: most of a test's time is one compilation."""
    return [names[first : first + size] for first in range(0, len(names), size)]


def _check_all(functions: dict[str, _Function], args: list[torch.Tensor], dynamic: bool = False) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(_as_real(each(_z(x), _z(y))) for each in functions.values())

    eager = function(*args)
    exact = function(*(arg.double() for arg in args))
    with torch.no_grad():
        results = in_engine(function, args, dynamic)
    wrong = {}
    for name, *values in zip(functions, results, eager, exact, strict=True):
        try:
            assert_accurate(*values)
        except AssertionError as error:
            wrong[name] = str(error)
    assert not wrong


def _named(names: list[str]) -> dict[str, _Function]:
    return {name: _OPERATORS[name] for name in names}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["c64", "c128"])
@pytest.mark.parametrize("names", _groups(sorted(_OPERATORS)), ids=lambda names: names[0])
def test_operators(names: list[str], dtype: torch.dtype) -> None:
    _check_all(_named(names), _inputs((2, 3, 4, 2), (2, 3, 4, 2), dtype=dtype))


@pytest.mark.parametrize("names", _groups(sorted(_VIEWS)), ids=lambda names: names[0])
def test_views(names: list[str]) -> None:
    def between_products(view: _Function) -> _Function:
        def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            viewed = view(x * y)
            return viewed * viewed.real

        return function

    args = _inputs((2, 3, 4, 2), (2, 3, 4, 2))
    _check_all({name: between_products(_VIEWS[name]) for name in names}, args)
    _check_all({name: lambda x, y, view=_VIEWS[name]: view(x) for name in names}, args)


@pytest.mark.parametrize("shapes", [((3, 1, 4, 2), (5, 1, 2)), ((2,), (2, 3, 2)), ((1, 3, 2), (1, 1, 3, 2))])
def test_broadcasting(shapes: tuple[tuple[int, ...], ...]) -> None:
    names = ["add", "sub", "mul", "div", "where", "real_div", "mul_real"]
    _check_all(_named(names), _inputs(*shapes))


@pytest.mark.parametrize("sizes", [(3, 4), (5, 7), (2, 33)])
def test_dynamic_sizes(sizes: tuple[int, int]) -> None:
    names = ["add", "mul", "div", "abs", "sum_dim", "matmul", "exp", "where"]
    _check_all(_named(names), _inputs((2, *sizes, 2), (2, *sizes, 2)), dynamic=True)


_UNARY = [
    "neg",
    "square",
    "reciprocal",
    "sqrt",
    "conj_physical",
    "sgn",
    "mul_number",
    "add_number",
    "sub_number",
]
_BINARY = ["add", "sub", "mul", "where", "conj", "add_real", "mul_real", "polar", "complex"]
_SAME_SHAPE_VIEWS = ["none", "clone", "flip", "roll", "tril", "in_place", "conj"]


@pytest.mark.parametrize("seed", range(4))
def test_random_composition(seed: int) -> None:
    choose = random.Random(seed)
    steps = [
        (choose.choice(_UNARY + _BINARY), choose.choice(_SAME_SHAPE_VIEWS), choose.randrange(8))
        for _ in range(choose.randrange(3, 6))
    ]

    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        values = [x, y]
        for operator, view, other in steps:
            result = _OPERATORS[operator](values[-1], values[other % len(values)])
            result = result / (1 + result.abs())  # keeps magnitudes near 1
            values.append(_VIEWS[view](result))
        return values[-1] + values[0]

    _check_all({"composition": function}, _inputs((2, 3, 4, 2), (2, 3, 4, 2), seed=seed))


class _Rotary(torch.nn.Module):
    """Attention with the rotary embedding of Llama's first code."""

    def __init__(self, heads: int = 2, width: int = 8, positions: int = 16) -> None:
        super().__init__()
        frequencies = 1.0 / 10000.0 ** (torch.arange(0, width, 2).float() / width)
        angles = torch.outer(torch.arange(positions).float(), frequencies)
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))
        self.heads, self.width = heads, width
        self.projection = torch.nn.Linear(heads * width, 2 * heads * width)

    def turned(self, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turns = self.turns[: x.shape[1]].view(1, x.shape[1], 1, -1)
        return torch.view_as_real(pairs * turns).flatten(3).type_as(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key = self.projection(x).chunk(2, -1)
        shape = (*x.shape[:2], self.heads, self.width)
        query, key = self.turned(query.view(shape)), self.turned(key.view(shape))
        return torch.softmax(query.transpose(1, 2) @ key.transpose(1, 2).mT, -1)


@pytest.mark.parametrize("dynamic", [False, True])
def test_rotary_embedding(dynamic: bool) -> None:
    torch.manual_seed(0)
    model = _Rotary().eval()
    torch._dynamo.reset()
    compiled = torch.compile(
        model, backend="ingot", dynamic=dynamic, options={"require_full_compilation": True}
    )
    with torch.no_grad():
        for length in (5, 9):
            x = torch.randn(2, length, 16)
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_rotary_embedding_saved(tmp_path) -> None:
    torch.manual_seed(0)
    model, x = _Rotary().eval(), torch.randn(2, 5, 16)
    compiled = ingot.compile(model, inputs=[x], require_full_compilation=True)
    path = tmp_path / "rotary.ingot"
    ingot.save(compiled, str(path))
    with torch.no_grad():
        torch.testing.assert_close(ingot.load(str(path))(x), model(x), rtol=1e-4, atol=1e-5)


def test_changed_complex_buffers_are_seen() -> None:
    torch.manual_seed(0)
    model, x = _Rotary().eval(), torch.randn(2, 5, 16)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="ingot")
    with torch.no_grad():
        compiled(x)
        model.turns.copy_(model.turns.conj() * 2)
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


class _Spectral(torch.nn.Module):
    """Weights of modes, stored as complex parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(3, 5, 4, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        modes = torch.einsum("bim,iom->bom", torch.view_as_complex(x), self.weight)
        out = torch.zeros(x.shape[0], 5, 8, dtype=torch.complex64)
        out[:, :, :4] = modes
        return torch.view_as_real(out)


def test_complex_parameters() -> None:
    torch.manual_seed(0)
    model, x = _Spectral().eval(), torch.randn(2, 3, 4, 2)
    with torch.no_grad():
        actual = in_engine(model, [x])
        torch.testing.assert_close(actual, model(x), rtol=1e-4, atol=1e-5)


_UNSUPPORTED: dict[str, _Function] = {
    "scatter": lambda z: z.index_put((torch.tensor([0, 0]),), z, accumulate=True),
}


@pytest.mark.parametrize("name", sorted(_UNSUPPORTED))
def test_unsupported_runs_in_torch(name: str) -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return _as_real(_UNSUPPORTED[name](_z(x) * _z(x)).abs()) + torch.relu(x).sum()

    args = _inputs((2, 3, 4, 2))
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function, backend="ingot")(*args), function(*args))
    with pytest.raises(Exception, match=r"complex|no such operator|svd"):
        in_engine(function, args)


def test_parts_that_share_complex_values() -> None:
    """A node that torch runs by choice between complex ones takes its complex neighbours with it."""

    def function(x: torch.Tensor) -> torch.Tensor:
        z = _z(x) * _z(x)
        turned = torch.roll(z, 1, -1) + torch.sin(x[..., 0])
        return _r(turned * z) + 1

    args = _inputs((2, 3, 4, 2))
    for chosen in ("aten.roll.default", "aten.sin.default"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="ingot", options={"torch_executed_ops": [chosen]})
        torch.testing.assert_close(compiled(*args), function(*args))
