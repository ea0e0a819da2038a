# SPDX-License-Identifier: Apache-2.0
"""Values that are kept transposed, and operators and buffers that something transposed is written into."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import ingot
import lacking
import pytest
import torch
from ingot.torch_backend import backend
from lacking import negated
from torch import nn

LEVELS = [0, 1, 2, 3]


class Transposed(nn.Module):
    """Writes a transposed source into a copy of its argument."""

    def __init__(self, write: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.write = write

    def forward(self, x: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
        return self.write(x, s.t()) * 2


ROWS, ELEMENTS = torch.tensor([3, 1]), torch.tensor([[0, 1, 2], [3, 2, 1]])
WRITES = {
    "slice_scatter": lambda x, s: torch.slice_scatter(x, s, 0, 1, 3),
    "slice_scatter of contiguous": lambda x, s: torch.slice_scatter(x, s.contiguous(), 0, 1, 3),
    "index_copy": lambda x, s: torch.index_copy(x, 0, ROWS, s),
    "index_put": lambda x, s: torch.index_put(x, (ROWS,), s),
    "scatter": lambda x, s: torch.scatter(x, 0, ELEMENTS, s),
    "into a transposed tensor": lambda x, s: torch.slice_scatter((x + 1).t(), s.t(), 1, 1, 3).t(),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", WRITES)
def test_writing_a_transposed_source(name: str, level: int) -> None:
    torch.manual_seed(0)
    x, s = torch.randn(4, 3), torch.randn(3, 2)
    model = Transposed(WRITES[name])
    compiled = ingot.compile(model, inputs=[x, s], optimization_level=level, require_full_compilation=True)
    assert torch.equal(compiled(x, s), model(x, s))


class Buffers(nn.Module):
    """Buffers that become something transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("whole", torch.zeros(2, 3))
        self.register_buffer("square", torch.arange(9.0).reshape(3, 3))
        self.register_buffer("window", torch.zeros(5, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.whole.copy_(x.t())
        self.square.copy_(self.square.t() + x[0, 0])
        self.window.copy_(torch.cat([self.window[2:], x.t()]))
        return self.whole.sum(0) + self.square.sum(0) + self.window[0]


class Attention(nn.Module):
    """Grouped-query attention with a static cache in buffers."""

    def __init__(self, heads: int = 4, groups: int = 2, width: int = 8, length: int = 16) -> None:
        super().__init__()
        self.heads, self.groups, self.width = heads, groups, width
        self.query = nn.Linear(heads * width, heads * width, bias=False)
        self.key = nn.Linear(heads * width, groups * width, bias=False)
        self.value = nn.Linear(heads * width, groups * width, bias=False)
        self.output = nn.Linear(heads * width, heads * width, bias=False)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, groups, length, width))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(1, x.shape[1], -1, self.width).transpose(1, 2)

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(2, position, self.split(self.key(x)))
        self.values.index_copy_(2, position, self.split(self.value(x)))
        seen = torch.arange(self.keys.shape[2])[None] <= position[:, None]
        repeat = self.heads // self.groups
        keys, values = self.keys.repeat_interleave(repeat, 1), self.values.repeat_interleave(repeat, 1)
        query = self.split(self.query(x))
        y = nn.functional.scaled_dot_product_attention(query, keys, values, attn_mask=seen)
        return self.output(y.transpose(1, 2).reshape(x.shape))


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(50, 32)
        self.layers = nn.ModuleList(Attention() for _ in range(2))
        self.norms = nn.ModuleList(nn.RMSNorm(32) for _ in range(2))

    def forward(self, tokens: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = x + layer(norm(x), position)
        return x @ self.embedding.weight.t()


def check_calls(model: nn.Module, calls: list[tuple[torch.Tensor, ...]], engines: list[Callable]) -> None:
    for engine, inputs in zip(engines, calls, strict=True):
        torch.testing.assert_close(engine(*inputs), model(*inputs), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_buffers_that_become_something_transposed(level: int) -> None:
    model = Buffers()
    twin, x = copy.deepcopy(model), torch.randn(3, 2)
    compiled = ingot.compile(model, inputs=[x], optimization_level=level, require_full_compilation=True)
    calls = [(x + i,) for i in range(4)]
    check_calls(twin, calls, [compiled] * 4)


@pytest.mark.parametrize("level", LEVELS)
def test_buffers_through_torch_compile(level: int) -> None:
    model = Buffers()
    twin, x = copy.deepcopy(model), torch.randn(3, 2)
    compiled = torch.compile(model, backend=backend, options={"optimization_level": level})
    check_calls(twin, [(x + i,) for i in range(4)], [compiled] * 4)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(buffer, twin.get_buffer(name))


@pytest.mark.parametrize("level", LEVELS)
def test_a_llama_goes_on_after_its_prefill(level: int) -> None:
    model = Llama().eval()
    twin = copy.deepcopy(model)
    prompt = torch.randint(0, 50, (1, 5))
    compiled = torch.compile(model, backend=backend, options={"optimization_level": level}, dynamic=True)
    calls = [(prompt, torch.arange(5))]
    calls += [(torch.randint(0, 50, (1, 1)), torch.tensor([position])) for position in (5, 6, 7)]
    with torch.no_grad():
        check_calls(twin, calls, [compiled] * 4)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(buffer, twin.get_buffer(name), rtol=1e-5, atol=1e-5)


class Permuted(nn.Module):
    """Results that eager returns in other orders of dims than the logical one."""

    def forward(self, x: torch.Tensor, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        turned = (x * 2).transpose(1, 2)
        image = torch.relu(image)
        return turned, turned[0].t(), image, image.permute(0, 2, 3, 1), negated(x).mT + 1


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("options", [{}, {"torch_executed_ops": ["aten.relu.default"]}])
@torch.no_grad()
def test_strides_are_those_of_eager(options: dict, dynamic: bool) -> None:
    torch._dynamo.reset()
    model = Permuted()
    compiled = torch.compile(model, backend="ingot", dynamic=dynamic, options=options)
    for size in (2, 5):
        arguments = torch.randn(size, 3, 4), torch.randn(size, 3, 4, 5).to(memory_format=torch.channels_last)
        for actual, expected in zip(compiled(*arguments), model(*arguments), strict=True):
            torch.testing.assert_close(actual, expected)
            assert actual.stride() == expected.stride()
    assert lacking.NAME in {node.op for node in ingot.report(compiled).fallbacks}


def test_a_result_in_eagers_order_is_no_node_of_the_model() -> None:
    class Turned(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x).mT

    torch._dynamo.reset()
    compiled = torch.compile(Turned(), backend="ingot")
    with torch.no_grad():
        compiled(torch.randn(3, 4))
    assert [node.op for segment in ingot.report(compiled).segments for node in segment.nodes] == [
        "aten.relu.default",
        "aten.transpose.int",
    ]


@torch.no_grad()
def test_what_follows_a_graph_break_sees_eagers_strides() -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(x).permute(0, 2, 3, 1)
            torch._dynamo.graph_break()
            return y.view(-1, y.shape[-1])

    torch._dynamo.reset()
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    torch.testing.assert_close(torch.compile(Broken(), backend="ingot")(image), Broken()(image))


class _KeepsFormat(nn.Module):
    def __init__(self, in_torch: bool) -> None:
        super().__init__()
        self.in_torch = in_torch

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = torch.relu(x)
        if self.in_torch:
            y = torch.special.bessel_y0(y.abs() + 1)  # Ingot has no such operator
        return torch.relu(y) * 2, y.sum((2, 3)), (y + 1).permute(0, 2, 3, 1)


@torch.no_grad()
@pytest.mark.parametrize("in_torch", [False, True])
def test_compiled_modules_keep_eagers_memory_format(in_torch: bool, tmp_path: Path) -> None:
    model = _KeepsFormat(in_torch).eval()
    image = torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)
    compiled = ingot.compile(model, inputs=[image], ir="dynamo")
    ingot.save(compiled, str(tmp_path / "format.ingot"))
    for module in (compiled, ingot.load(str(tmp_path / "format.ingot"))):
        for actual, eager in zip(module(image), model(image), strict=True):
            torch.testing.assert_close(actual, eager, check_stride=True)
