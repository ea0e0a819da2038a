# SPDX-License-Identifier: Apache-2.0
"""Environment variables that stand for options of builds: the process reads them once, and what a build is given counts more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from torch import nn

INGOT = Path(sys.executable).with_name("ingot")
X = torch.ones(2, 8)

# A good and a bad value for each variable.
VARIABLES = {
    "INGOT_CACHE": ("off", "ftp://host"),
    "INGOT_CACHE_BUILT_ENGINES": ("false", "maybe"),
    "INGOT_CACHE_DEADLINE": ("500", "0"),
    "INGOT_CACHE_READ_ONLY": ("true", "2"),
    "INGOT_CACHE_WRITE_POLICY": ("disk:back", "disk:now"),
    "INGOT_IMMUTABLE_WEIGHTS": ("true", "yes"),
    "INGOT_REFIT_IDENTICAL_ENGINE_WEIGHTS": ("false", "no"),
    "INGOT_REUSE_CACHED_ENGINES": ("false", "maybe"),
    "INGOT_STRICT_CACHE": ("true", "maybe"),
    "INGOT_STRIP_ENGINE_WEIGHTS": ("true", "-"),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 300), nn.GELU(), nn.Linear(300, 8)).eval()
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    torch.export.save(torch.export.export(model, (X,)), path)
    return path


class Builder:
    """`ingot build` in processes of their own, with a folder of entries."""

    def __init__(self, archive: Path, folder: Path) -> None:
        self._archive, self.folder, self.output = archive, folder / "cache", folder / "model.ingot"

    def run(self, variables: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": os.environ["PATH"], "INGOT_ENGINE_CACHE_DIR": str(self.folder), **variables}
        command = [INGOT, "build", self._archive, "-o", self.output, "--json", *words]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def report(self, variables: dict[str, str], *words: str) -> dict[str, Any]:
        done = self.run(variables, *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def entries(self) -> int:
        return sum(len(path.name) == 62 for path in self.folder.glob("??/*"))


@pytest.fixture
def builder(archive: Path, tmp_path: Path) -> Builder:
    return Builder(archive, tmp_path)


@pytest.mark.parametrize("name", VARIABLES)
def test_values_are_those_of_the_option(name: str, builder: Builder) -> None:
    good, bad = VARIABLES[name]
    for value in ("", good):
        builder.report({name: value})
    done = builder.run({name: bad})
    assert done.returncode == 1
    expected = (
        "[INGOT-U027]"
        if name == "INGOT_CACHE"
        else f'[INGOT-U015] the environment variable {name} is "{bad}"'
    )
    assert expected in done.stderr
    if name != "INGOT_CACHE_WRITE_POLICY":  # loads follow it too, so no call goes on
        option = name.removeprefix("INGOT_").lower().replace("_", "-")
        builder.report({name: bad}, f"--{option}={good}")


def test_variables_stand_for_options(builder: Builder) -> None:
    builder.report({"INGOT_CACHE_BUILT_ENGINES": "false"})
    assert builder.entries() == 0
    builder.report({"INGOT_CACHE_BUILT_ENGINES": "false"}, "--cache-built-engines=true")
    assert builder.entries() > 0
    assert builder.report({})["is_from_cache"]
    assert not builder.report({"INGOT_REUSE_CACHED_ENGINES": "false"})["is_from_cache"]
    assert builder.report({"INGOT_REUSE_CACHED_ENGINES": "false"}, "--reuse-cached-engines=1")[
        "is_from_cache"
    ]
    builder.folder.chmod(0o755)
    builder.report({})
    assert "others may enter" in builder.run({"INGOT_STRICT_CACHE": "true"}).stderr


def test_a_variable_says_when_entries_are_written(builder: Builder) -> None:
    for policy in ("read_only", "none"):
        builder.report({"INGOT_CACHE_WRITE_POLICY": policy})
        assert not builder.folder.exists()
    builder.report({"INGOT_CACHE_WRITE_POLICY": "back"})
    assert builder.report({"INGOT_CACHE_WRITE_POLICY": "read_only"})["is_from_cache"]
    assert not builder.report({"INGOT_CACHE_WRITE_POLICY": "none"})["is_from_cache"]


def test_variables_decide_what_becomes_of_weights(builder: Builder, archive: Path) -> None:
    weights = {name: value + 1 for name, value in torch.export.load(archive).state_dict.items()}
    with_weights = builder.report({})["bytes"]
    builder.report({"INGOT_IMMUTABLE_WEIGHTS": "1"})
    with pytest.raises(ingot.UserError, match="INGOT-U327"):
        ingot.Engine.load(builder.output).refit(weights)
    builder.report({"INGOT_IMMUTABLE_WEIGHTS": "1"}, "--immutable-weights=false")
    ingot.Engine.load(builder.output).refit(weights)
    assert builder.report({"INGOT_STRIP_ENGINE_WEIGHTS": "1"})["bytes"] < with_weights - 4 * 8 * 300
    with pytest.raises(ingot.UserError, match="INGOT-U323"):
        ingot.Engine.load(builder.output)(X)


def test_a_variable_names_the_tactic_file(builder: Builder, tmp_path: Path) -> None:
    path = tmp_path / "tactics.txt"
    builder.report({"INGOT_TIMING_CACHE_PATH": str(path)}, "--optimization-level=4")
    assert path.read_text()


_LATE = """
import os, sys, torch, ingot
def count():
    ingot.compile(torch.nn.Linear(8, int(sys.argv[1])).eval(), inputs=[torch.ones(2, 8)])
    return ingot.cache_stats()["made"]
made = count()
os.environ["INGOT_REUSE_CACHED_ENGINES"] = "false"
os.environ["INGOT_CACHE_DEADLINE"] = "never"
with ingot.Session() as session:
    assert count() == 0, "variables are read once"
"""


def test_variables_are_read_once(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "INGOT_ENGINE_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", _LATE, "8"], check=True, env=environment)


_EMPTY = """
import sys, ingot
try:
    ingot.build(sys.argv[1], cache="", trusted_keys="")
except ingot.UserError as error:
    assert error.code == "INGOT-U027", error
else:
    assert False
ingot.build(sys.argv[1], cache="off")
"""


def test_an_empty_text_is_no_option(archive: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "INGOT_ENGINE_CACHE_DIR": "off", "INGOT_CACHE": "ftp://host"}
    subprocess.run([sys.executable, "-c", _EMPTY, archive], check=True, env=environment)


def test_every_variable_is_documented(archive: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "variables.md").read_text()
    for name in [
        *VARIABLES,
        "INGOT_CACHE_CA_FILE",
        "INGOT_ENGINE_CACHE_DIR",
        "INGOT_ENGINE_CACHE_SIZE",
        "INGOT_TIMING_CACHE_PATH",
    ]:
        assert f"| `{name}` |" in page, name
