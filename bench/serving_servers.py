# SPDX-License-Identifier: Apache-2.0
"""MLServer with one of the runtimes of `bench.serving` inside, as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from bench.serving_models import MOST_ROWS, ROOT

sys.path.insert(0, str(ROOT / "tests/serving"))

RUNTIMES = {
    "ingot": ("ingot.serving.mlserver.Runtime", "model.ingot"),
    "inductor": ("bench.serving_runtimes.Inductor", "model.pt2"),
    "onnxruntime": ("bench.serving_runtimes.OnnxRuntime", "model.onnx"),
}
WAIT_S = 0.001  # of MLServer's batcher, which has no other way to batch
_START_S = 1800  # inductor compiles before it is ready


class Server:
    """Ready within the `with` block."""

    def __init__(self, runtime: str, files: Path) -> None:
        from answers import free_port
        from environments import environment

        self.runtime = runtime
        self.python = environment("mlserver")
        self.request = files / "request.npz"
        self._files = files
        self._http, self.port, self._metrics = (free_port() for _ in range(3))

    def __enter__(self) -> Server:
        folder = self._files / self.runtime
        folder.mkdir(exist_ok=True)  # inductor's cache stays
        (folder / "settings.json").write_text(json.dumps(self._settings()))
        (folder / "model-settings.json").write_text(json.dumps(self._model_settings()))
        with open(folder / "log", "w") as log:
            self._process = subprocess.Popen(
                [self.python, "-c", _program()], cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")},
            )  # fmt: skip
        try:
            self._wait(folder / "log")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:  # it compiles
            self._process.kill()
            self._process.wait()

    def resident(self) -> int:
        """Bytes of the server's process."""
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def _settings(self) -> dict[str, Any]:
        return {
            "host": "127.0.0.1",
            "http_port": self._http,
            "grpc_port": self.port,
            "metrics_port": self._metrics,
            "parallel_workers": 0,
            "debug": False,
        }

    def _model_settings(self) -> dict[str, Any]:
        implementation, file = RUNTIMES[self.runtime]
        name = self._files.name.removeprefix("serving-")
        parameters: dict[str, Any] = {"uri": str(self._files / file)}
        if self.runtime == "ingot":
            parameters["extra"] = {"threads": 1, "batch_wait_s": 0}
        return {
            "name": "model",
            "implementation": implementation,
            "max_batch_size": MOST_ROWS[name],
            "max_batch_time": WAIT_S,
            "parameters": parameters,
        }

    def _wait(self, log: Path) -> None:
        begin = time.monotonic()
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > begin + _START_S:
                raise RuntimeError(f"the server did not become ready: {log}")
            time.sleep(0.1)
        print(f"{self.runtime}: ready after {time.monotonic() - begin:.0f} s", flush=True)

    def _is_ready(self) -> bool:
        try:
            url = f"http://127.0.0.1:{self._http}/v2/models/model/ready"
            with urllib.request.urlopen(url, timeout=5) as response:
                return response.status == 200
        except OSError:
            return False


def _program() -> str:
    """Packages of this environment come after those of the server's own."""
    import torch

    packages = str(Path(torch.__file__).parents[1])
    return (
        f"import sys; sys.path += [{str(ROOT)!r}, {packages!r}]; from mlserver.cli import main; "
        "sys.argv[1:] = ['start', '.']; main()"
    )
