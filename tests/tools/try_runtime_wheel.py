# SPDX-License-Identifier: Apache-2.0
"""Checks of an installed wheel without the compiler: try_runtime_wheel.py FOLDER, with what make_runtime_models.py wrote. Needs
numpy; uses torch if it is there."""

from __future__ import annotations

import functools
import importlib.util
import pickle
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import ingot
import numpy as np

FOLDER = Path(sys.argv[1])


def code_of(call: Callable[[], object]) -> str:
    """Of the ingot.Error that a call raises."""
    try:
        call()
    except ingot.Error as error:
        return error.code
    return ""


def try_engine() -> None:
    engine = ingot.Engine.load(FOLDER / "layers.ingot")
    x, want = np.load(FOLDER / "x.npy"), np.load(FOLDER / "layers.npy")
    assert np.array_equal(engine(x), want)
    assert np.array_equal(engine(np.asfortranarray(x)), want)
    assert np.array_equal(engine(**{engine.inputs[0].name: x}), want)
    assert np.array_equal(pickle.loads(pickle.dumps(engine))(x), want)
    assert np.array_equal(ingot.Engine.from_bytes(engine.to_bytes(), verify="full")(x), want)
    wrong = [x.astype(np.float64), x[:, :7], np.zeros((10, 8), np.float32), "text", None]
    codes = [code_of(lambda value=value: engine(value)) for value in wrong]
    assert codes == ["INGOT-U302", "INGOT-U303", "INGOT-U305", "INGOT-U309", "INGOT-U309"], codes
    assert code_of(lambda: ingot.Engine.load("missing.ingot")) == "INGOT-U120"
    results: list[bool] = []
    threads = [
        threading.Thread(target=lambda: results.append(np.array_equal(engine(x), want))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8


def try_without_compiler() -> None:
    for call in (
        lambda: ingot.compile(None, inputs=[]),
        lambda: ingot.build("model.pt2"),
        lambda: ingot.onnx.compile("model.onnx"),
        lambda: ingot.cross_compile_for_windows(None, "model.ingot"),
    ):
        assert code_of(call) == "INGOT-U038"
    assert "without the compiler" in ingot.explain("U038")


def try_torch() -> None:
    """Programs that torch runs in part."""
    import torch

    x, scale = torch.from_numpy(np.load(FOLDER / "x.npy")), torch.full((1,), 2.0)
    engine = ingot.Engine.load(FOLDER / "layers.ingot")
    assert torch.equal(engine(x), torch.from_numpy(np.load(FOLDER / "layers.npy")))
    for name in ("whole.pt2", "hybrid.pt2"):
        module = ingot.load_cross_compiled_exported_program(FOLDER / name)
        result = module(x, scale=scale)
        for key, value in np.load(FOLDER / f"{name}.npz").items():
            assert torch.equal(result[key], torch.from_numpy(value)), (name, key)
        assert code_of(functools.partial(module, x[:, :7], scale=scale)) == "INGOT-U303"
        exported = torch.export.load(FOLDER / name).module()  # by the operator ingot::run
        assert torch.equal(exported(x, scale=scale)["result"], result["result"])
    assert any(segment.backend == "torch" for segment in ingot.report(module).segments)
    assert code_of(lambda: ingot.report(module).html()) == "INGOT-U038"


has_torch = importlib.util.find_spec("torch") is not None
assert ingot._core.__name__ == "ingot._ctypes"
try_engine()
try_without_compiler()
assert "torch" not in sys.modules
if has_torch:
    try_torch()
version = ".".join(map(str, sys.version_info[:2]))
others = f"numpy {np.__version__}, {'torch' if has_torch else 'no torch'}"
print(f"Python {version}, {others}: ingot {ingot.__version__} works without the compiler")
