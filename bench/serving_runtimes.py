# SPDX-License-Identifier: Apache-2.0
"""Runtimes of MLServer for `bench.serving`: torch.compile and ONNX Runtime, batched by MLServer itself. They need torch or onnxruntime
in the server's environment.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from mlserver import MLModel, types
from mlserver.utils import get_model_uri

_DTYPES = {"INT64": np.int64, "FP32": np.float32}
_MOST_GRAPHS = 4  # torch falls back to eager after 8 of one function


class _Runtime(MLModel):
    """One call at a time, in a thread of its own, as Ingot's runtime has it."""

    async def load(self) -> bool:
        path = await get_model_uri(self.settings)
        self._pool = ThreadPoolExecutor(1)
        most = self.settings.max_batch_size
        await asyncio.get_running_loop().run_in_executor(self._pool, self._prepare, path, most)
        return True

    async def predict(self, payload: types.InferenceRequest) -> types.InferenceResponse:
        arrays = {
            row.name: np.array(getattr(row.data, "root", row.data), _DTYPES[row.datatype]).reshape(row.shape)
            for row in payload.inputs
        }
        loop = asyncio.get_running_loop()
        (output,) = await loop.run_in_executor(self._pool, self._run, arrays)
        row = types.ResponseOutput(
            name="output_0", shape=list(output.shape), datatype="FP32", data=output.ravel().tolist()
        )
        return types.InferenceResponse(model_name=self.name, outputs=[row])


class Inductor(_Runtime):
    """An exported program through torch.compile with freezing and a dynamic number of rows, warm for one and several."""

    def _prepare(self, path: str, most: int) -> None:
        import torch
        import torch._dynamo.utils
        import torch._inductor.config as config

        torch.set_grad_enabled(False)
        torch.set_num_threads(1)
        config.freezing = True
        program = torch.export.load(path)
        self._names = [
            spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"
        ]
        self._model = torch.compile(program.module(), dynamic=True)
        example = program.example_inputs[0]
        for rows in (1, 2, 3, 7, most):
            self._model(*(value[:1].expand(rows, *value.shape[1:]).contiguous() for value in example))
        graphs = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        if graphs > _MOST_GRAPHS:
            raise RuntimeError(f"{graphs} graphs were compiled: sizes were not dynamic")

    def _run(self, arrays: dict[str, np.ndarray]) -> Any:
        import torch

        output = self._model(*(torch.from_numpy(arrays[name]) for name in self._names))
        return [(output[0] if isinstance(output, tuple) else output).numpy()]


class OnnxRuntime(_Runtime):
    def _prepare(self, path: str, most: int) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def _run(self, arrays: dict[str, np.ndarray]) -> Any:
        return self._session.run(None, arrays)
