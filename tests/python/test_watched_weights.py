# SPDX-License-Identifier: Apache-2.0
"""What the runner of torch.compile notices of its weights, and what it looks at for that."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import ingot
import pytest
import torch
from ingot import _core
from ingot.watching import tensors
from torch import nn

X = torch.randn(3, 6, generator=torch.Generator().manual_seed(1))


class Watched:
    """A runner of a linear layer, and the tensors that are passed to it at each call."""

    def __init__(
        self, check: str = "fast", make: Callable[[torch.Tensor], torch.Tensor] = torch.clone, size: int = 5,
        direct: bool = True,
    ) -> None:  # fmt: skip
        torch.manual_seed(0)
        module = nn.Linear(6, size).eval()
        engine = ingot.compile(module, inputs=[X]).compiled.engines[0]
        self.weights = [make(value.detach()) for value in module.parameters()]
        names = [name for name, _ in module.named_parameters()]
        rows = [(name, value, k + 1) for k, (name, value) in enumerate(zip(names, self.weights, strict=True))]
        self.runner = _core.Runner(engine, [0], rows, torch.empty(0), check, tensors() if direct else None)

    def __call__(self) -> torch.Tensor:
        return self.runner([X, *self.weights])[0]

    def agrees(self) -> None:
        torch.testing.assert_close(self(), nn.functional.linear(X, *(plain(value) for value in self.weights)))


def plain(value: torch.Tensor) -> torch.Tensor:
    return torch.tensor(value.detach().tolist())


class Counting(torch.Tensor):
    """Counts how often its version is asked for through Python."""

    asked = 0

    @property
    def _version(self) -> int:
        Counting.asked += 1
        return torch.Tensor._version.__get__(self)


@pytest.mark.parametrize("check", ["fast", "thorough"])
def test_calls_look_up_no_attribute_while_nothing_changes(check: str) -> None:
    watched = Watched(check, lambda value: value.clone().as_subclass(Counting), size=40)
    watched.agrees()
    Counting.asked = 0
    for _ in range(20):
        watched()
    assert Counting.asked == 0
    watched.weights[0].mul_(2)
    watched.agrees()
    assert Counting.asked > 0, "it does count"


def test_this_torch_keeps_tensors_where_they_are_looked_for() -> None:
    assert tensors() is not None


def replace(watched: Watched) -> None:
    watched.weights[0] = torch.randn(5, 6)


def swap(watched: Watched) -> None:
    torch.utils.swap_tensors(watched.weights[0], torch.randn(5, 6))


def point_elsewhere(watched: Watched) -> None:
    watched.weights[0].data = torch.randn(5, 6)


def set_storage(watched: Watched) -> None:
    watched.weights[1].set_(torch.randn(5))


def point_at_another_part(watched: Watched) -> None:
    watched.weights[0].data = torch.stack([watched.weights[0], torch.randn(5, 6)]).view(10, 6)[:5]
    torch.testing.assert_close(watched(), watched())
    watched.weights[0].data = watched.weights[0].as_strided((5, 6), (6, 1), 30)


def write_by_numpy(watched: Watched) -> None:
    watched.weights[0].numpy()[:] *= -1


CHANGES: Sequence[Callable[[Watched], object]] = [
    lambda watched: watched.weights[0].add_(1),
    lambda watched: watched.weights[1][2].zero_(),
    lambda watched: watched.weights[0].data.mul_(3),
    lambda watched: [value.neg_() for value in watched.weights],
    replace, swap, point_elsewhere, point_at_another_part, set_storage, write_by_numpy,
]  # fmt: skip


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("check", ["fast", "thorough", "full"])
@pytest.mark.parametrize("change", CHANGES)
def test_each_change_is_noticed_each_time(change: Callable, check: str, direct: bool) -> None:
    watched = Watched(check, direct=direct)
    watched.agrees()
    for _ in range(3):
        change(watched)
        watched.agrees()
        watched.agrees()


def of_inference(value: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return value.clone()


KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "inference": of_inference,
    "parameter": lambda value: nn.Parameter(value.clone(), requires_grad=False),
    "transposed": lambda value: value.mT.contiguous().mT if value.ndim > 1 else value.clone(),
    "in a larger storage": lambda value: torch.stack([value, value])[1],
    "with gaps": lambda value: value.new_empty(*value.shape[:-1], 2 * value.shape[-1])[..., ::2].copy_(value),
}


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_all_kinds_of_tensors_are_watched(kind: str, size: int) -> None:
    watched = Watched(make=KINDS[kind], size=size)
    for _ in range(2):
        watched.agrees()
        with torch.inference_mode():
            watched.weights[1].numpy()[:] += 1
        watched.agrees()
        with torch.inference_mode(kind == "inference"):
            watched.weights[0].mul_(-2)
        watched.agrees()


def test_a_copy_watches_by_itself() -> None:
    watched = Watched()
    twin = copy.copy(watched)
    twin.runner = copy.deepcopy(watched.runner)
    watched.weights[0].mul_(2)
    watched.agrees()
    twin.agrees()
    watched.agrees()


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 13, 29, 32])
def test_all_of_a_small_weight_is_looked_at(size: int, direct: bool) -> None:
    watched = Watched(size=size, direct=direct)
    for k in range(size):
        watched.weights[1].data[k] += 1
        watched.agrees()


@pytest.mark.parametrize(("check", "pieces"), [("fast", 8), ("thorough", 64)])
@pytest.mark.parametrize("direct", [True, False])
def test_both_ends_of_a_large_weight_and_pieces_between_are_looked_at(
    check: str, pieces: int, direct: bool
) -> None:
    size = 1001
    watched = Watched(check, size=size, direct=direct)
    gap = (4 * size // pieces + 32) // 4  # a run of that length meets a piece, wherever it begins
    runs = [(k, k + 1) for k in (0, 3, size - 4, size - 1)] + [
        (k, k + gap) for k in range(0, size - gap, gap)
    ]
    for start, end in runs:
        watched.weights[1].data[start:end] += 1
        watched.agrees()


def test_arguments_are_a_list_or_a_tuple() -> None:
    watched = Watched()
    expected = watched()
    torch.testing.assert_close(watched.runner((X, *watched.weights))[0], expected)
    with pytest.raises(TypeError, match="tuple or a list"):
        watched.runner({0: X})
    with pytest.raises(TypeError, match="tuple or a list"):
        watched.runner(X)


@pytest.mark.parametrize("kind", [list, tuple])
def test_too_few_arguments_are_an_error(kind: type) -> None:
    watched = Watched()
    for count in range(3):
        with pytest.raises(IndexError, match="fewer arguments"):
            watched.runner(kind([X, *watched.weights][:count]))


def fails(error: BaseException) -> Callable:
    raise error


def test_a_direct_call_passes_on_errors_and_results() -> None:
    watched = Watched()
    call = _core.DirectCall(watched.runner, fails)
    torch.testing.assert_close(call(X, *watched.weights)[0], watched())
    with pytest.raises(ingot.UserError, match="INGOT-U3"):
        call(X[:, :5].clone(), *watched.weights)
    with pytest.raises(IndexError, match="fewer arguments"):
        call(X)
    torch.testing.assert_close(call(X, *watched.weights)[0], watched())


def test_a_direct_call_goes_on_with_what_recovers_from_an_error() -> None:
    watched, errors = Watched(), []

    def recover(error: BaseException) -> Callable:
        errors.append(error)
        return lambda *arguments: len(arguments)

    call = _core.DirectCall(watched.runner, recover)
    watched.weights[1] = torch.zeros(7)
    assert call(X, *watched.weights) == 3
    assert call(X) == 1
    assert [type(error) for error in errors] == [ingot.UserError]


class FailsOnce(torch.Tensor):
    """Cannot be detached when it is asked for the first time."""

    fails = False

    def detach(self) -> torch.Tensor:
        if FailsOnce.fails:
            FailsOnce.fails = False
            raise MemoryError("no room for the new weights")
        return super().detach()


@pytest.mark.parametrize("check", ["fast", "full"])
def test_a_refit_that_fails_is_tried_again(check: str) -> None:
    watched = Watched(check, lambda value: value.clone().as_subclass(FailsOnce))
    watched.agrees()
    with torch.no_grad():
        watched.weights[0].add_(1)
        watched.weights[1].mul_(2)
    FailsOnce.fails = True
    with pytest.raises(MemoryError, match="no room"):
        watched()
    watched.agrees()


def test_the_places_are_found_every_time() -> None:
    """Memory behind an object may hold by chance what is looked for there, after torch.compile more often."""
    torch.compile(nn.Linear(6, 5).eval(), backend="ingot")(X)
    assert all(tensors.__wrapped__() is not None for _ in range(200))
