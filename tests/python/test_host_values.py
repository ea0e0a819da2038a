# SPDX-License-Identifier: Apache-2.0
"""Which tensors of the host a graph for a GPU computes there instead. Fake tensors are on a GPU that no machine needs to have."""

from __future__ import annotations

from collections.abc import Callable

import ingot
import pytest
import torch
from gpu_targets import needs_gpu
from ingot import host_values
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

GPU = torch.device("cuda", 0)


def _traced(function: Callable, *places: str) -> GraphModule:
    with FakeTensorMode():
        given = [torch.empty(4, 4, device=place) for place in places]
        return make_fx(function)(*given)


def _devices(module: GraphModule) -> set[str]:
    values = [node.meta.get("val") for node in module.graph.nodes if node.op == "call_function"]
    return {value.device.type for value in values if isinstance(value, torch.Tensor)}


def _biased(x: torch.Tensor) -> torch.Tensor:
    """As of relative positions, by factories with and without a device."""
    places = torch.arange(4)[:, None] - torch.arange(4, device="cpu")[None]
    near = places.abs().clamp(max=2).to(torch.int64) + torch.eye(4, dtype=torch.int64)
    return x + near.to(x.device, torch.float32)


def _indexed(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.aten.index.Tensor(x, [torch.arange(2) * 2]) * torch.full((), 0.5).sqrt()


def _asserted(x: torch.Tensor) -> torch.Tensor:
    """As torch.export asserts what a conversion starts from."""
    places, ones = torch.arange(4), torch.ones(4)
    for each, dtype in ((places, torch.int64), (ones, torch.float32)):
        torch.ops.aten._assert_tensor_metadata.default(each, dtype=dtype, device="cpu", layout=torch.strided)
    return x + (places.to(torch.float32) * ones).to(x.device)


def _braided(x: torch.Tensor) -> torch.Tensor:
    """Two chains whose links read each other many times."""
    left, right = torch.arange(4.0), torch.ones(4)
    for _ in range(40):
        left, right = left * 0.5 + right, right - left
    return x + (left + right).to(x.device)


def _scaled(x: torch.Tensor) -> torch.Tensor:
    """By constants of the program, one of which two chains read."""
    root, weights = torch.tensor(64.0), torch.tensor([1.0, 2.0, 3.0, 4.0])
    return x / torch.sqrt(root * 3) + (weights * torch.arange(4)).to(x.device) * weights.sum().to(x.device)


def _two_groups(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x + torch.arange(4).to(x.device), torch.ones(3) * 2


@pytest.mark.parametrize(
    "function", [_biased, _indexed, _asserted, _braided, _scaled], ids=lambda each: each.__name__
)
def test_what_starts_from_nothing_is_computed_on_the_gpu(function: Callable) -> None:
    module = _traced(function, "cuda:0")
    assert _devices(module) == {"cpu", "cuda"}
    host_values.move(module.graph, GPU)
    assert _devices(module) == {"cuda"}
    assert all(node in source.users for node in module.graph.nodes for source in node.all_input_nodes)
    assert "cpu" not in module.graph.python_code("self").src
    module.graph.lint()
    with FakeTensorMode(allow_non_fake_inputs=True):  # the calls fit together
        assert module(torch.empty(4, 4, device="cuda:0")).device == GPU


def test_constants_that_are_inputs_are_copied() -> None:
    """As torch.export lifts them. Others, such as buffers, may change."""
    module = _traced(lambda x, y, z: x + (y * 2).to(x.device) + (z * 2).to(x.device), "cuda:0", "cpu", "cpu")
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    host_values.move(module.graph, GPU, {placeholders[1]})
    module.graph.lint()
    products = [node for node in module.graph.nodes if node.target is torch.ops.aten.mul.Tensor]
    assert [node.meta["val"].device.type for node in products] == ["cuda", "cpu"]
    assert [node.op for node in module.graph.nodes][:3] == ["placeholder"] * 3


def test_the_graph_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the host in place of the GPU."""
    module = _traced(_biased, "cuda:0")
    host_values.move(module.graph, torch.device("cpu"))
    for node in module.graph.nodes:
        if node.kwargs.get("device") == GPU:
            node.update_kwarg("device", torch.device("cpu"))
    module.recompile()
    x = torch.randn(4, 4)
    torch.testing.assert_close(module(x), _biased(x), rtol=0, atol=0)


def test_results_on_the_host_stay_there() -> None:
    module = _traced(_two_groups, "cuda:0")
    host_values.move(module.graph, GPU)
    with FakeTensorMode():
        moved, kept = module(torch.empty(4, 4, device="cuda:0"))
    assert (moved.device.type, kept.device.type) == ("cuda", "cpu")
    assert sum("device(type='cpu')" in str(node.kwargs) for node in module.graph.nodes) == 1


_KEPT: dict[str, Callable] = {
    "an input of the host": lambda x, y: x + (y * 2 + torch.arange(4)).to(x.device),
    "a copy to the host": lambda x, y: x + (x.cpu() * 2).to(x.device),
    "another generator": lambda x, y: x + (torch.rand(4) * 2).to(x.device),
    "through a list": lambda x, y: x + torch.rand(4, 4).chunk(2)[0].sum().to(x.device),
}


@pytest.mark.parametrize("name", list(_KEPT))
def test_what_follows_from_elsewhere_stays(name: str) -> None:
    module = _traced(_KEPT[name], "cuda:0", "cpu")
    before = module.graph.python_code("self").src
    host_values.move(module.graph, GPU)
    assert module.graph.python_code("self").src == before


@needs_gpu
@pytest.mark.parametrize(
    "function", [_biased, _indexed, _asserted, _braided, _scaled, _two_groups], ids=lambda each: each.__name__
)
def test_engines_compute_it(function: Callable) -> None:
    x = torch.randn(4, 4, device="cuda")
    compiled = torch.compile(function, backend="ingot")
    ours, eager = compiled(x), function(x)
    pairs = zip(ours, eager, strict=True) if isinstance(eager, tuple) else [(ours, eager)]
    for each, expected in pairs:
        assert each.device == expected.device
        torch.testing.assert_close(each, expected)
    in_torch = len(ingot.report(compiled).fallbacks)
    assert in_torch == 0 or function is _two_groups
