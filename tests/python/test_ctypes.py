# SPDX-License-Identifier: Apache-2.0
"""The C API by ctypes: what it shares with the extension, and what can go wrong in it alone. Other tests run by both (`binding`)."""

from __future__ import annotations

import copy
import ctypes
import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from ingot import _core, _ctypes
from ingot._ctypes import library
from small_models import mlp


class Long(torch.nn.Module):
    """Takes as long as its argument says."""

    def forward(self, x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        def step(k: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return k + 1, torch.tanh(value @ value)

        return torch.while_loop(lambda k, value: k < count, step, (torch.zeros((), dtype=torch.int64), x))[1]


class Wide(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return x.to(torch.bfloat16), x[:0], x.sum()


@pytest.fixture(scope="module")
def content() -> bytes:
    torch.manual_seed(0)
    rows = ingot.Input(min_shape=(1, 8), opt_shape=(4, 8), max_shape=(64, 8))
    return ingot.compile(mlp(), inputs=[rows]).engine.to_bytes()


@pytest.fixture
def by_ctypes(content: bytes) -> ingot.Engine:
    return ingot.Engine(_ctypes.Engine.load_memory(content))


@pytest.fixture(scope="module")
def long() -> ingot.Engine:
    module = ingot.compile(Long(), inputs=[torch.eye(256), torch.tensor(3)], require_full_compilation=True)
    return ingot.Engine(_ctypes.Engine.load_memory(module.engine.to_bytes()))


@pytest.fixture
def alarm() -> Iterator[Callable[[float], None]]:
    """Raises KeyboardInterrupt in the main thread, as Ctrl-C does, after so many seconds."""

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# ---- inputs ----
class _Pair(ctypes.Structure):
    """Its buffer has a format of two elements."""

    _fields_ = (("first", ctypes.c_float), ("second", ctypes.c_float))


def inputs_that_are_rejected() -> dict[str, Any]:
    x = torch.randn(3, 8)
    frozen = np.ones((3, 8), dtype=[("a", "f4")])
    return {
        "text": "text",
        "none": None,
        "list": [[1.0] * 8],
        "f64": x.double(),
        "size": x[:, :7],
        "rank": x[0],
        "range": torch.randn(65, 8),
        "sparse": x.to_sparse(),
        "meta": x.to("meta"),
        "complex": torch.complex(x, x),
        "conjugate": torch.complex(x, x).conj(),
        "quantized": torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
        "nested": torch.nested.nested_tensor([x]),
        "big endian": x.numpy().astype(">f4"),
        "structure": frozen,
        "floats in pairs": np.zeros((3, 8), dtype=[("a", "f4"), ("b", "f4")]),
        "a buffer of pairs": (_Pair * 8)(),
        "an empty structure": np.zeros((3, 8), dtype=[]),
        "objects": np.array([[None] * 8]),
        "dates": np.zeros((3, 8), "M8[s]"),
        "long double": np.zeros((3, 8), np.longdouble),
        "masked": np.ma.masked_array(x.numpy(), mask=x.numpy() > 0),
        "odd strides": np.ndarray((3, 8), np.float32, bytes(1000), strides=(33, 4)),
        "bytes": b"12345678",
    }


@pytest.mark.parametrize("name", list(inputs_that_are_rejected()))
@pytest.mark.filterwarnings("ignore")
def test_rejections_have_the_same_code_and_text(content: bytes, by_ctypes: ingot.Engine, name: str) -> None:
    value = inputs_that_are_rejected()[name]
    texts = []
    for engine in (ingot.Engine(_core.Engine.load_memory(content)), by_ctypes):
        with pytest.raises(ingot.Error) as caught:
            engine(value)
        texts.append((type(caught.value), caught.value.code, str(caught.value)))
    assert texts[0] == texts[1]


def test_inputs_of_all_layouts(by_ctypes: ingot.Engine, content: bytes) -> None:
    x = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)
    read_only = x[:4, :8].copy()
    read_only.flags.writeable = False
    extension = ingot.Engine(_core.Engine.load_memory(content))
    for value in (x[:4, :8], x[::2, ::-2], x[:0:-9, 4:12], x[:8, :4].T, read_only, memoryview(read_only)):
        y = by_ctypes(value)
        assert isinstance(y, np.ndarray)
        assert np.array_equal(y, extension(value))
        if isinstance(value, np.ndarray):
            tensor = by_ctypes(torch.from_numpy(x[:4, :8])[:, :])
            assert isinstance(tensor, torch.Tensor)


# ---- outputs ----
def test_outputs_own_their_memory() -> None:
    engine = ingot.Engine(
        _ctypes.Engine.load_memory(ingot.compile(Wide(), inputs=[torch.ones(3, 5)]).engine.to_bytes())
    )
    x = torch.randn(3, 5)
    narrow, none, total = engine(x)
    del engine
    gc.collect()
    assert torch.equal(narrow, x.to(torch.bfloat16))
    assert none.shape == (0, 5)
    torch.testing.assert_close(total, x.sum())
    assert narrow.data_ptr() % 64 == 0
    narrow.zero_()
    assert narrow.sum() == 0


def test_numpy_has_no_bf16() -> None:
    built = ingot.compile(Wide(), inputs=[torch.ones(3, 5)]).engine.to_bytes()
    texts = []
    for kind in (_core, _ctypes):
        with pytest.raises(ingot.UserError) as caught:
            ingot.Engine(kind.Engine.load_memory(built))(np.ones((3, 5), np.float32))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


class Counting(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.calls.add_(1)
        return x.to(torch.bfloat16), self.calls.clone()


@pytest.mark.parametrize("kind", [_core, _ctypes])
def test_calls_without_a_dtype_for_their_outputs_leave_states_alone(kind: Any) -> None:
    x = torch.ones(3)
    built = ingot.compile(torch.export.export(Counting(), (x,))).engine
    engine = ingot.Engine(kind.Engine.load_memory(built.to_bytes()))
    for expected in (1, 2):
        with pytest.raises(ingot.UserError, match="no such dtype"):
            engine(x.numpy())
        assert engine(x)[1] == expected


def test_memory_of_outputs_is_returned() -> None:
    class Copies(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.repeat(64, 64)

    built = ingot.compile(Copies(), inputs=[torch.ones(8, 8)]).engine
    engine = ingot.Engine(_ctypes.Engine.load_memory(built.to_bytes()))
    x = np.ones((8, 8), np.float32)
    kept = engine(x)
    before = resident_bytes()
    for _ in range(400):  # of 1 MiB
        engine(x)
    assert resident_bytes() - before < 100 << 20
    assert kept.sum() == 8 * 8 * 64 * 64


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def test_memory_of_an_engine_is_used_until_it_is_freed(content: bytes) -> None:
    aligned = np.empty(len(content) + 64, np.uint8)
    place = aligned[-aligned.ctypes.data % 64 :][: len(content)]
    place[:] = np.frombuffer(content, np.uint8)
    count = sys.getrefcount(place)
    engine = ingot.Engine(_ctypes.Engine.load_memory(place))
    twin = copy.deepcopy(engine)
    assert sys.getrefcount(place) > count
    x = np.ones((2, 8), np.float32)
    want = engine(x)
    del engine
    gc.collect()
    assert np.array_equal(twin(x), want)
    assert sys.getrefcount(place) > count
    del twin
    gc.collect()
    assert sys.getrefcount(place) == count


# ---- threads, interrupts, processes ----
def test_errors_belong_to_their_thread(by_ctypes: ingot.Engine) -> None:
    """Half of the threads call with a wrong argument."""
    x = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
    want = by_ctypes(x)
    wrong = {1: (x.astype(np.float64), "INGOT-U302"), 3: (x[:, :3], "INGOT-U303"), 5: ("text", "INGOT-U309")}
    surprises: list[object] = []

    def call(number: int) -> None:
        value, code = wrong.get(number % 6, (x, ""))
        for _ in range(200):
            try:
                if code or not np.array_equal(by_ctypes(value), want):
                    by_ctypes(value)
                    surprises.append((number, "no error"))
            except ingot.UserError as error:
                if error.code != code:
                    surprises.append((number, error))

    threads = [threading.Thread(target=call, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert surprises == []


def test_other_threads_run_during_a_call(long: ingot.Engine) -> None:
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    begin = time.monotonic()
    long(np.eye(256, dtype=np.float32), np.array(400))
    end = time.monotonic()
    done.set()
    thread.join()
    assert sum(begin < at < end for at in ticks) > 2


def test_an_interrupt_arrives_after_the_run(
    long: ingot.Engine, alarm: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.eye(256, dtype=np.float32)
    want = long(x, np.array(2))
    contexts = len(long._core._idle)
    alarm(0.01)
    with pytest.raises(KeyboardInterrupt):
        _ = [long(x, np.array(50)) for _ in range(1000)]
    assert np.array_equal(long(x, np.array(2)), want)
    assert len(long._core._idle) == contexts
    assert capsys.readouterr().err == ""  # nothing was lost on the way


@pytest.mark.filterwarnings("error")  # an interrupt that arrives in a finalizer in Python is only printed
def test_many_interrupts_lose_nothing(by_ctypes: ingot.Engine, alarm: Callable[[float], None]) -> None:
    """At whatever line they arrive."""
    x = np.ones((64, 8), np.float32)
    want = by_ctypes(x)
    count = 0
    for k in range(300):
        try:
            alarm(0.0001 + k * 1e-6)
            for _ in range(100):
                by_ctypes(x)
        except KeyboardInterrupt:
            count += 1
    assert count > 100
    assert np.array_equal(by_ctypes(x), want)


def test_an_observers_exception_is_raised(by_ctypes: ingot.Engine) -> None:
    def fail(step: int, name: str, value: Any) -> None:
        raise LookupError(name)

    core = by_ctypes._core
    core.set_observer(fail)
    with pytest.raises(LookupError):
        by_ctypes(np.ones((4, 8), np.float32))
    seen: list[tuple] = []
    core.set_observer(lambda step, name, value: seen.append((step, value.shape)))
    by_ctypes(torch.ones(4, 8))
    assert seen
    core.set_observer(None)
    assert by_ctypes(np.ones((4, 8), np.float32)).shape[0] == 4


# ---- packages without the compiler ----
def run_python(script: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PYTHONPATH": str(Path(ingot.__file__).parents[1]), **variables}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_variable_chooses_the_binding() -> None:
    script = "import ingot; print(ingot._core.__name__)"
    for value, name in {"": "_core", "extension": "_core", "ctypes": "_ctypes"}.items():
        done = run_python(script, INGOT_PYTHON_BINDING=value)
        assert done.stdout.strip() == f"ingot.{name}", done.stderr
    done = run_python(script, INGOT_PYTHON_BINDING="cffi")
    assert "[INGOT-U015]" in done.stderr
    assert 'INGOT_PYTHON_BINDING is one of extension, ctypes, not "cffi"' in done.stderr


WITHOUT_COMPILER = """
import sys
import ingot
torch = None
if sys.argv[1] == "torch":
    import torch
else:
    sys.modules["torch"] = None
from ingot import building, onnx
calls = [
    lambda: ingot.compile(None, inputs=[]), lambda: ingot.build("model.pt2"), lambda: ingot.bisect(None, []),
    lambda: ingot.cross_compile_for_windows(None, "model.ingot"), lambda: ingot.onnx.compile(b""), lambda: onnx.has_operator("Gemm"),
    lambda: building.build("model.onnx"),
]
if torch is not None:
    model, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    calls += [
        lambda: torch.compile(model, backend="ingot")(x), lambda: ingot.dynamo.compile(torch.export.export(model, (x,)), (x,)),
        lambda: ingot.ts.compile(torch.jit.script(model), inputs=[x]), lambda: ingot.fx.compile(torch.fx.symbolic_trace(model), inputs=[x]),
        lambda: ingot.MutableModule(model),
    ]
for number, call in enumerate(calls):
    try:
        call()
    except ingot.UserError as error:
        assert error.code == "INGOT-U038", (number, error)
        assert "this package has no compiler" in str(error) and "build on Linux" in error.advice
    else:
        raise AssertionError(number)
print(len(calls))
"""


@pytest.mark.parametrize(("torch_is", "count"), [("torch", "12"), ("missing", "7")])
def test_what_needs_the_compiler_says_so(torch_is: str, count: str) -> None:
    done = run_python(WITHOUT_COMPILER, torch_is, INGOT_PYTHON_BINDING="ctypes")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == count


def test_weights_come_from_files(content: bytes, by_ctypes: ingot.Engine, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    torch.manual_seed(4)
    other = mlp()
    save_file(other.state_dict(), tmp_path / "other.safetensors")
    by_ctypes._core.refit_from_files([_ctypes.TensorFile(str(tmp_path / "other.safetensors"))], False)
    x = torch.randn(3, 8)
    with torch.no_grad():
        torch.testing.assert_close(by_ctypes(x), other(x))
    torch.export.save(torch.export.export(other, (x,)), tmp_path / "other.pt2")
    with pytest.raises(ingot.UserError, match="INGOT-U038"):
        _ctypes.TensorFile(str(tmp_path / "other.pt2"))


def test_a_missing_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"cannot be opened: .*missing\.so.*Install the wheel"):
        library.Library(tmp_path / "missing.so")
