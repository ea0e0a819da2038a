# SPDX-License-Identifier: Apache-2.0
"""A port of its own for metrics, where the server has no way to add to its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ingot.metrics_text import metrics
from ingot.serving.model import Model


class MetricsPage:
    """Answers GET /metrics with the text of all models for Prometheus, while the `with` block runs."""

    def __init__(self, models: Sequence[Model], host: str = "127.0.0.1", port: int = 8003) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_known = self.path == "/metrics"
                body = page(models).encode() if is_known else b"the metrics are at /metrics\n"
                self.send_response(200 if is_known else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer((host, port), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="ingot-metrics", daemon=True)

    def __enter__(self) -> MetricsPage:
        self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def page(models: Sequence[Model]) -> str:
    """Each metric is described once, whatever the number of models."""
    text = metrics({model.name: model.engine for model in models})
    families: dict[str, list[str]] = {}
    for model in models:
        for line in model.counts.text(model.name).splitlines():
            name = line.split(" ")[2] if line.startswith("#") else line.split("{")[0]
            if not line.startswith("#") or line not in families.get(name, []):
                families.setdefault(name, []).append(line)
    return text + "".join(f"{line}\n" for lines in families.values() for line in lines)
