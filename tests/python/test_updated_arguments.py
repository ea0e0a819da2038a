# SPDX-License-Identifier: Apache-2.0
"""Arguments that a model updates in place: read-only memory is rejected, autograd is notified otherwise."""

import sys

import ingot
import numpy as np
import pytest
import torch
from lacking import negated

pytestmark = pytest.mark.usefixtures("binding")


class Add(torch.nn.Module):
    def forward(self, cache, x):
        cache.add_(x)
        return cache * 2


@pytest.fixture(scope="module")
def module(binding):
    return ingot.compile(Add(), inputs=[torch.zeros(64), torch.ones(64)])


@pytest.fixture
def engine(module, tmp_path):
    ingot.save(module, tmp_path / "add.ingot", output_format="engine")
    return ingot.Engine.load(tmp_path / "add.ingot")


ONES = np.ones(64, np.float32)


def refuses(call) -> bool:
    with pytest.raises(ingot.UserError, match=r"INGOT-U315|input 'cache'.*read-only") as caught:
        call()
    return caught.value.code == "INGOT-U315"


def test_bytes_stay_as_they_are(engine):
    content = bytes(256)
    assert refuses(lambda: engine(np.frombuffer(content, np.float32), ONES))
    assert content == bytes(256)


def test_read_only_arrays_and_maps_are_refused(engine, tmp_path):
    array = np.zeros(64, np.float32)
    array.flags.writeable = False
    assert refuses(lambda: engine(array, ONES))
    (tmp_path / "zeros").write_bytes(bytes(256))
    assert refuses(lambda: engine(np.memmap(tmp_path / "zeros", np.float32, mode="r"), ONES))


def test_arrays_that_can_be_written_are(engine):
    array = np.zeros(64, np.float32)
    read_only = ONES.copy()
    read_only.flags.writeable = False  # of an argument that is only read
    assert np.array_equal(engine(array, read_only), 2 * ONES)
    assert np.array_equal(array, ONES)


def test_autograd_notices_the_update(module):
    for call in (module, torch.compile(Add(), backend="ingot")):
        cache, x = torch.zeros(64), torch.ones(64)
        call(cache, x)
        before, before_x = cache._version, x._version
        call(cache, x)
        assert cache._version > before
        assert x._version == before_x
        weight = torch.ones(64, requires_grad=True)
        product = (weight * cache).sum()
        call(cache, x)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            product.backward()


def test_inference_tensors_have_no_version(module):
    with torch.inference_mode():
        cache = torch.zeros(64)
        module(cache, torch.ones(64))
        assert torch.equal(cache, torch.ones(64))


class AddInParts(torch.nn.Module):
    def forward(self, cache, x):
        product = negated(cache * 2)  # torch runs it
        cache.add_(x)
        return product


def made_in_inference_mode():
    with torch.inference_mode():
        return torch.zeros(64)


# Arguments that eager does not write; the modes in which it does.
FIXED = {
    "leaf": (lambda: torch.zeros(64, requires_grad=True), torch.no_grad),
    "parameter": (lambda: torch.nn.Parameter(torch.zeros(64)), torch.inference_mode),
    "view of a leaf": (lambda: torch.zeros(80, requires_grad=True)[8:72], torch.no_grad),
    "inference tensor": (made_in_inference_mode, torch.inference_mode),
}


@pytest.mark.parametrize("way", ["module", "engine", "in parts", "jit"])
@pytest.mark.parametrize("kind", FIXED)
def test_what_torch_does_not_write_is_refused(kind, way, module):
    model = AddInParts() if way == "in parts" else Add()
    make = {"module": lambda: module, "engine": lambda: module.engine, "jit": lambda: torch.compile(model, backend="ingot")}  # fmt: skip
    call = make.get(way, lambda: ingot.compile(model, inputs=[torch.zeros(64), torch.ones(64)]))()
    tensor, writing = FIXED[kind]
    for _ in range(3):  # the views of a call's tensors are remembered
        cache, x = tensor(), torch.ones(64)
        call(torch.zeros(64), x)
        with pytest.raises(RuntimeError):
            model(tensor(), x)  # torch writes some before it refuses
        with pytest.raises((ingot.UserError, RuntimeError)) as info:
            call(cache, x)
        assert way == "jit" or info.value.code == "INGOT-U338"
        assert way == "jit" or "cache" in str(info.value)
        assert not cache.detach().any()
        with writing():
            call(cache, x)
        assert (cache.detach() == 1).all()
        with pytest.raises((ingot.UserError, RuntimeError)):  # what the last call could write
            call(cache, x)
        assert (cache.detach() == 1).all()


