# SPDX-License-Identifier: Apache-2.0
"""Servers behind TLS, whose certificate is checked, and what requests look like to a server of bazel-remote's kind."""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import ingot
import pytest
from cache_builds import Built, Keys, address, needs_nginx
from cache_servers import find_program, nginx

pytestmark = needs_nginx
needs_openssl = pytest.mark.skipif(not find_program("openssl"), reason="openssl is not installed")


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path)


class Authority:
    """Certificates of a certificate authority that nobody but this test knows."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder, self.file = folder, folder / f"{name}.pem"
        self._openssl("req", "-x509", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={name}", "-days", "2",
                      "-keyout", self.file.with_suffix(".key"), "-out", self.file)  # fmt: skip

    def _openssl(self, *words: object) -> None:
        subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, cwd=self._folder)

    def server(self, name: str, host: str, days: int = 2) -> str:
        """The directives of a server that says it is `host`."""
        key, request, certificate = (self._folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
        extension = self._folder / f"{name}.ext"
        extension.write_text(f"subjectAltName={host}\n")
        self._openssl(
            "req", "-nodes", "-newkey", "rsa:2048", "-subj", f"/CN={name}", "-keyout", key, "-out", request
        )
        self._openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.file.with_suffix(".key"),
                      "-CAcreateserial", "-days", days, "-extfile", extension, "-out", certificate)  # fmt: skip
        return f"ssl; ssl_certificate {certificate}; ssl_certificate_key {key};"


@needs_openssl
def test_entries_behind_tls(keys: Keys, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with nginx(tmp_path / "nginx", server=authority.server("good", "IP:127.0.0.1")) as server:
        where = address(("https", server.port))
        options = {"cache_ca_file": authority.file, "strict_cache": True, **keys.options()}
        first = Built(cache=where, **options)
        assert first.made > 0
        found = Built(cache=where, **options)
        assert found.made == 0
        assert found.engine.to_bytes() == first.engine.to_bytes()


@needs_openssl
@pytest.mark.parametrize(
    "what", ["unknown", "another authority", "another host", "expired", "no TLS", "only TLS"]
)
def test_servers_that_are_not_who_they_should_be(what: str, keys: Keys, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    host = "DNS:elsewhere.example" if what == "another host" else "IP:127.0.0.1"
    days = -1 if what == "expired" else 2
    directives = ";" if what == "no TLS" else authority.server("server", host, days)
    with nginx(tmp_path / "nginx", server=directives) as server:
        options = {
            **keys.options(),
            "cache": address(("http" if what == "only TLS" else "https", server.port)),
        }
        if what != "unknown":
            trusted = Authority(tmp_path, "another") if what == "another authority" else authority
            options["cache_ca_file"] = trusted.file
        assert Built(**options).made > 0
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(strict_cache=True, **options)
        assert not list(server.root.rglob("??????????*")), "nothing was sent"


@needs_openssl
def test_a_file_of_authorities_that_is_not_there(keys: Keys, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with nginx(tmp_path / "nginx", server=authority.server("good", "IP:127.0.0.1")) as server:
        options = {
            "cache": address(("https", server.port)),
            "cache_ca_file": tmp_path / "no",
            **keys.options(),
        }
        assert Built(**options).made > 0
        with pytest.raises(ingot.UserError, match="INGOT-U028"):
            Built(strict_cache=True, **options)


# bazel-remote's rules: these paths and methods alone, a length with every PUT, contents under their SHA-256 in lower case.
PATHS = re.compile(r"/team/(ac|cas)/[0-9a-f]{64}")
RULES = 'if ($uri !~ "^/(.*/)?(ac|cas)/[0-9a-f]{64}$") { return 400; }'


def test_the_layout_is_that_of_bazel_remote(keys: Keys, tmp_path: Path) -> None:
    with nginx(tmp_path / "nginx", RULES) as server:
        options = {"cache": address(("http", server.port)), "strict_cache": True, **keys.options()}
        Built(**options)
        assert Built(**options).made == 0
        requests = server.requests()
        assert {method for method, *_ in requests} == {"GET", "PUT"}
        for method, path, status, length in requests:
            assert PATHS.fullmatch(path), path
            assert status in ((201, 204) if method == "PUT" else (200, 404))
            assert (length != "-") == (method == "PUT")
        contents = [path for path in server.root.rglob("cas/*") if path.is_file()]
        assert contents
        for path in contents:
            assert hashlib.sha256(path.read_bytes()).hexdigest() == path.name
        puts = [path for method, path, *_ in requests if method == "PUT"]
        manifests = {at: path for at, path in enumerate(puts) if "/ac/" in path}
        assert manifests
        for at, path in manifests.items():
            (named,) = re.findall(r"(?m)^sha256 ([0-9a-f]{64})$", (server.root / path[1:]).read_text())
            assert f"/team/cas/{named}" in puts[:at], "a manifest is added after what it names"
