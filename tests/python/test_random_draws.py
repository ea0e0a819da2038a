# SPDX-License-Identifier: Apache-2.0
"""Random numbers that engines draw themselves (the option random_seed): their distributions, independence and repetition.

Engines of one seed draw the same numbers on every machine: no test here fails by chance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import ingot
import pytest
import torch
from torch import nn
from torch.nn import functional

_COUNT = 20_000
_LARGEST_DISTANCE = 2.0  # of Kolmogorov and Smirnov's test: once in 1,500 seeds

Draw = Callable[[torch.Tensor], torch.Tensor]


def _normal(mean: float, deviation: float) -> Draw:
    return lambda v: (1 + torch.erf((v - mean) / (deviation * math.sqrt(2)))) / 2


def _uniform(low: float, high: float) -> Draw:
    return lambda v: ((v - low) / (high - low)).clamp(0, 1)


# Each draw, of as many numbers as its operand has, and the distribution function.
_CONTINUOUS: dict[str, tuple[Draw, Draw]] = {
    "rand": (lambda x: torch.rand(x.shape), _uniform(0, 1)),
    "rand_like": (torch.rand_like, _uniform(0, 1)),
    "randn": (lambda x: torch.randn(x.shape), _normal(0, 1)),
    "randn_like": (torch.randn_like, _normal(0, 1)),
    "uniform_": (lambda x: x.clone().uniform_(-2, 3), _uniform(-2, 3)),
    "normal_": (lambda x: x.clone().normal_(1, 2), _normal(1, 2)),
    "normal of tensors": (lambda x: torch.normal(x * 0 + 1, x * 0 + 3), _normal(1, 3)),
    "normal of a mean": (lambda x: torch.normal(x * 0 + 1, 3.0), _normal(1, 3)),
    "normal of a deviation": (lambda x: torch.normal(-1.0, x * 0 + 3), _normal(-1, 3)),
    "normal of numbers": (lambda x: torch.normal(-1.0, 3.0, x.shape), _normal(-1, 3)),
    "exponential_": (lambda x: x.clone().exponential_(2), lambda v: 1 - torch.exp(-2 * v)),
    "cauchy_": (lambda x: x.clone().cauchy_(1, 2), lambda v: torch.atan((v - 1) / 2) / math.pi + 0.5),
    "log_normal_": (lambda x: x.clone().log_normal_(0.5, 0.25), lambda v: _normal(0.5, 0.25)(v.log())),
    "rrelu": (lambda x: -functional.rrelu(x * 0 - 1, 0.1, 0.3, training=True), _uniform(0.1, 0.3)),
    "random_": (lambda x: x.clone().random_() / 2**24, _uniform(0, 1)),
}

# Each draw, and the probability of each value.
_DISCRETE: dict[str, tuple[Draw, dict[float, float]]] = {
    "randint": (lambda x: torch.randint(3, 8, x.shape), dict.fromkeys(range(3, 8), 0.2)),
    "randint_like": (lambda x: torch.randint_like(x, 4), dict.fromkeys(range(4), 0.25)),
    "random_ below": (lambda x: x.to(torch.int32).random_(5), dict.fromkeys(range(5), 0.2)),
    "random_ bools": (lambda x: x.bool().random_(), {0: 0.5, 1: 0.5}),
    "bernoulli": (lambda x: torch.bernoulli(x * 0 + 0.3), {0: 0.7, 1: 0.3}),
    "bernoulli_": (lambda x: x.clone().bernoulli_(0.3), {0: 0.7, 1: 0.3}),
    "bernoulli_ of tensors": (lambda x: x.clone().bernoulli_(x * 0 + 0.3), {0: 0.7, 1: 0.3}),
    "geometric_": (lambda x: x.clone().geometric_(0.5), {k: 0.5**k for k in range(1, 9)}),
    "multinomial": (
        lambda x: torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 5.0]), x.numel(), replacement=True),
        {0: 0.125, 1: 0.25, 2: 0.0, 3: 0.625},
    ),
    "multinomial of rows": (
        lambda x: torch.multinomial(torch.tensor([1.0, 2.0, 0.0, 5.0]).expand(x.numel(), 4), 1),
        {0: 0.125, 1: 0.25, 2: 0.0, 3: 0.625},
    ),
    "dropout": (lambda x: functional.dropout(x * 0 + 3, 0.25, True), {0: 0.25, 4: 0.75}),
    "dropout of all": (lambda x: functional.dropout(x * 0 + 3, 1.0, True), {0: 1.0}),
    "channels": (lambda x: functional.dropout2d((x * 0 + 3).view(-1, 1, 1, 1), 0.25), {0: 0.25, 4: 0.75}),
}


class _Model(nn.Module):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self.draw = draw

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.draw(x)


def _engine(draw: Draw, x: torch.Tensor, seed: int = 0) -> ingot.Engine:
    return ingot.build(torch.export.export(_Model(draw), (x,)), random_seed=seed, verify_kernels=True)


def _correlation(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of the rows, whose means may differ."""
    centered = [(y - y.mean(-1, keepdim=True)).flatten().double() for y in (a, b)]
    return float(torch.corrcoef(torch.stack(centered))[0, 1])