@pytest.mark.parametrize("way", ["module", "engine"])
def test_what_becomes_a_leaf_is_refused(way, module):
    call, cache, x = module if way == "module" else module.engine, torch.zeros(64), torch.ones(64)
    for _ in range(3):
        call(cache, x)
    cache.requires_grad_()
    with pytest.raises(ingot.UserError, match="INGOT-U338"):
        call(cache, x)
    with torch.no_grad():
        call(cache, x)
    call(cache.requires_grad_(False), x)
    assert (cache == 5).all()


def test_what_is_only_read_may_be_such(module):
    for make, _ in FIXED.values():
        cache = torch.zeros(64)
        module.engine(cache, make().detach() + 1)
        module(cache, make())
        assert (cache == 1).all()


class AddToAll(torch.nn.Module):
    def forward(self, x, *caches):
        for cache in caches:
            cache.add_(x)
        return x * 2


@pytest.mark.parametrize("make", [lambda: ingot.compile(AddToAll(), inputs=[torch.ones(4)] * 5),
                                  lambda: torch.compile(AddToAll(), backend="ingot")], ids=["ahead", "jit"])  # fmt: skip
def test_each_of_them_counts_its_versions(make):
    call, x = make(), torch.ones(4)
    caches = [torch.zeros(4) for _ in range(4)]
    with torch.inference_mode():
        caches[1] = torch.zeros(4)  # has no version
    with torch.inference_mode():
        call(x, *caches)
        before = [cache._version for cache in caches if not cache.is_inference()]
        call(x, *caches)
    assert all(torch.equal(cache, 2 * x) for cache in caches)
    after = [cache._version for cache in caches if not cache.is_inference()]
    assert len(after) == 3
    assert all(new > old for new, old in zip(after, before, strict=True))
    assert x._version == 0


def test_calls_that_write_go_straight_to_the_engine(binding):
    """Past torch's wrapper of graphs, and what is in it: Python of this package. By ctypes everything is."""

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(4))

        def forward(self, x, cache):
            self.total.add_(x)
            cache.mul_(2)
            return x + self.total

    model, files = Model(), []
    call = torch.compile(model, backend="ingot")
    x, cache = torch.ones(4), torch.ones(4)
    with torch.no_grad():
        call(x, cache)
        sys.setprofile(lambda frame, event, _: files.append(frame.f_code.co_filename))
        try:
            result = call(x, cache)
        finally:
            sys.setprofile(None)
    assert files
    assert any(file.endswith("torch_backend.py") for file in files) is (binding == "ctypes")
    assert torch.equal(result, torch.full((4,), 3.0))
    assert torch.equal(cache, torch.full((4,), 4.0))


class Reset(torch.nn.Module):
    """The written value has another dtype, and fewer dims."""

    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(3, 4))

    def forward(self, x, row):
        self.state.copy_(row.mT if row.dim() == 0 else row)
        x.copy_(row)
        return x + 1


@pytest.mark.parametrize("row", [torch.tensor(3), torch.arange(4), torch.ones(3, 1, dtype=torch.bool)],
                         ids=["number", "row", "column"])  # fmt: skip
def test_what_is_written_is_broadcast_and_converted(row, tmp_path):
    program = torch.export.export(Reset(), (torch.zeros(3, 4), row))
    torch.export.save(program, tmp_path / "reset.pt2")
    for compiled in (ingot.compile(program), ingot.build(str(tmp_path / "reset.pt2"))):
        x, want = torch.zeros(3, 4), row.float().expand(3, 4)
        torch.testing.assert_close(compiled(x, row), want + 1)
        torch.testing.assert_close(x, want.clone())


SAME = [torch.Tensor.contiguous, lambda x: x.to(x.dtype), lambda x: x.type_as(x), lambda x: x.reshape(6),
        lambda x: x.expand_as(x), lambda x: x.detach()]  # fmt: skip


@pytest.mark.parametrize("write", [lambda x: x.add_(1), lambda x: x.copy_(x.roll(1)), lambda x: x[1:].mul_(2)],
                         ids=["add", "roll", "part"])  # fmt: skip
