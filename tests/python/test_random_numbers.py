# SPDX-License-Identifier: Apache-2.0
"""Random numbers are torch's: drawn anew in each run, as its seed says, and never part of an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ingot
import pytest
import torch

_DRAWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand": lambda x: torch.rand(3, 4),
    "randn": lambda x: torch.randn(3, 4),
    "randint": lambda x: torch.randint(0, 100, (3, 4)),
    "randperm": lambda x: torch.randperm(12).reshape(3, 4),
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 100),
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "normal": lambda x: torch.normal(x, 1.0),
    "multinomial": lambda x: torch.multinomial(x.sigmoid(), 4).float(),
    "uniform": lambda x: torch.empty(3, 4).uniform_(),
}


# What they draw for an element depends on where it is in memory.
_IN_MEMORY_ORDER: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "rand_like": torch.rand_like,
    "randn_like": torch.randn_like,
    "randint_like": lambda x: torch.randint_like(x, 100),
    "normal": lambda x: torch.normal(x, 1.0),
    "uniform_": lambda x: torch.empty_like(x).uniform_(),
    "exponential_": lambda x: (x * 2).exponential_(),
    "dropout": lambda x: torch.nn.functional.dropout(x + 3, 0.4),
    "dropout of the argument": lambda x: torch.nn.functional.dropout(x, 0.4),
    "dropout of all": lambda x: torch.nn.functional.dropout(x, 1.0),
    "alpha_dropout": lambda x: torch.nn.functional.alpha_dropout(x + 3, 0.4, training=True),
    "alpha_dropout of the argument": lambda x: torch.nn.functional.alpha_dropout(x, 0.4, training=True),
    "alpha_dropout of all": lambda x: torch.nn.functional.alpha_dropout(x, 1.0, training=True),
    "feature_alpha_dropout": lambda x: torch.nn.functional.feature_alpha_dropout(x, 0.4, training=True),
    "bernoulli_": lambda x: (x * 2).bernoulli_(0.3),
    "bernoulli_ of integers": lambda x: (x * 2).long().bernoulli_(0.3),
    "bernoulli_ of a slice": lambda x: (x * 2).index_fill_(0, torch.tensor([0]), 7)[:, 1:].bernoulli_().sum(),
    "bernoulli_ by probabilities": lambda x: (x * 2).bernoulli_(x.sigmoid()),
    "draws after bernoulli_": lambda x: torch.rand_like(x) + (x * 2).bernoulli_(1.0) + torch.rand_like(x),
    "native_dropout": lambda x: torch.native_dropout(x, 0.4, True)[0],
    "attention": lambda x: torch.nn.functional.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
}
_OPERANDS: dict[str, Callable[[], torch.Tensor]] = {
    "in order": lambda: torch.randn(2, 3, 4),
    "transposed": lambda: torch.randn(4, 3, 2).permute(2, 1, 0),
    "of one column": lambda: torch.randn(3, 2, 1).transpose(0, 1),
    "with gaps": lambda: torch.randn(2, 3, 8)[:, :, ::2],
    "expanded": lambda: torch.randn(2, 1, 4).expand(2, 3, 4),
}


class _Model(torch.nn.Module):
    def __init__(self, draw: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.draw = draw

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * 2 + 1) + self.draw(x) * 3


@pytest.mark.parametrize("name", _DRAWS)
@pytest.mark.parametrize("way", ["ahead of time", "just in time"])
def test_draws_are_eagers(name: str, way: str) -> None:
    model, x = _Model(_DRAWS[name]), torch.randn(3, 4)
    run: Any
    if way == "ahead of time":
        run = ingot.compile(torch.export.export(model, (x,)), check_speed=False)
    else:
        torch._dynamo.reset()
        run = torch.compile(model, backend="ingot", options={"check_speed": False})
        run(x)
    results = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        results += [run(x), run(x)]
        torch.manual_seed(seed)
        torch.testing.assert_close(results[-2:], [model(x), model(x)])
    assert not torch.equal(results[0], results[1]), "the same numbers in both runs"
    assert torch.equal(results[0], results[2])
    assert not torch.equal(results[0], results[4])
    reasons = [node.reason for node in ingot.report(run).fallbacks]
    assert any("torch's generator" in reason for reason in reasons), reasons


@pytest.mark.parametrize("order", _OPERANDS)
@pytest.mark.parametrize("name", _IN_MEMORY_ORDER)
@pytest.mark.parametrize("way", ["ahead of time", "just in time"])
def test_draws_in_other_memory_orders(name: str, order: str, way: str) -> None:
    model, x = _Model(_IN_MEMORY_ORDER[name]), _OPERANDS[order]()
    torch._dynamo.reset()
    run: Any = torch.compile(model, backend="ingot")
    if way == "ahead of time":
        run = ingot.compile(torch.export.export(model, (x,)))
    torch.manual_seed(0)
    result = run(x)
    torch.manual_seed(0)
    torch.testing.assert_close(result, model(x))


def test_an_engine_of_its_own_is_refused() -> None:
    program = torch.export.export(_Model(torch.rand_like), (torch.randn(3, 4),))
    with pytest.raises(ingot.UnsupportedError, match="torch's generator"):
        ingot.build(program)