@pytest.mark.parametrize("name", _CONTINUOUS)
def test_continuous_distributions(name: str) -> None:
    draw, distribution = _CONTINUOUS[name]
    x = torch.zeros(_COUNT)
    values = _engine(draw, x)(x).double()
    assert values.isfinite().all()
    steps = torch.arange(_COUNT + 1, dtype=torch.float64) / _COUNT
    expected = distribution(values.sort().values)
    distance = torch.maximum(expected - steps[:-1], steps[1:] - expected).max()
    assert distance * math.sqrt(_COUNT) < _LARGEST_DISTANCE


@pytest.mark.parametrize("name", _DISCRETE)
def test_discrete_distributions(name: str) -> None:
    draw, probabilities = _DISCRETE[name]
    x = torch.zeros(_COUNT)
    model, engine = _Model(draw), _engine(draw, x)
    values = engine(x)
    assert (values.dtype, values.shape) == (model(x).dtype, model(x).shape)
    for value, p in probabilities.items():
        count = int((values == value).sum())
        assert abs(count - p * _COUNT) <= 4 * math.sqrt(p * (1 - p) * _COUNT), value
    if sum(probabilities.values()) == 1:
        assert set(values.double().unique().tolist()) <= set(probabilities)


def test_no_number_follows_from_another() -> None:
    """Of neighbours, of two draws in one program, of two runs, and of engines of other seeds."""

    def draw(x: torch.Tensor) -> torch.Tensor:
        return torch.stack([torch.rand_like(x), torch.rand_like(x), torch.randn_like(x)])

    x = torch.zeros(_COUNT)
    engine = _engine(draw, x)
    first, second, other = engine(x), engine(x), _engine(draw, x, seed=1)(x)
    pairs = [(first, second), (first, other), (first[:, 1:], first[:, :-1])]
    pairs += [(first[i], first[j]) for i, j in ((0, 1), (0, 2), (1, 2))]
    for a, b in pairs:
        assert abs(_correlation(a, b)) < 4 / math.sqrt(_COUNT)


