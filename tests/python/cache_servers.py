# SPDX-License-Identifier: Apache-2.0
"""Real cache servers on free ports of this machine, and a proxy that gets in their way."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find_program(name: str) -> str | None:
    return shutil.which(name) or shutil.which(f"/usr/sbin/{name}")


@contextlib.contextmanager
def running(command: list[str], port: int) -> Iterator[subprocess.Popen[bytes]]:
    """The program, from when it accepts connections to the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended: {process.stderr.read().decode()}")
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.communicate()


class Redis:
    """redis-server with nothing but memory; `call` sends a command and returns the reply as bytes."""

    def __init__(self, port: int, password: str = "", process: subprocess.Popen[bytes] | None = None) -> None:
        self.port, self.password, self.process = port, password, process

    def call(self, *words: str) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), 10) as connection:
            for command in ([("AUTH", self.password)] if self.password else []) + [words]:
                parts = b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in command)
                connection.sendall(b"*%d\r\n%s" % (len(command), parts))
                reply = connection.recv(1 << 20)
            return reply

    def keys(self, pattern: str) -> list[str]:
        lines = self.call("KEYS", pattern).decode().split("\r\n")
        return [line for line in lines if line and line[0] not in "*$"]


@contextlib.contextmanager
def redis(password: str = "", *more: str) -> Iterator[Redis]:
    port = free_port()
    words = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    words += ["--requirepass", password] if password else []
    with running([str(find_program("redis-server")), *words, *more], port) as process:
        yield Redis(port, password, process)


NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{}}
http {{
  log_format requests '$request_method $uri $status $http_content_length';
  access_log {folder}/access.log requests; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s; client_max_body_size 2g;
  server {{
    listen 127.0.0.1:{port} {server}
    location / {{ root {folder}/root; dav_methods PUT; create_full_put_path on; {more} }}
  }}
}}
"""


class Nginx:
    """nginx with WebDAV; `root` is the folder that it serves."""

    def __init__(self, port: int, root: Path, process: subprocess.Popen[bytes]) -> None:
        self.port, self.root, self.process = port, root, process

    def requests(self) -> list[tuple[str, str, int, str]]:
        """Method, path, status and Content-Length ("-": none) of each."""
        lines = (self.root.parent / "access.log").read_text().splitlines()
        rows = [line.split(" ") for line in lines]
        return [(method, path, int(status), length) for method, path, status, length in rows]


@contextlib.contextmanager
def nginx(folder: Path, more: str = "", server: str = ";") -> Iterator[Nginx]:
    """more: directives of the location; server: what follows `listen`, and further directives of the server."""
    port = free_port()
    (folder / "root").mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "nginx.conf").write_text(
        "user root;" + NGINX.format(folder=folder, port=port, more=more, server=server)
    )
    command = [str(find_program("nginx")), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    with running(command, port) as process:
        yield Nginx(port, folder / "root", process)


class Proxy:
    """Passes bytes on to a server; what it answers goes through `spoil(sent, piece)`, which returns what to send and may sleep,
    and ends the connection by None. `sent` counts the bytes of the answers before the piece. `watch(count)` sees how many bytes
    clients have sent."""

    def __init__(
        self,
        port: int,
        spoil: Callable[[int, bytes], bytes | None] = lambda sent, piece: piece,
        watch: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._target, self._spoil, self._watch = port, spoil, watch
        self._asked = 0
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                self.connections += 1
                server = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=self._ask, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answer, args=(client, server), daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := client.recv(1 << 16):
                server.sendall(piece)
                self._asked += len(piece)
                self._watch(self._asked)

    def _answer(self, client: socket.socket, server: socket.socket) -> None:
        sent = 0
        with contextlib.suppress(OSError), client, server:
            while piece := server.recv(1 << 16):
                spoiled = self._spoil(sent, piece)
                if spoiled is None:
                    return
                client.sendall(spoiled)
                sent += len(piece)
