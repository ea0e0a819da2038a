# SPDX-License-Identifier: Apache-2.0
"""Models and functions that torch.jit.script accepts, which use each part of its language."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor, nn


def doubled(x: Tensor, times: int = 1) -> Tensor:
    for _ in range(times):
        x = x * 2
    return x


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.linear = nn.Linear(8, 8)
        self.shift = torch.full((8,), 0.25)  # an attribute of TorchScript, not a buffer
        self.dropout = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(torch.nn.functional.gelu(self.linear(self.norm(x)))) + self.shift


class Layers(nn.Module):
    """Calls of methods and functions, a list of modules, batch norm, whose code has exceptions, and writes in place."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(), Block()])
        self.norm = nn.BatchNorm1d(2)
        self.register_buffer("scale", torch.tensor([0.5, 1.5]).reshape(2, 1))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block(x)
        y = self.norm(x).clone()
        y[:, 0] = 1.0
        y += doubled(x, 2)
        return (y * self.scale).reshape(x.shape[0], -1)


class Shared(nn.Module):
    """One weight under two names, a buffer that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("unused", torch.ones(2))

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu())


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(4, 4)
        self.right = nn.Linear(4, 4)
        self.register_buffer("offset", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        y = x.exp()
        if x.mean() > 0:
            y = self.left(x) + self.offset
        elif x.sum() < -100:
            y = x
        else:
            y = self.right(y).relu() + torch.tensor([1.0, 2.0, 3.0, 4.0])
        return y + 1


class Assertion(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.dim() != 1:
            raise RuntimeError("one dim alone")
        assert x.sum() > 0, "positive sums alone"
        return x.sqrt()


class Recurrent(nn.Module):
    """Library modules whose code asks much; freezing leaves some of their attributes where they are."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.recurrent = nn.LSTM(4, 5, 2, batch_first=True)
        self.convolution = nn.Conv1d(5, 3, 3, padding=1)

    def forward(self, ids: Tensor) -> Tensor:
        with torch.no_grad():
            x = self.table(ids)
        x = self.attention(x, x, x, need_weights=False)[0]
        return self.convolution(self.recurrent(x)[0].transpose(1, 2))


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).relu()


class Custom:
    def __init__(self, x: Tensor) -> None:
        self.x = x


def makes_an_object(x: Tensor) -> Tensor:
    return Custom(x * 2).x