@pytest.mark.parametrize("same", SAME, ids=["contiguous", "to", "type_as", "reshape", "expand_as", "detach"])
def test_other_names_of_an_argument_are_the_argument(same, write, tmp_path):
    class Model(torch.nn.Module):
        def forward(self, x):
            other = same(x)
            first = x + other
            write(x)
            write(other)
            return first, x * 2, other * 3

    program = torch.export.export(Model(), (torch.arange(6.0),))
    torch.export.save(program, tmp_path / "model.pt2")
    for compiled in (ingot.compile(program), ingot.build(str(tmp_path / "model.pt2"))):
        x, y = torch.arange(6.0), torch.arange(6.0)
        torch.testing.assert_close(compiled(x), Model()(y))
        torch.testing.assert_close(x, y)


# Arguments of a call in one memory of ten elements: what is written, and what is read beside it.
SHARED = {
    "same": lambda memory: (memory[:8], memory[:8]),
    "written first": lambda memory: (memory[:8], memory[2:]),
    "written last": lambda memory: (memory[2:], memory[:8]),
}


class ReadsBefore(torch.nn.Module):
    """Its engine may write x before it reads y."""

    def __init__(self, in_parts: bool):
        super().__init__()
        self.in_parts = in_parts

    def forward(self, x, y):
        doubled = y * 2
        x.mul_(3)
        if self.in_parts:
            doubled = negated(doubled)  # torch runs it
        return doubled + x


def rejects_shared_memory(call, arguments) -> None:
    with pytest.raises(
        ingot.UserError, match=r"is updated in place, but input '.*' overlaps it in memory"
    ) as error:
        call(*arguments)
    assert error.value.code == "INGOT-U314"


@pytest.mark.parametrize("in_parts", [False, True], ids=["whole", "in_parts"])
@pytest.mark.parametrize("arguments", SHARED.values(), ids=SHARED)
def test_written_arguments_share_no_memory(arguments, in_parts):
    model, apart = ReadsBefore(in_parts), (torch.ones(8), torch.ones(8))
    module = ingot.compile(model, inputs=list(apart))
    assert bool(module.report.fallbacks) is in_parts
    memory = torch.arange(10.0)
    rejects_shared_memory(module, arguments(memory))
    assert torch.equal(memory, torch.arange(10.0))
    if in_parts:
        return
    compiled = torch.compile(model, backend="ingot")
    compiled(*apart)
    rejects_shared_memory(compiled, arguments(memory))
    rejects_shared_memory(module.engine, arguments(memory))
    array = np.arange(10, dtype=np.float32)
    rejects_shared_memory(module.engine, arguments(array))
    assert np.array_equal(array, memory)


def test_arguments_beside_each_other_are_apart():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            x.add_(1)
            return x.sum() + y.sum()

    model = Model()
    dynamic = {0: torch.export.Dim.AUTO}
    program = torch.export.export(model, (torch.ones(4), torch.ones(4)), dynamic_shapes=(dynamic, dynamic))
    module = ingot.compile(program)
    for make in (lambda memory: (memory[:4], memory[4:]), lambda memory: (memory[4:], memory[:4])):
        memory, wanted = torch.arange(8.0), torch.arange(8.0)
        torch.testing.assert_close(module(*make(memory)), model(*make(wanted)))
        torch.testing.assert_close(memory, wanted)


class Append(torch.nn.Module):
    def forward(self, x, count, cache):
        cache.add_(x)
        return cache * count


def rows(low, high):
    return ingot.Input(min_shape=(low, 3), max_shape=(high, 3))


def test_their_sizes_have_ranges():
    module = ingot.compile(Append(), inputs=[rows(2, 9), 2, rows(2, 9)])
    for size in (2, 7):
        cache = torch.zeros(size, 3)
        assert torch.equal(module(torch.ones(size, 3), 2, cache), torch.full((size, 3), 2.0))
        assert cache.sum() == 3 * size
    with pytest.raises(ingot.UserError, match="INGOT-U305"):
        module(torch.ones(10, 3), 2, torch.zeros(10, 3))


@pytest.mark.parametrize("name", ["cache", "1", "x", "0"])
def test_the_option_shapes_names_them_or_counts_the_tensors(name):
    size = torch.export.Dim("size", min=2, max=9)
    example = (torch.ones(4, 3), 2, torch.zeros(4, 3))
    program = torch.export.export(Append(), example, dynamic_shapes=({0: size}, None, {0: size}))
    engine = ingot.build(program, shapes=f"{name}:2..4x3")
    assert engine(np.ones((4, 3), np.float32), 2, np.zeros((4, 3), np.float32)).sum() == 24
    with pytest.raises(ingot.UserError, match="INGOT-U305"):
        engine(np.ones((5, 3), np.float32), 2, np.zeros((5, 3), np.float32))
