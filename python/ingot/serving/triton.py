# SPDX-License-Identifier: Apache-2.0
"""Engines in Triton, through PyTriton: the server runs beside this process, which answers what it batched.

with ingot.serving.triton.server() as triton:
    ingot.serving.triton.bind(triton, "minilm", "model.ingot")
    triton.serve()
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pytriton.model_config import DynamicBatcher, ModelConfig, Tensor
from pytriton.proxy.types import Request
from pytriton.triton import Triton, TritonBase, TritonConfig

from ingot.engine import Port
from ingot.errors import UnsupportedError
from ingot.serving import protocol
from ingot.serving.axis import BatchAxis
from ingot.serving.model import Model
from ingot.serving.triton_unloading import take_out


def server(config: TritonConfig | None = None) -> Triton:
    """PyTriton's server, which starts when the `with` block begins.

    It starts processes that link libpython; with the library of another Python than this one they would fail, so that the folder of
    this one's comes first in LD_LIBRARY_PATH of this process and those that it starts.
    """
    folder = sysconfig.get_config_var("LIBDIR") or ""
    library = sysconfig.get_config_var("INSTSONAME") or ""
    known = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if part]
    if (Path(folder) / library).is_file() and folder not in known:
        os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([folder, *known])
    return Triton(config=config or TritonConfig())


def bind(
    triton: TritonBase, name: str, path: str | os.PathLike[str], *, queue_delay_s: float = 0.0, **options: Any
) -> Model:
    """Loads an engine and makes it known to the server.

    Triton's own batcher gathers requests of equal shapes, up to the engine's maximum or `max_batch_size`; queue_delay_s: how long it may
    wait for more. Engines whose requests run one by one, and those with inputs without dims, whose values Triton does not
    compare, are bound without. options: of `ingot.serving.Model`, which is returned: close
    it after the server, or `unload` it before. The server may be running.
    """
    model = Model(path, name, **options)
    axis = model.batching
    is_batched = isinstance(axis, BatchAxis) and not axis.shared
    batcher = DynamicBatcher(max_queue_delay_microseconds=int(queue_delay_s * 1e6))
    config = (
        ModelConfig(max_batch_size=axis.maximum, batcher=batcher)
        if is_batched
        else ModelConfig(batching=False)
    )
    triton.bind(
        model_name=name,
        infer_func=lambda requests: _answer(model, requests, 2 if is_batched else 1),
        inputs=[_tensor(port, is_batched) for port in model.inputs],
        outputs=[_tensor(port, is_batched) for port in model.outputs],
        config=config,
        strict=True,
    )
    return model


def unload(triton: TritonBase, model: Model, timeout_s: float = 30.0) -> None:
    """Takes a model that `bind` returned out of the server, which goes on, and closes it; `bind` may then use its name again.

    Requests that Triton has are answered; later ones fail with Triton's own error for models that it does not have.
    """
    take_out(triton, model.name, timeout_s)
    model.close(timeout_s)


def _answer(model: Model, requests: Sequence[Request], least: int) -> list[dict[str, np.ndarray]]:
    """Tensors of fewer dims than `least` have one more in Triton, of size 1."""
    model.check()
    asked = [
        {port.name: _reshaped(request[port.name], len(port.shape)) for port in model.inputs}
        for request in requests
    ]
    answers = [future.result() for future in model.submit_all(asked)]
    return [
        {name: _reshaped(value, max(value.ndim, least)) for name, value in answer.items()}
        for answer in answers
    ]


def _reshaped(value: np.ndarray, rank: int) -> np.ndarray:
    """With a last dim of size 1 removed or added, if that gives it the rank; otherwise the engine's error is the best one."""
    if value.ndim == rank + 1 and value.shape[-1] == 1:
        return value[..., 0]
    return value[..., None] if value.ndim == rank - 1 else value


def _tensor(port: Port, is_batched: bool) -> Tensor:
    """In Triton's configuration the batch dimension of a batched model is implied, and at least one other is needed."""
    datatype = protocol.DATATYPES.get(port.dtype)
    if datatype is None or datatype == "BF16":
        raise UnsupportedError(
            f"PyTriton has no datatype for tensor '{port.name}', which is {port.dtype}",
            code="INGOT-N370",
            advice="convert it to another dtype inside of the model",
        )
    shape = tuple(dim if isinstance(dim, int) else -1 for dim in port.shape)
    shape = (shape[1:] if is_batched else shape) or (1,)
    return Tensor(name=port.name, dtype=protocol.numpy_dtype(datatype, port.name).type, shape=shape)