class DataLoop(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        while x.sum() < 100:
            x = x * 2
        return x


class Growing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x * self.calls


class Updating(nn.Module):
    """Assigns to a buffer; the engine has it as state."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.mean = self.mean * 0.5 + x
        return self.mean * 2


def sum_of_rows(x: Tensor) -> Tensor:
    result = torch.zeros(x.size(1))
    for row in range(x.size(0)):
        result = result + x[row]
    return result


def branch_returns_numbers(x: Tensor) -> Tensor:
    times = 3 if bool(x.sum() > 0) else 2
    return x * times


def numbers(x: Tensor, k: int, f: float) -> list[Tensor]:
    a = (k + 3) * 2 - 5
    b = -(a // 2) % 4 + a**2
    c = float(a) / 3.0 + abs(f) + float(round(f)) + float(abs(k))
    d = torch.floor(x).sum() if c > 2.5 and not (a == 4 and c > 9.5) else x.sum()
    a = int(a)
    b = int(b)
    e = int(f) + min(a, b) + max([a, 2])
    low, high = min(f, 2.0), max(f, 2.0)
    import_free = (a != b) | (a < b) & (a >= k) ^ (b <= k)
    if import_free:
        e += 1
    return [d, x * a + b * c, x + e, x - low * high]


def mathematics(x: Tensor, f: float) -> Tensor:
    return x * (math.floor(f) + math.ceil(f) + math.sqrt(f) + math.exp(f) + math.log(f))


def lists(x: Tensor, values: list[int]) -> tuple[Tensor, list[Tensor], int]:
    items: list[Tensor] = []
    for i in range(1, len(values), 2):
        items.append(x + values[i])
    items.extend([x, -x])
    items += [x * x]
    items.insert(1, x * 2)
    last = items.pop()
    items.reverse()
    own = values.copy()
    own.append(7)
    own[0] = 5
    own.sort()
    more = sorted(own) + list(range(3))
    del more[0]
    if 7 in own and 8 not in own:
        last = last * own.index(7) + own.count(7)
    more.clear()
    first, second = items[0:2]
    for item, number in zip(items, own):  # noqa: B905 -- TorchScript has no strict
        last = last + item * number
    for number, item in enumerate(items[::2]):
        last = last - item * number
    return last + first + second, items, sum(own) + len(more) + int(all([True])) + int(any([False, True]))


def dicts(x: Tensor) -> dict[str, Tensor]:
    held: dict[str, Tensor] = {"a": x, "b": x + 1}
    held["c"] = held["a"] * 2
    found = held.get("d")
    if found is None:
        held["d"] = held.get("a", x)
    held.update({"e": x.relu()})
    other = held.setdefault("f", x - 1)
    for key in held:
        if key != "f" and "c" in held:
            other = other + held[key]
    for value in held.values():
        other = other - value
    for key, value in held.items():
        other = other + value * len(key)
    held["g"] = other
    del held["a"]
    return held


def optionals(x: Tensor, y: Tensor | None, k: int | None = None) -> tuple[Tensor, Tensor]:
    if y is not None:
        x = x + y
    if k is None:
        k = 2
    third: Tensor | None = x if x.dim() > 0 else None
    assert third is not None
    pair = (x * k, third)
    return pair[0], torch.jit._unwrap_optional(third)


def texts(x: Tensor, mode: str) -> Tensor:
    name = f"mode {mode} {x.dim()}"
    if name == "mode fast 2":
        print(name)
        import_warning = str(x.size(0)) + mode
        return x * len(import_warning)
    return x


def queries(x: Tensor) -> Tensor:
    size = x.size()
    total = (
        x.numel()
        + x.dim()
        + x.size(-1)
        + x.stride(0)
        + x.storage_offset()
        + len(x)
        + x.stride()[1]
        + x.ndim
        + x.itemsize
    )
    if (
        x.is_floating_point()
        and not x.is_complex()
        and not x.is_quantized
        and not x.is_nested
        and not x.is_sparse
        and not x.requires_grad
    ):
        total += 1
    if x.is_cuda or x.is_mkldnn or x.is_meta or x.is_xpu or x.is_mps or not x.is_cpu:
        total += 100
    made = torch.zeros(size, dtype=x.dtype, device=x.device, layout=x.layout)
    if x.dtype == torch.float32 and x.device == torch.device("cpu"):
        made = made + torch.ones(2, x.shape[1], dtype=torch.float64).to(x.dtype)
    return made + total + x.data.detach()


def scalars(x: Tensor) -> Tensor:
    a = torch.tensor([[1, 2], [3, 4]], dtype=torch.float32) + torch.tensor(2.5) + torch.as_tensor([1.0, 2.0])
    n = int(torch.tensor(3)) + torch.tensor(2).item()
    return x[:2, :2] + a * n * float(torch.tensor(0.5))


def tasks(x: Tensor) -> Tensor:
    future = torch.jit.fork(doubled, x, 3)
    return torch.jit.wait(future) + doubled(x)


def layouts(x: Tensor) -> Tensor:
    y = x.reshape(1, 2, 3, 1).contiguous(memory_format=torch.channels_last)
    return y.to(torch.float64).to(dtype=torch.int64).bitwise_and(3).sum(dim=[1, 2], dtype=torch.int32)


def implicit(x: Tensor, pair: tuple[Tensor, int]) -> Tensor:
    """Tensors where numbers are expected, and the reverse."""
    warnings.warn("kept quiet", stacklevel=2)
    index = torch.tensor(1)
    made = torch.full([3], torch.tensor(1.5)) + torch.nn.functional.leaky_relu(
        x.select(0, index), float(torch.tensor(0.1))
    )
    if bool(torch.tensor(True)):
        made = made + pair[0] * len(list("abc"))
    return torch.nn.functional.dropout(made, torch.tensor(0.5), False)


_X = torch.arange(6.0).reshape(2, 3) - 2.5
FUNCTIONS = {
    "numbers": (numbers, [_X, 4, -2.75]),
    "mathematics": (mathematics, [_X, 1.75]),
    "lists": (lists, [_X, [3, 1, 2, 4]]),
    "dicts": (dicts, [_X]),
    "optionals": (optionals, [_X, _X + 1]),
    "no optionals": (optionals, [_X, None, 5]),
    "texts": (texts, [_X, "fast"]),
    "queries": (queries, [_X]),
    "scalars": (scalars, [_X]),
    "implicit": (implicit, [_X, (_X[1], 3)]),
    "tasks": (tasks, [_X]),
    "layouts": (layouts, [_X]),
}
