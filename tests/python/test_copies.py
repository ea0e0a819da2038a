# SPDX-License-Identifier: Apache-2.0
"""copy.deepcopy, copy.copy and pickle of engines and compiled modules."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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


def pickled(module: torch.nn.Module) -> torch.nn.Module:
    return pickle.loads(pickle.dumps(module))


def saved_by_torch(module: torch.nn.Module) -> torch.nn.Module:
    file = io.BytesIO()
    torch.save(module, file)
    return torch.load(io.BytesIO(file.getvalue()), weights_only=False)


@pytest.mark.parametrize("again", [pickled, saved_by_torch, lambda module: pickled(pickled(module))])
def test_pickles_of_modules_have_the_current_weights(again: Callable) -> None:
    model, x = mlp(), torch.randn(3, 8)
    module = ingot.compile(model, inputs=[ingot.Input(min_shape=(1, 8), opt_shape=(3, 8), max_shape=(5, 8))])
    module.refit(doubled(model))
    want = module(x)
    twin = again(torch.nn.ModuleDict({"inner": module}))["inner"]
    assert torch.equal(twin(x), want)
    assert twin(x[:2]).shape == want[:2].shape
    assert {name: value.tolist() for name, value in twin.state_dict().items()} == {
        name: value.tolist() for name, value in module.state_dict().items()
    }
    twin.refit(dict(model.named_parameters()))
    torch.testing.assert_close(twin(x), model(x))
    assert torch.equal(module(x), want)
    with pytest.raises(ingot.UserError, match="INGOT-U303"):
        twin(torch.randn(3, 9))


def test_pickles_of_a_hybrid_module() -> None:
    model, x = InParts(), torch.randn(5, 4)
    module = ingot.compile(model, inputs=[x])
    first = module(x)
    twin = pickled(module)
    torch.testing.assert_close(twin(x), first + 4)  # torch holds its states
    torch.testing.assert_close(module(x), first + 4)
    assert str(ingot.report(twin)) == str(ingot.report(module))


def test_pickles_begin_with_the_states_of_their_engines() -> None:
    x = torch.randn(3, 4)
    module = ingot.compile(Counter(), inputs=[x])
    first = module(x)
    assert torch.equal(pickled(module)(x), first)


def test_pickles_without_a_state_dict_have_none(tmp_path: Path) -> None:
    module, x = ingot.compile(mlp(), inputs=[torch.randn(3, 8)]), torch.randn(3, 8)
    ingot.save(module, tmp_path / "module.pt2")
    loaded = ingot.load(tmp_path / "module.pt2")
    twin = pickled(loaded)
    assert torch.equal(twin(x), module(x))
    with pytest.raises(ingot.UnsupportedError, match="INGOT-N007"):
        twin.state_dict()


def _answer(module: torch.nn.Module, x: torch.Tensor, answers: Any) -> None:
    with torch.no_grad():
        answers.put(module(x).numpy())


@pytest.mark.parametrize("start", ["spawn", "fork"])
def test_modules_go_to_other_processes(start: str) -> None:
    module, x = ingot.compile(mlp(), inputs=[torch.randn(3, 8)]), torch.randn(3, 8)
    context = multiprocessing.get_context(start)
    answers = context.Queue()
    process = context.Process(target=_answer, args=(module, x, answers))
    process.start()
    answer = answers.get(timeout=300)
    process.join(300)
    assert process.exitcode == 0
    assert torch.equal(torch.from_numpy(answer), module(x))


@pytest.mark.parametrize("again", [copy.deepcopy, pickled, saved_by_torch])
def test_copies_of_what_torch_compiles(again: Callable) -> None:
    torch.compiler.reset()
    model, x = mlp(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=backend)
    want = compiled(x)
    twin = again(compiled)
    torch.testing.assert_close(twin(x), want)
    assert len(ingot.report(compiled).segments) == 1


def test_reports_of_copies_of_what_torch_compiles() -> None:
    torch.compiler.reset()
    model, x = mlp(), torch.randn(3, 8)
    compiled = torch.compile(model, backend=backend)
    compiled(x)
    assert len(ingot.report(copy.deepcopy(compiled)).segments) == 1
    twin = pickled(compiled)
    with pytest.raises(ingot.UserError, match="after its first call"):
        ingot.report(twin)
    torch.compiler.reset()  # as in another process
    twin(x)
    assert len(ingot.report(twin).segments) == 1
