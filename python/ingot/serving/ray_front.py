# SPDX-License-Identifier: Apache-2.0
"""What speaks HTTP (the Open Inference Protocol) in Ray Serve, and passes requests on to the replicas."""

from __future__ import annotations

import json
from typing import Any

from ray.serve.exceptions import BackPressureError
from ray.serve.handle import DeploymentHandle
from starlette.requests import Request
from starlette.responses import Response

from ingot.errors import Error
from ingot.serving import protocol
from ingot.serving.ray_client import Client


class Front:
    def __init__(self, name: str, replicas: DeploymentHandle) -> None:
        self._name = name
        self._client = Client(replicas)

    async def infer(self, inputs: dict[str, Any], timeout_s: float | None = None) -> dict[str, Any]:
        return await self._client.infer_async(inputs, timeout_s)

    async def __call__(self, request: Request) -> Response:
        path, root = request.url.path.rstrip("/"), request.scope.get("root_path", "").rstrip("/")
        path = path.removeprefix(root)
        try:
            if path in ("/v2/health/live", "/v2/health/ready", f"/v2/models/{self._name}/ready"):
                await self._client.describe_async()
                return _json({"ready": True})
            if path == f"/v2/models/{self._name}" and request.method == "GET":
                return _json((await self._client.describe_async())["metadata"])
            if path == f"/v2/models/{self._name}/infer" and request.method == "POST":
                return await self._infer(request)
        except Error as error:
            return _json({"error": str(error), "code": error.code}, protocol.http_status(error))
        except BackPressureError as error:
            return _json({"error": error.message}, 503)
        return _json({"error": f"{request.method} {path}: the model here is '{self._name}'"}, 404)

    async def _infer(self, request: Request) -> Response:
        length = protocol.header_length(request.headers.get(protocol.HEADER_LENGTH))
        header, inputs = protocol.parse_request(await request.body(), length)
        outputs = await self._client.infer_async(inputs, protocol.timeout_of(header))
        body, length = protocol.response_of(self._name, header, outputs)
        if length is None:
            return Response(body, media_type="application/json")
        return Response(
            body, media_type="application/octet-stream", headers={protocol.HEADER_LENGTH: str(length)}
        )


def _json(content: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(content), status, media_type="application/json")
