# SPDX-License-Identifier: Apache-2.0
"""Arguments of wrong kinds: public functions name them in a UserError, and do nothing else."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from ingot import distributed

_X = torch.ones(2, 4)
_KINDS = (None, True, 0, 1, -1, 2**70, 1.5, math.nan, math.inf, "", "\0", "a\0b", "nothing", b"x", (), [None], {1: 2},
          object(), int, torch.float32, _X, _X[:0], np.zeros(3), 2j, torch.Size([2, 3]), {1}, print)  # fmt: skip


class _Compiled:
    """What the calls below are about."""

    def __init__(self, folder: Path) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()
        self.module = ingot.compile(self.model, inputs=[_X])
        self.engine = self.module.engine
        self.file, self.new_file = folder / "model.ingot", folder / "new"
        self.engine.save(self.file)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> _Compiled:
    return _Compiled(tmp_path_factory.mktemp("models"))


def _load_with(name: str) -> Callable[[_Compiled, Any], Any]:
    return lambda on, value: ingot.Engine.load(on.file, **{name: value})


def _quantize_with(name: str) -> Callable[[_Compiled, Any], Any]:
    return lambda on, value: ingot.quantize(on.model, [(_X,)], **{name: value})


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value and value != ""


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) and value == value


def _is_none(value: Any) -> bool:
    return value is None


def _never(value: Any) -> bool:
    return False


# The call, and which of the values it takes.
_CALLS: dict[str, tuple[Callable[[_Compiled, Any], Any], Callable[[Any], bool]]] = {
    "load": (lambda on, value: ingot.load(value), _never),
    "load weights": (lambda on, value: ingot.load(on.file, weights=value), _is_none),
    "Engine.load": (lambda on, value: ingot.Engine.load(value), _never),
    **{f"Engine.load {name}": (_load_with(name), _never) for name in ("verify", "trust", "memory")},
    "Engine.load keys": (_load_with("trusted_keys"), lambda value: value == "" or _is_name(value)),
    "Engine.load cpu": (_load_with("cpu"), lambda value: isinstance(value, str)),
    "Engine.load budget": (_load_with("weight_budget"), lambda value: isinstance(value, str)),
    "Engine.load check_indices": (_load_with("check_indices"), _never),
    "Engine.load cuda_graphs": (_load_with("cuda_graphs"), lambda value: isinstance(value, bool)),
    "load check_indices": (lambda on, value: ingot.load(on.file, check_indices=value), _never),
    "load cuda_graphs": (
        lambda on, value: ingot.load(on.file, cuda_graphs=value),
        lambda value: isinstance(value, bool),
    ),
    "load_cross_compiled": (lambda on, value: ingot.load_cross_compiled_exported_program(value), _never),
    "build": (lambda on, value: ingot.build(value), _never),
    "onnx folder": (lambda on, value: ingot.onnx.compile(b"x", folder=value), _never),
    "compile": (lambda on, value: ingot.compile(value, inputs=[_X]), _never),
    "compile ir": (lambda on, value: ingot.compile(on.model, ir=value, inputs=[_X]), _never),
    "dynamo.compile": (lambda on, value: ingot.dynamo.compile(value), _never),
    "Input": (lambda on, value: ingot.Input((value, 4)), lambda value: value in (True, 0, 1)),
    "save format": (lambda on, value: ingot.save(on.module, on.new_file, value), _never),
    "export_onnx": (lambda on, value: ingot.export_onnx(value, on.new_file), _never),
    "export_onnx stage": (
        lambda on, value: ingot.export_onnx(on.module, on.new_file, stage=value),
        lambda value: isinstance(value, str),
    ),
    "metrics": (lambda on, value: ingot.metrics(value), _is_none),
    "explain": (lambda on, value: ingot.explain(value), lambda value: isinstance(value, str)),
    "profile runs": (lambda on, value: ingot.profile(on.module, _X, runs=value), lambda value: value in (1, 2**70)),
    "cache_flush": (lambda on, value: ingot.cache_flush(value), _is_number),
    "wait_until_tuned": (
        lambda on, value: ingot.wait_until_tuned(on.module, value),
        lambda value: value is None or _is_number(value),
    ),
    "compare model": (lambda on, value: ingot.compare(value, on.module, [_X]), _never),
    "compare inputs": (lambda on, value: ingot.compare(on.model, on.module, value), _never),
    "bisect": (lambda on, value: ingot.bisect(value, [_X]), _never),
    "bisect is_wrong": (
        lambda on, value: ingot.bisect(on.model, [_X], is_wrong=value),
        lambda value: value is None or callable(value),
    ),
    "bisect reference": (
        lambda on, value: ingot.bisect(on.model, [_X], reference=value),
        lambda value: value is None or isinstance(value, tuple),
    ),
    "bisect rtol": (
        lambda on, value: ingot.bisect(on.model, [_X], rtol=value),
        lambda value: _is_number(value) and value >= 0,
    ),
    "quantize data": (lambda on, value: ingot.quantize(on.model, value, [_X]), _never),
    "quantize cache": (_quantize_with("cache"), lambda value: value is None or _is_name(value)),
    "quantize keep_precision": (_quantize_with("keep_precision"), lambda value: value == ()),
    "quantize activations": (_quantize_with("activations"), _is_none),
    "quantize method": (_quantize_with("method"), _is_none),
    "quantize progress": (_quantize_with("progress"), lambda value: value is None or callable(value)),
    "enable_cudagraphs": (lambda on, value: ingot.runtime.enable_cudagraphs(value), callable),
    "join address": (lambda on, value: distributed.join(value, 0, 1), lambda value: isinstance(value, str)),
    "join rank": (lambda on, value: distributed.join("127.0.0.1:0", value, 1), lambda value: value is not True and value == 0),
    "join name": (
        lambda on, value: distributed.join("127.0.0.1:0", 0, 1, name=value),
        lambda value: isinstance(value, str),
    ),
    "join deadline": (
        lambda on, value: distributed.join("127.0.0.1:0", 0, 1, deadline=value),
        lambda value: value in (True, 0, 1, -1, 1.5),
    ),
    "listen": (lambda on, value: distributed.listen(value), _never),
    "bind": (lambda on, value: distributed.bind(on.engine, value), _never),
    "shards_of": (lambda on, value: distributed.shards_of(value), _never),
}  # fmt: skip


def _is_taken(takes: Callable[[Any], bool], value: Any) -> bool:
    return not isinstance(value, (torch.Tensor, np.ndarray)) and takes(value)


@pytest.mark.parametrize("name", _CALLS)
def test_wrong_arguments_are_user_errors(name: str, compiled: _Compiled) -> None:
    call, takes = _CALLS[name]
    for value in _KINDS:
        if _is_taken(takes, value):
            continue
        with pytest.raises(ingot.UserError) as raised:
            call(compiled, value)
        assert raised.value.code, repr(value)


@pytest.mark.parametrize("value", [1, True, -1, b"x", None, 1.5, "", "\0", "a\0b", "\ud800"], ids=repr)
def test_paths_are_checked_before_anything_is_opened(
    value: Any, compiled: _Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A number would be an open file, such as stdout, which Python closes after it was read; C ends a name at NUL."""
    monkeypatch.chdir(tmp_path)
    writers = (
        compiled.engine.save,
        lambda path: ingot.save(compiled.module, path),
        lambda path: ingot.export_onnx(compiled.engine, path),
        ingot.report(compiled.module).save_html,
        ingot.profile(compiled.module, _X, runs=1).save_trace,
        lambda path: ingot.cross_compile_for_windows(compiled.model, path, [_X]),
    )
    for call in (ingot.load, ingot.Engine.load, compiled.engine.refit, compiled.module.refit, *writers):
        with pytest.raises(ingot.UserError):
            call(value)
    assert not list(tmp_path.iterdir())
    os.fstat(1)


