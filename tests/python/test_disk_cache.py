# SPDX-License-Identifier: Apache-2.0
"""What a build keeps on disk serves other processes, whatever their weights, and no problem with it fails a build."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ingot
import pytest
import torch
from cache_folders import entries
from torch import nn

INGOT = Path(sys.executable).with_name("ingot")


def model(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(24, 40), nn.GELU(), nn.LayerNorm(40), nn.Linear(40, 8), nn.Softmax(-1)
    ).eval()


X = torch.randn(6, 24, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


class Built:
    """A build as another process would make it: with nothing in memory."""

    def __init__(self, folder: Path, module: nn.Module, program: Any = None, **options: Any) -> None:
        self.module = module
        with torch.no_grad(), ingot.Session() as session:
            program = torch.export.export(module, (X,)) if program is None else program
            self.engine = ingot.build(program, engine_cache_dir=str(folder), verify_kernels=False, **options)
            self.stats = session.cache_stats()
            torch.testing.assert_close(self.engine(X), module(X))

    @property
    def made(self) -> int:
        return self.stats["made"]


def test_a_second_build_makes_nothing(folder: Path) -> None:
    first = Built(folder, model())
    assert first.made > 0
    assert len(entries(folder)) == first.made + 1, "the kernels and the engine"
    second = Built(folder, model())
    assert second.made == second.stats["from_disk"] == 0, "the whole engine was found"
    assert second.engine.to_bytes() == first.engine.to_bytes()


def test_other_weights_find_the_same_engine(folder: Path) -> None:
    Built(folder, model(0))
    other = Built(folder, model(1))
    assert other.made == 0
    assert other.engine.to_bytes() == Built(folder.parent / "none", model(1)).engine.to_bytes()


def test_engines_that_were_found_can_be_refitted(folder: Path) -> None:
    Built(folder, model(0))
    found, target = Built(folder, model(1)), model(2)
    found.engine.refit(dict(target.state_dict()))
    torch.testing.assert_close(found.engine(X), target(X))


def test_another_name_of_a_weight_finds_the_engine(folder: Path) -> None:
    Built(folder, model())

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.other_name = model()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.other_name(x)

    renamed = Built(folder, Named().eval())
    assert renamed.made == renamed.stats["from_disk"] == 0
    assert renamed.engine.to_bytes() == Built(folder.parent / "none", Named().eval()).engine.to_bytes()


@pytest.mark.parametrize(
    "options",
    [{"optimization_level": 0}, {"numerics": "strict"}, {"disable_passes": ["fuse"]}, {"cpu": "x86-64-v3"}],
)
def test_other_options_find_no_engine_of_these(folder: Path, options: dict[str, Any]) -> None:
    first = Built(folder, model())
    count = len(entries(folder))
    Built(folder, model(), **options)
    target = first.engine.inspect()["target"].split()[0]
    is_the_same = target == f"cpu:{options.get('cpu')}"  # this processor has no more
    assert (len(entries(folder)) > count) is not is_the_same


def test_a_constant_is_part_of_the_engine(folder: Path) -> None:
    class Shifted(nn.Module):
        def __init__(self, shift: int) -> None:
            super().__init__()
            self.register_buffer("shift", torch.arange(24) + shift)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.shift

    for shift in (0, 5):
        Built(folder, Shifted(shift))


def test_reuse_and_keeping_can_be_turned_off(folder: Path) -> None:
    Built(folder, model(), cache_built_engines=False)
    assert not entries(folder)
    first = Built(folder, model())
    assert Built(folder, model(), reuse_cached_engines=False).made == first.made


def test_every_damaged_entry_is_made_again(folder: Path) -> None:
    first = Built(folder, model())
    whole = {path: path.read_bytes() for path in entries(folder)}
    for share in (0, 0.1, 0.5, 1):
        for path, content in whole.items():
            damaged = bytearray(content)
            damaged[int(share * (len(content) - 1))] ^= 16
            path.write_bytes(damaged)
        again = Built(folder, model())
        assert again.made == first.made
        assert again.engine.to_bytes() == first.engine.to_bytes()
        assert {path: path.read_bytes() for path in entries(folder)} == whole


def unusable(folder: Path) -> None:
    folder.mkdir(mode=0o755)


def no_folder(folder: Path) -> None:
    folder.write_text("a file")


@pytest.mark.parametrize("spoil", [unusable, no_folder])
def test_a_folder_that_cannot_be_used_costs_a_build(folder: Path, spoil: Callable[[Path], None]) -> None:
    spoil(folder)
    for _ in range(2):
        assert Built(folder, model()).made > 0


SCRIPT = """
import sys, torch, ingot
torch.set_grad_enabled(False)
torch.manual_seed(0)
layer = torch.nn.Linear(8, 8).eval()
x = torch.randn(2, 8)
torch.testing.assert_close(torch.compile(layer, backend="ingot")(x), layer(x))
print(ingot.cache_stats()["made"], ingot.cache_stats()["folder"])
"""


def run_script(**environment: str) -> list[str]:
    import os

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


def test_the_environment_names_the_folder(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    for variables, folder in (
        ({**home, "INGOT_ENGINE_CACHE_DIR": ""}, tmp_path / ".cache" / "ingot"),
        (
            {**home, "INGOT_ENGINE_CACHE_DIR": "", "XDG_CACHE_HOME": str(tmp_path / "xdg")},
            tmp_path / "xdg" / "ingot",
        ),
        ({**home, "INGOT_ENGINE_CACHE_DIR": str(tmp_path / "named")}, tmp_path / "named"),
    ):
        first, second = run_script(**variables), run_script(**variables)
        assert int(first[0]) > 0 == int(second[0])
        assert first[1] == str(folder)
        assert folder.stat().st_mode & 0o777 == 0o700
    assert run_script(INGOT_ENGINE_CACHE_DIR="off") == [first[0]]


def cache(*arguments: str) -> Any:
    done = subprocess.run([INGOT, "cache", *arguments, "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_command_line_shows_and_removes_entries(folder: Path) -> None:
    Built(folder, model())
    there = ("--folder", str(folder))
    listed = cache("ls", *there)
    assert {entry["key"] for entry in listed["entries"]} == {p.parent.name + p.name for p in entries(folder)}
    assert (
        cache("stats", *there)["bytes"]
        == sum(path.stat().st_size for path in entries(folder))
        == listed["bytes"]
    )
    kinds = {cache("why", entry["key"], *there)["kind"] for entry in listed["entries"]}
    assert kinds == {"kernel", "engine"}
    assert "code by LLVM" in cache("why", listed["entries"][0]["key"][:12], *there)["text"]
    entries(folder)[0].write_bytes(b"nothing")
    verified = cache("verify", *there)
    assert [row["reason"] for row in verified["damaged"]] == ["it is cut off"]
    assert cache("verify", *there) == {"damaged": [], "entries": len(listed["entries"]) - 1}
    whole = cache("stats", *there)["bytes"]
    assert cache("gc", "--size", str(whole), *there)["bytes"] == whole
    assert cache("gc", "--size", str(whole - 1), *there)["bytes"] < whole
    assert cache("clear", *there)["entries"] == 0
    assert not entries(folder)


def test_a_new_export_finds_the_engine_whatever_torch_calls_its_sizes(folder: Path) -> None:
    def exported(unrelated: int) -> Any:
        """Symbols are numbered by what torch has traced before."""
        module = model()
        batch = torch.export.Dim(f"batch{unrelated}", min=1, max=64)
        program = torch.export.export(module, (X,), dynamic_shapes=({0: batch},))
        return module, program

    names = set()
    for unrelated in range(3):
        module, program = exported(unrelated)
        names |= {str(symbol) for symbol in program.range_constraints}
        built = Built(folder, module, program)
        assert (built.made == 0) == (unrelated > 0), names
        assert built.engine.inputs[0].shape == ("s0", 24)


def test_only_what_changed_is_compiled_anew(folder: Path, tmp_path: Path) -> None:
    def report_of(module: nn.Module, name: str) -> dict[str, Any]:
        torch.export.save(torch.export.export(module, (X,)), tmp_path / f"{name}.pt2")
        command = [
            INGOT,
            "build",
            f"{name}.pt2",
            "-o",
            f"{name}.ingot",
            "--engine-cache-dir",
            folder,
            "--json",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    first = report_of(model(), "old")
    assert len(first["new_kernels"]) == first["distinct_kernels"] > 1
    changed = model()
    changed[4] = nn.Sigmoid()
    second = report_of(changed, "new")
    assert 0 < len(second["new_kernels"]) < first["distinct_kernels"]
    done = subprocess.run([INGOT, "diff", "old.ingot", "new.ingot", "--json"], cwd=tmp_path, capture_output=True,
                          text=True, check=True)  # fmt: skip
    diff = json.loads(done.stdout)
    assert not diff["identical"]
    assert set(second["new_kernels"]) <= set(diff["kernels"]["added"])
    assert diff["weights"]["changed"] == []
    assert diff["options"] == []
    assert diff["first_difference_of_graphs"]
    same = subprocess.run(
        [INGOT, "diff", "old.ingot", "old.ingot"], cwd=tmp_path, capture_output=True, text=True
    )
    assert same.stdout == "the engines are identical\n"


def test_repeated_layers_are_reported(tmp_path: Path) -> None:
    class Stack(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Sequential(nn.Linear(24, 24), nn.LayerNorm(24)) for _ in range(5))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x

    torch.export.save(torch.export.export(Stack().eval(), (X,)), tmp_path / "stack.pt2")
    command = [INGOT, "build", tmp_path / "stack.pt2", "--json"]
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert report["repeats"] == [{"path": "layers", "layers": 5, "distinct": 1}]


def test_misses_give_their_reasons(folder: Path) -> None:
    script = f"""
