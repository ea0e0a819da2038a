# SPDX-License-Identifier: Apache-2.0
"""copy.deepcopy, copy.copy and pickle of engines and compiled modules."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Iterator

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from small_models import Counter, InParts, mlp

pytestmark = pytest.mark.usefixtures("binding")


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def doubled(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value * 2 for name, value in module.state_dict().items()}


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda engine: pickle.loads(pickle.dumps(engine))])
def test_engines_are_copied(copied: object) -> None:
    model, x = mlp(), torch.randn(3, 8)
    engine = ingot.compile(model, inputs=[x]).engine
    want, twin = engine(x), copied(engine)
    twin.refit(doubled(model))
    assert torch.equal(engine(x), want)
    assert not torch.equal(twin(x), want)
    assert twin.weights == engine.weights


def test_copies_of_a_module_share_memory_until_a_refit() -> None:
    model, x = mlp(), torch.randn(3, 8)
    module = ingot.compile(model, inputs=[x])
    holder = torch.nn.ModuleDict({"inner": module})
    want, twin = module(x), copy.deepcopy(holder)["inner"]
    assert torch.equal(twin(x), want)
    assert torch.equal(copy.copy(module)(x), want)
    twin.refit(doubled(model))
    assert torch.equal(module(x), want)
    assert not torch.equal(twin(x), want)
    assert ingot.report(twin) is ingot.report(module)


def test_states_go_on_from_the_copy() -> None:
    x = torch.randn(3, 4)
    module = ingot.compile(Counter(), inputs=[x])
    module(x)
    twin = copy.deepcopy(module)
    second = module(x)
    torch.testing.assert_close(twin(x), second)
    module(x)
    torch.testing.assert_close(twin(x) - second, x.mean(0).expand(3, 4))


def test_copies_of_a_hybrid_module() -> None:
    model, x = InParts(), torch.randn(5, 4)
    module = ingot.compile(model, inputs=[x])
    first = module(x)
    twin = copy.deepcopy(module)
    torch.testing.assert_close(twin(x), first + 4)  # four values, and one call more
    torch.testing.assert_close(twin(x), first + 8)
    torch.testing.assert_close(module(x), first + 4)
    twin.refit({"linear.weight": model.linear.weight * 3}, partial=True)
    torch.testing.assert_close(module(x), first + 8)
    assert not torch.allclose(twin(x), first + 12)


def test_compiled_modules_are_not_pickled() -> None:
    module = ingot.compile(mlp(), inputs=[torch.randn(3, 8)])
    for write in (pickle.dumps, lambda value: torch.save(value, io.BytesIO())):
        with pytest.raises(ingot.UserError, match=r"INGOT-U018.*\n.*ingot\.save\(module, path\)"):
            write(module)


def test_copies_of_what_torch_compiles() -> None:
    model, x = mlp(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=backend)
    want = compiled(x)
    torch.testing.assert_close(copy.deepcopy(compiled)(x), want)
