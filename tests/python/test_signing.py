# SPDX-License-Identifier: Apache-2.0
"""Signed engines: keys, `ingot sign`, and what trust="signed" opens, from the command line and in Python."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import ingot
import pytest
import torch
from errors.inputs import INGOT
from small_models import mlp


def run(*words: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess:
    return subprocess.run([INGOT, *map(str, words)], capture_output=True, text=True, env=env, timeout=120)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two keys; an engine, and the same one signed with the first key."""
    folder = tmp_path_factory.mktemp("signing")
    with torch.no_grad():
        ingot.compile(mlp(), inputs=[torch.randn(3, 8)]).engine.save(folder / "plain.ingot")
    for name in ("key", "other"):
        assert run("cache", "keygen", folder / name).returncode == 0
    signed = run(
        "sign", folder / "plain.ingot", "--key", folder / "key", "-o", folder / "signed.ingot", "--json"
    )
    assert json.loads(signed.stdout) == {"output": str(folder / "signed.ingot")}
    return folder


def refusal(path: Path, keys: Path) -> str:
    with pytest.raises(ingot.UserError) as error:
        ingot.Engine.load(path, trust="signed", trusted_keys=keys)
    return str(error.value)


def test_a_trusted_engine_runs(folder):
    x = torch.randn(3, 8)
    engine = ingot.Engine.load(folder / "signed.ingot", trust="signed", trusted_keys=folder / "key.pub")
    plain = ingot.Engine.load(folder / "plain.ingot")
    assert torch.equal(engine(x), plain(x))
    content = (folder / "signed.ingot").read_bytes()
    in_memory = ingot.Engine.from_bytes(content, trust="signed", trusted_keys=folder / "key.pub")
    assert torch.equal(in_memory(x), plain(x))


def test_the_environment_names_the_keys(folder, monkeypatch):
    assert "INGOT-U222" in run("run", folder / "signed.ingot", "--trust", "signed").stderr
    monkeypatch.setenv("INGOT_TRUSTED_KEYS", str(folder / "key.pub"))
    assert run("run", folder / "signed.ingot", "--trust", "signed").returncode == 0
    monkeypatch.setenv("INGOT_TRUSTED_KEYS", str(folder / "other.pub"))
    assert "INGOT-U222" in run("run", folder / "signed.ingot", "--trust", "signed").stderr


def test_others_are_refused(folder):
    assert "is not signed" in refusal(folder / "plain.ingot", folder / "key.pub")
    assert "none of the 1 trusted ones" in refusal(folder / "signed.ingot", folder / "other.pub")
    assert "INGOT-U225" in refusal(
        folder / "signed.ingot", folder / "key"
    )  # the secret key is not a public one


def test_saving_again_is_not_signing(folder, tmp_path):
    ingot.Engine.load(folder / "signed.ingot").save(tmp_path / "saved.ingot")
    assert "is not signed" in refusal(tmp_path / "saved.ingot", folder / "key.pub")


def test_changed_weights_are_refused(folder, tmp_path):
    """With checksums that are right: by somebody who may build engines, but has no key."""
    signed = (folder / "signed.ingot").read_bytes()
    engine = ingot.Engine.load(folder / "signed.ingot")
    engine.refit({name: 2 * tensor for name, tensor in mlp().state_dict().items()})
    engine.save(tmp_path / "changed.ingot")
    changed = bytearray((tmp_path / "changed.ingot").read_bytes())
    assert len(changed) == len(signed)
    header = 640
    assert "is not signed" in refusal(tmp_path / "changed.ingot", folder / "key.pub")
    (tmp_path / "changed.ingot").write_bytes(signed[:header] + changed[header:])
    assert "damaged" in refusal(tmp_path / "changed.ingot", folder / "key.pub")


def test_inspect_names_the_signer(folder):
    key = (folder / "key.pub").read_text().split()[1]
    for name, signer in (("signed", key), ("plain", "")):
        facts = json.loads(run("inspect", "--json", folder / f"{name}.ingot").stdout)
        assert facts["signed_by"] == signer


def test_signing_in_place_changes_the_header_only(folder, tmp_path):
    path = tmp_path / "engine.ingot"
    path.write_bytes((folder / "plain.ingot").read_bytes())
    assert run("sign", path, "--key", folder / "key").returncode == 0
    assert path.read_bytes() == (folder / "signed.ingot").read_bytes()
    assert run("verify", path).returncode == 0


def test_secret_keys_stay_secret(folder):
    assert (folder / "key").stat().st_mode & 0o777 == 0o600
    assert "exists" in run("cache", "keygen", folder / "key").stderr
    refused = run("sign", folder / "plain.ingot", "--key", folder / "key.pub")
    assert "INGOT-U225" in refused.stderr
