# SPDX-License-Identifier: Apache-2.0
"""Functions of two tensors whose trace or positions depend on sizes, and their comparison with eager at other sizes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import ingot
import torch
from lacking import negated
from torch import nn
from torch.nn import functional

LARGEST = 16
REFUSED = ("INGOT-U312", "INGOT-U305", "INGOT-U310")  # U310: indices that are data


class Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.function(x, y)


# ---- programs whose traced path is not for all sizes ----


def branch_on_parity(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] % 2 == 0 else x * 3


def branch_on_product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] * y.shape[0] > 20 else x * 3


def branch_on_order(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] >= y.shape[0] else x * 3


def branch_on_a_threshold(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] > 4 else x * 3


def branch_on_several(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] % 2 == 0 and y.shape[0] != 5 else x * 3


def branch_on_an_excluded_size(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 3 if y.shape[0] == 7 else x * 2


def branch_on_half(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if int(x.shape[0] * 0.5) == 4 else x * 3


def branch_on_a_root(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x * 2 if int(x.shape[0] ** 0.5) == 2 else x * 3


def own_assertion(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    assert x.shape[0] % 4 == 0, "rows come in fours"
    return x * 2


def torch_check(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    torch._check(x.shape[0] != 5)
    return x * 2


def padded_to_four(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    missing = (4 - x.shape[0] % 4) % 4
    return functional.pad(x, (0, 0, 0, missing)) if missing else x * 2


def branch_on_a_computed_size(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rows = x[::4]
    return x * 3 if rows.shape[0] == 1 else x * 2


def squeezed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x[::2].squeeze(0) * 2


def torch_in_between(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x = negated(x @ x.t())[:, :1] + x
    return x * 2 if x.shape[0] % 2 == 0 else x * 3


GUARDED = [
    branch_on_parity, branch_on_product, branch_on_order, branch_on_a_threshold, branch_on_several,
    branch_on_an_excluded_size, branch_on_half, branch_on_a_root, own_assertion, torch_check, padded_to_four,
    branch_on_a_computed_size, squeezed, torch_in_between,
]  # fmt: skip

# ---- operators with positions that follow from sizes ----


def written(change: Callable[[torch.Tensor, torch.Tensor, int], Any]) -> Callable[..., torch.Tensor]:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = x.clone()
        change(z, y, y.shape[0])
        return z

    function.__name__ = change.__name__
    return function


def set_row(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[n] = 7.0


def copy_narrow(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z.narrow(0, n, 2).copy_(y[:2])


def fill_slice(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[n // 2 : n].fill_(3.0)


def add_select(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z.select(0, n - 1).add_(1.0)


def copy_flipped(z: torch.Tensor, y: torch.Tensor, n: int) -> None:
    z[:n] = y.flip(0)


POSITIONS: dict[str, Callable[..., Any]] = {
    "select_scatter": lambda x, y: torch.select_scatter(x, x[0], 0, y.shape[0]),
    "slice_scatter": lambda x, y: torch.slice_scatter(x, y, 0, 1, y.shape[0] + 1),
    "slice_scatter_from": lambda x, y: torch.slice_scatter(x, x[:2], 0, y.shape[0], y.shape[0] + 2),
    "diagonal_scatter": lambda x, y: torch.diagonal_scatter(x, x[0] * 0 + 1, 0) if x.shape[0] >= 3 else x,
    "set_row": written(set_row),
    "copy_narrow": written(copy_narrow),
    "fill_slice": written(fill_slice),
    "add_select": written(add_select),
    "copy_flipped": written(copy_flipped),
    "select": lambda x, y: x.select(0, y.shape[0]) + 1,
    "select_from_end": lambda x, y: x.select(0, -y.shape[0]) + 1,
    "select_column": lambda x, y: x.t().select(1, y.shape[0]) + 1,
    "index_row": lambda x, y: x[y.shape[0] - 1] + 1,
    "narrow": lambda x, y: x.narrow(0, y.shape[0], 2) + 1,
    "narrow_length": lambda x, y: x.narrow(0, 1, y.shape[0]) + y,
    "slice": lambda x, y: x[y.shape[0] : y.shape[0] + 2] + 1,
    "slice_to": lambda x, y: x[: y.shape[0]] + 1,
    "slice_from_end": lambda x, y: x[-y.shape[0] :] + 1,
    "slice_by_two": lambda x, y: x[y.shape[0] :: 2] + 1,
    "flip_of_a_slice": lambda x, y: x.narrow(0, y.shape[0], 2).flip(0) + 1,
    "roll": lambda x, y: x.roll(y.shape[0], 0) + 1,
    "pad": lambda x, y: functional.pad(x, (0, 0, y.shape[0], 1)) + 1,
    "pad_negative": lambda x, y: functional.pad(x, (0, 0, 0, 1 - y.shape[0])) + 1,
    "pad_reflect": lambda x, y: functional.pad(x.t()[None], (y.shape[0], 0), mode="reflect") + 1,
    "pad_circular": lambda x, y: functional.pad(x.t()[None], (0, y.shape[0]), mode="circular") + 1,
    "repeat": lambda x, y: x.repeat(y.shape[0], 1) + 1,
    "split": lambda x, y: x.split(y.shape[0])[0] + 1,
    "split_sizes": lambda x, y: x.split([y.shape[0], x.shape[0] - y.shape[0]])[1] + 1,
    "chunk": lambda x, y: x.chunk(3)[-1] + 1,
    "unfold": lambda x, y: x.unfold(0, 3, 2) + 1,
    "diagonal": lambda x, y: torch.diagonal(x) + 1,
    "gather": lambda x, y: x.gather(1, y[:, :2].abs().long().clamp(0, 2)) + 1,
    "scatter": lambda x, y: x.scatter(1, y[:, :1].abs().long().clamp(0, 2), 5.0),
    "scatter_add": lambda x, y: x.scatter_add(1, y[:, :1].abs().long().clamp(0, 2), y[:, :1]),
    "index_copy": lambda x, y: x.index_copy(0, torch.arange(y.shape[0]), y),
    "index_select": lambda x, y: x.index_select(0, torch.arange(y.shape[0])) + 1,
    "as_strided": lambda x, y: torch.as_strided(x + 0, (y.shape[0], 2), (3, 1)) + 1,
    "as_strided_scatter": lambda x, y: torch.as_strided_scatter(x + 0, y[:, :2], (y.shape[0], 2), (3, 1)) + 1,
    "tril": lambda x, y: x.tril() + 1,
    "top_k": lambda x, y: x.topk(4, 0)[0] + 1,
    "arange": lambda x, y: torch.arange(x.shape[0] - y.shape[0]) + 1,
    "zeros": lambda x, y: torch.zeros(x.shape[0] - y.shape[0] + 3, 2) + 1,
    "average_pool": lambda x, y: functional.avg_pool1d(x.t()[None], 5, 3) + 1,
    "adaptive_pool": lambda x, y: functional.adaptive_avg_pool1d(x.t()[None], 2) + 1,
    "convolution": lambda x, y: functional.conv1d(x.t()[None], torch.ones(2, 3, 5)) + 1,
    "resize": lambda x, y: functional.interpolate(x.t()[None], scale_factor=1.5) + 1,
    "reshape_halves": lambda x, y: x[: x.shape[0] // 2 * 2].reshape(2, -1) + 1,
}


def outcome(call: Callable[[], Any]) -> Any:
    """The result's values, or None if torch rejects the sizes."""
    try:
        return call()
    except (RuntimeError, IndexError, ValueError, AssertionError, ZeroDivisionError):
        return None