import torch, ingot
x = torch.ones(2, 8)
for options in ({{}}, {{"optimization_level": 1}}):
    ingot.compile(torch.nn.Linear(8, 8).eval(), inputs=[x], engine_cache_dir={str(folder)!r}, **options)
"""
    import os

    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "INGOT_LOG": "info"}, text=True,
                          capture_output=True, check=True)  # fmt: skip
    lines = [line for line in done.stderr.splitlines() if "cache:" in line]
    assert "there is no engine yet" in lines[0]
    assert any("level=3" in line and "level=1" in line for line in lines), done.stderr
    assert any("compiled" in line and "kernels" in line for line in lines)


def test_bundles_serve_other_machines(folder: Path, tmp_path: Path) -> None:
    Built(folder, model())
    bundle, other = str(tmp_path / "kernels.bundle"), tmp_path / "other"
    assert cache("bundle", bundle, "--folder", str(folder))["entries"] == len(entries(folder))
    assert cache("unbundle", bundle, "--folder", str(other))["entries"] == len(entries(folder))
    assert Built(other, model()).made == 0
    Path(bundle).write_bytes(Path(bundle).read_bytes()[:-1])
    done = subprocess.run(
        [INGOT, "cache", "unbundle", bundle, "--folder", other], capture_output=True, text=True
    )
    assert (done.returncode, "INGOT-U024" in done.stderr) == (1, True)


def test_strict_builds_report_a_folder_that_others_may_enter(folder: Path) -> None:
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    assert Built(folder, model()).made > 0
    with pytest.raises(ingot.UserError, match=r"INGOT-U028.*others may enter"):
        Built(folder, model(), strict_cache=True)
