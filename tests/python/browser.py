# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through its DevTools protocol over two pipes."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

PROGRAM = shutil.which("chromium-headless-shell")
_PATIENCE = 60  # seconds for one answer
_FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-pipe",
]  # fmt: skip


class Browser:
    """One page. `events` holds everything that the browser reported, in order."""

    def __init__(self, folder: Path) -> None:
        """folder: for its profile."""
        read_end, self._to = os.pipe()
        self._from, write_end = os.pipe()
        command = [str(PROGRAM), *_FLAGS, f"--user-data-dir={folder}"]
        shell = ["bash", "-c", f'exec "$0" "$@" 3<&{read_end} 4>&{write_end}']
        self._process = subprocess.Popen(
            [*shell, *command], pass_fds=(read_end, write_end), stderr=subprocess.DEVNULL
        )
        os.close(read_end)
        os.close(write_end)
        self._buffer = b""
        self._id = 0
        self._session = ""
        self.events: list[dict[str, Any]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log", "Accessibility"):
            self.send(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE)
        os.close(self._to)
        os.close(self._from)

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._id += 1
        message = {"id": self._id, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") != self._id:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]

    def open(self, path: Path) -> None:
        self.events.clear()
        self.send("Page.navigate", url=path.as_uri())
        while not self.reported("Page.loadEventFired"):
            self.events.append(self._next())

    def reported(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event.get("method") == method]

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is on the page."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def press(self, key: str) -> None:
        text = {"Enter": "\r"}.get(key, "")
        code = {"Enter": 13, "Tab": 9}[key]
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, text=text, windowsVirtualKeyCode=code
            )

    def _next(self) -> dict[str, Any]:
        deadline = time.monotonic() + _PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(self._from, selectors.EVENT_READ)
            while b"\0" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError("the browser does not answer")
                part = os.read(self._from, 1 << 16)
                if not part:
                    raise RuntimeError("the browser has ended")
                self._buffer += part
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)
