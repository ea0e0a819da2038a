# SPDX-License-Identifier: Apache-2.0
"""One way to run a model in this process: name -> function that prepares it and returns a callable.

All take the same model and arguments, in fp32, with two threads unless told otherwise. Building is timed by the caller.
An engine that cannot do the same work raises, and the reason is printed.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

Prepared = Callable[[], Any]


def eager(case: Any, threads: int) -> Prepared:
    torch.set_num_threads(threads)
    return lambda: case.model(*case.args)


def inductor(case: Any, threads: int) -> Prepared:
    """With freezing, and a cold cache (the caller gives the process an empty one)."""
    torch.set_num_threads(threads)
    import torch._inductor.config as config

    config.freezing = True
    compiled = torch.compile(case.model)
    compiled(*case.args)
    return lambda: compiled(*case.args)


def ingot_aot(case: Any, threads: int) -> Prepared:
    import ingot

    ingot.set_threads(threads)
    module = ingot.dynamo.compile(torch.export.export(case.model, case.args), require_full_compilation=True)
    return lambda: module(*case.args)


def ingot_jit(case: Any, threads: int) -> Prepared:
    import ingot

    ingot.set_threads(threads)
    torch.set_num_threads(threads)
    compiled = ingot.compile(case.model, ir="torch_compile")
    compiled(*case.args)
    return lambda: compiled(*case.args)


def exported(case: Any) -> torch.export.ExportedProgram:
    """For peers whose graphs have no state: they would copy it at each call, or leave it as it is."""
    if case.has_state:
        raise RuntimeError("its graphs keep no state, which this model updates in place")
    return torch.export.export(case.model, case.args)


def onnx_bytes(case: Any) -> bytes:
    file = io.BytesIO()
    torch.onnx.export(exported(case), dynamo=True, verbose=False).save(file)
    return file.getvalue()


def session_options(threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    return options


def onnxruntime(case: Any, threads: int) -> Prepared:
    import onnxruntime

    session = onnxruntime.InferenceSession(
        onnx_bytes(case), session_options(threads), providers=["CPUExecutionProvider"]
    )
    names = [given.name for given in session.get_inputs()]
    feed = {name: np.ascontiguousarray(value.numpy()) for name, value in zip(names, case.args, strict=True)}
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def openvino_request(model: Any, args: tuple[torch.Tensor, ...], threads: int) -> Prepared:
    """f32 is forced: the default is bf16 where the processor has it."""
    import openvino

    settings = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = openvino.compile_model(model, "CPU", settings).create_infer_request()
    feed = [value.numpy() for value in args]
    return lambda: torch.from_numpy(request.infer(feed, share_inputs=True, share_outputs=True)[0])


def openvino(case: Any, threads: int) -> Prepared:
    import openvino

    return openvino_request(openvino.convert_model(exported(case)), case.args, threads)


ENGINES: dict[str, Callable[[Any, int], Prepared]] = {
    "eager": eager,
    "inductor": inductor,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "ingot": ingot_aot,
    "ingot_jit": ingot_jit,
}
