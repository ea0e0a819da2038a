# SPDX-License-Identifier: Apache-2.0
"""Engines in MLServer: model-settings.json names `ingot.serving.mlserver.Runtime` as the implementation, and the engine file as the URI."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from mlserver import MLModel, types
from mlserver.errors import MLServerError
from mlserver.settings import ModelParameters, ModelSettings
from mlserver.utils import get_model_uri

from ingot.engine import Port
from ingot.errors import Error, UnsupportedError
from ingot.serving import protocol
from ingot.serving.mlserver_metrics import PrometheusMetric
from ingot.serving.model import Model
from ingot.serving.published import Publisher

_PUBLISH_S = 1.0


class Runtime(MLModel):
    """`parameters.extra` are options of `ingot.serving.Model` (`weights`, `max_batch_size`, `batch_wait_s`, `threads`, ...).

    Requests are batched by Ingot: `max_batch_size` and `max_batch_time` of the settings become its limits, in rows and seconds, and
    MLServer's own batcher, which fails a whole batch for one wrong request, is left off.
    """

    _model: Model | None = None
    _publishing: asyncio.Task | None = None

    def __init__(self, settings: ModelSettings) -> None:
        parameters = settings.parameters = settings.parameters or ModelParameters()
        options = dict(parameters.extra or {})
        if settings.max_batch_size > 0:
            options.setdefault("max_batch_size", settings.max_batch_size)
            options.setdefault("batch_wait_s", max(settings.max_batch_time, 0.0))
        settings.max_batch_size = 0
        parameters.extra = options  # also where a worker process gets them from
        super().__init__(settings)

    async def load(self) -> bool:
        path = await get_model_uri(self.settings, ["model.ingot"])
        options = dict(self.settings.parameters.extra or {})
        if options.get("weights"):
            options["weights"] = str(Path(path).parent / options["weights"])
        with _client_errors():
            self._model = await asyncio.to_thread(Model, path, self.name, **options)
            self.inputs = [_metadata(port) for port in self._model.inputs]
            self.outputs = [_metadata(port) for port in self._model.outputs]
        self._publisher = Publisher(PrometheusMetric)
        self._publishing = asyncio.create_task(self._publish())
        return True

    async def predict(self, payload: types.InferenceRequest) -> types.InferenceResponse:
        assert self._model is not None
        with _client_errors():
            inputs = _inputs_of(payload)
            wanted = _wanted(payload, [port.name for port in self._model.outputs])
            self._model.check()
            outputs = await asyncio.wrap_future(self._model.submit(inputs, _timeout_of(payload)))
        rows = [
            types.ResponseOutput(
                name=name,
                shape=list(outputs[name].shape),
                datatype=protocol.datatype_of(outputs[name]),
                data=outputs[name].ravel().tolist(),
            )
            for name in wanted
        ]
        return types.InferenceResponse(model_name=self.name, model_version=self.version, outputs=rows)

    async def unload(self) -> bool:
        """Answers the requests that it has."""
        if self._publishing is not None:
            self._publishing.cancel()
        if self._model is not None:
            await asyncio.to_thread(self._model.close, 30)
            self._publisher.publish(self._model.metrics())
            self._publisher.clear()
        return True

    async def _publish(self) -> None:
        assert self._model is not None
        while True:
            self._publisher.publish(self._model.metrics())
            await asyncio.sleep(_PUBLISH_S)


class _client_errors:  # noqa: N801
    """Ingot's errors as MLServer's, with their code and text, and the status of whose fault they are."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: Any, error: BaseException | None, __: Any) -> None:
        if isinstance(error, Error):
            raise MLServerError(str(error), protocol.http_status(error)) from error


def _metadata(port: Port) -> types.MetadataTensor:
    row = protocol.tensor_metadata(port)
    if row["datatype"] not in types.Datatype.__members__:
        raise UnsupportedError(
            f"MLServer has no datatype for tensor '{port.name}', which is {port.dtype}",
            code="INGOT-N370",
            advice="convert it to another dtype inside of the model",
        )
    return types.MetadataTensor(**row)


def _inputs_of(payload: types.InferenceRequest) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    for row in payload.inputs:
        if row.name in inputs:
            raise protocol.bad_request(f"input '{row.name}' is passed twice")
        content = getattr(row.data, "root", row.data)
        datatype = getattr(row.datatype, "value", row.datatype)
        inputs[row.name] = protocol.tensor_of(row.name, list(row.shape), datatype, content)
    return inputs


def _wanted(payload: types.InferenceRequest, names: list[str]) -> list[str]:
    wanted = [row.name for row in payload.outputs or []] or names
    for name in wanted:
        if name not in names:
            raise protocol.bad_request(f"the model has no output '{name}', but {', '.join(names)}")
    return wanted


def _timeout_of(payload: types.InferenceRequest) -> float | None:
    parameters = payload.parameters
    return None if parameters is None else protocol.timeout_of({"parameters": parameters.model_dump()})
