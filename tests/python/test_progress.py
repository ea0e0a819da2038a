# SPDX-License-Identifier: Apache-2.0
"""What a build's progress callback returns and raises, and what handlers of signals raise while it runs."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import numpy as np
import pytest
import torch
from torch import nn

X = torch.randn(4, 16)
HYBRID = {"torch_executed_ops": ["aten.tanh"], "min_block_size": 1}


class _StoppedError(Exception):
    pass


class _Undecided:
    def __bool__(self) -> bool:
        raise _StoppedError


def _model() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 16)).eval()


def _ways(folder: Path) -> list[Callable[..., Any]]:
    model, path = _model(), folder / "model.pt2"
    program = torch.export.export(model, (X,))
    torch.export.save(program, path)

    def just_in_time(**options: Any) -> None:
        torch._dynamo.reset()
        try:
            with torch.no_grad():
                torch.compile(model, backend="ingot", options=options)(X)
        except (
            torch._dynamo.exc.BackendCompilerFailed
        ) as error:  # torch's, around every Exception of a backend
            raise error.inner_exception from error

    return [
        lambda **options: ingot.compile(model, inputs=[X], **options),
        lambda **options: ingot.compile(model, inputs=[X], **HYBRID, **options),
        lambda **options: ingot.build(program, **options),
        lambda **options: ingot.build(path, **options),
        lambda **options: ingot.bisect(model, [X], **options),
        just_in_time,
    ]


@pytest.mark.parametrize("kind", [_StoppedError, ValueError, SystemExit, KeyboardInterrupt])
def test_exceptions_of_the_callback_end_the_build(kind: type[BaseException], tmp_path: Path) -> None:
    def stop(*_: Any) -> None:
        raise kind("enough")

    for way in _ways(tmp_path):
        with pytest.raises(kind, match="enough"):
            way(progress=stop, reuse_cached_engines=False)


def test_a_callback_that_cannot_say_whether_to_go_on(tmp_path: Path) -> None:
    for way in _ways(tmp_path):
        with pytest.raises(_StoppedError):
            way(progress=lambda *_: _Undecided(), reuse_cached_engines=False)


@pytest.mark.parametrize("answer", [None, True, 1, "on", [0], np.bool_(True), 2.5])
def test_builds_go_on_with_what_is_true(answer: Any) -> None:
    calls = []

    def note(*row: Any) -> Any:
        calls.append(row)
        return answer

    ingot.compile(_model(), inputs=[X], progress=note, reuse_cached_engines=False)
    assert calls


@pytest.mark.parametrize("answer", [False, 0, "", [], np.bool_(False)])
def test_builds_end_with_what_is_false(answer: Any) -> None:
    with pytest.raises(ingot.UserError, match="INGOT-U010"):
        ingot.compile(_model(), inputs=[X], progress=lambda *_: answer, reuse_cached_engines=False)


def test_what_a_handler_raises_ends_the_build(tmp_path: Path) -> None:
    def alarm(*_: Any) -> None:
        raise _StoppedError

    before = signal.signal(signal.SIGALRM, alarm)
    try:
        for way in _ways(tmp_path):
            with pytest.raises(_StoppedError):
                way(progress=lambda *_: signal.raise_signal(signal.SIGALRM), reuse_cached_engines=False)
    finally:
        signal.signal(signal.SIGALRM, before)
