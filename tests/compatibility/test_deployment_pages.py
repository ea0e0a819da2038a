# SPDX-License-Identifier: Apache-2.0
"""The commands of the deployment pages work as they are written: those for this machine, and the builds for others."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import ingot
import numpy as np
import pytest
import torch
from errors.inputs import INGOT
from ingot.serving.counts import Counts

ROOT = Path(__file__).resolve().parents[2]
NVRTC = os.environ.get("INGOT_NVRTC")
PAGES = ("linux", "windows", "aarch64", "gpu", "ranks", "servers")


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands(page: str) -> list[str]:
    """Without those of models whose weights are parts: tests/python/test_rank_processes.py runs them."""
    texts = [block for block in blocks(page, "sh") if "--shards" not in block]
    return [line.split("#")[0].strip() for text in texts for line in text.splitlines()]


def builds(page: str) -> list[str]:
    return [command for command in commands(page) if command.startswith("ingot build ")]


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu() * 2


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = torch.export.Dim("rows", min=1, max=32)
    path = tmp_path_factory.mktemp("model") / "model.pt2"
    torch.export.save(torch.export.export(Model(), (torch.randn(4, 64),), dynamic_shapes=[{0: rows}]), path)
    return path


@pytest.fixture
def folder(exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(INGOT).parent}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "model.pt2").symlink_to(exported)
    np.save("x.npy", np.ones((4, 64), np.float32))
    return tmp_path


def run(script: str) -> str:
    done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True)
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def build_tree() -> Path | None:
    """Of the libraries that are tested; none where only a wheel is installed."""
    trees = [path.parent for path in ROOT.glob("build/release/ingot-config.cmake")]
    return trees[0] if trees else None


def test_every_target_has_a_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [page for page in PAGES if f"(docs/{page}.md)" not in readme] == []


def test_linux(folder: Path) -> None:
    first, installs, uses = blocks("linux", "sh")
    run(first)
    run(uses)
    assert (np.load("outputs.npz")["output_0"] == 2).all()
    names: dict = {}
    for block in blocks("linux", "python"):
        exec(block, names)
    assert (names["y"] == 2).all()
    if build_tree() is None:
        pytest.skip("there is no build tree to install from")
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(build_tree())
    assert "output_0" in run(installs)


def test_servers(folder: Path) -> None:
    run("ingot build model.pt2 -o model.ingot")
    names: dict = {}
    for block in blocks("servers", "python"):
        if "from ingot.serving." not in block:  # those need a server: tests/serving
            exec(block, names)
    assert [answer.shape for answer in names["answers"]] == [(n, 64) for n in (1, 2, 3, 4)]
    assert all((answer == 2 * n).all() for n, answer in enumerate(names["answers"], 1))
    content_type, page = names["metrics_page"]()
    assert content_type.startswith("text/plain")
    assert b'ingot_calls_total{engine="model"} 4' in page
    assert [result.shape for result in names["results"]] == [(n, 64) for n in (1, 2, 3, 4)]
    assert names["model"].batching.maximum == 32


def test_the_metrics_that_the_page_lists() -> None:
    """Whatever is exposed is described, and the reverse."""
    text = ingot.metrics() + Counts().text("model")
    exposed = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    table = "\n".join(
        line
        for line in (ROOT / "docs/servers.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `ingot_")
    )
    listed = set(re.findall(r"`(ingot_\w+)`", table))
    listed |= {f"ingot_plan_cache{end}" for end in re.findall(r"`(_\w+)`", table)}
    assert listed == exposed


@pytest.mark.parametrize(
    ("page", "platform"),
    [("windows", "windows-x86-64"), ("aarch64", "linux-aarch64"), ("ranks", "linux-x86-64")],
)
def test_engines_for_others_are_built_here(page: str, platform: str, folder: Path) -> None:
    found = builds(page)
    assert found
    for command in found:
        run(command)
        content = json.loads(run("ingot inspect --json model.ingot"))
        assert platform in content["platforms"]


@pytest.mark.skipif(not NVRTC, reason="NVRTC is not installed")
def test_engines_for_gpus_are_built_here(folder: Path) -> None:
    found = builds("gpu")
    assert found
    for command in found:
        run(command)
        assert "sm_90a" in json.loads(run("ingot inspect --json model.ingot"))["target"]


def test_ranks(folder: Path) -> None:
    """The page's command runs an engine on two ranks."""
    (command,) = [line for line in commands("ranks") if line.startswith("ingot run model.ingot --ranks 2")]
    run("ingot build model.pt2 --rank any")
    run(command.replace("{rank}", "'{rank}'"))
    outputs = [np.load(f"out{rank}.npz")["output_0"] for rank in (0, 1)]
    assert (outputs[0] == 2).all()
    assert (outputs[1] == 2).all()


def test_pages_name_commands_and_options_that_exist() -> None:
    """Of commands that need another machine, too."""
    helps: dict[str, str] = {}
    for page in PAGES:
        for block in blocks(page, "sh"):
            for line in block.splitlines():
                words = shlex.split(line.split("#")[0])
                if not words or Path(words[0]).name not in ("ingot", "ingot.exe") or "=" in words[0]:
                    continue
                name = words[1]
                if name not in helps:
                    helps[name] = subprocess.run(
                        [INGOT, name, "--help"], capture_output=True, text=True, check=True
                    ).stdout
                missing = [
                    word
                    for word in words[2:]
                    if word.startswith("-") and word.split("=")[0] not in helps[name]
                ]
                assert missing == [], line
    assert {"build", "run", "bench", "inspect", "verify", "profile"} <= set(helps)
    assert ingot.__version__
