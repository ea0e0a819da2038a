# SPDX-License-Identifier: Apache-2.0
"""Kernels are compiled once per process: by layers, parts of a model, recompilations, other models. Sessions are apart."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import ingot
import pytest
import torch
from ingot.torch_backend import backend
from torch import nn


@pytest.fixture
def session() -> Iterator[ingot.Session]:
    torch._dynamo.reset()
    with torch.no_grad(), ingot.Session() as entered:
        yield entered


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.norm = nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.second(nn.functional.gelu(self.first(x))))


def layers(count: int) -> nn.Sequential:
    torch.manual_seed(count)
    return nn.Sequential(*(Layer() for _ in range(count))).eval()


def same(compiled: Callable, model: Callable, *inputs: torch.Tensor) -> None:
    torch.testing.assert_close(compiled(*inputs), model(*inputs))


def made_by(session: ingot.Session, work: Callable[[], Any]) -> int:
    before = session.cache_stats()["made"]
    work()
    return session.cache_stats()["made"] - before


def test_another_model_of_equal_layers_compiles_nothing(session: ingot.Session) -> None:
    x = torch.randn(8, 32)
    for count in (2, 5):
        model = layers(count)
        made = made_by(session, lambda model=model: same(ingot.compile(model, inputs=[x]), model, x))
        assert (made == 0) == (count == 5)
    assert session.cache_stats()["from_memory"] > 0


def test_parts_around_a_graph_break_share_kernels(session: ingot.Session) -> None:
    model, x = layers(4), torch.randn(8, 32)

    def broken(x: torch.Tensor) -> torch.Tensor:
        for layer in model:
            x = layer(x)
            torch._dynamo.graph_break()
        return x

    made = made_by(session, lambda: same(torch.compile(broken, backend=backend), broken, x))
    torch._dynamo.reset()
    with ingot.Session() as alone:
        one = layers(1)
        assert made == made_by(alone, lambda: same(torch.compile(one, backend=backend), one, x)) > 0


def test_a_recompilation_for_a_flag_compiles_what_the_flag_changed(session: ingot.Session) -> None:
    model = layers(2)

    def switched(x: torch.Tensor, add: bool) -> torch.Tensor:
        return model(x) + 1 if add else model(x) * 3

    compiled, x = torch.compile(switched, backend=backend), torch.randn(8, 32)
    first = made_by(session, lambda: same(compiled, switched, x, True))
    assert 0 <= made_by(session, lambda: same(compiled, switched, x, False)) <= 1 < first


def test_names_of_symbols_do_not_matter(session: ingot.Session) -> None:
    model = layers(1)
    batch, other = torch.export.Dim("batch", min=2, max=64), torch.export.Dim("rows", min=2, max=64)
    x = torch.randn(8, 32)
    for number, dim in enumerate((batch, other)):
        program = torch.export.export(model, (x,), dynamic_shapes=({0: dim},))
        made = made_by(session, lambda program=program: same(ingot.build(program), model, x))
        assert (made > 0) == (number == 0)


def test_options_that_leave_a_kernel_as_it_is_share_it(session: ingot.Session) -> None:
    model, x = layers(1), torch.randn(8, 32)
    for number, numerics in enumerate(("default", "strict")):
        made = made_by(
            session, lambda numerics=numerics: ingot.compile(model, inputs=[x], numerics=numerics)(x)
        )
        assert (made > 0) == (number == 0)


def test_sessions_know_nothing_of_each_other() -> None:
    model, x = layers(1), torch.randn(8, 32)

    def build() -> None:
        same(ingot.compile(model, inputs=[x]), model, x)

    process = ingot.cache_stats()
    with ingot.Session() as outer:
        made = made_by(outer, build)
        with ingot.Session() as inner:
            assert made_by(inner, build) == made > 0
            assert ingot.cache_stats() == inner.cache_stats()
        assert made_by(outer, build) == 0
    assert ingot.cache_stats() == process
    assert outer.cache_stats()["entries"] == 0, "what is left keeps nothing"


def test_a_session_without_room_finds_nothing() -> None:
    model, x = layers(2), torch.randn(8, 32)
    with ingot.Session(cache_bytes=0) as session:
        made = [made_by(session, lambda: same(ingot.compile(model, inputs=[x]), model, x)) for _ in range(2)]
    assert made[0] == made[1] > 0
    assert session.cache_stats()["entries"] == 0


def kept_by(session: ingot.Session) -> dict[str, int]:
    with session:
        for width in (16, 24, 40, 56):
            model, x = nn.Sequential(nn.Linear(width, width), nn.Softmax(-1)).eval(), torch.randn(4, width)
            same(ingot.compile(model, inputs=[x]), model, x)
        return session.cache_stats()


@pytest.mark.parametrize(("share", "remedy"), [(0.75, "compressed"), (0.1, "evicted")])
def test_a_session_keeps_its_bound(share: float, remedy: str) -> None:
    bound = int(share * kept_by(ingot.Session())["bytes"])
    stats = kept_by(ingot.Session(cache_bytes=bound))
    assert stats["bytes"] <= stats["capacity"] == bound
    assert stats[remedy] > 0


def test_threads_build_a_kernel_once(session: ingot.Session) -> None:
    model, x = layers(1), torch.randn(8, 32)
    programs = [torch.export.export(model, (x,)) for _ in range(4)]
    with ingot.Session() as alone:
        made = made_by(alone, lambda: ingot.build(programs[0]))

    def build(program: torch.export.ExportedProgram) -> None:
        with session:
            same(ingot.build(program), model, x)

    threads = [threading.Thread(target=build, args=(program,)) for program in programs]
    before = session.cache_stats()["made"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert session.cache_stats()["made"] - before == made