def test_a_sequence_is_repeated_by_its_seed(tmp_path: Path) -> None:
    x = torch.zeros(8)
    engine = _engine(torch.rand_like, x, seed=-5)
    values = [engine(x) for _ in range(3)]
    assert not torch.equal(values[0], values[1])
    engine.reset_states()
    engine.save(tmp_path / "draws.ingot")
    for again in (engine, _engine(torch.rand_like, x, seed=-5), ingot.Engine.load(tmp_path / "draws.ingot")):
        assert all(torch.equal(again(x), value) for value in values)
    assert not torch.equal(_engine(torch.rand_like, x, seed=5)(x), values[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_floating_dtypes(dtype: torch.dtype) -> None:
    def draw(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.rand_like(x), torch.randn_like(x), x.clone().exponential_(), functional.dropout(x + 1, 0.5),
            functional.alpha_dropout(x + 1, 0.5, True), torch.bernoulli(torch.rand_like(x)),
        )  # fmt: skip

    x = torch.zeros(_COUNT, dtype=dtype)
    uniform, normal, exponential, dropped, alpha, trials = (y.double() for y in _engine(draw, x)(x))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    for values, mean, variance in (
        (uniform, 0.5, 1 / 12), (normal, 0, 1), (exponential, 1, 1), (dropped, 1, 1), (trials, 0.5, 0.25),
    ):  # fmt: skip
        tolerance = 4 * math.sqrt(variance / _COUNT) + torch.finfo(dtype).eps
        assert abs(values.mean() - mean) < tolerance
        assert abs(values.var() - variance) < 6 * variance / math.sqrt(_COUNT) * 3
    assert len(alpha.unique()) == 2


def test_permutations_and_samples_without_replacement() -> None:
    def draw(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randperm(x.shape[0]), torch.multinomial(x + torch.arange(1.0, 10.0), 9)

    x = torch.zeros(50, 9)
    engine = _engine(draw, x)
    order, samples = engine(x)
    assert torch.equal(order.sort().values, torch.arange(50))
    assert torch.equal(samples.sort(1).values, torch.arange(9).expand(50, 9))
    assert not torch.equal(engine(x)[0], order)


def test_sizes_may_be_dynamic() -> None:
    x = torch.zeros(6, 5)
    program = torch.export.export(
        _Model(torch.randn_like), (x,), dynamic_shapes={"x": {0: torch.export.Dim("rows", min=2, max=5000)}}
    )
    engine = ingot.build(program, random_seed=3)
    for rows in (2, 17, 5000):
        values = engine(torch.zeros(rows, 5))
        assert values.shape == (rows, 5)
        assert len(values.unique()) > rows * 4


class _Trained(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.5), nn.Linear(64, 64), nn.Dropout(0.5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.parametrize("way", ["dynamo", "torch_compile"])
def test_modules(way: str) -> None:
    """Layers of one module drop other elements, each time, wholly in an engine."""
    torch._dynamo.reset()
    x = torch.ones(4, 64)
    call = ingot.compile(_Trained(), ir=way, inputs=[x], random_seed=1, require_full_compilation=True)
    with torch.no_grad():
        first, second = call(x), call(x)
    assert not torch.equal(first, second)
    assert 0.3 < float((first == 0).double().mean()) < 0.7
    assert not ingot.report(call).fallbacks


def test_draws_of_parts_are_not_the_same() -> None:
    """A module in two engines: each has its own sequence of numbers."""

    def draw(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = torch.rand_like(x)
        return first, torch.rand_like(x.neg() + x.sum())

    x = torch.zeros(_COUNT)
    run = ingot.compile(_Model(draw), inputs=[x], random_seed=1, torch_executed_ops=["aten.neg.default"])
    assert len(run.engines) == 2
    assert abs(_correlation(*run(x))) < 4 / math.sqrt(_COUNT)


def test_what_torch_still_draws() -> None:
    """Operators without a converter, generators that the caller passes, and draws inside of branches."""
    generator = torch.Generator()
    x = torch.ones(4)
    for draw in (torch.poisson, lambda x: torch.cond(x.sum() > 0, torch.rand_like, torch.cos, (x,))):
        with pytest.raises(ingot.UnsupportedError, match="torch's generator"):
            ingot.build(torch.export.export(_Model(draw), (x,)), random_seed=1)
    compiled = torch.compile(lambda x: x * torch.rand(4, generator=generator), backend="ingot")
    assert compiled(x).shape == (4,)