def check(compiled: Callable[..., Any], model: nn.Module, sizes: tuple[int, int], refusable: bool) -> bool:
    """Whether the sizes ran. `refusable`: sizes that eager accepts may be rejected by name, since the trace is for others."""
    generator = torch.Generator().manual_seed(sizes[0] * 100 + sizes[1])
    x, y = (torch.randn(rows, 3, generator=generator) for rows in sizes)
    expected = outcome(lambda: model(x.clone(), y.clone()))
    refusal = None
    try:
        result = compiled(x.clone(), y.clone())
    except ingot.UserError as error:
        refusal = error
    except (RuntimeError, IndexError):  # of a part that torch runs
        assert expected is None
        return False
    if refusal is not None:
        assert expected is None or refusable, (sizes, str(refusal))
        assert refusal.code in REFUSED, (sizes, str(refusal))
        return False
    assert expected is not None, (sizes, "eager refuses what ran", result)
    torch.testing.assert_close(result, expected)
    return True


def inputs_of(low: int = 1) -> list[ingot.Input]:
    rows = {"min_shape": (low, 3), "max_shape": (LARGEST, 3)}
    return [ingot.Input(opt_shape=(8, 3), **rows), ingot.Input(opt_shape=(4, 3), **rows)]


def pairs(count: int, seed: int = 0) -> list[tuple[int, int]]:
    everything = [(a, b) for a in range(1, LARGEST + 1) for b in range(1, LARGEST + 1)]
    edges = [
        (1, 1),
        (8, 4),
        (8, 7),
        (2, 2),
        (8, 8),
        (4, 8),
        (LARGEST, 2),
        (2, LARGEST),
        (9, 3),
        (5, 5),
        (3, 2),
    ]
    return edges + random.Random(seed).sample(everything, count)