def test_names_of_files_may_have_any_bytes(compiled: _Compiled, tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff folder")
    folder.mkdir()
    engine, program, script = folder / "engine", folder / "model.pt2", folder / "script"
    compiled.engine.save(engine)
    ingot.save(compiled.module, program)
    ingot.save(compiled.module, script, "torchscript")
    expected = compiled.module(_X)
    for path in (engine, program, script):
        assert torch.equal(torch.as_tensor(ingot.load(path)(_X)), expected)
    ingot.report(compiled.module).save_html(folder / "report.html")
    ingot.export_onnx(engine, folder / "engine.onnx")
    exported = folder / "exported.pt2"
    torch.export.save(torch.export.export(compiled.model, (_X,)), str(tmp_path / "exported.pt2"))
    (tmp_path / "exported.pt2").rename(exported)
    assert torch.equal(ingot.build(exported)(_X), expected)
    compiled.module.refit(exported)
    assert torch.equal(compiled.module(_X), expected)
    assert ingot.bisect(exported, [_X]) is None


def test_errors_show_names_of_files_with_any_bytes(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"\xff")
    for call in (ingot.load, ingot.Engine.load, ingot.build, ingot.ts.compile):
        with pytest.raises(ingot.UserError, match="INGOT-U120") as raised:
            call(path)
        str(raised.value).encode()


class _Product(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x @ y


_FITTING = torch.ones(4, 3), torch.ones(3, 5)
_ROWS = {"x": {0: torch.export.Dim("rows", min=4, max=8)}, "y": None}
_UNFIT = {
    "size": (1, torch.ones(3, 6), r"input y: its dim 1 is 6, and the program was exported for 5"),
    "size of one": (1, torch.ones(1, 5), r"input y: its dim 0 is 1, and"),
    "empty": (1, torch.ones(3, 0), r"input y: its dim 1 is 0, and"),
    "above": (0, torch.ones(9, 3), r"input x: its dim 0 is 9, and the program was exported for 4(..8)?"),
    "below": (0, torch.ones(3, 3), r"input x: its dim 0 is 3, and the program was exported for 4(..8)?"),
    "rank": (0, torch.ones(3), r"input x: it has 1 dims, and the program was exported for 2"),
    "dtype": (0, torch.ones(4, 3).double(), r"input x: it is torch.float64, and"),
}


@pytest.mark.parametrize("shapes", [None, _ROWS], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", _UNFIT)
def test_tensors_that_calls_of_the_program_could_not_have(name: str, shapes: Any) -> None:
    """At once, by position and by name; those of any call are taken."""
    program = torch.export.export(_Product(), _FITTING, dynamic_shapes=shapes)
    position, tensor, message = _UNFIT[name]
    inputs = list(_FITTING)
    inputs[position] = tensor
    keywords = {"xy"[position]: tensor}
    for call in (
        lambda: ingot.dynamo.compile(program, inputs),
        lambda: ingot.compile(program, inputs=inputs),
        lambda: ingot.dynamo.build(program, inputs=inputs),
        lambda: ingot.dynamo.compile(program, kwarg_inputs=keywords),
    ):
        with pytest.raises(ingot.UserError, match=message) as raised:
            call()
        assert raised.value.code == "INGOT-U011"
    fitting = (torch.ones(6, 3) if shapes else torch.ones(4, 3), torch.zeros(3, 5))
    compiled = ingot.dynamo.compile(program, fitting)
    assert torch.equal(compiled(*_FITTING), _FITTING[0] @ _FITTING[1])
